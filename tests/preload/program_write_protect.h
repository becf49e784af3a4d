// A fence around one buffer, for program.c and program.cpp.
#ifdef __cplusplus
extern "C" {
#endif
#include "track/write_protect.h"
#ifdef __cplusplus
}
#endif

static struct vv_write_protect *write_protect;
static int asks;

static void ask(void *arg, uintptr_t page)
{
	(void)arg;
	asks++;
	if (vv_write_protect_disable(write_protect, page, page + (uintptr_t)sysconf(_SC_PAGESIZE)) != 0)
		abort();
}

static void shut(void *p, size_t n)
{
	uintptr_t lo = (uintptr_t)p;
	asks = 0;
	if (!write_protect && (vv_write_protect_new(VV_WRITE_PROTECT_MPROTECT, ask, NULL, &write_protect) != 0 || vv_write_protect_add(write_protect, lo, lo + n) != 0))
		abort();
	if (vv_write_protect_enable(write_protect, lo, lo + n) != 0)
		abort();
}

static int was_asked(void)
{
	return asks > 0;
}
