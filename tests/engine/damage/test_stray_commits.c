// ctest: MODES
/* Commit records that are no epoch's: of the wrong name, of another lineage, damaged, in the wrong folder, with numbers that promise
 * more than the layers hold. VARVE_LATEST passes over them, they use up no number, and retention counts them for nothing. */
#include "engine/lineage/catalog.h"
#include "support/must.h"
#include "support/place.h"
#include "support/settle.h"
#include "support/threadcomm.h"
#include <inttypes.h>
#include <varve/varve_comm.h>

enum { LEN = 20000, RANKS = 3 };

#define OK(call) MUST((call) >= 0)

static char store[PLACE_MAX];

static void open_lineage(const char *url, struct vv_store **s, struct vv_lineage *lin)
{
	struct vv_store_options opt = { 0 };

	OK(vv_store_open(url, &opt, s));
	OK(vv_catalog_open(*s, "a", false, lin));
}

static void file_of(char out[PLACE_MAX + 64], const char *url, uint64_t folder, uint64_t epoch)
{
	snprintf(out, PLACE_MAX + 64, "%s/a/%08" PRIu64, url, folder);
	place_make_dir(out);
	snprintf(out, PLACE_MAX + 64, "%s/a/%08" PRIu64 "/%010" PRIu64 ".commit", url, folder, epoch);
}

/* Epoch `from`'s record under another number; `flip`: and damaged. */
static void copy_record(const char *url, uint64_t from, uint64_t folder, uint64_t to, size_t flip)
{
	char path[PLACE_MAX + 64];
	uint8_t *p;
	size_t n;

	file_of(path, url, from / VV_NAME_EPOCHS_PER_FOLDER, from);
	p = place_read(path, &n);
	if (flip)
		p[flip] ^= 1;
	file_of(path, url, folder, to);
	place_write(path, p, n);
	free(p);
}

enum stray { NOTHING, EMPTY, DAMAGED, RENAMED, FOREIGN, MISPLACED, STRAYS };

static void put_stray(const char *url, enum stray what, uint64_t number)
{
	char path[PLACE_MAX + 64];
	struct vv_commit c = { 0 };
	struct vv_lineage lin;
	struct vv_store *s;

	if (what == EMPTY) {
		file_of(path, url, number / VV_NAME_EPOCHS_PER_FOLDER, number);
		place_write(path, "", 0);
	} else if (what == DAMAGED || what == RENAMED) {
		copy_record(url, 1, number / VV_NAME_EPOCHS_PER_FOLDER, number, what == DAMAGED ? 70 : 0);
	} else if (what == MISPLACED) {
		copy_record(url, 1, 0, number, 0);
	} else if (what == FOREIGN) {
		open_lineage(url, &s, &lin);
		OK(vv_catalog_commit(&lin, 1, &c));
		c.epoch = number;
		c.lineage[0] ^= 1;
		OK(vv_catalog_put_commit(&lin, &c));
		vv_commit_fini(&c);
		vv_store_close(s);
	}
}

/* Restarts from `want`, and lays down `n` more. */
static void go_on(const char *options, uint64_t want, int n)
{
	uint8_t *p, expected[LEN];
	varve *v = NULL;

	OK(varve_open(store, "a", options, &v));
	p = varve_alloc(v, "p", LEN);
	MUST(p);
	MUST(varve_restart(v, VARVE_LATEST) == (want ? 1 : 0));
	MUST(varve_epoch(v) == want);
	memset(expected, (int)want, LEN);
	MUST(memcmp(p, expected, LEN) == 0);
	for (int i = 1; i <= n; i++) {
		memset(p, (int)want + i, LEN);
		OK(settle_checkpoint(v));
		MUST(varve_epoch(v) == want + (uint64_t)i);
	}
	OK(varve_close(v));
}

static void test_alone(enum stray what, uint64_t number)
{
	must_begin("stray %d, number %" PRIu64, (int)what, number);
	place_remove(store);
	go_on("", 0, 3);
	put_stray(store, what, number);
	go_on("", 3, 2);
	go_on("", 5, 0);
	go_on("keep=1", 5, 2); /* it must not push out what is newest */
	go_on("keep=2", 7, 3);
	go_on("", 10, 0);
}

/* One that is whole does use them up. */
static void test_used_up(void)
{
	struct vv_commit c = { 0 };
	struct vv_lineage lin;
	struct vv_store *s;
	uint8_t p[LEN] = { 0 };
	varve *v = NULL;

	must_begin("the last number");
	place_remove(store);
	go_on("", 0, 2);
	open_lineage(store, &s, &lin);
	OK(vv_catalog_commit(&lin, 2, &c));
	c.epoch = VV_MAX_EPOCH;
	OK(vv_catalog_put_commit(&lin, &c));
	vv_commit_fini(&c);
	vv_store_close(s);
	OK(varve_open(store, "a", "", &v));
	OK(varve_protect(v, "p", p, LEN));
	MUST(varve_restart(v, VARVE_LATEST) == 1); /* its layer is not there: the one before */
	MUST(p[7] == 2);
	MUST(varve_checkpoint(v) == VARVE_EINVAL);
	MUST(strstr(varve_last_error(), "used up"));
	OK(varve_close(v));
}

/* A record that does not say what the layer says is damaged. */
static void test_lies(void)
{
	must_begin("a record that lies");
	for (int lie = 0; lie < 4; lie++) {
		struct vv_commit c = { 0 };
		struct vv_lineage lin;
		struct vv_store *s;
		uint8_t p[LEN];
		varve *v = NULL;

		place_remove(store);
		go_on("", 0, 3);
		open_lineage(store, &s, &lin);
		OK(vv_catalog_commit(&lin, 3, &c));
		c.rank[0].payload += lie == 0 ? 1 : 0;
		c.rank[0].payload -= lie == 1 ? 1 : 0;
		c.rank[0].file_len -= lie == 2 ? 1 : 0;
		c.rank[0].head.w[1] ^= lie == 3;
		OK(vv_catalog_put_commit(&lin, &c));
		vv_commit_fini(&c);
		vv_store_close(s);
		OK(varve_open(store, "a", "log=error", &v));
		OK(varve_protect(v, "p", p, LEN));
		MUST(varve_restart(v, 3) == VARVE_EDAMAGED);
		MUST(strstr(varve_last_error(), "0000000003.r0.layer"));
		MUST(strstr(varve_last_error(), "commit"));
		MUST(varve_restart(v, VARVE_LATEST) == 1);
		MUST(varve_epoch(v) == 2);
		MUST(p[0] == 2);
		OK(varve_close(v));
	}
}

/* ---- stores of their own ---------------------------------------------------------------------------------------------------- */

struct many {
	uint64_t want;
	int n;
};

static void rank_goes_on(const struct varve_comm *comm, void *arg)
{
	const struct many *m = arg;
	char mine[PLACE_MAX + 16];
	varve *v = NULL;
	uint8_t *p;

	snprintf(mine, sizeof(mine), "%s.%u", store, comm->rank);
	OK(varve_open_comm(comm, mine, "a", "timeout=20 log=error", &v));
	p = varve_alloc(v, "p", LEN);
	MUST(varve_restart(v, VARVE_LATEST) == (m->want ? 1 : 0));
	MUST(varve_epoch(v) == m->want);
	MUST(p[100] == (uint8_t)(m->want ? m->want * 10 + comm->rank : 0));
	for (int i = 1; i <= m->n; i++) {
		memset(p, (int)((m->want + (uint64_t)i) * 10 + comm->rank), LEN);
		OK(settle_checkpoint(v));
		MUST(varve_epoch(v) == m->want + (uint64_t)i);
	}
	MUST(varve_restart(v, 77) == VARVE_ENOENT); /* and one that never was is not damaged */
	OK(varve_close(v));
}

static void test_many(enum stray what, uint32_t rank)
{
	char mine[PLACE_MAX + 16];

	must_begin("stray %d in the store of rank %u", (int)what, rank);
	for (uint32_t r = 0; r < RANKS; r++) {
		snprintf(mine, sizeof(mine), "%s.%u", store, r);
		place_remove(mine);
	}
	threadcomm_run(RANKS, rank_goes_on, &(struct many){ 0, 2 });
	snprintf(mine, sizeof(mine), "%s.%u", store, rank);
	put_stray(mine, what, VV_MAX_EPOCH);
	threadcomm_run(RANKS, rank_goes_on, &(struct many){ 2, 2 });
	threadcomm_run(RANKS, rank_goes_on, &(struct many){ 4, 1 });
}

int main(void)
{
	place_path(store, "s");
	setenv("VARVE_LOG", "error", 1);
	for (enum stray what = NOTHING; what < STRAYS; what++) {
		test_alone(what, VV_MAX_EPOCH);
		if (what != NOTHING && what != MISPLACED)
			test_alone(what, VV_MAX_EPOCH - 1);
		test_many(what, what % RANKS);
	}
	test_many(DAMAGED, 0);
	test_used_up();
	test_lies();
	return 0;
}
