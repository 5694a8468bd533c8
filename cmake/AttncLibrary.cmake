# attnc_library(NAME sources... [DEPENDS targets...] [LINK_LIBS libs...])
#
# A static library of the project. LINK_LIBS names attnc libraries and, for a
# static build, the MLIR/LLVM ones; in a shared build every MLIR library is the
# one `MLIR` dylib. It is installed unless INTERNAL is among the arguments.
function(attnc_library name)
  cmake_parse_arguments(ARG "INTERNAL" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  add_dependencies(${name} attnc-headers ${ARG_DEPENDS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  attnc_precompile(${name})
  if(NOT ARG_INTERNAL)
    install(TARGETS ${name} EXPORT AttnTargets
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Development)
  endif()
endfunction()

# attnc_tool(NAME sources... LINK_LIBS libs...)
function(attnc_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS}
    "${PROJECT_SOURCE_DIR}/tools/Support/ToolVersion.cpp")
  target_compile_definitions(${name} PRIVATE ATTNC_VERSION="${PROJECT_VERSION}")
  add_dependencies(${name} attnc-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  attnc_link_mlir(${name})
  attnc_precompile(${name})
endfunction()

# Links LLVM and MLIR: the dylibs, or the archives that a static tool needs.
function(attnc_link_mlir target)
  if(ATTNC_STATIC)
    attnc_link_mlir_archives(${target})
  else()
    target_link_libraries(${target} PRIVATE MLIR LLVM)
  endif()
endfunction()

# The archives are named as files: the interface of MLIR's imported targets
# brings the LLVM dylib back in. Linkers take only the members that are used.
function(attnc_link_mlir_archives target)
  file(GLOB archives "${LLVM_LIBRARY_DIR}/libMLIR*.a"
                     "${LLVM_LIBRARY_DIR}/libLLVM*.a")
  target_link_libraries(${target} PRIVATE ${archives} -l:libz.a -l:libzstd.a
                        rt dl m pthread)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc
                      -Wl,--gc-sections -Wl,-s)
endfunction()

# attnc_embed(TARGET NAME FILE)
#
# Sources of TARGET may include NAME.inc, the bytes of FILE, in an array.
function(attnc_embed target name file)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}.inc")
  add_custom_command(OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} "-DINPUT=${file}" "-DOUTPUT=${output}"
            -P "${PROJECT_SOURCE_DIR}/cmake/EmbedBytes.cmake"
    DEPENDS "${file}" "${PROJECT_SOURCE_DIR}/cmake/EmbedBytes.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
