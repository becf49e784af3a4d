# The Python package. It is plain Python, and loads libvarve.so by ctypes.

# The libraries that `pip install .` puts into the package (setup.py)
add_custom_target(python_libraries DEPENDS varve_core)
foreach(target varve_interpose varve_mpi)
  if(TARGET ${target})
    add_dependencies(python_libraries ${target})
  endif()
endforeach()

find_package(Python3 3.9 COMPONENTS Interpreter)
option(VARVE_WITH_PYTHON "install the Python package" ${Python3_FOUND})
if(NOT VARVE_WITH_PYTHON OR NOT Python3_FOUND)
  return()
endif()
set(python_dir lib/python${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR}/site-packages)
if(EXISTS /etc/debian_version AND CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(python_dir lib/python3/dist-packages)
elseif(EXISTS /etc/debian_version)
  set(python_dir lib/python${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR}/dist-packages)
endif()
set(VARVE_PYTHONDIR ${python_dir} CACHE STRING "folder of the Python package, below the prefix")
install(DIRECTORY python/varve DESTINATION ${VARVE_PYTHONDIR} FILES_MATCHING PATTERN "*.py" PATTERN "py.typed"
  PATTERN "__pycache__" EXCLUDE)
