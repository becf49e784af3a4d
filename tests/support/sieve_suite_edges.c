/* The suite of sieves: contents of one digest, pages that were not written, more than a slice. */
#include "support/sieve_suite.h"
#include "base/err.h"
#include "support/sieve_fill.h"

/* ---- contents of one digest ------------------------------------------------------------------------------------------- */

/* Two contents of 32 bytes that XXH3-128 cannot tell apart. Of each half (a, b) it takes the product of a ^ K and b ^ L, K and L being
 * constants, and the sum a + b: so with a = K, or b = L, the product is 0. */
static void make_equals(uint8_t *x, uint8_t *y)
{
	static const uint8_t secret[16] = { 0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c };
	struct vv_digest dx, dy;
	uint64_t k, l, b = 0x1234567890, a;

	memcpy(&k, secret, 8);
	memcpy(&l, secret + 8, 8);
	a = k + b - l;
	memset(x, 0x5a, 32);
	memset(y, 0x5a, 32);
	memcpy(x, &k, 8);
	memcpy(x + 8, &b, 8);
	memcpy(y, &a, 8);
	memcpy(y + 8, &l, 8);
	CHECK(memcmp(x, y, 32) != 0);
	vv_digest_xxh3(x, 32, &dx);
	vv_digest_xxh3(y, 32, &dy);
	CHECK(vv_digest_equal(&dx, &dy));
}

static int one_pass(const struct sieve_suite *s, struct trial_memory *m, const struct vv_sink *sink, struct vv_sieve_options opt)
{
	struct vv_sieve *sieve;
	int rc;

	CHECK_EQ(s->space->open(&opt, s->pool, &sieve), 0);
	rc = s->space->pass(sieve, m->span, m->n, 1, sink);
	s->space->close(sieve);
	return rc;
}

static uint8_t *any_room(void *arg, size_t want, size_t *got)
{
	*got = want;
	return arg;
}

static int any_data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return 0;
}

static int any_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	(void)arg;
	(void)piece;
	(void)n;
	return 0;
}

void sieve_suite_compare(const struct sieve_suite *s)
{
	enum { C = 32, N = 5000 };
	static uint8_t room[N * C];
	struct vv_sink sink = { room, any_room, any_data, any_pieces };
	struct vv_sieve_options opt = { .method = VV_METHOD_RUN, .chunk = C, .digest_kind = VV_DIGEST_XXH3, .memory = PLENTY };
	struct trial_memory m;

	trial_memory_init(&m, s);
	trial_memory_add(&m, N * C);
	fill(&m, 0, C, in_turn);
	trial_memory_show(&m);
	opt.compare = true;
	CHECK_EQ(one_pass(s, &m, &sink, opt), 0);
	make_equals(m.region[0].p + 17 * C, m.region[0].p + 4321 * C);
	memcpy(m.region[0].p + 4400 * C, m.region[0].p + 17 * C, C);
	trial_memory_show(&m);
	for (int method = VV_METHOD_LIST; method <= VV_METHOD_RUN; method++) {
		opt.method = (enum vv_method)method;
		CHECK_EQ(one_pass(s, &m, &sink, opt), VV_EDAMAGED);
		CHECK(strstr(vv_err_last(), "same digest"));
		CHECK(strstr(vv_err_last(), " 138272 ") && strstr(vv_err_last(), " 544 ")); /* 4321 and 17 grains */
		CHECK(strstr(vv_err_last(), "sha256"));
	}
	opt.compare = false; /* nobody looks */
	CHECK_EQ(one_pass(s, &m, &sink, opt), 0);
	opt.compare = true;
	opt.digest_kind = VV_DIGEST_SHA256;
	if (!s->xxh3_only)
		CHECK_EQ(one_pass(s, &m, &sink, opt), 0);
	trial_memory_fini(&m);
}

/* ---- pages that were not written -------------------------------------------------------------------------------------- */

/* Bits for what differs from before, and for some that does not. */
static void tell_maybe(struct trial_memory *m, uint8_t *const *before)
{
	for (size_t i = 0; i < m->n; i++) {
		struct trial_region *r = &m->region[i];
		size_t pages = r->len / 4096 + 1;

		free(r->maybe);
		r->maybe = calloc(pages / 64 + 1, sizeof(*r->maybe));
		CHECK(r->maybe);
		for (size_t k = 0; k < pages; k++) {
			size_t at = k * 4096, len = r->len - at < 4096 ? r->len - at : 4096;

			if (memcmp(r->p + at, before[i] + at, len) != 0 || gen_below(&m->rng, 10) == 0)
				r->maybe[k / 64] |= 1ull << k % 64;
		}
	}
}

static void tell_nothing(struct trial_memory *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->region[i].maybe);
		m->region[i].maybe = calloc(m->region[i].len / 4096 / 64 + 1, sizeof(uint64_t));
		CHECK(m->region[i].maybe);
	}
}

/* Grains of which nothing is known are looked at, whatever the bits say. */
static void new_grains(const struct sieve_suite *s, uint32_t chunk)
{
	const struct vv_number_range all = { 0, UINT32_MAX };
	struct trial_memory m;
	struct trial_five f;

	trial_memory_init(&m, s);
	trial_five_open(&f, &m, chunk, PLENTY);
	for (int i = 0; i < 4; i++) {
		struct trial_region *r = &m.region[i < 2 ? i : 0];

		if (i < 2)
			trial_memory_add(&m, 40 * 4096);
		else
			trial_memory_resize(&m, 0, i == 2 ? 35 * chunk : 20 * 4096); /* shrinks, grows */
		gen_bytes(&m.rng, r->p + 35 * chunk, r->len - 35 * chunk);
		tell_nothing(&m);
		trial_five_step(&f);
	}
	gen_bytes(&m.rng, m.region[1].p, m.region[1].len); /* another state, adopted */
	trial_memory_show(&m);
	for (int k = 0; k < 5; k++)
		trial_adopt(&f.t[k], &all, 1);
	for (size_t i = 0; i < m.n; i++) { /* now all is looked at */
		free(m.region[i].maybe);
		m.region[i].maybe = NULL;
	}
	trial_five_step(&f);
	trial_five_close(&f);
	trial_memory_fini(&m);
}

static void skip_pages(const struct sieve_suite *s, uint32_t chunk)
{
	struct trial_memory m;
	struct trial_five f;
	uint8_t *before[2];

	trial_memory_init(&m, s);
	trial_memory_add(&m, 150 * 4096 + chunk + 3);
	trial_memory_add(&m, 7 * 4096 - chunk);
	trial_five_open(&f, &m, chunk, PLENTY);
	trial_five_step(&f);
	for (int round = 0; round < 6; round++) {
		for (size_t i = 0; i < m.n; i++) {
			before[i] = malloc(m.region[i].len);
			CHECK(before[i]);
			memcpy(before[i], m.region[i].p, m.region[i].len);
		}
		for (int k = 0; k < 3; k++) {
			struct trial_region *r = &m.region[gen_below(&m.rng, 2)];
			size_t at = gen_below(&m.rng, r->len - 300);

			gen_bytes(&m.rng, r->p + at, gen_below(&m.rng, 300));
		}
		tell_maybe(&m, before);
		if (round == 4) /* nothing is known of what they held: then the bits say nothing */
			for (int k = 0; k < 5; k++)
				trial_forget(&f.t[k]);
		trial_five_step(&f);
		free(before[0]);
		free(before[1]);
	}
	m.region[0].p[5 * 4096] ^= 1; /* behind our back: so the bits are looked at */
	memset(m.region[0].maybe, 0, 8);
	trial_memory_show(&m);
	CHECK_EQ(s->space->pass(f.t[VV_METHOD_BASIC].sieve, m.span, m.n, 1000, &(struct vv_sink){ NULL, any_room, any_data, any_pieces }), 0);
	CHECK_EQ(f.t[VV_METHOD_BASIC].sieve->counts.changed, 0);
	trial_five_close(&f);
	trial_memory_fini(&m);
}

void sieve_suite_maybe(const struct sieve_suite *s)
{
	skip_pages(s, 64);
	skip_pages(s, 1024);
	skip_pages(s, 4096);
	new_grains(s, 32);
	new_grains(s, 512);
}

/* ---- more than a slice ------------------------------------------------------------------------------------------------ */

/* Against the model, which can bear so many grains if nearly all are zero. What is new, copied, repeated goes over the border. */
static void over_the_border(const struct sieve_suite *s, enum vv_method method)
{
	enum { C = 32, BORDER = VV_GRAIN_SLICE };
	struct trial_memory m;
	struct trial_region *r;
	struct trial t;

	trial_memory_init(&m, s);
	trial_memory_add(&m, (size_t)(BORDER + 3000) * C);
	trial_memory_add(&m, 100 * C);
	r = m.region;
	trial_open(&t, &m, (struct vv_sieve_options){ .method = method, .chunk = C, .memory = PLENTY });
	for (size_t i = 0; i < 200; i++) {
		put_grain(r, C, BORDER - 100 + i, distinct(i));
		put_grain(r, C, 1000 + i, distinct(i % 150));
	}
	trial_memory_show(&m);
	trial_step(&t);
	for (size_t i = 0; i < 400; i++) {
		put_grain(r, C, BORDER - 250 + i, in_turn(i));
		put_grain(r, C, BORDER + 1000 + i, distinct(i));
		put_grain(&m.region[1], C, i % 100, others(i));
	}
	trial_memory_show(&m);
	trial_step(&t);
	trial_close(&t);
	trial_memory_fini(&m);
}

/* First without the model, for which this is too much: what must come out is plain. */
void sieve_suite_slices(const struct sieve_suite *s)
{
	enum { C = 32, N = VV_GRAIN_SLICE + 1 };
	struct trial_memory m;
	struct trial t;
	const struct sieve_record *r;

	trial_memory_init(&m, s);
	trial_memory_add(&m, (size_t)N * C);
	gen_bytes(&m.rng, m.region[0].p, m.region[0].len);
	trial_open(&t, &m, (struct vv_sieve_options){ .method = VV_METHOD_RUN, .chunk = C, .memory = PLENTY });
	sieve_model_free(t.model);
	t.model = NULL;
	trial_memory_show(&m);
	r = trial_step(&t);
	CHECK_EQ(r->n, 2);
	CHECK(r->piece[0].len == VV_GRAIN_SLICE && r->piece[1].at == VV_GRAIN_SLICE && r->piece[1].len == 1);
	CHECK_EQ(vv_grain_number(r->piece[1].from), VV_GRAIN_SLICE);
	memmove(m.region[0].p + C, m.region[0].p, (size_t)(N - 1) * C); /* one further: a piece goes up to the border */
	trial_memory_show(&m);
	r = trial_step(&t);
	CHECK_EQ(r->len, 0);
	CHECK_EQ(r->n, 2);
	CHECK(r->piece[0].at == 1 && r->piece[0].len == VV_GRAIN_SLICE - 1 && r->piece[1].len == 1);
	trial_memory_resize(&m, 0, (size_t)(N - 2) * C); /* just below */
	m.region[0].p[m.region[0].len - 1] ^= 1;
	trial_memory_show(&m);
	r = trial_step(&t);
	CHECK(r->n == 1 && r->piece[0].at == N - 3 && r->len == C);
	trial_close(&t);
	trial_memory_fini(&m);
	over_the_border(s, VV_METHOD_RUN);
	over_the_border(s, VV_METHOD_TREE);
}
