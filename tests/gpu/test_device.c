// ctest: TIMEOUT 120 RUN_SERIAL
// The space of devices: whose memory is whose, copies, want of memory.
#include "base/err.h"
#include "support/device.h"
#include "vv_test.h"

enum { C = 128, N = 1 << 19, LEN = N * C };

static const struct vv_sieve_options usual = { .method = VV_METHOD_RUN, .chunk = C, .digest_kind = VV_DIGEST_XXH3, .memory = 256 << 20 };

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

static void test_owns(const struct vv_space *space)
{
	uint8_t *p = device_get(LEN), *rented = space->rent(0, 1 << 20);
	int device = -1, on_stack;

	CHECK(space->owns(p, LEN, &device));
	CHECK_EQ(device, 0);
	CHECK(space->owns(p + 1000, LEN - 1000, &device));
	CHECK(space->owns(p, 0, &device));
	CHECK(!space->owns(&on_stack, sizeof(on_stack), &device));
	CHECK(!space->owns(&usual, sizeof(usual), &device));
	CHECK(!space->owns(NULL, 1, &device));
	CHECK(rented);
	CHECK(!space->owns(rented, 1 << 20, &device)); /* the host's, though the device can use it */
	memset(rented, 1, 1 << 20);
	space->give_back(0, rented, 1 << 20);
	device_put(p);
	CHECK(!space->owns(p, LEN, &device));
}

static void test_copies(const struct vv_space *space)
{
	uint8_t *p = device_get(LEN), *rented = space->rent(0, LEN), *plain = malloc(LEN);

	CHECK(plain);
	for (size_t i = 0; i < LEN; i++)
		plain[i] = (uint8_t)(i * 7 + i / 256);
	CHECK_EQ(space->copy_in(p, plain, LEN), 0);
	CHECK_EQ(space->copy_out(rented, p, LEN), 0);
	CHECK(memcmp(rented, plain, LEN) == 0);
	memset(rented + 3, 0xee, 1001);
	CHECK_EQ(space->copy_in(p + 3, rented + 3, 1001), 0);
	CHECK_EQ(space->copy_out(plain, p, LEN), 0);
	CHECK(memcmp(rented, plain, LEN) == 0);
	CHECK_EQ(space->copy_in(p, plain, 0), 0);
	CHECK_EQ(space->copy_out(rented, plain, 10), VV_EINVAL); /* not ours */
	CHECK_EQ(space->sync(0, NULL), 0);
	space->give_back(0, rented, LEN);
	free(plain);
	device_put(p);
}

/* ---- a sieve ------------------------------------------------------------------------------------------------------------- */

static uint8_t room[LEN];

static uint8_t *take_room(void *arg, size_t want, size_t *got)
{
	size_t *at = arg;

	*got = want;
	*at += want;
	return room + *at - want;
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return 0;
}

static int take_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	(void)arg;
	(void)piece;
	(void)n;
	return 0;
}

static int pass(struct vv_sieve *s, uint8_t *p, uint32_t ordinal)
{
	size_t at = 0;
	struct vv_sink sink = { &at, take_room, take_data, take_pieces };
	struct vv_span span = { .id = 1, .p = p, .len = LEN };

	return s->space->pass(s, &span, 1, ordinal, &sink);
}

static void test_options(const struct vv_space *space)
{
	struct vv_sieve_options opt = usual;
	struct vv_sieve *s;

	opt.digest_kind = VV_DIGEST_SHA256;
	CHECK_EQ(space->open(&opt, NULL, &s), VV_ENOTSUP);
	opt = usual;
	opt.chunk = 96;
	CHECK_EQ(space->open(&opt, NULL, &s), VV_EINVAL);
	opt.chunk = 16;
	CHECK_EQ(space->open(&opt, NULL, &s), VV_EINVAL);
	space->close(NULL);
}

/* With a device that has too little memory left a pass fails, says so, and costs nothing; with enough it succeeds again. */
static void test_want_of_memory(const struct vv_space *space)
{
	uint8_t *p = device_get(LEN), *host = malloc(LEN);
	struct vv_sieve *s, *too;
	void *hoard;

	CHECK(host);
	for (size_t i = 0; i < LEN; i += 4)
		memcpy(host + i, &(uint32_t){ (uint32_t)i }, 4);
	CHECK_EQ(space->copy_in(p, host, LEN), 0);
	CHECK_EQ(space->open(&usual, NULL, &s), 0);
	CHECK_EQ(space->open(&usual, NULL, &too), 0);
	CHECK_EQ(pass(s, p, 1), 0);
	CHECK_EQ(s->counts.fresh, N);
	hoard = device_hoard(8 << 20);
	CHECK(hoard);
	CHECK_EQ(pass(too, p, 1), VV_ENOMEM);
	CHECK(strstr(vv_err_last(), "device"));
	CHECK_EQ(pass(s, p, 2), 0); /* has all it needs */
	CHECK_EQ(s->counts.changed, 0);
	device_put(hoard);
	CHECK_EQ(pass(too, p, 2), 0);
	CHECK_EQ(too->counts.fresh, N);
	CHECK(memcmp(room, host, LEN) == 0);
	space->close(s);
	space->close(too);
	device_put(p);
	free(host);
}

int main(void)
{
	const struct vv_space *space = device_space();

	test_owns(space);
	test_copies(space);
	test_options(space);
	test_want_of_memory(space);
	return 0;
}
