# The page of `varve report`: report/ bundled by node, as a C array. Where node or npm is missing, or npm cannot get the two packages that
# package-lock.json names (no network, nothing in its cache), `varve report` has its data, but no page.
# Gives: VV_HAVE_REPORT, varve_report_page (the C file to compile, or nothing).
set(VARVE_WITH_REPORT AUTO CACHE STRING "the page of varve report: AUTO, ON or OFF")
set_property(CACHE VARVE_WITH_REPORT PROPERTY STRINGS AUTO ON OFF)
set(VV_HAVE_REPORT 0)
set(varve_report_page "")

# varve_get_packages(VARIABLE): npm's, by the lock file, in the build tree; once for each state of it. VARIABLE: why not, or "".
function(varve_get_packages why)
  set(folder ${PROJECT_BINARY_DIR}/report)
  file(SHA256 ${PROJECT_SOURCE_DIR}/report/package-lock.json wanted)
  set(present "")
  if(EXISTS ${folder}/present)
    file(READ ${folder}/present present)
  endif()
  set(${why} "" PARENT_SCOPE)
  if(present STREQUAL wanted AND EXISTS ${folder}/node_modules/esbuild)
    return()
  endif()
  file(COPY ${PROJECT_SOURCE_DIR}/report/package.json ${PROJECT_SOURCE_DIR}/report/package-lock.json DESTINATION ${folder})
  # no script of a package is run; a machine without a network should say so at once
  execute_process(COMMAND ${VARVE_NPM} ci --prefix ${folder} --ignore-scripts --no-audit --no-fund --prefer-offline
      --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=20000
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE words TIMEOUT 120)
  if(failed)
    string(REGEX MATCH "npm error [^\n]+" words "${words}")
    set(${why} "npm cannot get its packages (${failed}; ${words})" PARENT_SCOPE)
    return()
  endif()
  file(WRITE ${folder}/present ${wanted})
endfunction()

if(VARVE_WITH_REPORT AND NOT VARVE_FUZZ)
  find_program(VARVE_NODE NAMES node nodejs DOC "node, which bundles the page of varve report")
  find_program(VARVE_NPM NAMES npm DOC "npm, which gets what the page is made of")
  mark_as_advanced(VARVE_NODE VARVE_NPM)
  if(VARVE_NODE AND VARVE_NPM)
    varve_get_packages(varve_report_missing)
  else()
    set(varve_report_missing "node or npm was not found")
  endif()
  if(NOT varve_report_missing)
    set(VV_HAVE_REPORT 1)
    set(varve_report_page ${PROJECT_BINARY_DIR}/report/page.c)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS report/package-lock.json)
    file(GLOB report_sources CONFIGURE_DEPENDS report/*.mjs report/src/*)
    add_custom_command(OUTPUT ${varve_report_page} DEPENDS ${report_sources} ${PROJECT_BINARY_DIR}/report/present
      COMMAND ${VARVE_NODE} ${PROJECT_SOURCE_DIR}/report/build.mjs ${PROJECT_BINARY_DIR}/report
      COMMENT "Bundling the page of varve report" VERBATIM)
  elseif(VARVE_WITH_REPORT STREQUAL "AUTO")
    message(NOTICE "varve report: without its page: ${varve_report_missing}")
  else()
    message(FATAL_ERROR "VARVE_WITH_REPORT=${VARVE_WITH_REPORT}, but ${varve_report_missing}")
  endif()
endif()
