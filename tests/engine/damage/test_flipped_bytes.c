// ctest: TIMEOUT 300 COST 15
/* Damage: every byte flipped, every length cut. verify names the file and the part; a restart gives the right bytes or an
 * error, and the newest whole epoch where it may choose. Then whole files that are missing, swapped or in the way. */
#include "base/mem.h"
#include "base/pool.h"
#include "core/format/name.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/layer_file.h"
#include "engine/upkeep/verify.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/settle.h"
#include "vv_test.h"
#include <varve/varve.h>

enum { EPOCHS = 3 };

struct victim {
	const char *options;
	size_t size; /* of the region */
	void (*fill)(uint8_t *p, size_t n, unsigned epoch);
	struct vv_store *store;
	struct vv_lineage lineage;
	struct vv_pool *pool;
	varve *v;
	uint8_t *p, *want[EPOCHS + 1];
	bool large; /* each case takes long: fewer of them */
	long cases;
	/* the damage under way */
	char object[VV_NAME_MAX], how[64];
	bool named;
};

static _Noreturn void wrong(const struct victim *x, const char *what)
{
	fprintf(stderr, "%s, %s: %s\nlast error: %s\n", x->object, x->how, what, varve_last_error());
	exit(1);
}

/* Constant, new, coming back, zero, twice; half of it can be coded. */
static void fill_small(uint8_t *p, size_t n, unsigned epoch)
{
	memset(p, 0, n);
	for (size_t i = 0; i < n / 64; i++) {
		uint64_t state = i % 4 == 0 ? i : i % 4 == 1 ? i + 1000 * epoch : i % 8 == 2 ? 77 : 0;

		if (state)
			gen_bytes(&state, p + i * 64, i % 8 < 4 ? 64 : 8);
	}
}

/* Thousands of runs, a few of which change: the second epoch is a delta. */
static void fill_comb(uint8_t *p, size_t n, unsigned epoch)
{
	memset(p, 0, n);
	for (size_t i = 0; i < n; i += 64)
		memcpy(p + i, (size_t[]){ 1, i }, 2 * sizeof(size_t));
	for (size_t i = 0; i < 12; i++)
		p[i * 4096 + 1] = (uint8_t)epoch;
	memset(p + 2048, epoch == 2 ? 3 : 0, 64);
}

static void set_up(struct victim *x, const char *url)
{
	struct vv_store_options opt = { .create = true };

	CHECK_EQ(vv_store_open(url, &opt, &x->store), 0);
	CHECK_EQ(vv_pool_new(0, &x->pool), 0);
	CHECK_EQ(varve_open(url, "L", x->options, &x->v), 0);
	x->p = malloc(x->size);
	CHECK(x->p && varve_protect(x->v, "r", x->p, x->size) == 0);
	for (unsigned e = 1; e <= EPOCHS; e++) {
		x->want[e] = malloc(x->size);
		CHECK(x->want[e]);
		x->fill(x->want[e], x->size, e);
		memcpy(x->p, x->want[e], x->size);
		CHECK_EQ(settle_checkpoint(x->v), 0);
	}
	CHECK_EQ(vv_catalog_open(x->store, "L", false, &x->lineage), 0);
}

static void tear_down(struct victim *x)
{
	varve_close(x->v);
	vv_store_close(x->store);
	vv_pool_free(x->pool);
	for (unsigned e = 1; e <= EPOCHS; e++)
		free(x->want[e]);
	free(x->p);
}

static void heard(void *arg, const char *problem)
{
	static const char *const parts[] = { "header", "trailer", "directory", "section", "block ", "record", "head:",
					     "missing", "regular file" };
	struct victim *x = arg;

	for (size_t i = 0; strstr(problem, x->object) && i < sizeof(parts) / sizeof(parts[0]); i++)
		x->named |= strstr(problem, parts[i]) != NULL;
}

/* Verify sees it and can say where. */
static void check_verify(struct victim *x)
{
	struct vv_verify_report report = { 0 };

	x->named = false;
	if (vv_verify_run(&x->lineage, x->pool, 0, false, heard, x, NULL, &report) < 0)
		wrong(x, "verify fails");
	if (report.problems == 0)
		wrong(x, "verify does not see it");
	if (!x->named)
		wrong(x, "verify does not say where it is");
}

static void check_restarts(struct victim *x)
{
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		int rc;

		memset(x->p, 0xa5, x->size);
		rc = varve_restart(x->v, e);
		if (rc != 1 && rc != VARVE_EDAMAGED && rc != VARVE_ENOENT)
			wrong(x, "a restart returns another code");
		if (rc == 1 && memcmp(x->p, x->want[e], x->size) != 0)
			wrong(x, "a restart gives wrong bytes");
		if (rc < 0 && !strstr(varve_last_error(), "L"))
			wrong(x, "a restart does not say what is damaged");
	}
}

/* The epoch that VARVE_LATEST came to; 0 if it failed. */
static uint64_t check_latest(struct victim *x)
{
	int rc;

	memset(x->p, 0xa5, x->size);
	rc = varve_restart(x->v, VARVE_LATEST);
	if (rc < 0)
		return 0;
	if (rc != 1 || varve_epoch(x->v) > EPOCHS || memcmp(x->p, x->want[varve_epoch(x->v)], x->size) != 0)
		wrong(x, "the latest epoch is wrong");
	return varve_epoch(x->v);
}

static void check_damage(struct victim *x, uint64_t epoch)
{
	uint64_t latest;

	x->cases++;
	check_verify(x);
	check_restarts(x);
	latest = check_latest(x);
	if (epoch == EPOCHS && latest < EPOCHS - 1)
		wrong(x, "the epoch before the damaged one is not found");
}

static void flip_all(struct victim *x, uint64_t epoch, const uint8_t *bytes, size_t n, size_t stride)
{
	uint8_t *copy = malloc(n + 1);
	uint64_t state = n;

	CHECK(copy);
	memcpy(copy, bytes, n);
	for (size_t at = 0; at < n; at += 1 + (size_t)gen_below(&state, stride)) {
		uint8_t masks[2] = { 0xff, (uint8_t)(1u << gen_below(&state, 8)) };

		/* both; in turn where each takes long */
		for (int i = x->large && at % 2; i < (x->large ? 1 + (int)(at % 2) : 2); i++) {
			copy[at] ^= masks[i];
			snprintf(x->how, sizeof(x->how), "byte %zu of %zu ^ %02x", at, n, masks[i]);
			CHECK_EQ(vv_store_put(x->store, x->object, copy, n), 0);
			check_damage(x, epoch);
			copy[at] ^= masks[i];
		}
	}
	free(copy);
}

static void cut_all(struct victim *x, uint64_t epoch, const uint8_t *bytes, size_t n, size_t stride)
{
	uint64_t state = n;
	uint8_t *longer = calloc(1, n + 8);

	stride += x->large ? 8 : 0;
	for (size_t len = 0; len < n; len += 1 + (size_t)gen_below(&state, stride)) {
		snprintf(x->how, sizeof(x->how), "%zu of %zu bytes", len, n);
		CHECK_EQ(vv_store_put(x->store, x->object, bytes, len), 0);
		check_damage(x, epoch);
	}
	CHECK(longer);
	memcpy(longer, bytes, n);
	snprintf(x->how, sizeof(x->how), "8 bytes more than %zu", n);
	CHECK_EQ(vv_store_put(x->store, x->object, longer, n + 8), 0);
	check_damage(x, epoch);
	free(longer);
}

static void damage(struct victim *x, uint64_t epoch, size_t stride)
{
	uint8_t *bytes = NULL;
	size_t n = 0;

	CHECK_EQ(vv_store_get(x->store, x->object, SIZE_MAX, &bytes, &n), 0);
	flip_all(x, epoch, bytes, n, stride);
	cut_all(x, epoch, bytes, n, stride);
	CHECK_EQ(vv_store_put(x->store, x->object, bytes, n), 0);
	vv_mem_free(bytes);
}

/* The layer's length, and whether it is a delta. */
static size_t measure(const struct victim *x, uint64_t epoch, bool *delta)
{
	struct vv_layer_file *f = NULL;
	size_t n;

	CHECK_EQ(vv_layer_file_open(&x->lineage, vv_run_layer(epoch, 0), 0, &f), 0);
	n = (size_t)f->get->size;
	*delta |= f->head.parent != 0;
	vv_layer_file_close(f);
	return n;
}

/* Of long layers only some places are tried. */
static void sweep(const char *url, const char *options, size_t size, void (*fill)(uint8_t *, size_t, unsigned),
		  bool *delta)
{
	enum { ALL = 4000, SOME = 100 };
	struct victim x = { .options = options, .size = size, .fill = fill, .large = size > 10000 };

	set_up(&x, url);
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		size_t n = measure(&x, e, delta);

		vv_name_commit(x.object, "L", e);
		damage(&x, e, *delta ? 4 : 1);
		vv_name_layer(x.object, "L", e, 0);
		damage(&x, e, n > ALL ? 2 * n / SOME : 1);
	}
	CHECK(check_latest(&x) == EPOCHS); /* all is well again */
	printf("%s: %ld cases\n", options, x.cases);
	tear_down(&x);
}

int main(void)
{
	bool delta = false;

	sweep("mem:flip", "chunk=64 block=4096 " CODED " threads=1 log=error", 1500, fill_small, &delta);
	sweep("mem:flip-plain", "chunk=64 block=4096 codec=none threads=1 log=error", 700, fill_small, &delta);
	CHECK(!delta);
	sweep("mem:flip-delta", "chunk=32 block=4096 " CODED_FAST " threads=1 log=error", 192 << 10, fill_comb, &delta);
	CHECK(delta);
	return 0;
}
