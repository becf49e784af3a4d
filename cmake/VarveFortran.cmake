# The Fortran libraries. Modules go into one folder of the build, and are installed into VARVE_MODULEDIR.
set(VARVE_MODULEDIR ${CMAKE_INSTALL_LIBDIR}/varve/fortran CACHE STRING "where Fortran modules are installed, below the prefix")
set(module_dir ${PROJECT_BINARY_DIR}/fortran)

# varve_fortran_library(NAME SOURCE...): from C and Fortran files, which have flags of their own
function(varve_fortran_library name)
  set(c_sources ${ARGN})
  set(f_sources ${ARGN})
  list(FILTER c_sources INCLUDE REGEX "\\.c$")
  list(FILTER f_sources EXCLUDE REGEX "\\.c$")
  add_library(${name}_c_objects OBJECT ${c_sources})
  target_include_directories(${name}_c_objects PRIVATE include src)
  target_compile_options(${name}_c_objects PRIVATE "SHELL:-idirafter ${FORTRAN_BINDING_DIR}")
  target_link_libraries(${name}_c_objects PRIVATE varve_flags)
  add_library(${name} STATIC ${f_sources} $<TARGET_OBJECTS:${name}_c_objects>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${module_dir}> $<INSTALL_INTERFACE:${VARVE_MODULEDIR}>)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:varve_fortran_flags>)
  set_target_properties(${name} ${name}_c_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  set_target_properties(${name} PROPERTIES Fortran_MODULE_DIRECTORY ${module_dir} LINKER_LANGUAGE Fortran)
endfunction()

varve_fortran_library(varve_fortran src/fortran/varve.f90 src/fortran/varve_here.f90 src/fortran/array.c src/fortran/here_calls.c)
target_link_libraries(varve_fortran PUBLIC varve ${CMAKE_DL_LIBS})

if(VV_HAVE_FORTRAN_MPI)
  varve_fortran_library(varve_fortran_mpi src/fortran/varve_mpi.f90 src/fortran/open_mpi.c)
  target_link_libraries(varve_fortran_mpi_c_objects PRIVATE MPI::MPI_C)
  target_link_libraries(varve_fortran_mpi PUBLIC varve_fortran varve_mpi MPI::MPI_Fortran)
endif()
