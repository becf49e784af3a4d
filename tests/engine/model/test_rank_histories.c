// ctest: TIMEOUT 400 COST 15
/* Many ranks, as threads: random histories of pages that ranks share, swap and take over from each other, against a model that knows
 * every page by number. What is stored is stored once, every epoch restores on every rank, in every way of running. */
#include "support/coded.h"
#include "support/must.h"
#include "support/pages.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_comm.h>

enum { PAGE = 4096, PAGES = 40, EPOCHS = 6, IDS = 4000, RANKS_MAX = 7 };

#define OK(call) MUST((call) >= 0)

struct way {
	const char *name, *options;
	bool any_thread;
	bool loose; /* not everything that is shared is found */
};

static const struct way ways[] = {
	{ "sync", "mode=sync", false, false },
	{ "funneled", "mode=async", false, false },
	{ "multiple", "mode=async", true, false },
	{ "small buffer", "mode=async buffer=16KiB", true, false },
	{ "small buffer, funneled", "mode=async buffer=16KiB tracker=mprotect", false, false },
	{ "coded", "mode=async " CODED, true, false },
	{ "the paper's", "mode=async collective=topk", true, true },
	{ "the paper's, of a few", "mode=sync collective=topk threshold=10", false, true },
	{ "two to a file", "mode=sync aggregate=2", false, false },
	{ "a file for all", "mode=async aggregate=node " CODED, true, false },
	{ "three to a file, funneled", "mode=async aggregate=3", false, false },
	{ "each for itself", "mode=async collective=none", false, true },
	{ "forgetful", "mode=async history=0", true, true },
	{ "forgetful, funneled", "mode=async history=1KiB aggregate=2", false, true },
	{ "the paper's, forgetful", "mode=sync collective=topk history=0", false, true },
	{ "small chunks", "mode=async chunk=512", true, false },
	{ "small chunks, small buffer", "mode=async chunk=512 buffer=16KiB", true, false },
	{ "small chunks, the paper's", "mode=sync chunk=512 collective=topk", false, true },
};

struct run {
	const struct way *way;
	char store[PLACE_MAX];
	uint32_t ranks;
	uint64_t seed;
	bool split;
	uint32_t id[EPOCHS][RANKS_MAX][PAGES]; /* the model; 0 = a page of zeros */
	atomic_uint_least64_t stored;
};

/* Of each page of each rank in each epoch: as before, a new one, one that all may have, one that another rank had, or zero. */
static void invent(struct run *r)
{
	uint32_t next = 1000;
	uint64_t s = r->seed;

	for (int e = 0; e < EPOCHS; e++)
		for (uint32_t k = 0; k < r->ranks; k++)
			for (int i = 0; i < PAGES; i++) {
				uint64_t z = pages_mix(++s);
				uint32_t *id = &r->id[e][k][i];

				*id = e ? r->id[e - 1][k][i] : 0;
				if (z % 8 < 2)
					*id = next++;
				else if (z % 8 < 4)
					*id = 1 + (uint32_t)(z >> 8) % 60;
				else if (z % 8 == 4 && e)
					*id = r->id[(z >> 20) % (uint64_t)e][(z >> 8) % r->ranks][(z >> 30) % PAGES];
				else if (z % 8 == 5)
					*id = 0;
				CHECK(next < IDS);
			}
}

static uint64_t distinct(const struct run *r)
{
	static bool seen[IDS];
	uint64_t n = 0;

	memset(seen, 0, sizeof(seen));
	for (int e = 0; e < EPOCHS; e++)
		for (uint32_t k = 0; k < r->ranks; k++)
			for (int i = 0; i < PAGES; i++) {
				uint32_t id = r->id[e][k][i];

				n += id && !seen[id];
				seen[id] = true;
			}
	return n;
}

/* Bytes of a page of the model. */
static size_t unit(const struct way *way)
{
	return strstr(way->options, "chunk=512") ? 512 : PAGE;
}

static varve *open_rank(const struct run *r, const struct varve_comm *comm)
{
	struct varve_comm mine = *comm;
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	mine.any_thread = r->way->any_thread;
	snprintf(store, sizeof(store), r->split ? "%s/r%u" : "%s", r->store, comm->rank);
	OK(varve_open_comm(&mine, store, "job", r->way->options, &v));
	return v;
}

static void set_pages(const struct run *r, int e, uint32_t rank, uint8_t *p)
{
	for (int i = 0; i < PAGES; i++)
		if (e == 0 || r->id[e][rank][i] != r->id[e - 1][rank][i])
			pages_fill(r->id[e][rank][i], p + (size_t)i * unit(r->way), unit(r->way));
}

static void check_pages(const struct run *r, int e, uint32_t rank, const uint8_t *p)
{
	uint8_t want[PAGE];

	for (int i = 0; i < PAGES; i++) {
		pages_fill(r->id[e][rank][i], want, unit(r->way));
		CHECK(memcmp(want, p + (size_t)i * unit(r->way), unit(r->way)) == 0);
	}
}

static void write_epochs(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "p", PAGES * unit(r->way));
	struct varve_stats st;

	CHECK_EQ(varve_restart(v, VARVE_LATEST), 0);
	for (int e = 0; e < EPOCHS; e++) {
		set_pages(r, e, comm->rank, p);
		OK(varve_checkpoint(v));
		if (e % 2) {
			OK(varve_wait(v, VARVE_LATEST));
			CHECK_EQ(varve_test(v, varve_epoch(v)), 1);
		}
		CHECK_EQ(varve_epoch(v), (uint64_t)e + 1);
		OK(varve_stats(v, &st));
		CHECK_EQ(st.bytes_memory, st.bytes_unchanged + st.bytes_zero + st.bytes_dup_time + st.bytes_dup_space +
						  st.bytes_dup_ranks + st.bytes_new);
		r->stored += st.bytes_new;
	}
	OK(varve_close(v));
}

/* Every epoch, and on from one of the middle: what was there is not stored again. */
static void read_epochs(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "p", PAGES * unit(r->way));
	struct varve_stats st;

	for (int e = 0; e < EPOCHS; e++) {
		memset(p, 0xee, PAGES * unit(r->way));
		CHECK_EQ(varve_restart(v, (uint64_t)e + 1), 1);
		check_pages(r, e, comm->rank, p);
	}
	CHECK_EQ(varve_restart(v, 3), 1);
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	OK(varve_stats(v, &st));
	CHECK_EQ(st.bytes_new, 0);
	CHECK_EQ(st.bytes_unchanged, st.bytes_memory);
	set_pages(r, EPOCHS - 1, comm->rank, p);
	for (int i = 0; i < PAGES; i++)
		pages_fill(r->id[EPOCHS - 1][comm->rank][i], p + (size_t)i * unit(r->way), unit(r->way));
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	OK(varve_stats(v, &st));
	MUST(st.bytes_new == 0 || r->way->loose);
	memset(p, 0xee, PAGES * unit(r->way));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	check_pages(r, EPOCHS - 1, comm->rank, p);
	OK(varve_close(v));
}

static uint32_t count_files(const struct run *r)
{
	char dir[PLACE_MAX + 32];
	uint32_t n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/job/00000000", r->store);
	d = opendir(dir);
	MUST(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* So many ranks write into one file. */
static uint32_t ranks_to_a_file(const struct way *way, uint32_t ranks)
{
	const char *s = strstr(way->options, "aggregate=");

	return !s ? 1 : s[10] == 'n' ? ranks : (uint32_t)(s[10] - '0');
}

static void one(const struct way *way, uint32_t ranks, bool split, uint64_t seed)
{
	uint32_t share = ranks_to_a_file(way, ranks);
	struct run *r = calloc(1, sizeof(*r));
	char name[64];

	must_begin("%s, %u ranks%s, seed %llu", way->name, ranks, split ? " with stores of their own" : "", (unsigned long long)seed);
	snprintf(name, sizeof(name), "s%llu", (unsigned long long)seed);
	place_path(r->store, name);
	r->way = way;
	r->ranks = ranks;
	r->split = split;
	r->seed = seed;
	invent(r);
	threadcomm_run(ranks, write_epochs, r);
	MUST(split || count_files(r) == EPOCHS * (1 + (ranks + share - 1) / share));
	MUST(way->loose && (ranks > 1 || strstr(way->options, "history")) ? r->stored >= distinct(r) * unit(way) : r->stored == distinct(r) * unit(way));
	threadcomm_run(ranks, read_epochs, r);
	place_remove(r->store);
	free(r);
}

int main(void)
{
	static const uint32_t ranks[] = { 1, 2, 3, 4, 7 };

	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
		for (size_t k = 0; k < sizeof(ranks) / sizeof(ranks[0]); k++)
			for (int split = 0; split < 2; split++)
				one(&ways[w], ranks[k], split, 1000 * w + 10 * k + (unsigned)split + 1);
	return 0;
}
