# Made by the command itself, from its tables of verbs and options: its manual pages (tools/man_pages.py, with the texts of docs/man/varve.1
# and docs/man/verbs) in build/man, and the completions of the shells in build/completion. A command that cannot run here makes none.
add_custom_target(manuals ALL)
find_package(Python3 3.9 COMPONENTS Interpreter)
set(varve_no_manuals "")
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  set(varve_no_manuals "the command is built for another machine")
elseif(VARVE_SANITIZE MATCHES "thread")
  set(varve_no_manuals "ThreadSanitizer may not start here")
elseif(NOT Python3_FOUND)
  set(varve_no_manuals "python3 was not found")
endif()
if(varve_no_manuals)
  message(NOTICE "no manual pages of the command, no completions of shells: ${varve_no_manuals}")
  return()
endif()

file(GLOB texts CONFIGURE_DEPENDS docs/man/verbs/*.1)
set(pages ${PROJECT_BINARY_DIR}/man/varve.1)
foreach(text ${texts})
  cmake_path(GET text STEM verb)
  list(APPEND pages ${PROJECT_BINARY_DIR}/man/varve-${verb}.1)
endforeach()
add_custom_command(OUTPUT ${pages} DEPENDS varve_cli ${texts} docs/man/varve.1 tools/man_pages.py
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/man_pages.py $<TARGET_FILE:varve_cli> ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/man
  COMMENT "Writing the manual pages of the command" VERBATIM)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

set(commands varve)
if(VV_HAVE_MPI)
  list(APPEND commands varve-mpi) # bash and fish look for a file of the command's name
endif()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completion)
set(scripts "")
foreach(shell bash zsh fish)
  set(script ${PROJECT_BINARY_DIR}/completion/varve.${shell})
  list(APPEND scripts ${script})
  add_custom_command(OUTPUT ${script} DEPENDS varve_cli COMMAND varve_cli completion ${shell} > ${script}
    COMMENT "Writing the completion of ${shell}" VERBATIM)
endforeach()
foreach(command ${commands})
  install(FILES ${PROJECT_BINARY_DIR}/completion/varve.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${command})
  install(FILES ${PROJECT_BINARY_DIR}/completion/varve.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ${command}.fish)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/completion/varve.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _varve)

add_custom_target(manual_files DEPENDS ${pages} ${scripts})
add_dependencies(manuals manual_files)
