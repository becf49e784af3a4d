// ctest: COST 2
/* Grains that are written by another thread while the sieve of the host is at work: between the look at them and the copy. What it was told to copy is asked for in
 * between, and there they are written here. Each such grain holds afterwards what it held before or what was written; all others hold what they did, in this epoch and
 * in those that come after, although contents come back. */
#include "base/err.h"
#include "base/pool.h"
#include "space/space.h"
#include "support/gen.h"
#include "vv_test.h"
#include <string.h>

enum { GRAINS = 600, CHUNK_MAX = 512, EPOCHS = 12, CONTENTS = 40, WRITTEN = 50 };

static uint8_t memory[GRAINS * CHUNK_MAX], before[GRAINS * CHUNK_MAX], state[GRAINS * CHUNK_MAX];
static uint8_t data[EPOCHS + 1][2 * GRAINS * CHUNK_MAX]; /* of each epoch */
static size_t n_data;
static struct vv_piece piece[2 * GRAINS];
static size_t n_pieces;
static bool was_written[GRAINS];
static uint32_t chunk, ordinal;
static uint64_t rng;
static int to_write;

/* One of a few contents, zeros among them, or one that never was. */
static void set(uint32_t i)
{
	uint64_t what = gen_below(&rng, 2 * CONTENTS);

	if (what >= CONTENTS)
		gen_bytes(&rng, memory + (size_t)i * chunk, chunk);
	else
		memset(memory + (size_t)i * chunk, (int)what, chunk);
}

static uint8_t *room(void *arg, size_t want, size_t *got)
{
	(void)arg;
	for (; to_write; to_write--) {
		uint32_t i = (uint32_t)gen_below(&rng, GRAINS);

		set(i);
		was_written[i] = true;
	}
	*got = want < 64 * chunk ? want : 64 * chunk;
	CHECK(n_data + *got <= sizeof(data[0]));
	return data[ordinal] + n_data;
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	CHECK(p == data[ordinal] + n_data);
	n_data += len;
	return 0;
}

static int take_pieces(void *arg, const struct vv_piece *p, size_t n)
{
	(void)arg;
	CHECK(n_pieces + n <= 2 * GRAINS);
	memcpy(piece + n_pieces, p, n * sizeof(*p));
	n_pieces += n;
	return 0;
}

/* The epoch as it would be restored. */
static void apply(void)
{
	for (size_t k = 0; k < n_pieces; k++)
		for (uint32_t i = 0; i < piece[k].len; i++) {
			uint8_t *to = state + (size_t)(piece[k].at + i) * chunk;
			uint64_t number = vv_grain_number(piece[k].from);

			switch (vv_grain_kind(piece[k].from)) {
			case VV_PIECE_ZERO:
				memset(to, 0, chunk);
				break;
			case VV_PIECE_NEW:
				memcpy(to, data[ordinal] + (number + i) * chunk, chunk);
				break;
			case VV_PIECE_COPY:
				memcpy(to, data[vv_grain_ordinal(piece[k].from)] + (number + i) * chunk, chunk);
				break;
			case VV_PIECE_REPEAT:
				memcpy(to, to - number * chunk, chunk);
				break;
			}
		}
}

static void check(void)
{
	for (uint32_t i = 0; i < GRAINS; i++) {
		const uint8_t *is = state + (size_t)i * chunk, *then = before + (size_t)i * chunk, *now = memory + (size_t)i * chunk;

		CHECK(memcmp(is, then, chunk) == 0 || (was_written[i] && memcmp(is, now, chunk) == 0));
	}
}

static void run(enum vv_method method, bool compare, struct vv_pool *pool)
{
	struct vv_sieve_options opt = { .method = method, .chunk = chunk, .digest_kind = VV_DIGEST_XXH3, .memory = 64 << 20, .compare = compare };
	struct vv_span span = { .id = 1, .p = memory, .len = (uint64_t)GRAINS * chunk };
	struct vv_sink sink = { NULL, room, take_data, take_pieces };
	struct vv_sieve *s = NULL;

	memset(state, 0, sizeof(state));
	memset(memory, 0, sizeof(memory));
	CHECK_EQ(vv_space_host()->open(&opt, pool, &s), 0);
	for (ordinal = 1; ordinal <= EPOCHS; ordinal++) {
		for (int k = 0; k < GRAINS / 2; k++)
			set((uint32_t)gen_below(&rng, GRAINS));
		memcpy(before, memory, sizeof(before));
		memset(was_written, 0, sizeof(was_written));
		n_data = n_pieces = 0;
		to_write = ordinal % 3 ? WRITTEN : 0;
		CHECK_EQ(vv_space_host()->pass(s, &span, 1, ordinal, &sink), 0);
		apply();
		check();
	}
	vv_space_host()->close(s);
}

int main(void)
{
	struct vv_pool *pool = NULL;

	CHECK_EQ(vv_pool_new(3, &pool), 0);
	for (rng = 1; rng < 20; rng++)
		for (int method = VV_METHOD_FULL; method <= VV_METHOD_RUN; method++)
			for (chunk = 32; chunk <= CHUNK_MAX; chunk *= 4) {
				uint64_t seed = rng;

				run((enum vv_method)method, false, NULL);
				run((enum vv_method)method, true, pool);
				rng = seed;
			}
	vv_pool_free(pool);
	return 0;
}
