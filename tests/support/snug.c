#include "support/snug.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>

enum { MARK = 0x5a };

uint8_t *snug_encode(const struct vv_codec *c, const void *from, size_t n, const struct vv_recipe *how, int level, size_t *out)
{
	size_t cap = c->bound(n);
	uint8_t *to = malloc(cap + 1), *exact;

	CHECK(to);
	to[cap] = MARK;
	*out = 12345;
	CHECK_EQ(c->encode(from, n, how, to, cap, level, out), 0);
	CHECK_EQ(to[cap], MARK);
	CHECK(*out < n || *out == 0);
	exact = malloc(*out ? *out : 1);
	CHECK(exact);
	memcpy(exact, to, *out);
	free(to);
	return exact;
}

int snug_decode(const struct vv_codec *c, const void *coded, size_t n, const void *want, size_t raw_len)
{
	uint8_t *back = malloc(raw_len + 1), *copy = malloc(n ? n : 1);
	int rc;

	CHECK(back && copy);
	memcpy(copy, coded, n);
	back[raw_len] = MARK;
	rc = c->decode(copy, n, back, raw_len);
	CHECK_EQ(back[raw_len], MARK);
	CHECK(rc || !want || memcmp(back, want, raw_len) == 0);
	free(back);
	free(copy);
	return rc;
}
