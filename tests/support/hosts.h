/* Ranks with stores of their own, as threads with a directory each, and a history of pages that they share and take over from each other. */
#ifndef VV_TEST_HOSTS_H
#define VV_TEST_HOSTS_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/verify.h"
#include "support/must.h"
#include "support/pages.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <varve/varve_comm.h>

enum { PAGE = 4096, PAGES = 40, EPOCHS_MAX = 40, RANKS_MAX = 8 };

#define OK(call) MUST((call) >= 0)

struct hosts {
	char store[PLACE_MAX];
	const char *options;
	bool any_thread;
	uint32_t ranks, per_place;
	uint32_t turn;  /* rank r stores in the place of rank r + turn */
	uint64_t seed;
	int first, end; /* epochs to be written now */
	int want;       /* the epoch that a restart must find; 0: none */
	uint32_t bare;  /* 1 + a rank without regions; 0: all have theirs */
	uint32_t id[EPOCHS_MAX + 1][RANKS_MAX][PAGES]; /* the model, from epoch 1 on; 0 = a page of zeros */
};

static inline void hosts_invent(struct hosts *r)
{
	uint32_t next = 1000;
	uint64_t s = r->seed;

	for (int e = 1; e <= EPOCHS_MAX; e++)
		for (uint32_t k = 0; k < r->ranks; k++)
			for (int i = 0; i < PAGES; i++) {
				uint64_t z = pages_mix(++s);
				uint32_t *id = &r->id[e][k][i];

				*id = r->id[e - 1][k][i];
				if (z % 8 < 2)
					*id = next++;
				else if (z % 8 < 4)
					*id = 1 + (uint32_t)(z >> 8) % 60;
				else if (z % 8 == 4 && e > 1)
					*id = r->id[1 + (z >> 20) % (uint64_t)(e - 1)][(z >> 8) % r->ranks][(z >> 30) % PAGES];
				else if (z % 8 == 5)
					*id = 0;
			}
}

static inline struct hosts *hosts_new(uint32_t ranks, uint64_t seed, const char *options)
{
	struct hosts *r = calloc(1, sizeof(*r));
	char name[64];

	must_begin("%u ranks, seed %llu, %s", ranks, (unsigned long long)seed, options);
	snprintf(name, sizeof(name), "p%llu", (unsigned long long)seed);
	place_path(r->store, name);
	r->options = options;
	r->ranks = ranks;
	r->per_place = 1;
	r->seed = seed;
	hosts_invent(r);
	return r;
}

static inline void hosts_end(struct hosts *r)
{
	place_remove(r->store);
	free(r);
}

static inline void hosts_place(const struct hosts *r, uint32_t rank, char out[PLACE_MAX + 16])
{
	snprintf(out, PLACE_MAX + 16, "%s/p%u", r->store, (rank + r->turn) % r->ranks / r->per_place);
}

static inline varve *hosts_open(const struct hosts *r, const struct varve_comm *comm)
{
	struct varve_comm mine = *comm;
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	mine.any_thread = r->any_thread;
	hosts_place(r, comm->rank, store);
	OK(mkdir(r->store, 0700) < 0 && access(r->store, F_OK) < 0 ? -1 : 0);
	OK(varve_open_comm(&mine, store, "job", r->options, &v));
	return v;
}

static inline void hosts_set(const struct hosts *r, int e, uint32_t rank, uint8_t *p)
{
	for (int i = 0; i < PAGES; i++)
		pages_fill(r->id[e][rank][i], p + (size_t)i * PAGE, PAGE);
}

static inline void hosts_check(const struct hosts *r, int e, uint32_t rank, const uint8_t *p)
{
	uint8_t want[PAGE];

	for (int i = 0; i < PAGES; i++) {
		pages_fill(r->id[e][rank][i], want, PAGE);
		CHECK(memcmp(want, p + (size_t)i * PAGE, PAGE) == 0);
	}
}

/* Restarts, finds what it must, and writes epochs first..end. */
static inline void hosts_live(const struct varve_comm *comm, void *arg)
{
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
	uint8_t *p = r->bare == comm->rank + 1 ? NULL : varve_alloc(v, "p", (size_t)PAGES * PAGE);

	if (p)
		memset(p, 0xee, (size_t)PAGES * PAGE);
	MUST(varve_restart(v, VARVE_LATEST) == (r->want ? 1 : 0));
	CHECK_EQ(varve_epoch(v), (uint64_t)r->want);
	if (r->want && p)
		hosts_check(r, r->want, comm->rank, p);
	for (int e = r->first; e && e <= r->end; e++) {
		if (p)
			hosts_set(r, e, comm->rank, p);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		CHECK_EQ(varve_epoch(v), (uint64_t)e);
	}
	OK(varve_close(v));
}

static inline void hosts_go(struct hosts *r, int want, int first, int end)
{
	r->want = want;
	r->first = first;
	r->end = end;
	threadcomm_run(r->ranks, hosts_live, r);
}

static inline void hosts_read_all(const struct varve_comm *comm, void *arg)
{
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	for (int e = 1; e <= r->end; e++) {
		memset(p, 0xee, (size_t)PAGES * PAGE);
		CHECK_EQ(varve_restart(v, (uint64_t)e), 1);
		hosts_check(r, e, comm->rank, p);
	}
	OK(varve_close(v));
}

static inline void hosts_object(const struct hosts *r, uint32_t place, int epoch, int rank, char out[PLACE_MAX + 64])
{
	int n = snprintf(out, PLACE_MAX + 64, "%s/p%u/job/00000000/%010d.", r->store, place, epoch);

	snprintf(out + n, (size_t)(PLACE_MAX + 64 - n), rank < 0 ? "commit" : "r%d.layer", rank);
}

static inline void hosts_lose(const struct hosts *r, uint32_t place, int epoch, int rank)
{
	char path[PLACE_MAX + 64];

	hosts_object(r, place, epoch, rank, path);
	CHECK_EQ(unlink(path), 0);
}

static inline void hosts_tell(void *arg, const char *problem)
{
	fprintf(stderr, "%s: %s\n", (const char *)arg, problem);
}

/* Each place is whole, and lists the same epochs. */
static inline void hosts_verify(const struct hosts *r, uint32_t place, size_t epochs)
{
	struct vv_verify_report report = { 0 };
	struct vv_store_options opt = { 0 };
	char path[PLACE_MAX + 16];
	struct vv_store *store = NULL;
	struct vv_lineage lin;
	struct vv_pool *pool = NULL;

	snprintf(path, sizeof(path), "%s/p%u", r->store, place);
	OK(vv_pool_new(1, &pool));
	OK(vv_store_open(path, &opt, &store));
	OK(vv_catalog_open(store, "job", false, &lin));
	OK(vv_verify_run(&lin, pool, 0, false, hosts_tell, path, NULL, &report));
	CHECK_EQ(report.problems, 0);
	CHECK_EQ(report.epochs, epochs);
	vv_store_close(store);
	vv_pool_free(pool);
}

#endif
