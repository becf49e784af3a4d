/* The variables of the executable: its writable memory, without the loader's data. */
#ifndef VV_PRELOAD_GLOBALS_H
#define VV_PRELOAD_GLOBALS_H

#include <stddef.h>
#include <stdint.h>

enum { VV_GLOBALS_MAX = 8 };

struct vv_globals {
	struct {
		uint64_t lo, size;
	} part[VV_GLOBALS_MAX];
	uint32_t n;
};

void vv_globals_find(struct vv_globals *out);
/* Calls fn until it returns nonzero, and returns that value. The calls are for each variable of a
 * library that lies in the executable (stdout, environ). They are also for the loader's addresses
 * of functions in `g`. */
int vv_globals_borrowed(const struct vv_globals *g, int (*fn)(void *arg, uintptr_t lo, size_t n), void *arg);

#endif
