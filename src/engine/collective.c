#include "engine/talk.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/stage.h"
#include "engine/tiles.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- claims --------------------------------------------------------------------------------------------------------------- */

int vv_collective_begin(struct vv_pass *p)
{
	struct vv_claims *c;

	if (!p->v->dedup || p->v->group->how == VV_RANKS_NONE || p->v->ranks == 1)
		return 0;
	c = vv_mem_new(1, sizeof(*c));
	if (!c)
		return VV_ENOMEM;
	p->claims = c;
	c->cap = p->chunks;
	c->tag = vv_mem_new(c->cap, sizeof(*c->tag));
	c->state = vv_mem_new(c->cap, sizeof(*c->state));
	c->pos = vv_mem_new(c->cap, sizeof(*c->pos));
	return c->tag && c->state && c->pos ? 0 : VV_ENOMEM;
}

void vv_collective_end(struct vv_pass *p)
{
	struct vv_claims *c = p->claims;

	if (!c)
		return;
	vv_mem_free(c->tag);
	vv_mem_free(c->state);
	vv_mem_free(c->pos);
	vv_mem_free(c);
	p->claims = NULL;
}

int vv_collective_claim(struct vv_pass *p, struct vv_region *r, size_t i, uint64_t chunk, const struct vv_digest *d)
{
	struct vv_index *x = &p->v->history.index;
	struct vv_claims *c = p->claims;
	uint32_t e = vv_index_find(x, d);
	int rc = 0;

	if (e == VV_INDEX_NONE)
		rc = vv_index_add(x, d, p->layer, 0, &e);
	else if (e < p->old_entries) /* there, but not to be used */
		rc = vv_index_supersede(x, d, p->layer, 0, &e);
	if (rc)
		return rc;
	r->now[i] = e + VV_CHUNK_FIRST;
	if (e - p->old_entries < c->n)
		return 0;
	c->tag[c->n] = vv_judge_tag((uint32_t)vv_region_chunk_len(r, i), chunk);
	c->pos[c->n] = UINT64_MAX;
	c->state[c->n++] = VV_CLAIM_OPEN;
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------------------------------------- */

/* ask: how much comes from whom is not known yet. */
static int send_all(struct vv_talk *t, struct vv_mail *m, int rc, uint64_t unit, bool ask)
{
	if (ask) {
		rc = vv_talk_agree(t, rc);
		if (rc == 0)
			rc = vv_comm_alltoall(t->comm, m->out_len, m->in_len, sizeof(*m->out_len));
		t->over = rc != 0;
	}
	if (rc == 0)
		rc = vv_mail_room(m, t->g->size, unit);
	rc = vv_talk_agree(t, rc);
	if (rc == 0)
		rc = vv_comm_alltoallv(t->comm, m->out, m->out_len, m->in, m->in_len);
	t->over = rc != 0;
	return rc;
}

/* ---- exact: M1 ------------------------------------------------------------------------------------------------------------- */

/* Counting sort of n digests by their judges; first[j] becomes the number of those before judge j. */
static void count_judges(const struct vv_talk *t, size_t n, size_t from, uint64_t *first)
{
	const struct vv_entry *e = t->p->v->history.index.entry + from;

	memset(first, 0, t->g->size * sizeof(*first));
	for (size_t k = 0; k < n; k++)
		first[vv_judge_of(&e[k].digest, t->g->size)]++;
	for (uint64_t j = 0, sum = 0; j < t->g->size; j++) {
		uint64_t count = first[j];

		first[j] = sum;
		sum += count;
	}
}

static int write_claims(struct vv_talk *t)
{
	const struct vv_claims *c = t->p->claims;
	uint32_t size = t->g->size;
	uint64_t *next = vv_mem_new(size, sizeof(*next));
	int rc = vv_mail_new(&t->claims, size, c->n * VV_JUDGE_CLAIM);

	t->order = vv_mem_new(c->n, sizeof(*t->order));
	if (rc || !next || !t->order) {
		vv_mem_free(next);
		return VV_ENOMEM;
	}
	count_judges(t, c->n, t->p->old_entries, next);
	for (size_t k = 0; k < c->n; k++)
		t->order[next[vv_judge_of(vv_talk_digest(t->p, k), size)]++] = (uint32_t)k;
	for (uint64_t j = 0, k = 0; j < size; j++) { /* now next[j] is the end of judge j's */
		uint8_t *to = t->claims.out + k * VV_JUDGE_CLAIM;
		uint64_t n = next[j] - k;

		for (uint64_t i = 0; i < n; i++, k++) {
			memcpy(to + i * sizeof(struct vv_digest), vv_talk_digest(t->p, t->order[k]), sizeof(struct vv_digest));
			memcpy(to + n * sizeof(struct vv_digest) + i * sizeof(uint32_t), &c->tag[t->order[k]], sizeof(uint32_t));
		}
		t->claims.out_len[j] = n * VV_JUDGE_CLAIM;
	}
	vv_mem_free(next);
	return 0;
}

/* ---- exact: M2, M3 ---------------------------------------------------------------------------------------------------------- */

/* A judge remembers that this rank stored it: where is it now? */
static struct vv_judge_place recall(struct vv_pass *p, const struct vv_digest *d)
{
	struct vv_history *h = &p->v->history;
	uint32_t e = vv_index_find(&h->index, d);

	if (e == VV_INDEX_NONE || e >= p->old_entries || vv_run_rank(vv_index_layer(&h->index, e)) != p->v->rank ||
	    !vv_trust_entry(&p->v->lineage, h, e))
		return (struct vv_judge_place){ 0 };
	return (struct vv_judge_place){ vv_index_layer(&h->index, e), vv_index_pos(&h->index, e) };
}

static int ask_old_owners(struct vv_talk *t)
{
	uint32_t size = t->g->size;
	int rc = vv_mail_new(&t->queries, size, t->judged.n_queries * sizeof(struct vv_digest));
	size_t n;

	if (rc == 0) {
		memcpy(t->queries.out_len, t->sums, size * sizeof(*t->sums));
		if (t->judged.n_queries)
			memcpy(t->queries.out, t->judged.query, t->judged.n_queries * sizeof(struct vv_digest));
		for (uint32_t r = 0; r < size; r++)
			t->queries.out_len[r] *= sizeof(struct vv_digest);
	}
	rc = send_all(t, &t->queries, rc, sizeof(struct vv_digest), true);
	if (rc)
		return rc;
	n = (size_t)(t->queries.in_sum / sizeof(struct vv_digest));
	rc = vv_mail_new(&t->answers, size, n * sizeof(struct vv_judge_place));
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct vv_judge_place place;
		struct vv_digest d;

		memcpy(&d, t->queries.in + i * sizeof(d), sizeof(d));
		place = recall(t->p, &d);
		memcpy(t->answers.out + i * sizeof(place), &place, sizeof(place));
	}
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		t->answers.out_len[r] = t->queries.in_len[r]; /* both are 16 bytes */
		t->answers.in_len[r] = t->queries.out_len[r];
	}
	rc = send_all(t, &t->answers, rc, sizeof(struct vv_judge_place), false);
	return rc ? rc : vv_case_answer(&t->judged, t->answers.in, t->answers.in_sum);
}

/* ---- exact: M4, M5, M6 ------------------------------------------------------------------------------------------------------ */

static int send_verdicts(struct vv_talk *t, int rc, uint64_t *shared)
{
	uint32_t size = t->g->size;
	uint32_t *verdict = NULL;

	if (rc == 0)
		rc = vv_mail_new(&t->verdicts, size, t->judged.n * sizeof(uint32_t));
	if (rc == 0) {
		verdict = (uint32_t *)t->verdicts.out;
		rc = vv_case_decide(&t->judged, t->g->host, t->g->copies, verdict);
	}
	*shared = rc ? 0 : vv_judge_words(verdict, t->judged.n, t->g->copies);
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		t->verdicts.out_len[r] = t->claims.in_len[r] / VV_JUDGE_CLAIM * sizeof(uint32_t);
		t->verdicts.in_len[r] = t->claims.out_len[r] / VV_JUDGE_CLAIM * sizeof(uint32_t);
	}
	if (rc == 0)
		rc = vv_mail_room(&t->verdicts, size, sizeof(uint32_t));
	rc = vv_talk_sum(t, rc, shared, 1);
	if (rc == 0) {
		rc = vv_comm_alltoallv(t->comm, t->verdicts.out, t->verdicts.out_len, t->verdicts.in, t->verdicts.in_len);
		t->over = rc != 0;
	}
	return rc ? rc : vv_judge_check((uint32_t *)t->verdicts.in, t->p->claims->n, t->g->rank, size);
}

/* What this rank promised, to those who judged it. */
static int send_lent(struct vv_talk *t, int rc)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in, *gave = (const uint32_t *)t->verdicts.out;
	const struct vv_claims *c = t->p->claims;
	size_t n = rc ? 0 : vv_judge_lends(got, c->n), at = 0;
	uint64_t *pos;

	if (rc == 0)
		rc = vv_mail_new(&t->lent, t->g->size, n * sizeof(uint64_t));
	pos = (uint64_t *)t->lent.out;
	for (size_t k = 0; rc == 0 && k < c->n; k++)
		if (vv_judge_kind(got[k]) == VV_JUDGE_LEND)
			pos[at++] = c->pos[t->order[k]];
	for (uint32_t r = 0; rc == 0 && r < t->g->size; r++) {
		size_t n_got = (size_t)(t->verdicts.in_len[r] / sizeof(uint32_t)), n_gave = (size_t)(t->verdicts.out_len[r] / sizeof(uint32_t));

		t->lent.out_len[r] = vv_judge_lends(got, n_got) * sizeof(uint64_t);
		t->lent.in_len[r] = vv_judge_lends(gave, n_gave) * sizeof(uint64_t);
		got += n_got;
		gave += n_gave;
	}
	rc = send_all(t, &t->lent, rc, sizeof(uint64_t), false);
	return rc ? rc : vv_case_lent(&t->judged, t->lent.in, t->lent.in_len);
}

static int send_where(struct vv_talk *t, int rc)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in, *gave = (const uint32_t *)t->verdicts.out;

	if (rc == 0)
		rc = vv_mail_new(&t->where, t->g->size, vv_judge_words(gave, t->judged.n, t->g->copies) * sizeof(uint64_t));
	if (rc == 0)
		vv_case_where(&t->judged, (uint64_t *)t->where.out);
	for (uint32_t r = 0; rc == 0 && r < t->g->size; r++) {
		size_t n_got = (size_t)(t->verdicts.in_len[r] / sizeof(uint32_t)), n_gave = (size_t)(t->verdicts.out_len[r] / sizeof(uint32_t));

		t->where.in_len[r] = vv_judge_words(got, n_got, t->g->copies) * sizeof(uint64_t);
		t->where.out_len[r] = vv_judge_words(gave, n_gave, t->g->copies) * sizeof(uint64_t);
		got += n_got;
		gave += n_gave;
	}
	return send_all(t, &t->where, rc, sizeof(uint64_t), false);
}

/* ---- exact: what follows ---------------------------------------------------------------------------------------------------- */

/* Before positions are promised: what is lent, and what others have, so that it is not counted. */
static int note_verdicts(struct vv_talk *t)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in;
	struct vv_claims *c = t->p->claims;

	for (size_t k = 0; k < c->n; k++) {
		enum vv_judge_kind kind = vv_judge_kind(got[k]);

		if (kind == VV_JUDGE_LEND)
			vv_talk_lend(t->p, t->order[k]);
		else if (kind != VV_JUDGE_ALONE)
			c->state[t->order[k]] = VV_CLAIM_REFERRED;
	}
	return vv_survey_promise(t->p);
}

struct old_ref {
	uint64_t layer, pos;
	size_t claim;
};

static int by_layer(const void *a, const void *b)
{
	const struct old_ref *x = a, *y = b;

	return (x->layer > y->layer) - (x->layer < y->layer);
}

static int apply_old(struct vv_talk *t, struct old_ref *old, size_t n)
{
	struct vv_index *x = &t->p->v->history.index;
	uint64_t source = 0;
	int rc = 0;

	if (n)
		qsort(old, n, sizeof(*old), by_layer);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (vv_run_epoch(old[i].layer) < 1 || vv_run_epoch(old[i].layer) >= t->p->epoch)
			return vv_err_set(VV_EPEER, "a rank says that content is in epoch %" PRIu64 ", which cannot be",
					  vv_run_epoch(old[i].layer));
		rc = vv_index_source(x, old[i].layer, &source);
		if (rc == 0)
			rc = vv_talk_refer(t->p, old[i].claim, source, old[i].pos);
	}
	return rc;
}

/* What is stored here and elsewhere too. */
static int note_copies(struct vv_pass *p, size_t claim, const uint64_t *copy, unsigned n)
{
	const struct vv_claims *c = p->claims;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++)
		if (copy[i] != VV_JUDGE_NO_COPY && copy[i] / VV_JUDGE_POS_MAX != p->v->rank)
			rc = vv_copies_add(&p->copies, &(struct vv_copy){ .pos = c->pos[claim],
									  .len = vv_judge_tag_len(c->tag[claim]),
									  .at = copy[i] % VV_JUDGE_POS_MAX,
									  .rank = (uint32_t)(copy[i] / VV_JUDGE_POS_MAX) });
	return rc;
}

/* Every claim that another rank stores gets its place. */
static int apply_where(struct vv_talk *t)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in;
	const uint64_t *word = (const uint64_t *)t->where.in;
	struct vv_index *x = &t->p->v->history.index;
	size_t n = t->p->claims->n, at = 0, n_old = 0;
	uint64_t *source = vv_mem_new(t->g->size, sizeof(*source)); /* 1 + its number */
	struct old_ref *old = vv_mem_new(n, sizeof(*old));
	int rc = source && old ? 0 : VV_ENOMEM;

	for (size_t k = 0; rc == 0 && k < n; k++) {
		uint32_t rank = vv_judge_rank(got[k]);
		struct vv_judge_where where;

		rc = vv_judge_where_next(word, &at, got[k], t->g->size, t->g->copies, &where);
		if (rc == 0 && vv_judge_kind(got[k]) == VV_JUDGE_OLD)
			old[n_old++] = (struct old_ref){ where.layer, where.pos, t->order[k] };
		if (rc == 0 && vv_judge_kind(got[k]) == VV_JUDGE_LEND && where.copy)
			rc = note_copies(t->p, t->order[k], where.copy, t->g->copies - 1);
		if (rc || vv_judge_kind(got[k]) != VV_JUDGE_REFER)
			continue;
		if (!source[rank]) {
			rc = vv_index_source(x, vv_run_layer(t->p->epoch, rank), &source[rank]);
			source[rank]++;
		}
		if (rc == 0)
			rc = vv_talk_refer(t->p, t->order[k], source[rank] - 1, where.pos);
	}
	if (rc == 0)
		rc = apply_old(t, old, n_old);
	vv_copies_settle(&t->p->copies);
	vv_mem_free(source);
	vv_mem_free(old);
	return rc;
}

/* What this rank stored before the session began is made known to the judges, once. */
static int introduce(struct vv_talk *t)
{
	const struct vv_index *x = &t->p->v->history.index;
	size_t n = t->p->v->history.n_loaded; /* those above are this session's: what it stored is known, the rest is not its own */
	uint64_t all = n, *next = NULL;
	struct vv_mail m = { 0 };
	uint32_t size = t->g->size;
	int rc = vv_talk_sum(t, 0, &all, 1);

	if (rc || !all) {
		t->g->introduced = rc == 0;
		return rc;
	}
	rc = vv_mail_new(&m, size, n * sizeof(struct vv_digest));
	next = vv_mem_new(size, sizeof(*next));
	if (rc == 0 && next) {
		count_judges(t, n, 0, next);
		for (size_t k = 0; k < n; k++) {
			uint32_t j = vv_judge_of(&x->entry[k].digest, size);

			memcpy(m.out + next[j]++ * sizeof(struct vv_digest), &x->entry[k].digest, sizeof(struct vv_digest));
			m.out_len[j] += sizeof(struct vv_digest);
		}
	}
	rc = send_all(t, &m, next ? rc : VV_ENOMEM, sizeof(struct vv_digest), true);
	for (uint64_t r = 0, at = 0; rc == 0 && r < size; at += m.in_len[r++])
		vv_judge_add(&t->g->judge, (uint32_t)r, (const struct vv_digest *)(m.in + at),
			     (size_t)(m.in_len[r] / sizeof(struct vv_digest)));
	t->g->introduced = rc == 0;
	vv_mem_free(next);
	vv_mail_free(&m, t->g);
	return rc;
}

static int judge(struct vv_talk *t)
{
	uint64_t queries;
	int rc;

	t->sums = vv_mem_new(t->g->size, sizeof(*t->sums));
	rc = t->sums ? vv_case_open(&t->judged, &t->g->judge, t->g->size, t->claims.in, t->claims.in_len) : VV_ENOMEM;
	if (rc == 0)
		rc = vv_case_queries(&t->judged, t->sums);
	queries = t->judged.n_queries;
	rc = vv_talk_sum(t, rc, &queries, 1);
	return rc == 0 && queries ? ask_old_owners(t) : rc;
}

static int exact(struct vv_talk *t)
{
	uint64_t shared = 0;
	int rc = t->g->introduced ? 0 : introduce(t);

	if (!t->over)
		rc = send_all(t, &t->claims, write_claims(t), VV_JUDGE_CLAIM, true);
	vv_stage("claimed");
	if (rc == 0)
		rc = judge(t);
	vv_stage("judged");
	if (!t->over)
		rc = send_verdicts(t, rc, &shared);
	if (!t->over && shared)
		rc = send_lent(t, rc ? rc : note_verdicts(t));
	vv_stage("promised");
	if (!t->over && shared)
		rc = send_where(t, rc);
	if (rc == 0 && shared)
		rc = apply_where(t);
	return vv_talk_agree(t, rc);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

static void talk_free(struct vv_talk *t)
{
	if (!t)
		return;
	vv_case_close(&t->judged);
	vv_mail_free(&t->claims, t->g);
	vv_mail_free(&t->queries, t->g);
	vv_mail_free(&t->answers, t->g);
	vv_mail_free(&t->verdicts, t->g);
	vv_mail_free(&t->lent, t->g);
	vv_mail_free(&t->where, t->g);
	vv_mem_free(t->order);
	vv_mem_free(t->sums);
	vv_mem_free(t);
}

struct vv_comm *vv_collective_comm(const struct varve *v)
{
	return v->group->behind && v->async ? v->group->side : v->group->comm;
}

int vv_collective_ask(struct vv_pass *p, int rc)
{
	struct vv_ranks *g = p->v->group;
	struct vv_comm *comm = vv_collective_comm(p->v);
	uint64_t start = vv_clock_ns();
	bool silent = !p->v->dedup || g->how == VV_RANKS_NONE || g->size == 1;
	struct vv_talk *t = silent || rc ? NULL : vv_mem_new(1, sizeof(*t));

	if (!t && !silent && rc == 0)
		rc = VV_ENOMEM;
	vv_stage("surveyed");
	rc = vv_ranks_agree(g, comm, rc);
	if (rc || silent) {
		vv_mem_free(t);
		return rc;
	}
	*t = (struct vv_talk){ .g = g, .comm = comm, .p = p };
	g->talk = t;
	rc = g->how == VV_RANKS_TOPK ? vv_frequent_ask(t) : exact(t);
	if (rc == 0) {
		p->st.bytes_lent = p->claims->lent;
		p->st.seconds_ranks = (double)(vv_clock_ns() - start) / 1e9;
	}
	return rc;
}

void vv_collective_learn(struct varve *v)
{
	struct vv_talk *t = v->group->talk;

	if (t && t->judged.n)
		vv_case_learn(&t->judged);
	vv_collective_forget(v);
}

void vv_collective_forget(struct varve *v)
{
	talk_free(v->group->talk);
	v->group->talk = NULL;
}
