# libvarve_preload.so: the whole library, and a heap that it can checkpoint. jemalloc is the distribution's, linked from its static
# library so that nobody else sees it, with malloc and its like renamed: the program's malloc is ours, which calls it.
set(VARVE_WITH_JEMALLOC AUTO CACHE STRING "jemalloc, for libvarve_preload: AUTO, ON or OFF")
set_property(CACHE VARVE_WITH_JEMALLOC PROPERTY STRINGS AUTO ON OFF)
set(VV_HAVE_JEMALLOC 0)
if(VARVE_WITH_JEMALLOC AND VARVE_WITH_WRAP AND NOT VARVE_SANITIZE AND NOT VARVE_FUZZ)
  find_path(JEMALLOC_INCLUDE_DIR jemalloc/jemalloc.h)
  find_library(JEMALLOC_PIC_LIBRARY libjemalloc_pic.a)
  mark_as_advanced(JEMALLOC_INCLUDE_DIR JEMALLOC_PIC_LIBRARY)
  if(JEMALLOC_INCLUDE_DIR AND JEMALLOC_PIC_LIBRARY AND CMAKE_OBJCOPY)
    set(VV_HAVE_JEMALLOC 1)
  elseif(NOT VARVE_WITH_JEMALLOC STREQUAL "AUTO")
    message(FATAL_ERROR "VARVE_WITH_JEMALLOC=${VARVE_WITH_JEMALLOC}, but jemalloc/jemalloc.h, libjemalloc_pic.a or objcopy was not found "
      "(Debian: libjemalloc-dev, binutils)")
  endif()
endif()

function(varve_add_preload)
  set(renamed ${PROJECT_BINARY_DIR}/libvv_jemalloc.a)
  set(names malloc calloc realloc free memalign posix_memalign aligned_alloc valloc malloc_usable_size mallctl mallctlnametomib
    mallctlbymib mallocx rallocx xallocx sallocx dallocx sdallocx nallocx malloc_stats_print malloc_conf malloc_message)
  # and what it asks the C library for: its records out of the way of libraries, and no word of the program's about its own jemalloc
  list(APPEND names mmap secure_getenv readlink)
  list(TRANSFORM names REPLACE "(.+)" "--redefine-sym;\\1=vv_je_\\1")
  add_custom_command(OUTPUT ${renamed} COMMAND ${CMAKE_OBJCOPY} ${names} ${JEMALLOC_PIC_LIBRARY} ${renamed}
    DEPENDS ${JEMALLOC_PIC_LIBRARY} COMMENT "jemalloc under other names" VERBATIM)
  add_custom_target(varve_jemalloc DEPENDS ${renamed})

  file(GLOB sources CONFIGURE_DEPENDS src/preload/*.c) # wrap/ has objects of its own
  add_library(varve_preload SHARED ${sources} $<TARGET_OBJECTS:varve_objects> ${varve_wraps} ${varve_levels} ${varve_kernels})
  add_dependencies(varve_preload varve_jemalloc)
  target_include_directories(varve_preload PRIVATE include src ${PROJECT_BINARY_DIR}/include)
  target_include_directories(varve_preload SYSTEM PRIVATE ${JEMALLOC_INCLUDE_DIR})
  # the bodies of malloc and its like: compilers know what those do, and would make one of the other
  target_compile_options(varve_preload PRIVATE -fno-builtin)
  # a few instructions in front of jemalloc's: none of them to be spent on a frame
  set_property(SOURCE src/preload/alloc.c src/preload/new.c APPEND PROPERTY COMPILE_OPTIONS -fomit-frame-pointer)
  target_link_libraries(varve_preload PRIVATE varve_flags varve_depends ${renamed})
  target_link_options(varve_preload PRIVATE LINKER:--exclude-libs,libvv_jemalloc.a LINKER:--no-undefined)
  varve_symbol_versions(varve_preload varve_preload.map)
  set_target_properties(varve_preload PROPERTIES C_VISIBILITY_PRESET hidden LINKER_LANGUAGE C INSTALL_RPATH $ORIGIN)

  # What it loads into MPI programs: libvarve_mpi, but with libvarve_preload for its libvarve.
  if(VV_HAVE_MPI)
    add_library(varve_preload_mpi MODULE $<TARGET_OBJECTS:varve_mpi_objects>)
    target_link_libraries(varve_preload_mpi PRIVATE MPI::MPI_C)
    set_target_properties(varve_preload_mpi PROPERTIES LINKER_LANGUAGE C)
  endif()
endfunction()
