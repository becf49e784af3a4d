/* Heads: what is encoded decodes to the same; what is damaged is refused, or is another valid head with one encoding. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/head.h"
#include "support/gen.h"
#include "vv_test.h"

enum { IDENT, REGIONS, SOURCES, RUNS, STATS, PARTS };

static void encode(const struct vv_head *h, struct vv_buf part[PARTS])
{
	for (int i = 0; i < PARTS; i++)
		part[i].n = 0;
	vv_head_put_ident(h, &part[IDENT]);
	vv_head_put_regions(h, &part[REGIONS]);
	CHECK_EQ(vv_head_put_sources_and_runs(h, &part[SOURCES], &part[RUNS]), 0);
	vv_head_put_stats(h, &part[STATS]);
}

static int decode(struct vv_head *h, const struct vv_buf part[PARTS])
{
	int rc = vv_head_get_ident(h, part[IDENT].p, part[IDENT].n);

	if (rc == 0)
		rc = vv_head_get_regions(h, part[REGIONS].p, part[REGIONS].n);
	if (rc == 0)
		rc = vv_head_get_runs(h, part[SOURCES].p, part[SOURCES].n, part[RUNS].p, part[RUNS].n);
	if (rc == 0)
		rc = vv_head_get_stats(h, part[STATS].p, part[STATS].n);
	return rc;
}

static void free_parts(struct vv_buf part[PARTS])
{
	for (int i = 0; i < PARTS; i++)
		vv_buf_fini(&part[i]);
}

static void check_same_region(const struct vv_head_region *a, const struct vv_head_region *b)
{
	CHECK_STR(a->name, b->name);
	CHECK_EQ(a->parent, b->parent);
	CHECK_EQ(a->shape.len, b->shape.len);
	CHECK_EQ(a->shape.chunk, b->shape.chunk);
	CHECK_EQ(a->shape.type, b->shape.type);
	CHECK_EQ(a->shape.ndim, b->shape.ndim);
	CHECK(a->shape.record == b->shape.record);
	CHECK(memcmp(a->shape.dim, b->shape.dim, sizeof(a->shape.dim)) == 0);
	CHECK_EQ(a->runs.n, b->runs.n);
	CHECK(a->runs.n == 0 || memcmp(a->runs.v, b->runs.v, a->runs.n * sizeof(*a->runs.v)) == 0);
}

static void check_same(const struct vv_head *a, const struct vv_head *b)
{
	CHECK(memcmp(a->lineage, b->lineage, 16) == 0);
	CHECK_EQ(a->epoch, b->epoch);
	CHECK_EQ(a->parent, b->parent);
	CHECK_EQ(a->rank, b->rank);
	CHECK_EQ(a->ranks, b->ranks);
	CHECK_EQ(a->time_ns, b->time_ns);
	CHECK_EQ(a->payload, b->payload);
	CHECK_EQ(a->digest_kind, b->digest_kind);
	CHECK_EQ(a->depth, b->depth);
	CHECK_EQ(a->n_regions, b->n_regions);
	for (size_t i = 0; i < a->n_regions; i++)
		check_same_region(&a->region[i], &b->region[i]);
	CHECK_EQ(a->n_stats, b->n_stats);
	for (size_t i = 0; i < a->n_stats; i++) {
		CHECK_STR(a->stat[i].name, b->stat[i].name);
		CHECK_EQ(a->stat[i].value, b->stat[i].value);
	}
}

static void test_round_trip(void)
{
	struct vv_buf part[PARTS] = { 0 };
	uint64_t state = 1;

	for (int i = 0; i < 3000; i++) {
		struct vv_head a, b = { 0 };

		gen_head(&state, &a, 6);
		encode(&a, part);
		CHECK_EQ(decode(&b, part), 0);
		check_same(&a, &b);
		vv_head_fini(&a);
		vv_head_fini(&b);
	}
	free_parts(part);
}

/* The numbers at their limits, and more sources than one table size. */
static void test_large(void)
{
	struct vv_buf part[PARTS] = { 0 };
	struct vv_head a = { .epoch = VV_MAX_EPOCH, .parent = VV_MAX_EPOCH - 1, .depth = 255, .digest_kind = 2 }, b = { 0 };

	a.ranks = VV_MAX_RANKS;
	a.rank = VV_MAX_RANKS - 1;
	a.payload = VV_MAX_PAYLOAD;
	a.n_regions = 2;
	a.region = vv_mem_new(2, sizeof(*a.region));
	a.region[0] = (struct vv_head_region){ .name = vv_mem_strdup("x"), .shape = { .len = 1000, .chunk = 32 } };
	a.region[1] = (struct vv_head_region){ .name = vv_mem_new(VV_MAX_NAME + 1, 1), .parent = VV_MAX_REGIONS };
	a.region[1].shape = (struct vv_shape){ .len = VV_MAX_REGION_BYTES, .chunk = VV_MAX_CHUNK, .type = VV_TYPE_C128, .ndim = 16 };
	memset(a.region[1].name, 'n', VV_MAX_NAME);
	for (unsigned d = 0; d < 16; d++)
		a.region[1].shape.dim[d] = d < 12 ? 8 : 1;
	for (uint64_t i = 0; i < 1000; i++) {
		struct vv_run r = { i, 1, vv_run_layer(1 + i % 700, (uint32_t)(i * 7)), VV_MAX_PAYLOAD - 7 * i };

		CHECK_EQ(vv_run_add(&a.region[0].runs, r), 0);
	}
	CHECK_EQ(vv_run_add(&a.region[1].runs, (struct vv_run){ VV_MAX_REGION_BYTES - 1, 1, 0, 0 }), 0);
	encode(&a, part);
	CHECK_EQ(decode(&b, part), 0);
	check_same(&a, &b);
	vv_head_fini(&a);
	vv_head_fini(&b);
	free_parts(part);
}

/* Decodes bytes (an exact copy: a sanitizer sees one read too many) in the place of one part. If they are taken, they
 * are the one encoding of what they say; only sources may be listed in an order, or without need, as no encoder does. */
static int try_part(struct vv_buf part[PARTS], int which, const uint8_t *p, size_t n)
{
	struct vv_buf saved = part[which], again[PARTS] = { 0 };
	struct vv_head h = { 0 }, second = { 0 };
	uint8_t *copy = malloc(n ? n : 1);
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	part[which] = (struct vv_buf){ .p = copy, .n = n };
	vv_err_clear();
	rc = decode(&h, part);
	CHECK(rc == 0 || rc == VV_EDAMAGED);
	CHECK_EQ(rc == 0, vv_err_last()[0] == '\0');
	if (rc == 0) {
		encode(&h, again);
		for (int i = 0; i < PARTS; i++)
			if (i != SOURCES && i != RUNS)
				CHECK(again[i].n == part[i].n && memcmp(again[i].p, part[i].p, part[i].n) == 0);
		CHECK_EQ(decode(&second, again), 0);
		check_same(&h, &second);
	}
	vv_head_fini(&h);
	vv_head_fini(&second);
	free_parts(again);
	free(copy);
	part[which] = saved;
	return rc;
}

static long flip_part(struct vv_buf part[PARTS], int which)
{
	long refused = 0;

	for (size_t i = 0; i < part[which].n; i++) {
		uint8_t old = part[which].p[i];

		for (int bit = 0; bit < 8; bit++) {
			part[which].p[i] = old ^ (uint8_t)(1 << bit);
			refused += try_part(part, which, part[which].p, part[which].n) != 0;
		}
		part[which].p[i] = 0xff;
		refused += try_part(part, which, part[which].p, part[which].n) != 0;
		part[which].p[i] = old;
	}
	return refused;
}

static void test_flips(void)
{
	struct vv_buf part[PARTS] = { 0 };
	uint64_t state = 2;
	long refused[PARTS] = { 0 };

	for (int round = 0; round < 40; round++) {
		struct vv_head h;

		gen_head(&state, &h, 4);
		encode(&h, part);
		for (int which = 0; which < PARTS; which++)
			refused[which] += flip_part(part, which);
		vv_head_fini(&h);
	}
	for (int which = 0; which < PARTS; which++)
		CHECK(refused[which] > 0);
	free_parts(part);
}

/* No part may be cut short or have a byte more. */
static void test_truncations(void)
{
	struct vv_buf part[PARTS] = { 0 };
	uint64_t state = 3;

	for (int round = 0; round < 100; round++) {
		struct vv_head h;

		gen_head(&state, &h, 4);
		encode(&h, part);
		for (int which = 0; which < PARTS; which++) {
			for (size_t n = 0; n < part[which].n; n++)
				CHECK_EQ(try_part(part, which, part[which].p, n), VV_EDAMAGED);
			vv_wire_put_u8(&part[which], 0);
			CHECK_EQ(try_part(part, which, part[which].p, part[which].n), VV_EDAMAGED);
			part[which].n--;
			CHECK_EQ(try_part(part, which, part[which].p, part[which].n), 0);
		}
		vv_head_fini(&h);
	}
	free_parts(part);
}

/* A head that is valid but for one thing. */
static struct vv_head plain_head(void)
{
	struct vv_head h = { .epoch = 5, .parent = 4, .depth = 1, .ranks = 2, .rank = 1, .payload = 100, .digest_kind = 1 };

	h.n_regions = 2;
	h.region = vv_mem_new(2, sizeof(*h.region));
	CHECK(h.region);
	for (int i = 0; i < 2; i++) {
		struct vv_run r = { 0, 64, vv_run_layer(5, 1), 36 };

		h.region[i] = (struct vv_head_region){ .name = vv_mem_strdup(i ? "b" : "a") };
		h.region[i].shape = (struct vv_shape){ .len = 64, .chunk = 32, .type = VV_TYPE_F64, .ndim = 1, .dim = { 8 } };
		CHECK_EQ(vv_run_add(&h.region[i].runs, r), 0);
	}
	return h;
}

static int coded(const struct vv_head *h)
{
	struct vv_buf part[PARTS] = { 0 };
	struct vv_head back = { 0 };
	int rc;

	encode(h, part);
	rc = decode(&back, part);
	vv_head_fini(&back);
	free_parts(part);
	return rc;
}

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		struct vv_head h = plain_head();                                                   \
		struct vv_head_region *r = &h.region[1];                                           \
		CHECK_EQ(coded(&h), 0);                                                            \
		(void)r;                                                                           \
		change;                                                                            \
		CHECK_EQ(coded(&h), VV_EDAMAGED);                                                  \
		vv_head_fini(&h);                                                                  \
	} while (0)

static void test_rules_of_ident(void)
{
	REFUSED(h.epoch = 0);
	REFUSED(h.epoch = VV_MAX_EPOCH + 1);
	REFUSED(h.parent = 5);
	REFUSED(h.parent = UINT64_MAX);
	REFUSED(h.depth = 0);
	REFUSED(h.parent = 0);
	REFUSED(h.rank = 2);
	REFUSED(h.ranks = 0);
	REFUSED(h.ranks = VV_MAX_RANKS + 1);
	REFUSED(h.digest_kind = 0);
	REFUSED(h.digest_kind = 3);
	REFUSED(h.payload = VV_MAX_PAYLOAD + 1);
}

static void test_rules_of_regions(void)
{
	REFUSED(r->name[0] = 'a');
	REFUSED(r->name[0] = '\0');
	REFUSED(r->parent = VV_MAX_REGIONS + 1);
	REFUSED((h.parent = 0, h.depth = 0, r->parent = 1));
	REFUSED(r->shape.chunk = VV_MIN_CHUNK - 1);
	REFUSED(r->shape.chunk = VV_MAX_CHUNK + 1);
	REFUSED(r->shape.type = VV_TYPE_RECORD + 1);
	REFUSED(r->shape.type = VV_TYPE_BYTES);
	REFUSED(r->shape.type = VV_TYPE_F32);
	REFUSED((r->shape.type = VV_TYPE_BYTES, r->shape.ndim = 0, r->shape.len = VV_MAX_REGION_BYTES + 1));
	REFUSED(r->shape.ndim = 0);
	REFUSED(r->shape.dim[0] = 9);
	REFUSED((r->shape.ndim = 2, r->shape.dim[1] = 1ull << 61));
	REFUSED(r->shape.len = 63);
}

static int get_regions(const char *p, size_t n)
{
	struct vv_head h = { .epoch = 5 };
	int rc = vv_head_get_regions(&h, p, n);

	vv_head_fini(&h);
	return rc;
}

#define REGION(bytes) get_regions(bytes, sizeof(bytes) - 1)

/* count, name, parent, length, chunk, type, dimensions, shape */
static void test_regions_by_hand(void)
{
	CHECK_EQ(REGION("\0"), 0);
	CHECK_EQ(REGION("\1\1a\0\0\40\0\0"), 0);
	CHECK_EQ(REGION("\1\1a\0\0\40\1\1\0"), 0);
	CHECK_EQ(REGION("\1\1a\0\0\40\1\20\0\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"), 0);
	CHECK_EQ(REGION("\1\1a\0\0\40\1\21\0\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"), VV_EDAMAGED);
	CHECK_EQ(REGION("\1\1a\0\0\40\1\377\0\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"), VV_EDAMAGED);
	CHECK_EQ(REGION("\1\1\0\0\0\40\0\0"), VV_EDAMAGED);
	CHECK_EQ(REGION("\2\1a\0\0\40\0\0\1a\0\0\40\0\0"), VV_EDAMAGED);
	CHECK_EQ(REGION("\2\1a\0\0\40\0\0\1b\0\0\40\0\0"), 0);
	CHECK_EQ(REGION("\200\200\100"), VV_EDAMAGED);
	CHECK_EQ(REGION("\201\200\100"), VV_EDAMAGED);
}

static void test_rules_of_runs(void)
{
	REFUSED(h.payload = 99);
	REFUSED(r->runs.v[0].len = 63);
	REFUSED(r->runs.v[0].len = 65);
	REFUSED((r->runs.v[0].at = 1, r->runs.v[0].len = 63));
	REFUSED(r->runs.n = 0);
	REFUSED(r->runs.v[0].layer = vv_run_layer(6, 0));
	REFUSED((r->runs.v[0].layer = vv_run_layer(3, 0), r->runs.v[0].pos = VV_MAX_PAYLOAD + 1));
	REFUSED((r->runs.v[0].layer = vv_run_layer(3, 0), r->runs.v[0].pos = UINT64_MAX - 5));
	REFUSED((r->parent = 1, r->runs.v[0].at = UINT64_MAX - 3, r->runs.v[0].len = 4));
	REFUSED((r->parent = 1, r->runs.v[0].len = 0));
	/* two runs that are one */
	REFUSED((r->runs.v[0].len = 32, r->runs.v[1] = (struct vv_run){ 32, 32, vv_run_layer(5, 1), 68 }, r->runs.n = 2));
	REFUSED((r->runs.v[0] = (struct vv_run){ 0, 32, 0, 0 }, r->runs.v[1] = (struct vv_run){ 32, 32, 0, 0 },
		 r->runs.n = 2));
}

static int get_runs(const struct vv_head *h, const char *sources, size_t n_sources, const char *runs, size_t n_runs)
{
	struct vv_buf part[PARTS] = { 0 };
	struct vv_head back = { 0 };
	int rc;

	encode(h, part);
	rc = vv_head_get_ident(&back, part[IDENT].p, part[IDENT].n);
	CHECK_EQ(rc, 0);
	CHECK_EQ(vv_head_get_regions(&back, part[REGIONS].p, part[REGIONS].n), 0);
	rc = vv_head_get_runs(&back, sources, n_sources, runs, n_runs);
	vv_head_fini(&back);
	free_parts(part);
	return rc;
}

#define RUNS_OF(sources, runs) get_runs(&h, sources, sizeof(sources) - 1, runs, sizeof(runs) - 1)

/* Written by hand: forms that the encoder never makes. */
static void test_sources_by_hand(void)
{
	struct vv_head h = plain_head();
	static const char zero[] = "\1\0\100\0\1\0\100\0"; /* each region one zero run of 64 bytes */

	CHECK_EQ(RUNS_OF("\0", "\1\0\100\0\1\0\100\0"), 0);
	CHECK_EQ(get_runs(&h, "\0", 1, zero, sizeof(zero) - 1), 0);
	CHECK_EQ(RUNS_OF("\1\5\1", "\1\0\100\0\1\0\100\0"), 0);
	CHECK_EQ(RUNS_OF("\1\5\1", "\1\0\100\1\110\1\0\100\1\177"), 0); /* positions 36, then 36 again */
	CHECK_EQ(RUNS_OF("\2\5\1\5\1", "\1\0\100\0\1\0\100\0"), VV_EDAMAGED); /* listed twice */
	CHECK_EQ(RUNS_OF("\1\0\1", "\1\0\100\0\1\0\100\0"), VV_EDAMAGED);     /* epoch 0 */
	CHECK_EQ(RUNS_OF("\1\6\1", "\1\0\100\0\1\0\100\0"), VV_EDAMAGED);     /* a later epoch */
	CHECK_EQ(RUNS_OF("\1\5\200\200\100", "\1\0\100\0\1\0\100\0"), VV_EDAMAGED); /* rank 2^20 */
	CHECK_EQ(RUNS_OF("\377\377\377\7", "\1\0\100\0\1\0\100\0"), VV_EDAMAGED);
	CHECK_EQ(RUNS_OF("\0", "\1\0\100\1\0\1\0\100\0"), VV_EDAMAGED); /* no source 1 */
	CHECK_EQ(RUNS_OF("\0", "\2\0\40\0\0\40\0\1\0\100\0"), VV_EDAMAGED);
	CHECK_EQ(RUNS_OF("\0", "\1\0\100\0\1\0\100\0\0"), VV_EDAMAGED);
	CHECK_EQ(RUNS_OF("\0", "\377\377\377\377\377\377\377\377\377\1\0\100\0"), VV_EDAMAGED);
	vv_head_fini(&h);
}

static void test_stats(void)
{
	struct vv_head h = { 0 };
	char long_name[200];

	memset(long_name, 's', sizeof(long_name));
	long_name[199] = '\0';
	CHECK_EQ(vv_head_stat(&h, "n.x"), 0);
	CHECK_EQ(vv_head_add_stat(&h, "n.x", 7), 0);
	CHECK_EQ(vv_head_add_stat(&h, long_name, 8), 0);
	CHECK_EQ(vv_head_stat(&h, "n.x"), 7);
	CHECK_EQ(vv_head_stat(&h, "n.y"), 0);
	CHECK_EQ(strlen(h.stat[1].name), 63);
	vv_head_fini(&h);
}

static void test_types(void)
{
	static const size_t sizes[VV_TYPES] = { 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 2, 2, 1, 1 };

	for (unsigned t = 0; t < VV_TYPES; t++)
		CHECK_EQ(vv_head_type_size(t), sizes[t]);
	CHECK_STR(vv_head_type_name(VV_TYPE_C128), "c128");
	CHECK_STR(vv_head_type_name(VV_TYPE_F8_E5M2), "f8_e5m2");
	CHECK_STR(vv_head_type_name(VV_TYPE_RECORD), "record");
	CHECK_STR(vv_head_type_name(VV_TYPE_RECORD + 1), "?");
	CHECK_EQ(vv_head_type_size(VV_TYPES), 0);
	CHECK_EQ(vv_head_type_size(UINT32_MAX), 0);
}

static void test_shapes(void)
{
	struct vv_shape a = { .len = 48, .chunk = 4096, .type = VV_TYPE_F64, .ndim = 2, .dim = { 2, 3 } }, b = a;

	b.chunk = 512;
	b.dim[2] = 7; /* which is none of them */
	CHECK(vv_head_same_shape(&a, &b));
	b.dim[0] = 3;
	b.dim[1] = 2;
	CHECK(!vv_head_same_shape(&a, &b));
	b = a;
	b.type = VV_TYPE_I64;
	CHECK(!vv_head_same_shape(&a, &b));
	b = (struct vv_shape){ .len = 48, .type = VV_TYPE_BYTES };
	CHECK(!vv_head_same_shape(&a, &b));
	a = b;
	a.len++;
	CHECK(!vv_head_same_shape(&a, &b));
}

static int out_and_back(const struct vv_head *h, const struct vv_buf part[PARTS])
{
	struct vv_buf sources = { 0 }, runs = { 0 };
	struct vv_head back = { 0 };
	int rc = decode(&back, part);

	vv_head_fini(&back);
	if (rc == 0)
		rc = vv_head_put_sources_and_runs(h, &sources, &runs);
	rc = rc ? rc : vv_buf_check(&sources);
	rc = rc ? rc : vv_buf_check(&runs);
	vv_buf_fini(&sources);
	vv_buf_fini(&runs);
	return rc;
}

static void test_no_memory(void)
{
	struct vv_buf part[PARTS] = { 0 };
	struct vv_head h = plain_head();
	int rc = -1;

	CHECK_EQ(vv_head_add_stat(&h, "n.x", 1), 0);
	encode(&h, part);
	for (long k = 1; rc != 0; k++) {
		vv_mem_fail_at(k);
		rc = out_and_back(&h, part);
		CHECK(rc == 0 ? vv_mem_asked() == k - 1 && k > 8 : rc == VV_ENOMEM);
	}
	vv_mem_fail_at(0);
	vv_head_fini(&h);
	free_parts(part);
}

int main(void)
{
	test_round_trip();
	test_large();
	test_flips();
	test_truncations();
	test_rules_of_ident();
	test_rules_of_regions();
	test_regions_by_hand();
	test_rules_of_runs();
	test_sources_by_hand();
	test_stats();
	test_types();
	test_shapes();
	test_no_memory();
	return 0;
}
