// ctest: TIMEOUT 180 COST 2
/* Ranks with stores of their own: content that is kept in several places is found where one is damaged; and all places drop the same
 * epochs and take the space back together. */
#include "support/coded.h"
#include "support/hosts.h"
#include <dirent.h>
#include <fcntl.h>

/* ---- other copies */

/* Spoils every byte before the sections, or the whole file. */
static void spoil(const struct hosts *r, uint32_t place, int epoch, int rank, size_t from)
{
	char path[PLACE_MAX + 64];
	uint8_t zero[PAGE];
	struct stat st;
	int fd;

	hosts_object(r, place, epoch, rank, path);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(chmod(path, 0600), 0);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	memset(zero, 0x5a, sizeof(zero));
	CHECK_EQ(pwrite(fd, zero, sizeof(zero), (off_t)(16 + from)), PAGE);
	CHECK_EQ(close(fd), 0);
}

/* All ranks hold the same pages in epoch 2, and none of them in epoch 1. */
static void share(struct hosts *r)
{
	for (uint32_t k = 0; k < r->ranks; k++)
		for (int i = 0; i < PAGES; i++) {
			r->id[1][k][i] = 2000 + k * PAGES + (uint32_t)i;
			r->id[2][k][i] = 1 + (uint32_t)i;
		}
}

static bool has_payload(const struct hosts *r, uint32_t place, int epoch, int rank)
{
	char path[PLACE_MAX + 64];
	struct stat st;

	hosts_object(r, place, epoch, rank, path);
	CHECK_EQ(stat(path, &st), 0);
	return st.st_size > PAGE + 2000;
}

static void use_copies(const char *options, uint32_t per_place, int want)
{
	struct hosts *r = hosts_new(4, 100, options);

	r->per_place = per_place;
	share(r);
	hosts_go(r, 0, 1, 2);
	CHECK(has_payload(r, 1 / per_place, 2, 1));
	spoil(r, 1 / per_place, 2, 1, PAGE);
	hosts_go(r, want, 0, 0);
	spoil(r, 1 / per_place, 2, 1, 0);
	if (want == 2) { /* what follows does not refer to what is damaged */
		hosts_go(r, want, 3, 3);
		hosts_go(r, 3, 0, 0);
	} else {
		hosts_go(r, want, 0, 0);
	}
	hosts_end(r);
}

/* The file of one rank's layer is gone but another has its table: no, the head has no copy. So all go back. */
static void lose_head(void)
{
	struct hosts *r = hosts_new(4, 110, "mode=sync copies=2");

	share(r);
	hosts_go(r, 0, 1, 2);
	hosts_lose(r, 1, 2, 1);
	hosts_go(r, 1, 0, 0);
	hosts_end(r);
}

static void ask_alone(const struct varve_comm *comm, void *arg)
{
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
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
	struct hosts *r = hosts_new(4, 120, "mode=sync");

	share(r);
	hosts_go(r, 0, 1, 2);
	threadcomm_run(4, ask_alone, r);
	r->turn = 1;
	threadcomm_run(4, ask_alone, r);
	hosts_end(r);
}

/* All layers in one store, as if the hosts had always shared it. */
static void bring_together(const struct hosts *r)
{
	for (uint32_t k = 1; k < r->ranks; k++)
		for (int e = 1; e <= 2; e++) {
			char from[PLACE_MAX + 64], to[PLACE_MAX + 64];

			hosts_object(r, k, e, (int)k, from);
			hosts_object(r, 0, e, (int)k, to);
			CHECK_EQ(rename(from, to), 0);
		}
}

static void share_store(void)
{
	struct hosts *r = hosts_new(4, 140, "mode=sync copies=2");

	share(r);
	hosts_go(r, 0, 1, 2);
	bring_together(r);
	r->per_place = 4;
	spoil(r, 0, 2, 1, 0);
	spoil(r, 0, 2, 1, 2 * PAGE);
	hosts_go(r, 2, 3, 4);
	hosts_go(r, 4, 0, 0);
	hosts_end(r);
}

/* ---- retention */

static uint64_t bytes_in(const struct hosts *r, uint32_t place)
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

static void expect_gone(const struct varve_comm *comm, void *arg)
{
	const struct hosts *r = arg;
	varve *v = hosts_open(r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);

	for (uint64_t e = 1; e <= 12; e++) {
		int rc = varve_restart(v, e);

		CHECK_EQ(rc, e > 10 || e % 4 == 0 ? 1 : VARVE_ENOENT);
		if (rc == 1)
			hosts_check(r, (int)e, comm->rank, p);
	}
	OK(varve_close(v));
}

static uint64_t go_through(struct hosts *r, const char *keep, uint32_t turn)
{
	uint32_t places = (r->ranks + r->per_place - 1) / r->per_place;
	char options[200];
	uint64_t sum = 0;

	snprintf(options, sizeof(options), "%s%s", r->options, keep);
	hosts_go(r, 0, 1, 6);
	r->turn = turn;
	r->options = options;
	hosts_go(r, 6, 7, 9);
	r->turn = 2 * turn;
	hosts_go(r, 9, 10, 12);
	for (uint32_t p = 0; p < places; p++) {
		hosts_verify(r, p, keep[0] ? 4 : 12);
		sum += bytes_in(r, p);
	}
	return sum;
}

/* All places drop the same epochs and take the space back together: what is kept restores, wherever the ranks go. */
static void retain(const char *options, uint32_t ranks, uint32_t per_place, bool any_thread, uint32_t turn)
{
	uint64_t bytes[2];

	for (int keep = 0; keep < 2; keep++) {
		struct hosts *r = hosts_new(ranks, 130, options);

		r->per_place = per_place;
		r->any_thread = any_thread;
		bytes[keep] = go_through(r, keep ? " keep=2 keep-every=4" : "", turn);
		r->options = options;
		if (keep)
			threadcomm_run(ranks, expect_gone, r);
		r->turn = 1;
		if (keep)
			threadcomm_run(ranks, expect_gone, r);
		hosts_go(r, 12, 0, 0);
		hosts_end(r);
	}
	CHECK(bytes[1] < bytes[0] * 3 / 4);
}

int main(void)
{
	use_copies("mode=sync copies=2", 1, 2);
	use_copies("mode=sync copies=1", 1, 1);
	use_copies("mode=sync copies=2 " CODED, 1, 2);
	use_copies("mode=sync copies=2", 4, 1); /* one place: copies would all lie there, so there are none */
	lose_head();
	ask_without_others();
	share_store();
	retain("mode=sync", 3, 1, false, 0);
	retain("mode=async", 4, 2, true, 0);
	retain("mode=sync copies=2", 4, 1, false, 1);
	retain("mode=async buffer=16KiB", 7, 2, false, 3);
	return 0;
}
