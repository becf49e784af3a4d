/* Which fences this system has. */
#ifndef VV_TEST_FENCE_KINDS_H
#define VV_TEST_FENCE_KINDS_H

#include "base/err.h"
#include "track/write_protect.h"
#include "vv_test.h"
#include <stdio.h>

static inline bool have_fences(enum vv_write_protect_kind kind, void (*ask)(void *arg, uintptr_t at))
{
	struct vv_write_protect *write_protect = NULL;
	int rc = vv_write_protect_new(kind, ask, NULL, &write_protect);

	CHECK(rc == 0 || rc == VV_ENOTSUP);
	if (rc == 0)
		vv_write_protect_free(write_protect);
	else
		printf("skipped: fences of kind %d are not to be had here: %s\n", kind, vv_err_last());
	return rc == 0;
}

#endif
