// ctest: MODES
/* The whole road on one process: protect, checkpoint, restart; what is new, what is not; regions that come, go, grow. */
#include "support/settle.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

enum { PAGE = 4096 };

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static uint64_t rng_state = 88172645463325252ull;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	return rng_state ^= rng_state << 17;
}

static void fill(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rng();
}

static struct varve_stats last(varve *v)
{
	struct varve_stats s;

	ok(varve_stats(v, &s));
	CHECK_EQ(s.bytes_memory, s.bytes_unchanged + s.bytes_zero + s.bytes_dup_time + s.bytes_dup_space + s.bytes_new);
	return s;
}

/* Only what is new is stored: unchanged, zero, seen before, seen twice. */
static void incremental(void)
{
	enum { N = 64 };
	uint8_t *p = calloc(N, PAGE), *copy = malloc(N * PAGE);
	varve *v = NULL, *w = NULL;

	ok(varve_open("mem:incremental", "a", NULL, &v));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 0);
	ok(varve_protect(v, "p", p, N * PAGE));
	ok(settle_checkpoint(v));
	CHECK_EQ(last(v).bytes_zero, N * PAGE);
	fill(p, N * PAGE);
	ok(settle_checkpoint(v));
	CHECK_EQ(last(v).bytes_new, N * PAGE);
	ok(settle_checkpoint(v));
	CHECK_EQ(last(v).bytes_unchanged, N * PAGE);
	memcpy(copy, p, N * PAGE);
	memcpy(p + 5 * PAGE, p + 9 * PAGE, PAGE); /* content known from before */
	fill(p + 20 * PAGE, PAGE);                /* new, and twice in this epoch */
	memcpy(p + 21 * PAGE, p + 20 * PAGE, PAGE);
	memset(p + 30 * PAGE, 0, PAGE);
	ok(settle_checkpoint(v));
	CHECK_EQ(last(v).bytes_dup_time, PAGE);
	CHECK_EQ(last(v).bytes_dup_space, PAGE);
	CHECK_EQ(last(v).bytes_new, PAGE);
	CHECK_EQ(last(v).bytes_zero, PAGE);
	CHECK_EQ(varve_epoch(v), 4);
	memcpy(p, copy, N * PAGE); /* back to what it was: nothing new at all */
	ok(settle_checkpoint(v));
	CHECK_EQ(last(v).bytes_new, 0);
	memset(p, 0xee, N * PAGE);
	CHECK_EQ(varve_restart(v, 3), 1);
	CHECK(memcmp(p, copy, N * PAGE) == 0);
	ok(settle_checkpoint(v)); /* incremental after a restart too */
	CHECK_EQ(last(v).bytes_unchanged, N * PAGE);
	CHECK(varve_open("mem:incremental", "a", NULL, &w) == VARVE_EBUSY);
	ok(varve_open("mem:incremental", "b", NULL, &w)); /* keeps the store alive */
	ok(varve_close(v));
	ok(varve_open("mem:incremental", "a", NULL, &v));
	ok(varve_protect(v, "p", p, N * PAGE));
	memset(p, 0, N * PAGE);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(memcmp(p, copy, N * PAGE) == 0);
	p[7 * PAGE]++;
	ok(settle_checkpoint(v));
	CHECK_EQ(last(v).bytes_new, PAGE);
	CHECK_EQ(last(v).bytes_unchanged, (N - 1) * PAGE);
	ok(varve_close(v));
	ok(varve_close(w));
	free(p);
	free(copy);
}

/* The newest, where there is one. */
static void latest(void)
{
	uint8_t p[PAGE];
	varve *v = NULL;

	ok(varve_open("mem:latest", "a", "", &v));
	CHECK_EQ(varve_test(v, VARVE_LATEST), 1);
	CHECK_EQ(varve_wait(v, VARVE_LATEST), 0);
	CHECK_EQ(varve_wait(v, 0), VARVE_ENOENT);
	ok(varve_protect(v, "p", p, sizeof(p)));
	for (uint64_t e = 1; e <= 20; e++) {
		fill(p, sizeof(p));
		ok(varve_checkpoint(v));
		CHECK_EQ(varve_wait(v, VARVE_LATEST), 0);
		CHECK_EQ(varve_test(v, e), 1);
		CHECK_EQ(varve_test(v, VARVE_LATEST), 1);
	}
	ok(varve_close(v));
	CHECK_EQ(varve_wait(NULL, VARVE_LATEST), VARVE_EINVAL);
}

int main(void)
{
	incremental();
	latest();
	return 0;
}
