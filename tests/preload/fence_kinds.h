/* Which fences this system has. */
#ifndef VV_TEST_FENCE_KINDS_H
#define VV_TEST_FENCE_KINDS_H

#include "base/err.h"
#include "track/fence.h"
#include "vv_test.h"
#include <stdio.h>

static inline bool have_fences(enum vv_fence_kind kind, void (*ask)(void *arg, uintptr_t at))
{
	struct vv_fence *fence = NULL;
	int rc = vv_fence_new(kind, ask, NULL, &fence);

	CHECK(rc == 0 || rc == VV_ENOTSUP);
	if (rc == 0)
		vv_fence_free(fence);
	else
		printf("skipped: fences of kind %d are not to be had here: %s\n", kind, vv_err_last());
	return rc == 0;
}

#endif
