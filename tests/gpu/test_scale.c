// ctest: TIMEOUT 600 RUN_SERIAL
// Device and host side by side over more than the model can follow: several slices, batches of them, maps that grow, generations that follow
// each other, data in many rooms. Pieces, data and counts must be the same, byte for byte.
#include "base/err.h"
#include "support/device.h"
#include "support/gen.h"
#include "support/sieve_model.h"
#include "vv_test.h"

enum { C = 32, REGIONS = 3, EPOCHS = 4 };

static const size_t length[REGIONS] = { ((size_t)VV_GRAIN_SLICE + 70000) * C + 5, 4321 * C, ((size_t)VV_GRAIN_SLICE + 9) * C };

struct side {
	const struct vv_space *space;
	struct vv_pool *pool;
	struct vv_sieve *sieve;
	struct vv_span span[REGIONS];
	struct sieve_record record;
};

static uint8_t *take_room(void *arg, size_t want, size_t *got)
{
	uint8_t *p;

	(void)arg;
	*got = want < 5000000 ? want : 5000000;
	p = malloc(*got);
	CHECK(p);
	return p;
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	sieve_record_add_data(&((struct side *)arg)->record, p, len);
	free((void *)(uintptr_t)p);
	return 0;
}

static int take_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	sieve_record_add_pieces(&((struct side *)arg)->record, piece, n);
	return 0;
}

static void open_side(struct side *s, const struct vv_space *space, struct vv_pool *pool, const struct vv_sieve_options *opt)
{
	*s = (struct side){ .space = space, .pool = pool };
	CHECK_EQ(space->open(opt, pool, &s->sieve), 0);
}

static void close_side(struct side *s)
{
	s->space->close(s->sieve);
	sieve_record_fini(&s->record);
}

static int pass(struct side *s, uint32_t ordinal)
{
	struct vv_sink sink = { s, take_room, take_data, take_pieces };

	sieve_record_fini(&s->record);
	s->record = (struct sieve_record){ .ordinal = ordinal };
	return s->space->pass(s->sieve, s->span, REGIONS, ordinal, &sink);
}

static void compare(const struct side *a, const struct side *b)
{
	const struct sieve_record *x = &a->record, *y = &b->record;

	for (size_t i = 0; i < x->n && i < y->n; i++)
		if (memcmp(&x->piece[i], &y->piece[i], sizeof(*x->piece)) != 0) {
			fprintf(stderr, "piece %zu: %u+%u %llx, %u+%u %llx\n", i, x->piece[i].at, x->piece[i].len,
				(unsigned long long)x->piece[i].from, y->piece[i].at, y->piece[i].len, (unsigned long long)y->piece[i].from);
			exit(1);
		}
	CHECK_EQ(x->n, y->n);
	CHECK_EQ(x->len, y->len);
	CHECK(x->len == 0 || memcmp(x->data, y->data, x->len) == 0);
	CHECK(memcmp(&a->sieve->counts, &b->sieve->counts, sizeof(a->sieve->counts)) == 0);
}

/* Contents that recur at all distances, and zeros. */
static void fill(uint8_t *p, size_t len, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t grain = i / C, run = grain / 50, what = run * 0x9e3779b97f4a7c15 >> 58, v = seed + grain;

		v = what < 8 ? 0 : what < 20 ? grain % 7 + seed : what < 30 ? run % 100 * 50 + grain % 50 : v * 0xbf58476d1ce4e5b9;
		v = what < 8 ? 0 : v + i % C;
		memcpy(p + i, &v, 8);
	}
}

static void change(uint8_t *p, size_t len, uint64_t *rng, int epoch)
{
	if (epoch == 1) /* little, so that slices are taken together */
		for (int i = 0; i < 3000; i++)
			p[gen_below(rng, len)] ^= 1;
	if (epoch == 2)
		memmove(p + 77 * C, p, len / 3);
	if (epoch == 3)
		fill(p + len / 4, len / 4, 999);
}

static void both(enum vv_method method, uint64_t memory, bool odd)
{
	struct vv_sieve_options opt = { .method = method, .chunk = C, .digest_kind = VV_DIGEST_XXH3, .memory = memory };
	struct vv_pool *pool;
	struct side host, device;
	uint64_t rng = 5;

	CHECK_EQ(vv_pool_new(vv_pool_cores() - 1, &pool), 0);
	open_side(&host, vv_space_host(), pool, &opt);
	open_side(&device, device_space(), pool, &opt);
	for (int r = 0; r < REGIONS; r++) {
		host.span[r] = (struct vv_span){ .id = (uint64_t)r + 1, .p = malloc(length[r]), .len = length[r] };
		device.span[r] = (struct vv_span){ .id = (uint64_t)r + 1, .p = odd && r == 1 ? device_get_odd(length[r]) : device_get(length[r]),
						   .len = length[r] };
		CHECK(host.span[r].p);
		fill(host.span[r].p, length[r], (uint64_t)r * 100);
	}
	for (int epoch = 0; epoch < EPOCHS; epoch++) {
		for (int r = 0; r < REGIONS; r++) {
			change(host.span[r].p, length[r], &rng, epoch);
			CHECK_EQ(device.space->copy_in(device.span[r].p, host.span[r].p, length[r]), 0);
		}
		CHECK_EQ(pass(&host, (uint32_t)epoch), 0);
		CHECK_EQ(pass(&device, (uint32_t)epoch), 0);
		compare(&host, &device);
	}
	for (int r = 0; r < REGIONS; r++) {
		free(host.span[r].p);
		(odd && r == 1 ? device_put_odd : device_put)(device.span[r].p);
	}
	close_side(&host);
	close_side(&device);
	vv_pool_free(pool);
}

int main(int argc, char **argv)
{
	int only = argc > 1 ? atoi(argv[1]) : -1;

	for (int method = VV_METHOD_FULL; method <= VV_METHOD_RUN; method++)
		if (only < 0 || only == method) {
			both((enum vv_method)method, (uint64_t)1 << 30, true);
			if (method >= VV_METHOD_LIST)
				both((enum vv_method)method, 0, false);
			if (method >= VV_METHOD_LIST)
				both((enum vv_method)method, 280 << 20, false);
		}
	return 0;
}
