// ctest: TIMEOUT 180
/* Ranks with stores of their own, as threads with a directory each: histories of pages that ranks share and take over from each other,
 * restarted where they ran, or elsewhere; with records and layers lost, places that cannot be written, and other copies. */
#include "base/pool.h"
#include "engine/catalog.h"
#include "engine/verify.h"
#include "support/coded.h"
#include "support/must.h"
#include "support/pages.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <varve/varve_comm.h>

enum { PAGE = 4096, PAGES = 40, EPOCHS_MAX = 12, RANKS_MAX = 7 };

#define OK(call) MUST((call) >= 0)

struct run {
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

static void invent(struct run *r)
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

static struct run *new_run(uint32_t ranks, uint64_t seed, const char *options)
{
	struct run *r = calloc(1, sizeof(*r));
	char name[64];

	must_begin("%u ranks, seed %llu, %s", ranks, (unsigned long long)seed, options);
	snprintf(name, sizeof(name), "p%llu", (unsigned long long)seed);
	place_path(r->store, name);
	r->options = options;
	r->ranks = ranks;
	r->per_place = 1;
	r->seed = seed;
	invent(r);
	return r;
}

static void end_run(struct run *r)
{
	place_remove(r->store);
	free(r);
}

static void place_of(const struct run *r, uint32_t rank, char out[PLACE_MAX + 16])
{
	snprintf(out, PLACE_MAX + 16, "%s/p%u", r->store, (rank + r->turn) % r->ranks / r->per_place);
}

static varve *open_rank(const struct run *r, const struct varve_comm *comm)
{
	struct varve_comm mine = *comm;
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	mine.any_thread = r->any_thread;
	place_of(r, comm->rank, store);
	OK(mkdir(r->store, 0700) < 0 && access(r->store, F_OK) < 0 ? -1 : 0);
	OK(varve_open_comm(&mine, store, "job", r->options, &v));
	return v;
}

static void set_pages(const struct run *r, int e, uint32_t rank, uint8_t *p)
{
	for (int i = 0; i < PAGES; i++)
		pages_fill(r->id[e][rank][i], p + (size_t)i * PAGE, PAGE);
}

static void check_pages(const struct run *r, int e, uint32_t rank, const uint8_t *p)
{
	uint8_t want[PAGE];

	for (int i = 0; i < PAGES; i++) {
		pages_fill(r->id[e][rank][i], want, PAGE);
		CHECK(memcmp(want, p + (size_t)i * PAGE, PAGE) == 0);
	}
}

/* Restarts, finds what it must, and writes epochs first..end. */
static void live(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = r->bare == comm->rank + 1 ? NULL : varve_alloc(v, "p", (size_t)PAGES * PAGE);

	if (p)
		memset(p, 0xee, (size_t)PAGES * PAGE);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), r->want ? 1 : 0);
	CHECK_EQ(varve_epoch(v), (uint64_t)r->want);
	if (r->want && p)
		check_pages(r, r->want, comm->rank, p);
	for (int e = r->first; e && e <= r->end; e++) {
		if (p)
			set_pages(r, e, comm->rank, p);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		CHECK_EQ(varve_epoch(v), (uint64_t)e);
	}
	OK(varve_close(v));
}

static void go(struct run *r, int want, int first, int end)
{
	r->want = want;
	r->first = first;
	r->end = end;
	threadcomm_run(r->ranks, live, r);
}

static void read_all(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	for (int e = 1; e <= r->end; e++) {
		memset(p, 0xee, (size_t)PAGES * PAGE);
		CHECK_EQ(varve_restart(v, (uint64_t)e), 1);
		check_pages(r, e, comm->rank, p);
	}
	OK(varve_close(v));
}

static void object(const struct run *r, uint32_t place, int epoch, int rank, char out[PLACE_MAX + 64])
{
	int n = snprintf(out, PLACE_MAX + 64, "%s/p%u/job/00000000/%010d.", r->store, place, epoch);

	snprintf(out + n, (size_t)(PLACE_MAX + 64 - n), rank < 0 ? "commit" : "r%d.layer", rank);
}

static void lose(const struct run *r, uint32_t place, int epoch, int rank)
{
	char path[PLACE_MAX + 64];

	object(r, place, epoch, rank, path);
	CHECK_EQ(unlink(path), 0);
}

/* Where they ran, then one place further, and on from there, and further again. */
static void wander(uint32_t ranks, uint32_t per_place, uint64_t seed, const char *options, bool any_thread)
{
	struct run *r = new_run(ranks, seed, options);

	r->per_place = per_place;
	r->any_thread = any_thread;
	go(r, 0, 1, 4);
	threadcomm_run(ranks, read_all, r);
	r->turn = 1;
	threadcomm_run(ranks, read_all, r);
	go(r, 4, 5, 7);
	threadcomm_run(ranks, read_all, r);
	r->turn = 0;
	threadcomm_run(ranks, read_all, r);
	r->turn = ranks - 1;
	go(r, 7, 8, 10);
	r->end = 10;
	threadcomm_run(ranks, read_all, r);
	end_run(r);
}

/* Without a restart the next epoch continues nothing where the layer is elsewhere; all the same it is whole. */
static void cold(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	set_pages(r, r->first, comm->rank, p);
	OK(varve_checkpoint(v));
	OK(varve_close(v));
}

static void check_place(const struct run *r, uint32_t place, size_t epochs);

static void start_cold(void)
{
	struct run *r = new_run(3, 50, "mode=sync");

	go(r, 0, 1, 3);
	r->turn = 1;
	r->first = 4;
	threadcomm_run(3, cold, r);
	r->turn = 2;
	go(r, 4, 0, 0);
	r->turn = 1;
	lose(r, 2, 4, 1);
	r->first = 5; /* two know their parent, one does not */
	threadcomm_run(3, cold, r);
	r->turn = 0;
	go(r, 5, 0, 0);
	for (uint32_t k = 0; k < 3; k++)
		check_place(r, k, 5);
	end_run(r);
}

static void lose_records(void)
{
	struct run *r = new_run(4, 60, "mode=sync");

	go(r, 0, 1, 4);
	lose(r, 2, 4, -1);
	lose(r, 0, 3, -1);
	lose(r, 1, 2, -1);
	go(r, 4, 0, 0);
	r->end = 4;
	threadcomm_run(4, read_all, r);
	end_run(r);
}

/* A layer is lost: all ranks go back to the same older epoch, which does not need it; and go on from there. */
static void lose_layer(const char *options)
{
	struct run *r = new_run(4, 70, options);

	go(r, 0, 1, 4);
	lose(r, 2, 4, 2);
	go(r, 3, 5, 6);
	go(r, 6, 0, 0);
	end_run(r);
}

static void ask_lost(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	CHECK_EQ(varve_restart(v, 3), VARVE_EDAMAGED);
	CHECK(strstr(varve_last_error(), "epoch 3") && strstr(varve_last_error(), "rank 1"));
	CHECK_EQ(varve_restart(v, 9), VARVE_ENOENT);
	CHECK_EQ(varve_restart(v, 2), 1);
	check_pages(r, 2, comm->rank, p);
	OK(varve_close(v));
}

static void name_lost(void)
{
	struct run *r = new_run(3, 80, "mode=sync");

	go(r, 0, 1, 3);
	lose(r, 1, 3, 1);
	threadcomm_run(3, ask_lost, r);
	end_run(r);
}

/* A place that cannot be written: a file lies where its folder should be. */
static void shut(const struct run *r, uint32_t place, bool shut)
{
	char folder[PLACE_MAX + 64], aside[PLACE_MAX + 64];

	snprintf(folder, sizeof(folder), "%s/p%u/job/00000000", r->store, place);
	snprintf(aside, sizeof(aside), "%s/p%u/job/aside", r->store, place);
	if (shut) {
		CHECK_EQ(rename(folder, aside), 0);
		CHECK(close(open(folder, O_CREAT | O_WRONLY, 0600)) == 0);
	} else {
		CHECK_EQ(unlink(folder), 0);
		CHECK_EQ(rename(aside, folder), 0);
	}
}

static void fail_once(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);
	int rc;

	for (int e = 1; e <= 2; e++) {
		set_pages(r, e, comm->rank, p);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
	}
	CHECK_EQ(varve_restart(v, 2), 1); /* all are here before one of them shuts */
	if (comm->rank == 1)
		shut(r, 1, true);
	set_pages(r, 3, comm->rank, p);
	rc = varve_checkpoint(v);
	if (rc == 0)
		rc = varve_wait(v, varve_epoch(v));
	CHECK(rc < 0);
	varve_close(v);
}

static void shut_place(const char *options, bool any_thread)
{
	struct run *r = new_run(3, 90, options);

	r->any_thread = any_thread;
	threadcomm_run(3, fail_once, r);
	shut(r, 1, false);
	go(r, 2, 0, 0);
	end_run(r);
}

/* ---- other copies */

/* Spoils every byte before the sections, or the whole file. */
static void spoil(const struct run *r, uint32_t place, int epoch, int rank, size_t from)
{
	char path[PLACE_MAX + 64];
	uint8_t zero[PAGE];
	struct stat st;
	int fd;

	object(r, place, epoch, rank, path);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(chmod(path, 0600), 0);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	memset(zero, 0x5a, sizeof(zero));
	CHECK_EQ(pwrite(fd, zero, sizeof(zero), (off_t)(16 + from)), PAGE);
	CHECK_EQ(close(fd), 0);
}

/* All ranks hold the same pages in epoch 2, and none of them in epoch 1. */
static void share(struct run *r)
{
	for (uint32_t k = 0; k < r->ranks; k++)
		for (int i = 0; i < PAGES; i++) {
			r->id[1][k][i] = 2000 + k * PAGES + (uint32_t)i;
			r->id[2][k][i] = 1 + (uint32_t)i;
		}
}

static bool has_payload(const struct run *r, uint32_t place, int epoch, int rank)
{
	char path[PLACE_MAX + 64];
	struct stat st;

	object(r, place, epoch, rank, path);
	CHECK_EQ(stat(path, &st), 0);
	return st.st_size > PAGE + 2000;
}

static void use_copies(const char *options, uint32_t per_place, int want)
{
	struct run *r = new_run(4, 100, options);

	r->per_place = per_place;
	share(r);
	go(r, 0, 1, 2);
	CHECK(has_payload(r, 1 / per_place, 2, 1));
	spoil(r, 1 / per_place, 2, 1, PAGE);
	go(r, want, 0, 0);
	spoil(r, 1 / per_place, 2, 1, 0);
	if (want == 2) { /* what follows does not refer to what is damaged */
		go(r, want, 3, 3);
		go(r, 3, 0, 0);
	} else {
		go(r, want, 0, 0);
	}
	end_run(r);
}

/* The file of one rank's layer is gone but another has its table: no, the head has no copy. So all go back. */
static void lose_head(void)
{
	struct run *r = new_run(4, 110, "mode=sync copies=2");

	share(r);
	go(r, 0, 1, 2);
	lose(r, 1, 2, 1);
	go(r, 1, 0, 0);
	end_run(r);
}

static void ask_alone(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	struct varve_region_info info;
	uint8_t p[PAGES * PAGE];
	int rc;

	OK(varve_region(v, 2, "p", &info) == 0 || r->turn ? 0 : -1);
	CHECK_EQ(varve_region(v, 2, "p", &info), r->turn ? VARVE_ENOTSUP : 0);
	rc = varve_restart_region(v, 2, "p", p, sizeof(p));
	CHECK_EQ(rc, VARVE_ENOTSUP);
	CHECK(strstr(varve_last_error(), "varve_restart"));
	OK(varve_close(v));
}

static void ask_without_others(void)
{
	struct run *r = new_run(4, 120, "mode=sync");

	share(r);
	go(r, 0, 1, 2);
	threadcomm_run(4, ask_alone, r);
	r->turn = 1;
	threadcomm_run(4, ask_alone, r);
	end_run(r);
}

/* All layers in one store, as if the hosts had always shared it. */
static void bring_together(const struct run *r)
{
	for (uint32_t k = 1; k < r->ranks; k++)
		for (int e = 1; e <= 2; e++) {
			char from[PLACE_MAX + 64], to[PLACE_MAX + 64];

			object(r, k, e, (int)k, from);
			object(r, 0, e, (int)k, to);
			CHECK_EQ(rename(from, to), 0);
		}
}

static void share_store(void)
{
	struct run *r = new_run(4, 140, "mode=sync copies=2");

	share(r);
	go(r, 0, 1, 2);
	bring_together(r);
	r->per_place = 4;
	spoil(r, 0, 2, 1, 0);
	spoil(r, 0, 2, 1, 2 * PAGE);
	go(r, 2, 3, 4);
	go(r, 4, 0, 0);
	end_run(r);
}

/* ---- ranks without regions, and regions of more than a round */

static void leave_bare(void)
{
	struct run *r = new_run(3, 150, "mode=async");

	r->bare = 2;
	go(r, 0, 1, 3);
	r->turn = 1;
	go(r, 3, 4, 5);
	go(r, 5, 0, 0);
	end_run(r);
}

enum { LARGE = (72 << 20) + 12345 };

static void fill_large(uint8_t *p, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= LARGE; i += 8) {
		uint64_t v = seed << 40 | i;

		memcpy(p + i, &v, 8);
	}
	memset(p + LARGE - LARGE % 8, (int)seed, LARGE % 8);
}

static void carry_large(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "large", LARGE), *want = malloc(LARGE);

	CHECK(p && want);
	fill_large(want, comm->rank + 1);
	if (r->want) {
		CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
		CHECK(memcmp(p, want, LARGE) == 0);
	} else {
		memcpy(p, want, LARGE);
		OK(varve_checkpoint(v));
	}
	free(want);
	OK(varve_close(v));
}

static void move_large(void)
{
	struct run *r = new_run(2, 160, "mode=sync");

	threadcomm_run(2, carry_large, r);
	r->turn = 1;
	r->want = 1;
	threadcomm_run(2, carry_large, r);
	end_run(r);
}

/* ---- retention */

static uint64_t bytes_in(const struct run *r, uint32_t place)
{
	char path[PLACE_MAX + 64], file[PLACE_MAX + 400];
	struct dirent *d;
	struct stat st;
	uint64_t sum = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/p%u/job/00000000", r->store, place);
	dir = opendir(path);
	CHECK(dir);
	while ((d = readdir(dir))) {
		snprintf(file, sizeof(file), "%s/%s", path, d->d_name);
		CHECK_EQ(stat(file, &st), 0);
		sum += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	}
	closedir(dir);
	return sum;
}

static void tell(void *arg, const char *problem)
{
	fprintf(stderr, "%s: %s\n", (const char *)arg, problem);
}

/* Each place is whole, and lists the same epochs. */
static void check_place(const struct run *r, uint32_t place, size_t epochs)
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
	OK(vv_verify_run(&lin, pool, 0, tell, path, NULL, &report));
	CHECK_EQ(report.problems, 0);
	CHECK_EQ(report.epochs, epochs);
	vv_store_close(store);
	vv_pool_free(pool);
}

static void expect_gone(const struct varve_comm *comm, void *arg)
{
	const struct run *r = arg;
	varve *v = open_rank(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	for (uint64_t e = 1; e <= 12; e++) {
		int rc = varve_restart(v, e);

		CHECK_EQ(rc, e > 10 || e % 4 == 0 ? 1 : VARVE_ENOENT);
		if (rc == 1)
			check_pages(r, (int)e, comm->rank, p);
	}
	OK(varve_close(v));
}

static uint64_t go_through(struct run *r, const char *keep, uint32_t turn)
{
	uint32_t places = (r->ranks + r->per_place - 1) / r->per_place;
	char options[200];
	uint64_t sum = 0;

	snprintf(options, sizeof(options), "%s%s", r->options, keep);
	go(r, 0, 1, 6);
	r->turn = turn;
	r->options = options;
	go(r, 6, 7, 9);
	r->turn = 2 * turn;
	go(r, 9, 10, 12);
	for (uint32_t p = 0; p < places; p++) {
		check_place(r, p, keep[0] ? 4 : 12);
		sum += bytes_in(r, p);
	}
	return sum;
}

/* All places drop the same epochs and take the space back together: what is kept restores, wherever the ranks go. */
static void retain(const char *options, uint32_t ranks, uint32_t per_place, bool any_thread, uint32_t turn)
{
	uint64_t bytes[2];

	for (int keep = 0; keep < 2; keep++) {
		struct run *r = new_run(ranks, 130, options);

		r->per_place = per_place;
		r->any_thread = any_thread;
		bytes[keep] = go_through(r, keep ? " keep=2 keep-every=4" : "", turn);
		r->options = options;
		if (keep)
			threadcomm_run(ranks, expect_gone, r);
		r->turn = 1;
		if (keep)
			threadcomm_run(ranks, expect_gone, r);
		go(r, 12, 0, 0);
		end_run(r);
	}
	CHECK(bytes[1] < bytes[0] * 3 / 4);
}

int main(void)
{
	wander(2, 1, 1, "mode=sync", false);
	wander(3, 1, 2, "mode=async", true);
	wander(4, 2, 3, "mode=async " CODED, false);
	wander(7, 1, 4, "mode=async buffer=16KiB", true);
	wander(7, 3, 5, "mode=sync copies=2", false);
	wander(3, 1, 6, "mode=sync collective=none", false);
	start_cold();
	lose_records();
	lose_layer("mode=sync");
	lose_layer("mode=async");
	name_lost();
	shut_place("mode=sync", false);
	shut_place("mode=async", true);
	shut_place("mode=async", false);
	use_copies("mode=sync copies=2", 1, 2);
	use_copies("mode=sync copies=1", 1, 1);
	use_copies("mode=sync copies=2 " CODED, 1, 2);
	use_copies("mode=sync copies=2", 4, 1); /* one place: copies would all lie there, so there are none */
	lose_head();
	ask_without_others();
	share_store();
	leave_bare();
	move_large();
	retain("mode=sync", 3, 1, false, 0);
	retain("mode=async", 4, 2, true, 0);
	retain("mode=sync copies=2", 4, 1, false, 1);
	retain("mode=async buffer=16KiB", 7, 2, false, 3);
	return 0;
}
