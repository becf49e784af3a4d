// ctest: TIMEOUT 120 COST 3
/* The same few grains over and over, in regions that come, go and are written on: the ways of the bytes add up and none of them is more than there are bytes; what was
 * there is what is restored; and no layer of the method run is larger than one of list or tree. */
#include "support/dice.h"
#include "support/must.h"
#include "support/place.h"
#include "vv_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <varve/varve.h>

#define OK(call) MUST((call) >= 0)

enum { REGIONS = 4, EPOCHS = 8, MOST = 600000, SLACK = 64 /* bytes: a layer has times in it, which are shorter or longer */ };

/* A row over and over, and now and then another one. */
static void fill(uint8_t *p, size_t n)
{
	static const size_t period[] = { 1, 32, 64, 128, 384, 1024, 3072, 4096, 4096 + 128, 12288 };
	static uint8_t row[3][12288]; /* the same few in all regions and sessions, so that they are met again */
	size_t len = period[upto(9)], k = upto(2);

	if (!row[0][0]) {
		noise(row[0], sizeof(row));
		row[0][0] = 1;
	}
	for (size_t i = 0; i < n; i++)
		p[i] = row[k][i % len];
	for (size_t i = upto(3); i > 0; i--)
		p[upto(n - 1)]++;
}

static void check_ways(varve *v)
{
	struct varve_stats st;

	OK(varve_stats(v, &st));
	MUST(st.bytes_memory == st.bytes_unchanged + st.bytes_zero + st.bytes_dup_time + st.bytes_dup_space + st.bytes_dup_ranks + st.bytes_new);
	MUST(st.bytes_unchanged <= st.bytes_memory && st.bytes_zero <= st.bytes_memory && st.bytes_dup_time <= st.bytes_memory);
	MUST(st.bytes_dup_space <= st.bytes_memory && st.bytes_new <= st.bytes_memory);
}

static void session(uint64_t start, const char *options)
{
	static uint8_t p[REGIONS][MOST], q[MOST];
	size_t len[REGIONS] = { 0 };
	char store[PLACE_MAX], name[8];
	varve *v = NULL;

	must_begin("%s, %d", options, (int)start);
	seed = start * 7919 + 1;
	place_path(store, "ways");
	OK(varve_open(store, "job", options, &v));
	for (int e = 1; e <= EPOCHS; e++) {
		size_t r = upto(REGIONS - 1), at;

		snprintf(name, sizeof(name), "r%zu", r);
		if (len[r] && upto(3) == 0) { /* what it holds is only known from older epochs then, if it comes back */
			OK(varve_unprotect(v, name));
			len[r] = 0;
		} else {
			len[r] = len[r] ? len[r] : 1 + upto(MOST - 1);
			at = upto(len[r] - 1);
			fill(p[r] + at, len[r] - at);
			fill(p[r], upto(1) ? len[r] : 1 + at);
			OK(varve_protect(v, name, p[r], len[r]));
		}
		OK(varve_checkpoint(v));
		check_ways(v);
		for (r = 0; r < REGIONS; r++)
			if (len[r]) {
				snprintf(name, sizeof(name), "r%zu", r);
				OK(varve_restart_region(v, varve_epoch(v), name, q, len[r]));
				MUST(memcmp(p[r], q, len[r]) == 0);
			}
	}
	OK(varve_close(v));
	place_remove(store);
}

/* Equal bytes, and then once more, in another region: all of it is known from an older epoch. */
static void again(void)
{
	enum { LEN = 1 << 18 };
	static uint8_t a[LEN], b[LEN];
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("again");
	place_path(store, "again");
	memset(a, 1, LEN);
	memset(b, 1, LEN);
	OK(varve_open(store, "job", "grain=128", &v));
	OK(varve_protect(v, "a", a, LEN));
	OK(varve_checkpoint(v));
	check_ways(v);
	OK(varve_protect(v, "b", b, LEN));
	OK(varve_checkpoint(v));
	check_ways(v);
	OK(varve_close(v));
	place_remove(store);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------------------- */

struct sizes {
	uint64_t first, both; /* bytes of layers: a method whose tables are short has a full one sooner, so the second by itself says nothing */
};

/* A table of equal rows, then a second one in which a row is changed. */
static struct sizes tables(const char *method, unsigned grain, size_t len, size_t period)
{
	uint8_t *p[2] = { malloc(len), malloc(len) }, *q = malloc(len);
	char store[PLACE_MAX], options[100];
	struct varve_stats st;
	struct sizes out = { 0 };
	varve *v = NULL;

	place_path(store, "tables");
	snprintf(options, sizeof(options), "codec=none mode=sync method=%s grain=%u", method, grain);
	seed = 1 + period;
	noise(p[0], period);
	for (size_t i = period; i < len; i++)
		p[0][i] = p[0][i - period];
	memcpy(p[1], p[0], len);
	p[1][len / 2 + 5]++;
	OK(varve_open(store, "job", options, &v));
	for (int k = 0; k < 2; k++) {
		OK(varve_protect(v, k ? "b" : "a", p[k], len));
		OK(varve_checkpoint(v));
		OK(varve_stats(v, &st));
		out.first = k ? out.first : st.bytes_layer;
		out.both += st.bytes_layer;
		OK(varve_restart_region(v, varve_epoch(v), k ? "b" : "a", q, len));
		MUST(memcmp(p[k], q, len) == 0);
	}
	OK(varve_close(v));
	place_remove(store);
	free(p[0]);
	free(p[1]);
	free(q);
	return out;
}

static void compare(unsigned grain, size_t len, size_t period)
{
	struct sizes list = tables("list", grain, len, period), tree = tables("tree", grain, len, period), run = tables("run", grain, len, period);

	must_begin("%zu bytes in rows of %zu, grains of %u: run %d and %d, tree %d and %d, list %d and %d", len, period, grain, (int)run.first,
		   (int)run.both, (int)tree.first, (int)tree.both, (int)list.first, (int)list.both);
	MUST(run.first <= list.first + SLACK && run.first <= tree.first + SLACK);
	MUST(run.both <= list.both + SLACK && run.both <= tree.both + SLACK);
	if (period <= 1024 && len / period > 8192) /* and far smaller where there is much of it */
		MUST(run.first * 2 < list.first);
}

int main(void)
{
	static const size_t len[] = { 60000, 1 << 16, 200000, 1 << 18, 1 << 20, 3000000 }, period[] = { 64, 128, 384, 1024, 4096, 4096 + 128, 12288 };

	again();
	for (uint64_t s = 1; s <= 40; s++) {
		session(s, "grain=128");
		session(s, s % 2 ? "grain=32 codec=none mode=sync" : "grain=512 history=1KiB threads=2");
	}
	for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++)
		for (size_t k = 0; k < sizeof(period) / sizeof(period[0]); k++)
			compare(k % 2 ? 128 : 32, len[i], period[k]);
	return 0;
}
