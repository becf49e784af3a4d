// The map of two generations against a naive one, and its bounds.
#include "core/dedup/known_grains.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/dedup/grain.h"
#include "support/gen.h"
#include "vv_test.h"

enum { KEYS = 600 };

/* Per key: its place in each generation, or NONE. */
#define NONE UINT64_MAX
struct naive {
	uint64_t young[KEYS], aged[KEYS];
	size_t n_young;
	uint64_t forgotten;
};

static struct vv_digest key(uint64_t i)
{
	struct vv_digest d;
	uint64_t state = i;

	d.w[0] = i % 7 ? gen_next(&state) : UINT64_MAX - i % 3; /* some with one home, at the end: they go around */
	d.w[1] = i;
	return d;
}

static uint64_t place_of(uint32_t ordinal, uint64_t number)
{
	return vv_grain_from(0, ordinal, number);
}

static void rotate(struct naive *m)
{
	for (int i = 0; i < KEYS; i++)
		m->forgotten += m->aged[i] != NONE && m->young[i] == NONE;
	memcpy(m->aged, m->young, sizeof(m->aged));
	memset(m->young, 0xff, sizeof(m->young));
	m->n_young = 0;
}

static void meet(struct naive *m, uint64_t i)
{
	if (m->young[i] == NONE && m->aged[i] != NONE) {
		m->young[i] = m->aged[i];
		m->n_young++;
	}
}

static void slice(struct vv_known_grains *k, struct naive *m, uint64_t *rng, uint32_t ordinal)
{
	size_t n = gen_below(rng, 200), take = 0;

	if (m->n_young && m->n_young + n > k->limit)
		rotate(m);
	CHECK_EQ(vv_known_grains_begin(k, n, &take), 0);
	CHECK_EQ(take, n < k->limit ? n : k->limit);
	m->forgotten += n - take;
	for (size_t t = 0; t < take; t++) {
		uint64_t i = gen_below(rng, KEYS), place = place_of(ordinal, t), mine = place;
		struct vv_digest d = key(i);

		meet(m, i);
		vv_known_grains_prefetch(k, &d);
		if (gen_below(rng, 3) == 0) {
			CHECK_EQ(vv_known_grains_find(k, &d, &place), m->young[i] != NONE);
			CHECK_EQ(place, m->young[i] != NONE ? m->young[i] : mine);
			continue;
		}
		CHECK_EQ(vv_known_grains_enter(k, &d, &place), m->young[i] != NONE);
		if (m->young[i] == NONE) {
			m->young[i] = mine;
			m->n_young++;
		}
		CHECK_EQ(place, m->young[i]);
	}
}

static void kill(struct naive *m, uint32_t ordinal)
{
	for (int i = 0; i < KEYS; i++) {
		if (m->young[i] != NONE && vv_grain_ordinal(m->young[i]) == ordinal) {
			m->young[i] = NONE;
			m->n_young--;
		}
		if (m->aged[i] != NONE && vv_grain_ordinal(m->aged[i]) == ordinal)
			m->aged[i] = NONE;
	}
}

/* Some of what was entered last is not there after all; of what is elsewhere that is not believed. */
static void take_back(struct vv_known_grains *k, struct naive *m, uint64_t *rng, uint32_t ordinal)
{
	for (uint64_t i = 0; i < KEYS; i++) {
		struct vv_digest d = key(i);

		if (k->young.n == 0 || gen_below(rng, 4))
			continue;
		vv_known_grains_drop(k, &d, place_of(ordinal + 1, i));
		if (m->young[i] == NONE || vv_grain_ordinal(m->young[i]) != ordinal)
			continue;
		vv_known_grains_drop(k, &d, m->young[i]);
		m->young[i] = NONE;
		m->n_young--;
	}
}

static void random_slices(size_t limit, uint64_t seed)
{
	struct vv_known_grains k = { 0 };
	struct naive m = { .n_young = 0 };
	uint64_t rng = seed;

	memset(m.young, 0xff, sizeof(m.young));
	memset(m.aged, 0xff, sizeof(m.aged));
	CHECK_EQ(vv_known_grains_limit(&k, limit), 0);
	for (uint32_t ordinal = 1; ordinal < 60; ordinal++) {
		slice(&k, &m, &rng, ordinal);
		CHECK_EQ(k.young.n, m.n_young);
		if (gen_below(&rng, 2))
			take_back(&k, &m, &rng, ordinal);
		CHECK_EQ(k.young.n, m.n_young);
		if (gen_below(&rng, 4) == 0) {
			uint32_t dead = ordinal - (uint32_t)gen_below(&rng, 3);

			vv_known_grains_kill(&k, dead);
			kill(&m, dead);
			CHECK_EQ(k.young.n, m.n_young);
		}
		CHECK(k.young.n <= limit && k.aged.n <= limit);
		CHECK_EQ(k.forgotten, m.forgotten);
		CHECK(vv_known_grains_bytes(&k) <= 64 * limit + 4096);
	}
	vv_known_grains_clear(&k);
	CHECK_EQ(k.young.n + k.aged.n, 0);
	CHECK_EQ(vv_known_grains_bytes(&k), 0);
	vv_known_grains_fini(&k);
}

static void enter_many(struct vv_known_grains *k, uint64_t from, uint64_t n)
{
	size_t take;

	CHECK_EQ(vv_known_grains_begin(k, n, &take), 0);
	for (uint64_t i = from; i < from + take; i++) {
		struct vv_digest d = key(i);
		uint64_t place = place_of(3, i);

		CHECK(!vv_known_grains_enter(k, &d, &place));
	}
}

/* Less memory than before: a generation that is too large goes, one that is not stays. */
static void smaller_limits(void)
{
	struct vv_known_grains k = { 0 };
	struct vv_digest d = key(150);
	uint64_t place;
	size_t take;

	CHECK_EQ(vv_known_grains_limit(&k, 100), 0);
	enter_many(&k, 1, 100);
	enter_many(&k, 101, 60);
	CHECK(k.aged.n == 100 && k.young.n == 60);
	CHECK_EQ(vv_known_grains_limit(&k, 70), 0);
	CHECK(k.aged.n == 0 && k.young.n == 60);
	CHECK_EQ(k.forgotten, 100);
	CHECK_EQ(vv_known_grains_begin(&k, 0, &take), 0);
	CHECK(vv_known_grains_find(&k, &d, &place) && place == place_of(3, 150));
	CHECK_EQ(vv_known_grains_limit(&k, 50), 0);
	CHECK_EQ(k.young.n, 0);
	CHECK_EQ(k.forgotten, 160);
	CHECK_EQ(vv_known_grains_limit(&k, 1000), 0);
	enter_many(&k, 500, 1000);
	vv_known_grains_fini(&k);
}

/* Want of memory loses nothing. */
static void no_memory(void)
{
	struct vv_known_grains k = { 0 };
	struct vv_digest d = key(7);
	uint64_t place;
	size_t take;

	CHECK_EQ(vv_known_grains_limit(&k, 100000), 0);
	enter_many(&k, 1, 1000);
	vv_mem_fail_at(1);
	CHECK_EQ(vv_known_grains_begin(&k, 50000, &take), VV_ENOMEM);
	vv_mem_fail_at(0);
	CHECK_EQ(k.young.n, 1000);
	CHECK(vv_known_grains_find(&k, &d, &place) && place == place_of(3, 7));
	vv_known_grains_fini(&k);
}

int main(void)
{
	static const size_t limit[] = { 1, 40, 150, 199, 400, 100000 };

	for (size_t i = 0; i < sizeof(limit) / sizeof(limit[0]); i++)
		for (uint64_t seed = 1; seed <= 5; seed++)
			random_slices(limit[i], seed * 100 + i);
	smaller_limits();
	no_memory();
	return 0;
}
