/* Named points in long operations. Tests stop, fail or kill a process there; otherwise they have no
 * effect. */
#ifndef VV_BASE_TEST_POINT_H
#define VV_BASE_TEST_POINT_H

#include <stddef.h>

extern void (*vv_test_point_hook)(const char *name);

static inline void vv_test_point(const char *name)
{
	if (vv_test_point_hook)
		vv_test_point_hook(name);
}

#endif
