// A fence around one buffer, for program.c and program.cpp.
#ifdef __cplusplus
extern "C" {
#endif
#include "track/fence.h"
#ifdef __cplusplus
}
#endif

static struct vv_fence *fence;
static int asks;

static void ask(void *arg, uintptr_t page)
{
	(void)arg;
	asks++;
	if (vv_fence_open(fence, page, page + (uintptr_t)sysconf(_SC_PAGESIZE)) != 0)
		abort();
}

static void shut(void *p, size_t n)
{
	uintptr_t lo = (uintptr_t)p;
	asks = 0;
	if (!fence && (vv_fence_new(VV_FENCE_MPROTECT, ask, NULL, &fence) != 0 || vv_fence_add(fence, lo, lo + n) != 0))
		abort();
	if (vv_fence_shut(fence, lo, lo + n) != 0)
		abort();
}

static int was_asked(void)
{
	return asks > 0;
}
