// ctest: TIMEOUT 300 RUN_SERIAL
// Stored bytes that the device checks and puts in their places: all that the suite asks of a space, and what only a device can do wrong.
#include "base/err.h"
#include "support/device.h"
#include "support/device_load_suite.h"
#include "vv_test.h"

enum { SIZE = 1 << 20, BYTES = 65536 };

static uint64_t state = 3;

static uint32_t below(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % n);
}

/* ---- one room, filled by hand -------------------------------------------------------------------------------------------------- */

static struct vv_device_inlet_buffer *take(const struct vv_device_inlet_ops *ops, struct vv_cuda_inlet *i)
{
	struct vv_device_inlet_buffer *r = NULL;

	CHECK_EQ(ops->take(i, &r), 0);
	r->n_moves = r->n_checks = r->bytes = r->end = 0;
	return r;
}

/* Chunks of all sizes that there may be, each checked; where `wrong` is one of them its digest has another bit. */
static void fill(struct vv_device_inlet_buffer *r, uint8_t *to, const struct vv_device_inlet_move *move, uint32_t n, uint32_t wrong)
{
	uint8_t *bytes = r->p + SIZE / 2;
	struct vv_device_inlet_check *c;

	r->to = to;
	r->n_moves = n;
	memcpy(vv_device_inlet_moves(r), move, n * sizeof(*move));
	r->bytes = SIZE / 2;
	for (uint32_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)below(256);
	c = vv_device_inlet_checks(r);
	for (uint32_t at = 0, len; at < BYTES; at += len) {
		len = (1 + below(17)) * VV_DEVICE_INLET_UNIT;
		len = len < BYTES - at ? len : BYTES - at;
		c[r->n_checks] = (struct vv_device_inlet_check){ .at = at, .len = len };
		vv_digest_xxh3(bytes + at, len, &c[r->n_checks].want);
		if (r->n_checks++ == wrong)
			c[wrong].want.w[wrong % 2] ^= 1ull << wrong % 64;
	}
	r->end = SIZE / 2 + BYTES;
	CHECK((uint8_t *)(c + r->n_checks) <= bytes);
}

/* Moves of any length between any addresses, one behind the other with a byte between them that nobody may touch; a room that differs says so, and only that one. */
static void rooms(const struct vv_space *space, struct vv_pool *pool)
{
	enum { ROOMS = 5, ROUNDS = 40, MOVES = 60, LEN = 1 << 20 };
	uint8_t *there = device_get_odd(LEN), *want = malloc(LEN), *is = malloc(LEN);
	struct vv_device_inlet_move move[MOVES];
	struct vv_cuda_inlet *i = NULL;

	CHECK(want && is);
	memset(want, 0x5a, LEN);
	CHECK_EQ(space->copy_in(there, want, LEN), 0);
	CHECK_EQ(space->inlet->open(0, SIZE, ROOMS, &i), 0);
	for (size_t round = 0; round < ROUNDS; round++) {
		uint32_t n = below(MOVES), base = below(1000), to = 0;
		struct vv_device_inlet_buffer *r = take(space->inlet, i);

		CHECK_EQ(r->differs, round >= ROOMS && (round - ROOMS) % 3 == 1);
		for (uint32_t k = 0; k < n; k++, to += move[k - 1].len + 1) {
			uint32_t len = 1 + below(k % 5 ? 300 : VV_DEVICE_INLET_MOVE);

			move[k] = (struct vv_device_inlet_move){ below(6) ? below(BYTES - len + 1) : VV_DEVICE_INLET_ZERO, to, len };
		}
		fill(r, there + base, move, n, round % 3 == 1 ? below(4) : UINT32_MAX);
		for (uint32_t k = 0; k < n; k++)
			if (move[k].from == VV_DEVICE_INLET_ZERO)
				memset(want + base + move[k].to, 0, move[k].len);
			else
				memcpy(want + base + move[k].to, r->p + r->bytes + move[k].from, move[k].len);
		r->tag = round;
		CHECK_EQ(space->inlet->send(i, r), 0);
		CHECK_EQ(space->sync(0, NULL), 0); /* the next one writes to the same place */
	}
	for (int k = 0; k < ROOMS; k++)
		take(space->inlet, i);
	space->inlet->close(i, pool);
	CHECK_EQ(space->copy_out(is, there, LEN), 0);
	CHECK(memcmp(is, want, LEN) == 0);
	device_put_odd(there);
	free(want);
	free(is);
}

static void want_of_memory(const struct vv_space *space, struct vv_pool *pool)
{
	void *hoard = device_hoard(4 << 20);
	struct vv_cuda_inlet *i = NULL;

	CHECK(hoard);
	CHECK_EQ(space->inlet->open(0, 4 << 20, 16, &i), VV_ENOMEM);
	CHECK(strstr(vv_err_last(), "device"));
	CHECK(!i);
	device_put(hoard);
	space->inlet->close(NULL, pool);
}

int main(void)
{
	struct device_load_suite s = { device_space(), device_get_odd, device_put_odd, 8, NULL, NULL, NULL };
	struct vv_pool *pool;

	CHECK_EQ(vv_pool_new(2, &pool), 0);
	rooms(s.space, pool);
	want_of_memory(s.space, pool);
	vv_pool_free(pool);
	device_load_suite_run(&s);
	return 0;
}
