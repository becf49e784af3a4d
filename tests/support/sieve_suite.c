#include "support/sieve_suite.h"
#include "base/err.h"
#include "support/sieve_fill.h"

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
	static const struct vv_number_range all = { 0, 2 * N }, some[] = { { 3, 60 }, { 64, 200 }, { 300, 1 }, { 690, 400 } };
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
