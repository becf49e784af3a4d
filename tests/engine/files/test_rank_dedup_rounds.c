// ctest: TIMEOUT 240 COST 7
/* Sets of files of which ranks hold the same: packed by several of them, nothing is stored twice, every file comes back byte for byte, and who stores what
 * does not depend on threads. */
#include "engine/files/shares_case.h"
#include "support/fileset.h"
#include <inttypes.h>

enum { POOL = 20 };

/* Contents that nobody knows, and files of many formats. */
static void fill_pool(struct content *pool, uint64_t *state)
{
	char folder[PLACE_MAX], path[PLACE_MAX + FILESET_NAME], name[POOL][FILESET_NAME];
	size_t n;

	fill_opaque(pool, state);
	place_make_dir(place_path(folder, "pool"));
	fileset_write(folder, 4, 1);
	n = fileset_list(4, name, POOL - OPAQUE);
	for (size_t i = OPAQUE; i < POOL; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, name[(i - OPAQUE) % n]);
		pool[i].p = place_read(path, &pool[i].n);
	}
}

/* What several have, some of it changed here and there, or with something in front. */
static void make_set(struct set *s, const struct content *pool, uint64_t *state)
{
	memset(s, 0, sizeof(*s));
	s->n = 1 + gen_below(state, FILES);
	for (size_t i = 0; i < s->n; i++) {
		const struct content *c = &pool[gen_below(state, gen_below(state, 2) ? OPAQUE : POOL)];
		size_t lead = gen_below(state, 4) ? 0 : gen_below(state, 5000);

		s->file[i].n = c->n + lead;
		s->file[i].p = malloc(s->file[i].n + 1);
		CHECK(s->file[i].p);
		gen_bytes(state, s->file[i].p, lead);
		memcpy(s->file[i].p + lead, c->p, c->n);
		for (size_t k = gen_below(state, 4); c->n && k > 0; k--)
			s->file[i].p[gen_below(state, s->file[i].n)] ^= 1;
		write_file(s, i);
	}
}

/* The same rank stored as much, in both. */
static void check_same(const char *a, const char *b)
{
	struct look x, y;

	look_at(&x, a, 1);
	look_at(&y, b, 1);
	MUST(x.commit.n_ranks == y.commit.n_ranks);
	for (uint32_t r = 0; r < x.commit.n_ranks; r++)
		MUST(x.commit.rank[r].payload == y.commit.rank[r].payload);
	look_end(&x);
	look_end(&y);
}

/* ---- tests -------------------------------------------------------------------------------------------------------------------------- */

/* What is cut and left to the skeleton depends on a share's other files, so a few KiB may differ. */
static void test_once(const struct content *pool, uint64_t seed)
{
	char alone[PLACE_MAX], many[PLACE_MAX], again[PLACE_MAX];
	uint64_t state = seed, shared = 0;
	uint32_t ranks = 2 + (uint32_t)gen_below(&state, RANKS - 1);
	struct set s;
	struct job one = { .store = fresh_store(alone, "alone"), .set = &s, .options = "mode=sync" };
	struct job all = { .store = fresh_store(many, "many"), .set = &s, .options = "mode=sync threads=1" };
	struct job twice = { .store = fresh_store(again, "again"), .set = &s, .options = "mode=sync threads=3" };

	make_set(&s, pool, &state);
	must_begin("seed %" PRIu64 ", %zu files, %u ranks", seed, s.n, ranks);
	pack_well(&one, 1);
	pack_well(&all, ranks);
	pack_well(&twice, ranks);
	check_epoch(many, 1, &s);
	check_same(many, again);
	for (uint32_t r = 0; r < ranks; r++)
		shared += all.dup_ranks[r];
	if (all.report.fresh > one.report.fresh + one.report.fresh / 100 + 100000 * (uint64_t)ranks)
		fprintf(stderr, "alone %" PRIu64 ", by all %" PRIu64 ", shared %" PRIu64 "\n", one.report.fresh, all.report.fresh, shared);
	MUST(all.report.fresh <= one.report.fresh + one.report.fresh / 100 + 100000 * (uint64_t)ranks);
	free_set(&s);
}

/* What all hold, each stores a part of. */
static void test_fair(const struct content *pool)
{
	char store[PLACE_MAX];
	struct set s;
	struct job j = { .store = fresh_store(store, "fair"), .set = &s, .options = "mode=sync" };
	struct look k;

	must_begin("twins");
	make_twins(&s, &pool[0], 3);
	pack_well(&j, 3);
	MUST(j.report.fresh < pool[0].n + pool[0].n / 50);
	check_epoch(store, 1, &s);
	look_at(&k, store, 1);
	for (uint32_t r = 0; r < 3; r++)
		MUST(k.commit.rank[r].payload > pool[0].n / 12);
	look_end(&k);
	free_set(&s);
}

/* A field that is well predicted in three dimensions, with a hole in it, is stored without gaps; and as a stretch of it is there twice, so it is in the
 * layer. Others are told of the one that the layer names. */
static void test_twice(void)
{
	enum { SIDE = 100, HEADER = 128, STRETCH = 64 << 10 };
	static uint64_t face[3][SIDE][SIDE];
	char head[HEADER + 1], store[PLACE_MAX];
	uint64_t state = 5;
	struct content c = { .n = HEADER + SIDE * SIDE * SIDE * 8 };
	struct set s;
	struct job j = { .store = fresh_store(store, "twice"), .set = &s, .options = "mode=sync" };

	must_begin("a stretch that is there twice");
	c.p = malloc(c.n);
	CHECK(c.p);
	snprintf(head, sizeof(head), "%-127s\n", "..........{'descr': '<i8', 'fortran_order': False, 'shape': (100, 100, 100), }");
	memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
	memcpy(c.p, head, HEADER);
	gen_bytes(&state, (uint8_t *)face, sizeof(face));
	for (size_t i = 0; i < SIDE * SIDE * SIDE; i++) {
		size_t x = i % SIDE, y = i / SIDE % SIDE, z = i / SIDE / SIDE;
		uint64_t v = (face[0][x][y] >> 20) + (face[1][y][z] >> 20) + (face[2][x][z] >> 20);

		memcpy(c.p + HEADER + 8 * i, &v, 8);
	}
	memset(c.p + HEADER + 2 * STRETCH, 0, STRETCH / 8);
	memcpy(c.p + HEADER + 5 * STRETCH, c.p + HEADER + 3 * STRETCH, STRETCH);
	make_twins(&s, &c, 2);
	pack_well(&j, 2);
	MUST(j.dup_ranks[0] + j.dup_ranks[1] > c.n / 2);
	check_epoch(store, 1, &s);
	free_set(&s);
	free(c.p);
}

/* Told not to, ranks do not share. */
static void test_unasked(const struct content *pool)
{
	static const char *const options[] = { "mode=sync collective=none", "mode=sync copies=2", "mode=sync dedup=no" };
	struct set s;

	make_twins(&s, &pool[3], 3);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char store[PLACE_MAX];
		struct job j = { .store = fresh_store(store, "unasked"), .set = &s, .options = options[i] };

		must_begin("%s", options[i]);
		pack_well(&j, 3);
		MUST(j.report.fresh >= 3 * pool[3].n);
		check_epoch(store, 1, &s);
	}
	free_set(&s);
}

int main(void)
{
	struct content pool[POOL];
	uint64_t state = 9;

	fill_pool(pool, &state);
	for (uint64_t seed = 1; seed <= 8; seed++)
		test_once(pool, seed);
	test_fair(pool);
	test_twice();
	test_unasked(pool);
	free_contents(pool, POOL);
	return 0;
}
