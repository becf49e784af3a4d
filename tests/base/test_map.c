/* The map against a plain array, through growth, removals and want of memory. */
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "vv_test.h"

enum { KEYS = 3000, STEPS = 200000 };

static char key[KEYS][24];
static size_t want[KEYS];

static unsigned rng(void)
{
	static uint64_t s = 88172645463325252ull;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return (unsigned)(s >> 20);
}

static void make_keys(void)
{
	for (size_t i = 0; i < KEYS; i++) {
		snprintf(key[i], sizeof(key[i]), i % 3 ? "field.%zu" : "%zu", i);
		want[i] = VV_MAP_NONE;
	}
}

static void compare(const struct vv_map *m, size_t held)
{
	CHECK_EQ(m->n, held);
	for (size_t i = 0; i < KEYS; i++) {
		char copy[sizeof(key[i])];

		memcpy(copy, key[i], sizeof(copy)); /* equal, not the same */
		CHECK_EQ(vv_map_get(m, copy), want[i]);
	}
}

static void empty(void)
{
	struct vv_map m;

	vv_map_init(&m);
	CHECK_EQ(vv_map_get(&m, "a"), VV_MAP_NONE);
	vv_map_remove(&m, "a");
	vv_map_clear(&m);
	CHECK_EQ(vv_map_put(&m, "", 7), 0);
	CHECK_EQ(vv_map_get(&m, ""), 7);
	CHECK_EQ(vv_map_get(&m, "a"), VV_MAP_NONE);
	vv_map_fini(&m);
	vv_map_fini(&m);
}

static void random_steps(void)
{
	struct vv_map m = { 0 };
	size_t held = 0;

	make_keys();
	for (size_t step = 0; step < STEPS; step++) {
		size_t i = rng() % KEYS;

		if (rng() % 100 < (step < STEPS / 2 ? 60u : 40u)) {
			held += want[i] == VV_MAP_NONE;
			want[i] = step;
			CHECK_EQ(vv_map_put(&m, key[i], step), 0);
		} else {
			held -= want[i] != VV_MAP_NONE;
			want[i] = VV_MAP_NONE;
			vv_map_remove(&m, key[i]);
		}
		if (step % 10000 == 0)
			compare(&m, held);
	}
	compare(&m, held);
	make_keys();
	vv_map_clear(&m);
	compare(&m, 0);
	vv_map_fini(&m);
}

/* A put that finds no memory changes nothing; what was reserved needs none. */
static void no_memory(void)
{
	struct vv_map m = { 0 };
	size_t refused = 0;

	make_keys();
	for (size_t i = 0; i < KEYS; i++) {
		vv_mem_fail_at(1);
		if (vv_map_put(&m, key[i], i) == VV_ENOMEM) {
			refused++;
			CHECK_EQ(m.n, i);
			CHECK_EQ(vv_map_get(&m, key[i]), VV_MAP_NONE);
			CHECK_EQ(vv_map_put(&m, key[i], i), 0);
		}
		want[i] = i;
	}
	vv_mem_fail_at(0);
	CHECK(refused > 2 && refused < 20);
	compare(&m, KEYS);
	vv_map_fini(&m);
	CHECK_EQ(vv_map_reserve(&m, KEYS), 0);
	vv_mem_fail_at(1);
	for (size_t i = 0; i < KEYS; i++)
		CHECK_EQ(vv_map_put(&m, key[i], i), 0);
	vv_mem_fail_at(0);
	compare(&m, KEYS);
	vv_map_fini(&m);
}

int main(void)
{
	empty();
	random_steps();
	no_memory();
	return 0;
}
