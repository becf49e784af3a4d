#include "support/sieve_trial.h"
#include "base/err.h"
#include "space/learn.h"
#include "support/gen.h"
#include "vv_test.h"

void trial_memory_init(struct trial_memory *m, const struct sieve_suite *suite)
{
	*m = (struct trial_memory){ .suite = suite, .rng = suite->seed, .next_id = 7 };
}

static void hide(struct trial_memory *m)
{
	for (size_t i = 0; i < TRIAL_REGIONS; i++)
		if (m->there[i]) {
			m->suite->put(m->there[i]);
			m->there[i] = NULL;
		}
}

void trial_memory_fini(struct trial_memory *m)
{
	hide(m);
	while (m->n)
		trial_memory_remove(m, m->n - 1);
}

size_t trial_memory_add(struct trial_memory *m, size_t len)
{
	CHECK(m->n < TRIAL_REGIONS);
	m->region[m->n] = (struct trial_region){ .id = m->next_id };
	m->next_id += 3;
	trial_memory_resize(m, m->n, len);
	return m->n++;
}

void trial_memory_resize(struct trial_memory *m, size_t i, size_t len)
{
	struct trial_region *r = &m->region[i];

	r->p = realloc(r->p, len + 1);
	CHECK(r->p);
	if (len > r->len)
		memset(r->p + r->len, 0, len - r->len);
	r->len = len;
}

void trial_memory_remove(struct trial_memory *m, size_t i)
{
	free(m->region[i].p);
	free(m->region[i].maybe);
	memmove(m->region + i, m->region + i + 1, (--m->n - i) * sizeof(*m->region));
}

void trial_memory_show(struct trial_memory *m)
{
	hide(m);
	for (size_t i = 0; i < m->n; i++) {
		const struct trial_region *r = &m->region[i];

		m->there[i] = m->suite->get(r->len);
		CHECK(m->there[i]);
		CHECK_EQ(m->suite->space->copy_in(m->there[i], r->p, r->len), 0);
		m->span[i] = (struct vv_span){ .id = r->id, .p = m->there[i], .len = r->len, .maybe = r->maybe };
	}
}

/* The same with the test's own bytes, for the model. */
static void own_spans(const struct trial_memory *m, struct vv_span *span)
{
	for (size_t i = 0; i < m->n; i++)
		span[i] = (struct vv_span){ .id = m->region[i].id, .p = m->region[i].p, .len = m->region[i].len };
}

void trial_open(struct trial *t, struct trial_memory *m, struct vv_sieve_options opt)
{
	*t = (struct trial){ .mem = m, .opt = opt, .ordinal = 4 };
	if (!t->opt.digest_kind)
		t->opt.digest_kind = VV_DIGEST_XXH3;
	CHECK_EQ(m->suite->space->open(&t->opt, m->suite->pool, &t->sieve), 0);
	t->model = sieve_model_new(&t->opt);
}

void trial_close(struct trial *t)
{
	t->mem->suite->space->close(t->sieve);
	if (t->model)
		sieve_model_free(t->model);
	for (size_t i = 0; i < t->n; i++)
		sieve_record_fini(&t->history[i]);
	if (t->has_state)
		sieve_state_fini(&t->state);
}

/* ---- a sink with rooms of odd sizes ---------------------------------------------------------------------------------- */

enum { ROOMS = 4 };

struct sink {
	struct sieve_record *record;
	uint64_t *rng;
	uint32_t chunk;
	struct {
		uint8_t *p;
		size_t got;
	} room[ROOMS]; /* that were asked for and not told of, in order */
	int rooms;
	int calls, fail_at; /* 0: never */
};

static bool fails(struct sink *s)
{
	return ++s->calls == s->fail_at;
}

static uint8_t *take_room(void *arg, size_t want, size_t *got)
{
	struct sink *s = arg;

	CHECK(s->rooms < ROOMS);
	CHECK(want >= s->chunk && want % s->chunk == 0);
	if (fails(s)) {
		vv_err_set(VV_ENOSPC, "the sink is full");
		return NULL;
	}
	*got = s->chunk + gen_below(s->rng, want - s->chunk + 1);
	s->room[s->rooms].got = *got;
	s->room[s->rooms].p = malloc(*got);
	CHECK(s->room[s->rooms].p);
	return s->room[s->rooms++].p;
}

static void drop_room(struct sink *s)
{
	free(s->room[0].p);
	memmove(s->room, s->room + 1, (size_t)--s->rooms * sizeof(*s->room));
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	struct sink *s = arg;

	CHECK(s->rooms > 0 && p == s->room[0].p);
	CHECK(len > 0 && len <= s->room[0].got && len % s->chunk == 0);
	if (!fails(s))
		sieve_record_add_data(s->record, p, len);
	drop_room(s);
	return s->calls == s->fail_at ? vv_err_set(VV_ENOSPC, "the sink is full") : 0;
}

static int take_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	struct sink *s = arg;

	if (fails(s))
		return vv_err_set(VV_ENOSPC, "the sink is full");
	sieve_record_add_pieces(s->record, piece, n);
	return 0;
}

static int pass(struct trial *t, struct sieve_record *r, int fail_at, bool *failed)
{
	struct trial_memory *m = t->mem;
	struct sink s = { .record = r, .rng = &m->rng, .chunk = t->opt.chunk, .fail_at = fail_at };
	struct vv_sink sink = { &s, take_room, take_data, take_pieces };
	int rc;

	*r = (struct sieve_record){ .ordinal = ++t->ordinal };
	rc = m->suite->space->pass(t->sieve, m->span, m->n, t->ordinal, &sink);
	CHECK(rc || s.rooms == 0);
	while (s.rooms) /* of a pass that failed */
		drop_room(&s);
	r->counts = t->sieve->counts;
	*failed = fail_at && s.calls >= fail_at;
	return rc;
}

/* ---- steps ------------------------------------------------------------------------------------------------------------ */

static void print_piece(const char *who, const struct sieve_record *r, size_t i)
{
	static const char *const kind[] = { "ZERO", "NEW", "COPY", "REPEAT" };
	const struct vv_piece *p = &r->piece[i];

	if (i < r->n)
		fprintf(stderr, "  %s has %u+%u %s %u:%llu\n", who, p->at, p->len, kind[vv_grain_kind(p->from)],
			vv_grain_ordinal(p->from), (unsigned long long)vv_grain_number(p->from));
}

static void compare(const struct trial *t, const struct sieve_record *got, const struct sieve_record *want)
{
	const char *method = vv_grain_method_name(t->opt.method);

	for (size_t i = 0; i < got->n || i < want->n; i++) {
		if (i < got->n && i < want->n && memcmp(&got->piece[i], &want->piece[i], sizeof(*got->piece)) == 0)
			continue;
		fprintf(stderr, "%s %u, epoch %u: piece %zu (of %zu and %zu) differs\n", method, t->opt.chunk, t->ordinal, i, got->n, want->n);
		print_piece("sieve", got, i);
		print_piece("model", want, i);
		exit(1);
	}
	CHECK_EQ(got->len, want->len);
	CHECK(got->len == 0 || memcmp(got->data, want->data, got->len) == 0);
	CHECK_EQ(got->counts.changed, want->counts.changed);
	CHECK_EQ(got->counts.zero, want->counts.zero);
	CHECK_EQ(got->counts.fresh, want->counts.fresh);
	CHECK_EQ(got->counts.known, want->counts.known);
	CHECK_EQ(got->counts.known_here, want->counts.known_here);
	CHECK_EQ(got->counts.forgotten, want->counts.forgotten);
}

static void restore(struct trial *t, const struct sieve_record *r)
{
	struct vv_span span[TRIAL_REGIONS];
	struct sieve_state now, truth;

	own_spans(t->mem, span);
	sieve_state_take(&truth, t->opt.chunk, span, t->mem->n);
	sieve_state_restore(&now, t->has_state ? &t->state : NULL, span, t->mem->n, t->opt.chunk, r, t->history, t->n);
	CHECK(sieve_state_equal(&now, &truth));
	sieve_state_fini(&truth);
	if (t->has_state)
		sieve_state_fini(&t->state);
	t->state = now;
	t->has_state = true;
}

const struct sieve_record *trial_step(struct trial *t)
{
	struct sieve_record *r = &t->history[t->n], want;
	struct vv_span span[TRIAL_REGIONS];
	bool failed;

	CHECK(t->n < TRIAL_EPOCHS);
	CHECK_EQ(pass(t, r, 0, &failed), 0);
	t->n++;
	if (t->model) {
		own_spans(t->mem, span);
		sieve_model_pass(t->model, span, t->mem->n, t->ordinal, &want);
		compare(t, r, &want);
		sieve_record_fini(&want);
	}
	restore(t, r);
	return r;
}

/* What the regions held is not known any more, so nothing is there that pieces could leave out. */
static void drop_state(struct trial *t)
{
	if (t->has_state)
		sieve_state_fini(&t->state);
	t->has_state = false;
}

bool trial_fail(struct trial *t, int at)
{
	struct sieve_record r, unused;
	struct vv_span span[TRIAL_REGIONS];
	bool failed;
	int rc = pass(t, &r, at, &failed);

	CHECK_EQ(rc != 0, failed);
	CHECK(!failed || strcmp(vv_err_last(), "the sink is full") == 0);
	sieve_record_fini(&r);
	if (t->model) { /* that has seen all of it; what it entered up to the failure is killed alike */
		own_spans(t->mem, span);
		sieve_model_pass(t->model, span, t->mem->n, t->ordinal, &unused);
		sieve_record_fini(&unused);
		sieve_model_forget(t->model, t->ordinal);
	}
	t->mem->suite->space->forget(t->sieve, t->ordinal);
	drop_state(t);
	return failed;
}

void trial_forget(struct trial *t)
{
	CHECK(t->n > 0);
	t->mem->suite->space->forget(t->sieve, t->history[t->n - 1].ordinal);
	if (t->model)
		sieve_model_forget(t->model, t->history[t->n - 1].ordinal);
	sieve_record_fini(&t->history[--t->n]); /* so that nothing can be taken from there */
	drop_state(t);
}

/* The data of an epoch that is adopted are the grains by their numbers: those that may not be used are made useless. */
static void remember(struct trial *t, const struct vv_number_range *usable, size_t n)
{
	struct sieve_record *r = &t->history[t->n++];
	uint32_t chunk = t->opt.chunk;

	CHECK(t->n <= TRIAL_EPOCHS);
	*r = (struct sieve_record){ .ordinal = t->ordinal };
	sieve_record_add_data(r, t->state.bytes, (size_t)t->state.end * chunk);
	for (uint32_t at = 0; at < t->state.end; at++) {
		bool may = false;

		for (size_t i = 0; i < n; i++)
			may |= at >= usable[i].at && at - usable[i].at < usable[i].len;
		if (!may)
			memset(r->data + (size_t)at * chunk, 0xee, chunk);
	}
}

/* Places of before are not to be met again. */
static void drop_history(struct trial *t)
{
	while (t->n)
		sieve_record_fini(&t->history[--t->n]);
}

enum { LESSONS = 512 };

/* Pieces of all spans; how many there are. */
static size_t cut_lessons(struct trial *t, struct vv_grain_bytes lesson[LESSONS])
{
	struct trial_memory *m = t->mem;
	size_t n = 0;

	for (size_t k = 0; k < m->n; k++)
		for (uint32_t at = 0, len; at < m->span[k].n; at += len) {
			uint32_t left = m->span[k].n - at;

			len = n > LESSONS - 64 ? left : 1 + (uint32_t)gen_below(&m->rng, 200);
			len = len < left ? len : left;
			CHECK(n < LESSONS);
			lesson[n++] = (struct vv_grain_bytes){ m->span[k].first + at, len, m->span[k].p + (size_t)at * t->opt.chunk };
		}
	return n;
}

/* Of some pieces other bytes come first, or nothing is known; then the truth. */
static void learn_in_steps(struct trial *t)
{
	const struct vv_space *space = t->mem->suite->space;
	struct vv_grain_bytes right[LESSONS], first[LESSONS];
	size_t n_right, n_first;

	CHECK_EQ(space->begin(t->sieve, t->mem->span, t->mem->n), 0);
	n_first = n_right = cut_lessons(t, right);
	memcpy(first, right, n_right * sizeof(*right));
	for (size_t i = 0; i < n_first; i++) {
		uint64_t dice = gen_below(&t->mem->rng, 4);

		if (dice == 0)
			first[i].bytes = NULL;
		else if (dice == 1)
			first[i].bytes = right[0].len >= right[i].len ? right[0].bytes : NULL;
	}
	CHECK_EQ(space->learn(t->sieve, first, n_first), 0);
	for (size_t i = 0; i < n_first; i++)
		if (first[i].bytes != right[i].bytes)
			CHECK_EQ(space->learn(t->sieve, &right[i], 1), 0);
	CHECK_EQ(space->learn(t->sieve, NULL, 0), 0);
}

void trial_adopt(struct trial *t, const struct vv_number_range *usable, size_t n)
{
	struct trial_memory *m = t->mem;
	struct vv_span span[TRIAL_REGIONS];

	t->ordinal++;
	own_spans(m, span);
	if (m->suite->space == vv_space_host() && gen_below(&m->rng, 2)) /* a device looks for itself */
		learn_in_steps(t);
	else
		CHECK_EQ(vv_learn_regions(t->sieve, m->span, m->n), 0);
	CHECK_EQ(m->suite->space->adopt(t->sieve, t->ordinal, usable, n), 0);
	if (t->model)
		sieve_model_adopt(t->model, span, m->n, t->ordinal, usable, n);
	drop_state(t);
	drop_history(t);
	sieve_state_take(&t->state, t->opt.chunk, span, m->n);
	t->has_state = true;
	remember(t, usable, n);
}

void trial_readopt(struct trial *t, const struct vv_number_range *usable, size_t n)
{
	t->ordinal++;
	CHECK_EQ(t->mem->suite->space->adopt(t->sieve, t->ordinal, usable, n), 0);
	if (t->model)
		sieve_model_readopt(t->model, t->ordinal, usable, n);
	drop_history(t);
	remember(t, usable, n);
}

/* ---- all methods ------------------------------------------------------------------------------------------------------ */

void trial_five_open(struct trial_five *f, struct trial_memory *m, uint32_t chunk, uint64_t memory)
{
	*f = (struct trial_five){ .mem = m };
	for (int i = 0; i < 5; i++)
		trial_open(&f->t[i], m, (struct vv_sieve_options){ .method = (enum vv_method)i, .chunk = chunk, .memory = memory });
}

void trial_five_close(struct trial_five *f)
{
	for (int i = 0; i < 5; i++)
		trial_close(&f->t[i]);
}

void trial_five_step(struct trial_five *f)
{
	const struct sieve_record *r[5];

	trial_memory_show(f->mem);
	for (int i = 0; i < 5; i++)
		r[i] = trial_step(&f->t[i]);
	for (int i = 0; i < 5; i++)
		f->forgot |= r[i]->counts.forgotten > 0;
	CHECK(r[VV_METHOD_RUN]->n <= r[VV_METHOD_LIST]->n);
	CHECK(r[VV_METHOD_RUN]->len == r[VV_METHOD_LIST]->len);
	CHECK(f->forgot || r[VV_METHOD_RUN]->n <= r[VV_METHOD_TREE]->n);
}
