# Headers, both libraries, the command, man pages, and what pkg-config and find_package read.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/varve)

install(TARGETS varve varve_internal EXPORT varveTargets)
if(TARGET varve_cli)
  install(TARGETS varve_cli)
endif()
install(DIRECTORY include/varve TYPE INCLUDE OPTIONAL FILES_MATCHING PATTERN "*.h")
foreach(section 1 3 5)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()

install(EXPORT varveTargets NAMESPACE varve:: DESTINATION ${package_dir})
configure_package_config_file(cmake/varveConfig.cmake.in varveConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(varveConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/varveConfig.cmake ${PROJECT_BINARY_DIR}/varveConfigVersion.cmake
  DESTINATION ${package_dir})

# the way from the .pc file back to the prefix: ../.. unless LIBDIR is a multiarch one
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/varve.pc.in varve.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/varve.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
