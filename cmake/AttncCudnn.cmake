# The backend that calls cuDNN is compiled against cudnn-frontend, a library of
# headers, and the headers of cuDNN and CUDA. Neither library is linked: they are
# loaded when they are first asked for. Where a header is missing, the backend
# says so.
#
# ATTNC_CUDNN_GRAPH is the source file that takes part in the build.

# `pip install nvidia-cudnn-frontend` puts them where Python's packages are.
find_program(ATTNC_PYTHON python3)
if(ATTNC_PYTHON AND NOT DEFINED ATTNC_PYTHON_PACKAGES)
  execute_process(
    COMMAND ${ATTNC_PYTHON} -c "import sysconfig; print(sysconfig.get_path('platlib'))"
    OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(ATTNC_PYTHON_PACKAGES "${packages}" CACHE INTERNAL "")
endif()
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
  HINTS ${ATTNC_PYTHON_PACKAGES}/include
  DOC "cudnn-frontend's headers")
find_path(CUDNN_INCLUDE_DIR cudnn.h
  HINTS /usr/local/cuda/include ${ATTNC_PYTHON_PACKAGES}/nvidia/cudnn/include
  DOC "cuDNN's headers")
find_path(CUDA_RUNTIME_INCLUDE_DIR cuda_runtime_api.h
  HINTS /usr/local/cuda/include
  DOC "CUDA's headers")

if(CUDNN_FRONTEND_INCLUDE_DIR AND CUDNN_INCLUDE_DIR AND CUDA_RUNTIME_INCLUDE_DIR)
  message(STATUS "cuDNN backend: ${CUDNN_FRONTEND_INCLUDE_DIR}")
  set(ATTNC_CUDNN_GRAPH CudnnGraph.cpp)
  set_source_files_properties(CudnnGraph.cpp PROPERTIES
    COMPILE_DEFINITIONS "NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING;CUDNN_FRONTEND_SKIP_JSON_LIB"
    COMPILE_OPTIONS "-fexceptions;-frtti;-isystem;${CUDNN_FRONTEND_INCLUDE_DIR};-isystem;${CUDNN_INCLUDE_DIR};-isystem;${CUDA_RUNTIME_INCLUDE_DIR}")
else()
  message(STATUS "cuDNN backend: off, it needs the headers of cudnn-frontend, cuDNN and CUDA")
  set(ATTNC_CUDNN_GRAPH NoCudnnGraph.cpp)
endif()
