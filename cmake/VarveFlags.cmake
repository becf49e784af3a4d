# varve_flags: how every C file of this repository is compiled. Sanitizers apply to all targets alike.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(varve_flags INTERFACE)
target_compile_definitions(varve_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64 $<$<BOOL:${VARVE_CHECK_LOCKS}>:VARVE_CHECK_LOCKS>)
target_compile_options(varve_flags INTERFACE
  -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wformat=2
  -Wpointer-arith
  # a fused multiply-add rounds once instead of twice: predictions would differ between machines
  -ffp-contract=off
  $<$<BOOL:${VARVE_WERROR}>:-Werror>)

# The same for Fortran, and for C++, in which only examples and tests are.
add_library(varve_fortran_flags INTERFACE)
target_compile_options(varve_fortran_flags INTERFACE $<$<BOOL:${VARVE_WERROR}>:-Werror>
  $<$<Fortran_COMPILER_ID:GNU>:-Wall> $<$<Fortran_COMPILER_ID:GNU>:-Wextra> $<$<Fortran_COMPILER_ID:GNU>:-Wno-c-binding-type>
  $<$<Fortran_COMPILER_ID:GNU>:-Wno-compare-reals>)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
add_library(varve_cxx_flags INTERFACE)
target_compile_definitions(varve_cxx_flags INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX) # MPI's own C++, long withdrawn
target_compile_options(varve_cxx_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith $<$<BOOL:${VARVE_WERROR}>:-Werror>)
target_link_libraries(varve_cxx_flags INTERFACE ${CMAKE_DL_LIBS})

if(VARVE_SANITIZE)
  list(JOIN VARVE_SANITIZE "," sanitizers)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${sanitizers}> $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${sanitizers})
endif()
if(VARVE_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "VARVE_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
endif()

# varve_add_kernels(TARGET SOURCE...): CUDA files as an object library. Nothing of theirs needs the C++ runtime, and nothing is shown.
function(varve_add_kernels target)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/bench)
  target_compile_options(${target} PRIVATE "SHELL:-Xcompiler -Wall,-Wextra,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics"
    $<$<BOOL:${VARVE_WERROR}>:-Werror=all-warnings>)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden LINKER_LANGUAGE C)
endfunction()

# varve_symbol_versions(TARGET MAP): exports by a version script of this folder
function(varve_symbol_versions target map)
  set(script ${PROJECT_SOURCE_DIR}/cmake/${map})
  target_link_options(${target} PRIVATE LINKER:--version-script=${script})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()
