/* What programs below libvarve_preload check of themselves. */
#ifndef VV_TEST_EXPECT_H
#define VV_TEST_EXPECT_H

#include <stdint.h>
#include <stdio.h>

static int bad;

static void expect(const char *what, int ok)
{
	if (!ok)
		printf("wrong: %s\n", what);
	bad += !ok;
}

/* Of the heap that is captured, by its address. */
static inline int is_heap(const void *p)
{
	return (uintptr_t)p >> 40 >= 0x20 && (uintptr_t)p >> 40 < 0x30;
}

#endif
