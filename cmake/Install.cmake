# What `cmake --install` lays down: the library with its headers and a CMake package, the program, and
# the bundled models, which the program finds relative to itself (<prefix>/share/openelm/models).
include(CMakePackageConfigHelpers)

set(openelm_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/openelm)
set(openelm_data_dir ${CMAKE_INSTALL_DATADIR}/openelm)

install(TARGETS openelm EXPORT openelm-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/openelm ${PROJECT_BINARY_DIR}/include/openelm
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${openelm_data_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(OPENELM_CLI)
  install(TARGETS openelm-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT openelm-targets NAMESPACE openelm:: DESTINATION ${openelm_package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/openelm-config.cmake.in openelm-config.cmake
  INSTALL_DESTINATION ${openelm_package_dir} PATH_VARS openelm_data_dir)
write_basic_package_version_file(openelm-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/openelm-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/openelm-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindSentencePiece.cmake
  DESTINATION ${openelm_package_dir})
