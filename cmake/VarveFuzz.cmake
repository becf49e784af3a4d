# Each fuzz/fuzz_<name>.c becomes a libFuzzer program. tests/ replays the corpora in ordinary builds.
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/fuzz_*.c)
varve_drop_missing(fuzz_sources)
foreach(source ${fuzz_sources})
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE varve_internal varve_flags)
  if(name STREQUAL "fuzz_image") # which is a part of the command, not of the library
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:varve_image_objects>)
  endif()
  # libFuzzer has no header that declares the entry point
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-missing-prototypes)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endforeach()
