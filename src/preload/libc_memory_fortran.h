/* GNU Fortran's library hands over arrays and strings that it has allocated (a = reshape(b, [100])), and keeps what it knows of files. Both are malloc's, but
 * all that it hands over comes through one function of its own: known by where that calls malloc from, which is seen when it is asked for a string. */
#ifndef VV_PRELOAD_LIBC_MEMORY_FORTRAN_H
#define VV_PRELOAD_LIBC_MEMORY_FORTRAN_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the place, if the library is loaded. */
void vv_libc_memory_fortran_ask(void);
/* Is this it? */
bool vv_libc_memory_fortran_calls(uintptr_t caller);

#endif
