#include "support/sieve_suite.h"
#include "base/err.h"
#include "support/gen.h"
#include "support/sieve_trial.h"
#include "vv_test.h"

#define PLENTY (1ull << 40)

static void put_grain(struct trial_region *r, uint32_t chunk, size_t i, uint64_t what)
{
	uint64_t state = what;

	CHECK((i + 1) * chunk <= r->len);
	if (what == 0)
		memset(r->p + i * chunk, 0, chunk);
	else
		gen_bytes(&state, r->p + i * chunk, chunk);
}

static struct trial_region *fill(struct trial_memory *m, size_t i, uint32_t chunk, uint64_t (*what)(size_t i))
{
	struct trial_region *r = &m->region[i];

	for (size_t k = 0; k < r->len / chunk; k++)
		put_grain(r, chunk, k, what(k));
	return r;
}

static uint64_t distinct(size_t i)
{
	return i + 1;
}

static uint64_t others(size_t i)
{
	return i + 1000000;
}

static uint64_t equal(size_t i)
{
	(void)i;
	return 77;
}

static uint64_t nothing(size_t i)
{
	(void)i;
	return 0;
}

static uint64_t in_turn(size_t i)
{
	return 500 + i % 2;
}

static uint64_t in_three(size_t i)
{
	return i % 64 < 50 ? 600 + i % 3 : 0;
}

static const struct sieve_record *last_of(const struct trial_five *f, enum vv_method method)
{
	return &f->t[method].history[f->t[method].n - 1];
}

/* ---- shapes ----------------------------------------------------------------------------------------------------------- */

/* States that come and come back, with all methods. */
static void come_back(const struct sieve_suite *s, uint32_t chunk, size_t len)
{
	uint64_t (*const state[])(size_t) = { distinct, others, distinct, equal, nothing, in_turn, distinct, in_three, in_turn, others };
	struct trial_memory m;
	struct trial_five f;

	trial_memory_init(&m, s);
	trial_memory_add(&m, len);
	gen_bytes(&m.rng, m.region[0].p, len);
	trial_five_open(&f, &m, chunk, PLENTY);
	for (size_t i = 0; i < sizeof(state) / sizeof(state[0]); i++) {
		fill(&m, 0, chunk, state[i]);
		trial_five_step(&f);
		if (len >= chunk && i >= 2 && state[i] == distinct) /* known from the first: nothing is stored again */
			CHECK_EQ(last_of(&f, VV_METHOD_RUN)->len, 0);
		if (len >= chunk && state[i] == nothing)
			CHECK_EQ(last_of(&f, VV_METHOD_RUN)->n, 1);
		trial_five_step(&f); /* the same once more */
		for (int k = VV_METHOD_BASIC; k < 5; k++)
			CHECK_EQ(last_of(&f, (enum vv_method)k)->n, 0);
	}
	trial_five_close(&f);
	trial_memory_fini(&m);
}

/* A bit in each 16-byte word of a grain: each time that grain and no other is new. */
static void flip_bits(const struct sieve_suite *s, uint32_t chunk)
{
	struct trial_memory m;
	struct trial t;

	trial_memory_init(&m, s);
	trial_memory_add(&m, 40 * chunk);
	trial_open(&t, &m, (struct vv_sieve_options){ .method = VV_METHOD_RUN, .chunk = chunk, .memory = PLENTY });
	fill(&m, 0, chunk, distinct);
	trial_memory_show(&m);
	trial_step(&t);
	for (uint32_t word = 0; word < chunk / 16 && t.n + 1 < TRIAL_EPOCHS; word += chunk > 1024 ? 8 : 1) {
		uint32_t at = (uint32_t)gen_below(&m.rng, 40);
		const struct sieve_record *r;

		m.region[0].p[at * chunk + word * 16 + gen_below(&m.rng, 16)] ^= (uint8_t)(1u << gen_below(&m.rng, 8));
		trial_memory_show(&m);
		r = trial_step(&t);
		CHECK_EQ(r->n, 1);
		CHECK(r->piece[0].at == at && r->piece[0].len == 1 && r->len == chunk);
	}
	trial_close(&t);
	trial_memory_fini(&m);
}

/* Grains of 32 bytes that hold the digests of two others are no nodes. */
static void digests_as_content(const struct sieve_suite *s)
{
	enum { C = 32, N = 64 };
	struct trial_memory m;
	struct trial_five f;

	trial_memory_init(&m, s);
	trial_memory_add(&m, N * C);
	trial_five_open(&f, &m, C, PLENTY);
	fill(&m, 0, C, distinct);
	trial_five_step(&f);
	for (int round = 0; round < 3; round++) {
		uint8_t next[N * C];

		for (size_t i = 0; i < N; i++) { /* what the tree hashes for the node over 2i and 2i + 1, at a leaf's place */
			vv_digest_xxh3(m.region[0].p + (2 * i % N) * C, C, (struct vv_digest *)(next + i * C));
			vv_digest_xxh3(m.region[0].p + (2 * i % N + 1) * C, C, (struct vv_digest *)(next + i * C + 16));
		}
		memcpy(m.region[0].p, next, sizeof(next));
		trial_five_step(&f);
		CHECK_EQ(last_of(&f, VV_METHOD_TREE)->counts.fresh, N / 2 >> round);
	}
	trial_five_close(&f);
	trial_memory_fini(&m);
}

void sieve_suite_shapes(const struct sieve_suite *s)
{
	static const size_t grains[] = { 0, 1, 3, 31, 32, 33, 1000 };

	for (size_t i = 0; i < sizeof(grains) / sizeof(grains[0]); i++) {
		come_back(s, 32, grains[i] * 32);
		come_back(s, 64, grains[i] * 64 + 63);
	}
	come_back(s, 128, 128 * 100 + 1);
	come_back(s, 256, 256 * 65 + 255);
	come_back(s, 512, 512 * 64);
	come_back(s, 4096, 4096 * 37 + 4000);
	for (uint32_t chunk = 32; chunk <= 4096; chunk *= 2)
		flip_bits(s, chunk);
	digests_as_content(s);
}

/* ---- regions ---------------------------------------------------------------------------------------------------------- */

static void swap(struct trial_memory *m, size_t a, size_t b)
{
	struct trial_region r = m->region[a];

	m->region[a] = m->region[b];
	m->region[b] = r;
}

/* Nothing has changed but where they are. */
static void step_unchanged(struct trial_five *f)
{
	trial_five_step(f);
	for (int k = VV_METHOD_BASIC; k < 5; k++)
		CHECK_EQ(last_of(f, (enum vv_method)k)->n, 0);
}

void sieve_suite_regions(const struct sieve_suite *s)
{
	enum { C = 64 };
	struct trial_memory m;
	struct trial_five f;

	trial_memory_init(&m, s);
	trial_five_open(&f, &m, C, PLENTY);
	trial_five_step(&f); /* none at all */
	for (int i = 0; i < 5; i++) {
		trial_memory_add(&m, (size_t)(i * 50) * C + (size_t)i * 7);
		gen_bytes(&m.rng, m.region[i].p, m.region[i].len);
	}
	trial_five_step(&f);
	step_unchanged(&f);
	swap(&m, 0, 4);
	swap(&m, 1, 3);
	step_unchanged(&f);
	trial_memory_resize(&m, 1, m.region[1].len - 33 * C); /* shrinks */
	step_unchanged(&f);
	trial_memory_resize(&m, 1, m.region[1].len + 33 * C); /* and grows again, by zeros */
	trial_five_step(&f);
	CHECK_EQ(last_of(&f, VV_METHOD_BASIC)->counts.changed, 33);
	CHECK_EQ(last_of(&f, VV_METHOD_RUN)->counts.zero, 32); /* the old tail is in the first */
	trial_memory_resize(&m, 1, m.region[1].len / C * C + C - 1); /* a longer tail is no grain */
	step_unchanged(&f);
	trial_memory_remove(&m, 2); /* vanishes */
	step_unchanged(&f);
	trial_memory_add(&m, 40 * C); /* appears, with what another has */
	memcpy(m.region[m.n - 1].p, m.region[0].p, 40 * C);
	trial_five_step(&f);
	CHECK_EQ(last_of(&f, VV_METHOD_RUN)->len, 0);
	CHECK_EQ(last_of(&f, VV_METHOD_RUN)->n, 1);
	m.region[0].id = m.next_id++; /* another region in place of one, with the same bytes */
	trial_five_step(&f);
	CHECK_EQ(last_of(&f, VV_METHOD_BASIC)->counts.changed, m.region[0].len / C);
	while (m.n)
		trial_memory_remove(&m, 0);
	step_unchanged(&f);
	trial_five_close(&f);
	trial_memory_fini(&m);
}

/* ---- random changes --------------------------------------------------------------------------------------------------- */

static void edit_grains(struct trial_memory *m, struct trial_region *r, uint32_t chunk, uint64_t alphabet)
{
	size_t grains = r->len / chunk, at = gen_below(&m->rng, grains), n = 1 + gen_below(&m->rng, 1 + grains / 4);

	for (size_t i = at; i < grains && i < at + n; i++)
		put_grain(r, chunk, i, gen_below(&m->rng, alphabet));
}

static void edit_period(struct trial_memory *m, struct trial_region *r, uint32_t chunk)
{
	size_t grains = r->len / chunk, at = gen_below(&m->rng, grains), n = 1 + gen_below(&m->rng, grains);
	uint64_t period = 1 + gen_below(&m->rng, 6), base = gen_below(&m->rng, 50);

	for (size_t i = at; i < grains && i < at + n; i++)
		put_grain(r, chunk, i, base + i % period);
}

static void edit_move(struct trial_memory *m, struct trial_region *r, uint32_t chunk, bool aligned)
{
	size_t unit = aligned ? chunk : 1, units = r->len / unit;
	size_t from = gen_below(&m->rng, units), to = gen_below(&m->rng, units);
	size_t most = units - (from > to ? from : to), n = 1 + gen_below(&m->rng, most);

	memmove(r->p + to * unit, r->p + from * unit, (n < most ? n : most) * unit);
}

static void edit(struct trial_memory *m, uint32_t chunk, uint64_t alphabet)
{
	struct trial_region *r = &m->region[gen_below(&m->rng, m->n)];

	if (r->len < 2 * chunk + 2)
		return;
	switch (gen_below(&m->rng, 8)) {
	case 0:
		edit_grains(m, r, chunk, alphabet);
		break;
	case 1:
		edit_period(m, r, chunk);
		break;
	case 2:
	case 3:
		edit_move(m, r, chunk, true);
		break;
	case 4:
		edit_move(m, r, chunk, false);
		break;
	case 5: /* an insertion */
		memmove(r->p + r->len / 2 + chunk, r->p + r->len / 2, r->len - r->len / 2 - chunk);
		gen_bytes(&m->rng, r->p + r->len / 2, chunk);
		break;
	case 6:
		memset(r->p + gen_below(&m->rng, r->len), gen_below(&m->rng, 3) ? 0 : 0x11, 1);
		break;
	default:
		for (int i = 0; i < 5; i++)
			r->p[gen_below(&m->rng, r->len)] ^= 1;
	}
}

static void change_layout(struct trial_memory *m, uint32_t chunk, size_t most)
{
	size_t i = gen_below(&m->rng, m->n);

	switch (gen_below(&m->rng, 5)) {
	case 0:
		if (m->n < 6)
			gen_bytes(&m->rng, m->region[trial_memory_add(m, chunk + gen_below(&m->rng, most))].p, chunk);
		break;
	case 1:
		if (m->n > 1)
			trial_memory_remove(m, i);
		break;
	case 2:
		swap(m, i, gen_below(&m->rng, m->n));
		break;
	default:
		trial_memory_resize(m, i, gen_below(&m->rng, most));
	}
}

static void wander(const struct sieve_suite *s, uint32_t chunk, size_t grains, uint64_t memory, uint64_t alphabet)
{
	struct trial_memory m;
	struct trial_five f;

	trial_memory_init(&m, s);
	m.rng += chunk * 1000 + grains + alphabet;
	trial_memory_add(&m, grains * chunk);
	trial_memory_add(&m, grains / 3 * chunk + 5);
	trial_five_open(&f, &m, chunk, memory);
	for (int i = 0; i < s->rounds; i++) {
		for (uint64_t k = gen_below(&m.rng, 6); k; k--)
			edit(&m, chunk, alphabet);
		if (gen_below(&m.rng, 3) == 0)
			change_layout(&m, chunk, grains * chunk);
		trial_five_step(&f);
	}
	trial_five_close(&f);
	trial_memory_fini(&m);
}

void sieve_suite_random(const struct sieve_suite *s)
{
	wander(s, 32, 20, PLENTY, 4);
	wander(s, 32, 300, PLENTY, 20);
	wander(s, 64, 100, PLENTY, 1000000);
	wander(s, 128, 200, PLENTY, 40);
	wander(s, 4096, 70, PLENTY, 30);
	wander(s, 32, 900, 0, 1000000); /* as little memory as there can be: generations follow each other, and a slice may have too many */
	wander(s, 32, 2500, 0, 1000000);
}

/* ---- epochs that do not count ----------------------------------------------------------------------------------------- */

static void fail_once(const struct sieve_suite *s, enum vv_method method, int at)
{
	enum { C = 32, N = 200 };
	struct trial_memory m;
	struct trial t;

	trial_memory_init(&m, s);
	trial_memory_add(&m, N * C);
	trial_open(&t, &m, (struct vv_sieve_options){ .method = method, .chunk = C, .memory = PLENTY });
	fill(&m, 0, C, distinct);
	trial_memory_show(&m);
	trial_step(&t);
	for (size_t i = 10; i < N; i++)
		put_grain(&m.region[0], C, i, others(i % 50));
	trial_memory_show(&m);
	trial_fail(&t, at);
	trial_step(&t); /* the same bytes: nothing of the epoch that failed is referred to, which history does not have */
	fill(&m, 0, C, distinct);
	trial_memory_show(&m);
	trial_step(&t);
	trial_forget(&t); /* one that came to its end, and still does not count */
	trial_step(&t);
	fill(&m, 0, C, others);
	trial_memory_show(&m);
	trial_step(&t);
	trial_forget(&t);
	trial_step(&t);
	trial_step(&t);
	trial_close(&t);
	trial_memory_fini(&m);
}

/* With little memory: what is killed is in both generations. */
static void fail_often(const struct sieve_suite *s, enum vv_method method)
{
	enum { C = 32, N = 1500 };
	struct trial_memory m;
	struct trial t;

	trial_memory_init(&m, s);
	trial_memory_add(&m, N * C);
	trial_open(&t, &m, (struct vv_sieve_options){ .method = method, .chunk = C });
	for (int i = 0; i < 12; i++) {
		for (int k = 0; k < 4; k++)
			edit(&m, C, 4000);
		trial_memory_show(&m);
		if (i % 3 == 2)
			trial_fail(&t, 1 + i % 4);
		trial_step(&t);
		if (i % 4 == 3)
			trial_forget(&t);
	}
	trial_close(&t);
	trial_memory_fini(&m);
}

void sieve_suite_failures(const struct sieve_suite *s)
{
	for (int method = VV_METHOD_FULL; method <= VV_METHOD_RUN; method++) {
		for (int at = 1; at <= 4; at++)
			fail_once(s, (enum vv_method)method, at);
		fail_often(s, (enum vv_method)method);
	}
}

/* ---- states that a session continues from ---------------------------------------------------------------------------- */

static void continue_from(const struct sieve_suite *s, enum vv_method method, uint64_t memory)
{
	enum { C = 64, N = 700 };
	static const struct vv_range all = { 0, 2 * N }, some[] = { { 3, 60 }, { 64, 200 }, { 300, 1 }, { 690, 400 } };
	struct trial_memory m;
	struct trial t;

	trial_memory_init(&m, s);
	trial_memory_add(&m, N * C);
	trial_memory_add(&m, N * C + 9);
	trial_open(&t, &m, (struct vv_sieve_options){ .method = method, .chunk = C, .memory = memory });
	fill(&m, 0, C, distinct);
	fill(&m, 1, C, in_three);
	trial_memory_show(&m);
	trial_adopt(&t, &all, 1);
	CHECK(method == VV_METHOD_FULL || trial_step(&t)->n == 0);
	memmove(m.region[0].p + 32 * C, m.region[0].p, (N - 32) * C);
	trial_memory_show(&m);
	CHECK(method < VV_METHOD_LIST || memory == 0 || trial_step(&t)->len == 0);
	for (int i = 0; i < 4; i++) {
		edit(&m, C, 3000);
		trial_memory_show(&m);
		trial_step(&t);
	}
	trial_adopt(&t, some, 4);
	for (int i = 0; i < 4; i++) {
		edit(&m, C, 3000);
		trial_memory_show(&m);
		trial_step(&t);
	}
	gen_bytes(&m.rng, m.region[0].p, 50 * C); /* after the last pass: not what is readopted */
	trial_memory_show(&m);
	trial_readopt(&t, some + 1, 3);
	trial_step(&t);
	trial_readopt(&t, NULL, 0); /* nothing may be used */
	fill(&m, 0, C, distinct);
	trial_memory_show(&m);
	trial_step(&t);
	trial_close(&t);
	trial_memory_fini(&m);
}

void sieve_suite_adopted(const struct sieve_suite *s)
{
	for (int method = VV_METHOD_FULL; method <= VV_METHOD_RUN; method++) {
		continue_from(s, (enum vv_method)method, PLENTY);
		continue_from(s, (enum vv_method)method, 0);
	}
}

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
	const struct vv_range all = { 0, UINT32_MAX };
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

void sieve_suite_run(const struct sieve_suite *s)
{
	sieve_suite_shapes(s);
	sieve_suite_regions(s);
	sieve_suite_random(s);
	sieve_suite_failures(s);
	sieve_suite_adopted(s);
	sieve_suite_compare(s);
	if (!s->looks_at_all)
		sieve_suite_maybe(s);
}
