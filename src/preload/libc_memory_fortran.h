/* GNU Fortran's library returns arrays and strings that it has allocated (a = reshape(b, [100])),
 * and keeps records of files. Both come from malloc, but all returned memory comes through one
 * internal function. The address of its call of malloc identifies it. A request for a string
 * reveals that address. */
#ifndef VV_PRELOAD_LIBC_MEMORY_FORTRAN_H
#define VV_PRELOAD_LIBC_MEMORY_FORTRAN_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the address, if the library is loaded. */
void vv_libc_memory_fortran_ask(void);
/* Returns whether the caller is that address. */
bool vv_libc_memory_fortran_calls(uintptr_t caller);

#endif
