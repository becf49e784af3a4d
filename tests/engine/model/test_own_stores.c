// ctest: TIMEOUT 180 COST 5
/* Ranks with stores of their own: histories restarted where they ran, or elsewhere; with records and layers lost, places that cannot be
 * written, ranks without regions, and regions of more than a round. */
#include "support/coded.h"
#include "support/hosts.h"
#include <fcntl.h>

/* Where they ran, then one place further, and on from there, and further again. */
static void wander(uint32_t ranks, uint32_t per_place, uint64_t seed, const char *options, bool any_thread)
{
	struct hosts *r = hosts_new(ranks, seed, options);

	r->per_place = per_place;
	r->any_thread = any_thread;
	hosts_go(r, 0, 1, 4);
	threadcomm_run(ranks, hosts_read_all, r);
	r->turn = 1;
	threadcomm_run(ranks, hosts_read_all, r);
	hosts_go(r, 4, 5, 7);
	threadcomm_run(ranks, hosts_read_all, r);
	r->turn = 0;
	threadcomm_run(ranks, hosts_read_all, r);
	r->turn = ranks - 1;
	hosts_go(r, 7, 8, 10);
	r->end = 10;
	threadcomm_run(ranks, hosts_read_all, r);
	hosts_end(r);
}

/* Without a restart the next epoch continues nothing where the layer is elsewhere; all the same it is whole. */
static void cold(const struct varve_comm *comm, void *arg)
{
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	hosts_set(r, r->first, comm->rank, p);
	OK(varve_checkpoint(v));
	OK(varve_close(v));
}

static void start_cold(void)
{
	struct hosts *r = hosts_new(3, 50, "mode=sync");

	hosts_go(r, 0, 1, 3);
	r->turn = 1;
	r->first = 4;
	threadcomm_run(3, cold, r);
	r->turn = 2;
	hosts_go(r, 4, 0, 0);
	r->turn = 1;
	hosts_lose(r, 2, 4, 1);
	r->first = 5; /* two know their parent, one does not */
	threadcomm_run(3, cold, r);
	r->turn = 0;
	hosts_go(r, 5, 0, 0);
	for (uint32_t k = 0; k < 3; k++)
		hosts_verify(r, k, 5);
	hosts_end(r);
}

static void lose_records(void)
{
	struct hosts *r = hosts_new(4, 60, "mode=sync");

	hosts_go(r, 0, 1, 4);
	hosts_lose(r, 2, 4, -1);
	hosts_lose(r, 0, 3, -1);
	hosts_lose(r, 1, 2, -1);
	hosts_go(r, 4, 0, 0);
	r->end = 4;
	threadcomm_run(4, hosts_read_all, r);
	hosts_end(r);
}

/* A layer is lost: all ranks go back to the same older epoch, which does not need it; and go on from there. */
static void lose_layer(const char *options)
{
	struct hosts *r = hosts_new(4, 70, options);

	hosts_go(r, 0, 1, 4);
	hosts_lose(r, 2, 4, 2);
	hosts_go(r, 3, 5, 6);
	hosts_go(r, 6, 0, 0);
	hosts_end(r);
}

static void copy_stores(const char *from, const char *to)
{
	char command[3 * PLACE_MAX];

	snprintf(command, sizeof(command), "mkdir -p '%s' && cp -a '%s/.' '%s'", to, from, to);
	CHECK_EQ(system(command), 0);
}

/* Copies of all places, that went on differently; then one place is the copy's, whole: what the two have in common is what there is. */
static void mix_copies(const char *options)
{
	struct hosts *r = hosts_new(3, 75, options), *twin = hosts_new(3, 76, options);
	char from[PLACE_MAX + 16], to[PLACE_MAX + 16];

	hosts_go(r, 0, 1, 3);
	copy_stores(r->store, twin->store);
	memcpy(twin->id, r->id, sizeof(r->id[0]) * 4);
	hosts_go(r, 3, 4, 5);
	hosts_go(twin, 3, 4, 5);
	hosts_place(twin, 1, from);
	hosts_place(r, 1, to);
	place_remove(to);
	copy_stores(from, to);
	hosts_go(r, 3, 6, 7);
	hosts_go(r, 7, 0, 0);
	hosts_end(twin);
	hosts_end(r);
}

static void ask_lost(const struct varve_comm *comm, void *arg)
{
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	CHECK_EQ(varve_restart(v, 3), VARVE_EDAMAGED);
	CHECK(strstr(varve_last_error(), "epoch 3") && strstr(varve_last_error(), "rank 1"));
	CHECK_EQ(varve_restart(v, 9), VARVE_ENOENT);
	CHECK_EQ(varve_restart(v, 2), 1);
	hosts_check(r, 2, comm->rank, p);
	OK(varve_close(v));
}

static void name_lost(void)
{
	struct hosts *r = hosts_new(3, 80, "mode=sync");

	hosts_go(r, 0, 1, 3);
	hosts_lose(r, 1, 3, 1);
	threadcomm_run(3, ask_lost, r);
	hosts_end(r);
}

/* A place that cannot be written: a file lies where its folder should be. */
static void shut(const struct hosts *r, uint32_t place, bool shut)
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
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);
	int rc;

	for (int e = 1; e <= 2; e++) {
		hosts_set(r, e, comm->rank, p);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
	}
	CHECK_EQ(varve_restart(v, 2), 1); /* all are here before one of them shuts */
	if (comm->rank == 1)
		shut(r, 1, true);
	hosts_set(r, 3, comm->rank, p);
	rc = varve_checkpoint(v);
	if (rc == 0)
		rc = varve_wait(v, varve_epoch(v));
	CHECK(rc < 0);
	varve_close(v);
}

static void shut_place(const char *options, bool any_thread)
{
	struct hosts *r = hosts_new(3, 90, options);

	r->any_thread = any_thread;
	threadcomm_run(3, fail_once, r);
	shut(r, 1, false);
	hosts_go(r, 2, 0, 0);
	hosts_end(r);
}

/* ---- ranks without regions, and regions of more than a round */

static void leave_bare(void)
{
	struct hosts *r = hosts_new(3, 150, "mode=async");

	r->bare = 2;
	hosts_go(r, 0, 1, 3);
	r->turn = 1;
	hosts_go(r, 3, 4, 5);
	hosts_go(r, 5, 0, 0);
	hosts_end(r);
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
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
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
	struct hosts *r = hosts_new(2, 160, "mode=sync");

	threadcomm_run(2, carry_large, r);
	r->turn = 1;
	r->want = 1;
	threadcomm_run(2, carry_large, r);
	hosts_end(r);
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
	mix_copies("mode=sync");
	mix_copies("mode=async collective=none");
	name_lost();
	shut_place("mode=sync", false);
	shut_place("mode=async", true);
	shut_place("mode=async", false);
	leave_bare();
	move_large();
	return 0;
}
