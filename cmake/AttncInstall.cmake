# `cmake --install build --prefix DIR`: headers, libraries, tools, and the
# package that find_package(Attn) finds. Component Development is all but the
# tools.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Attn)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/AttnConfig.cmake.in
  ${PROJECT_BINARY_DIR}/AttnConfig.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/AttnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AttnConfig.cmake
              ${PROJECT_BINARY_DIR}/AttnConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT Development)
install(EXPORT AttnTargets NAMESPACE Attn:: DESTINATION ${package_dir}
  COMPONENT Development)
# The generated headers lie in the build folder, under the same names.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc"
  PATTERN "CMakeFiles" EXCLUDE)
