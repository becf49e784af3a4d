// ctest: COST 2
/* Ranks that write one file taste together: from the second epoch on all begin with the recipe that is best for all, what they store is as small as when
 * each chose for itself, it is told which numbers are alike on all ranks, and everything comes back. Then samples that cannot be. */
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "core/format/head.h"
#include "engine/ranks/group.h"
#include "engine/context.h"
#include "engine/ranks/shared_samples.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <math.h>

enum { RANKS = 4, ROW = 96, ROWS = 300, N = ROW * ROWS, KEYS = 40000, EPOCHS = 4 };

struct job {
	char store[PLACE_MAX];
	const char *options;
	size_t shared[RANKS][EPOCHS], alike[RANKS][EPOCHS];
	uint64_t stored[RANKS][EPOCHS];
	struct vv_recipe how[RANKS];
	int code[RANKS][EPOCHS];
	bool lie;
};

struct state {
	double field[N];     /* smooth, another one on each rank */
	uint32_t keys[KEYS]; /* noise, but nearly the same on all ranks */
};

static void set(struct state *s, uint32_t rank, unsigned epoch)
{
	uint64_t common = 1000 + epoch, own = 77 + rank + 10 * epoch;

	for (size_t i = 0; i < N; i++)
		s->field[i] = sin((double)(i % ROW) / 9 + rank) * cos((double)(i / ROW) / 31 + epoch) * (1 + rank) + 1e-9 * (double)(gen_next(&own) % 100);
	for (size_t i = 0; i < KEYS; i++)
		s->keys[i] = (uint32_t)gen_next(&common);
	for (size_t i = gen_below(&own, 400); i < KEYS; i += 400)
		s->keys[i] ^= 1 + rank;
}

static void protect(varve *v, struct state *s)
{
	uint64_t shape[] = { ROWS, ROW }, keys = KEYS;

	MUST(varve_protect_array(v, "field", s->field, VARVE_F64, 2, shape) == 0);
	MUST(varve_protect_array(v, "keys", s->keys, VARVE_U32, 1, &keys) == 0);
}

static int (*honest)(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op);

/* Samples are what is long and goes to rank 0. */
static int liar(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op)
{
	if (to_len[0] > 60000)
		memset((uint8_t *)(uintptr_t)to, 0xff, 64);
	return honest(ctx, to, to_len, from, from_len, op);
}

static void run_rank(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	struct varve_comm mine = *comm;
	struct state *s = calloc(1, sizeof(*s)), *want = calloc(1, sizeof(*s));
	uint32_t r = comm->rank;
	varve *v = NULL;

	MUST(s && want);
	if (j->lie && r == 1) {
		honest = mine.alltoallv;
		mine.alltoallv = liar;
	}
	MUST(varve_open_comm(&mine, j->store, "run", j->options, &v) == 0);
	protect(v, s);
	for (unsigned e = 0; e < EPOCHS; e++) {
		const struct vv_shared_samples *t = v->ctx.group->bundle.tasting;

		set(s, r, e);
		j->code[r][e] = varve_checkpoint(v);
		if (j->code[r][e] == 0)
			j->code[r][e] = varve_wait(v, varve_epoch(v));
		j->stored[r][e] = v->stats.bytes_stored;
		j->shared[r][e] = t ? vv_shared_samples_shared(t) : 0;
		j->alike[r][e] = t ? vv_shared_samples_alike(t) : 0;
		for (size_t i = 0; t && i < t->n; i++)
			j->how[r] = t->form[i].shared && t->form[i].form.type == VV_TYPE_F64 ? t->form[i].how : j->how[r];
	}
	MUST(j->lie || varve_restart(v, VARVE_LATEST) == 1);
	set(want, r, EPOCHS - 1);
	MUST(j->lie || memcmp(s, want, sizeof(*s)) == 0);
	varve_close(v);
	free(s);
	free(want);
}

static void run(struct job *j, const char *options)
{
	must_begin("%s", options);
	j->options = options;
	place_remove(place_path(j->store, "store"));
	threadcomm_run(RANKS, run_rank, j);
}

/* Groups of two, and of all; nothing is decided before there were samples. */
static void test_together(const char *options, bool decided)
{
	static struct job j;

	memset(&j, 0, sizeof(j));
	run(&j, options);
	for (uint32_t r = 0; r < RANKS; r++)
		for (unsigned e = 0; e < EPOCHS; e++) {
			CHECK_EQ(j.code[r][e], 0);
			CHECK_EQ(j.shared[r][e], decided && e > 0 ? 2 : 0);
			CHECK_EQ(j.alike[r][e], decided && e > 0 ? 1 : 0);
			CHECK(!decided || vv_recipe_same(&j.how[r], &j.how[r & ~1u]));
			CHECK(j.stored[r][e] < j.stored[r][0] + j.stored[r][0] / 10);
		}
	CHECK(!decided || j.how[0].predictor != VV_PREDICT_NONE);
}

/* All are told, and the next epoch is laid down as if nothing had been. */
static void test_lie(void)
{
	static struct job j = { .lie = true };

	run(&j, "mode=sync codec=zstd:1 aggregate=4 timeout=20s");
	for (uint32_t r = 0; r < RANKS; r++)
		for (unsigned e = 0; e < EPOCHS; e++)
			CHECK_EQ(j.code[r][e], e == 1 ? VV_EPEER : 0);
}

int main(void)
{
	if (!vv_codec_numbered(VV_CODEC_ZSTD))
		SKIP("built without zstd");
	test_together("mode=sync codec=zstd:1 aggregate=4", true);
	test_together("mode=sync codec=zstd:1 aggregate=2", true);
	test_together("mode=async codec=zstd:1 aggregate=2", true);
	test_together("mode=sync codec=zstd:1", false);
	test_together("mode=sync codec=none aggregate=2", false);
	test_lie();
	return 0;
}
