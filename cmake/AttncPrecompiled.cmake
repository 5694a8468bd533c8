# One precompiled header of LLVM's and MLIR's common headers for the libraries,
# tools and tests: most of a file's compile time is spent in those (measured:
# 6.6 s -> 1.5 s for a typical pass). Files still include what they use; the
# release preset builds without it and so finds a missing include.
#
# The project's own headers stay out, so that editing one doesn't rebuild all.
option(ATTNC_PRECOMPILED_HEADERS "Precompile LLVM's and MLIR's headers" ON)

if(ATTNC_PRECOMPILED_HEADERS)
  # CMake also names the header's text, by a path that ccache would take for a
  # difference between two build folders.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
  set(stub ${CMAKE_CURRENT_BINARY_DIR}/AttncPrecompiled.cpp)
  file(WRITE ${stub}.in "// Makes the precompiled header.\n")
  configure_file(${stub}.in ${stub} COPYONLY)
  add_library(AttncPrecompiled OBJECT ${stub})
  target_precompile_headers(AttncPrecompiled PRIVATE
    <mlir/Dialect/Affine/IR/AffineOps.h>
    <mlir/Dialect/Arith/IR/Arith.h>
    <mlir/Dialect/Bufferization/IR/Bufferization.h>
    <mlir/Dialect/ControlFlow/IR/ControlFlow.h>
    <mlir/Dialect/Func/IR/FuncOps.h>
    <mlir/Dialect/GPU/IR/GPUDialect.h>
    <mlir/Dialect/LLVMIR/LLVMDialect.h>
    <mlir/Dialect/LLVMIR/NVVMDialect.h>
    <mlir/Dialect/Linalg/IR/Linalg.h>
    <mlir/Dialect/Math/IR/Math.h>
    <mlir/Dialect/MemRef/IR/MemRef.h>
    <mlir/Dialect/SCF/IR/SCF.h>
    <mlir/Dialect/Tensor/IR/Tensor.h>
    <mlir/Dialect/Utils/StructuredOpsUtils.h>
    <mlir/Dialect/Vector/IR/VectorOps.h>
    <mlir/IR/Builders.h>
    <mlir/IR/BuiltinOps.h>
    <mlir/IR/Matchers.h>
    <mlir/IR/PatternMatch.h>
    <mlir/Pass/Pass.h>
    <mlir/Pass/PassManager.h>
    <mlir/Transforms/DialectConversion.h>
    <mlir/Transforms/GreedyPatternRewriteDriver.h>
    <llvm/ADT/TypeSwitch.h>)
  # A file's time would make each rebuild differ for ccache.
  target_compile_options(AttncPrecompiled PRIVATE
    "SHELL:-Xclang -fno-pch-timestamp")
  # The header holds paths of this build folder, so it isn't shared through
  # ccache; a checksum of what it is made from stands for it (see
  # pch_external_checksum in ccache's manual), so that its users are.
  set_target_properties(AttncPrecompiled PROPERTIES CXX_COMPILER_LAUNCHER "")
  get_target_property(headers AttncPrecompiled PRECOMPILE_HEADERS)
  file(CONFIGURE OUTPUT
    ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/AttncPrecompiled.dir/cmake_pch.hxx.pch.sum
    CONTENT "${LLVM_PACKAGE_VERSION} ${LLVM_PACKAGE_REVISION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE} ${headers}\n")
endif()

# attnc_precompile(TARGET) lets a target use the precompiled header.
function(attnc_precompile name)
  if(ATTNC_PRECOMPILED_HEADERS)
    target_precompile_headers(${name} REUSE_FROM AttncPrecompiled)
    # Executables are compiled with -fPIE, which the header isn't.
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
endfunction()
