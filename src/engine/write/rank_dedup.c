#include "engine/write/rank_dedup_topk.h"
#include "engine/write/rank_dedup_priv.h"
#include "engine/write/trust.h"
#include "engine/write/index_limit.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/test_point.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- claims --------------------------------------------------------------------------------------------------------------- */

int vv_rank_dedup_begin(struct vv_layer_writer *p)
{
	struct vv_claims *c;

	if (!p->v->ctx.dedup || p->v->ctx.group->how == VV_GROUP_NONE || p->v->ctx.ranks == 1)
		return 0;
	c = vv_mem_new(1, sizeof(*c));
	if (!c)
		return VV_ENOMEM;
	p->claims = c;
	c->cap = p->chunks;
	c->tag = vv_mem_new(c->cap, sizeof(*c->tag));
	c->state = vv_mem_new(c->cap, sizeof(*c->state));
	c->shared = vv_mem_new(c->cap, sizeof(*c->shared));
	c->pos = vv_mem_new(c->cap, sizeof(*c->pos));
	return c->tag && c->state && c->shared && c->pos ? 0 : VV_ENOMEM;
}

void vv_rank_dedup_end(struct vv_layer_writer *p)
{
	struct vv_claims *c = p->claims;

	if (!c)
		return;
	vv_mem_free(c->tag);
	vv_mem_free(c->state);
	vv_mem_free(c->shared);
	vv_mem_free(c->pos);
	vv_mem_free(c);
	p->claims = NULL;
}

int vv_rank_dedup_claim(struct vv_layer_writer *p, struct vv_region *r, size_t i, uint64_t chunk, const struct vv_digest *d)
{
	struct vv_index *x = &p->v->history->index;
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
	c->tag[c->n] = vv_dedup_judge_tag((uint32_t)vv_region_chunk_len(r, i), chunk);
	c->pos[c->n] = UINT64_MAX;
	c->state[c->n++] = VV_CLAIM_OPEN;
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------------------------------------- */

/* Bytes to and from every rank; room for both is there, and all ranks know it. */
static int send_all(struct vv_rank_dedup_priv *t, struct vv_exchange *m)
{
	int rc = vv_comm_alltoallv(t->comm, m->out, m->out_len, m->in, m->in_len);

	t->over = rc != 0;
	return rc;
}

/* ---- exact: M1 ------------------------------------------------------------------------------------------------------------- */

/* Counting sort of n digests by their judges: where those of judge j begin, for j up to the number of ranks; behind that the same
 * again, to be counted up. */
static uint64_t *count_judges(const struct vv_rank_dedup_priv *t, size_t n, size_t from)
{
	const struct vv_digest *d = t->p->v->history->index.digest + from;
	uint32_t size = t->g->size;
	uint64_t *first = vv_mem_new(2 * (size_t)size + 1, sizeof(*first));

	for (size_t k = 0; first && k < n; k++)
		first[vv_dedup_judge_of(&d[k], size) + 1]++;
	for (uint32_t j = 0; first && j < size; j++) {
		first[j + 1] += first[j];
		first[size + 1 + j] = first[j];
	}
	return first;
}

static int write_claims(struct vv_rank_dedup_priv *t)
{
	const struct vv_claims *c = t->p->claims;
	uint32_t size = t->g->size;
	uint64_t *first = count_judges(t, c->n, t->p->old_entries);
	int rc = vv_exchange_new(&t->claims, size, c->n * VV_DEDUP_JUDGE_CLAIM);

	t->order = vv_mem_new(c->n, sizeof(*t->order));
	if (rc || !first || !t->order) {
		vv_mem_free(first);
		return VV_ENOMEM;
	}
	for (size_t k = 0; k < c->n; k++) {
		const struct vv_digest *d = vv_rank_dedup_priv_digest(t->p, k);
		uint32_t j = vv_dedup_judge_of(d, size);
		uint64_t at = first[size + 1 + j]++, i = at - first[j];
		uint8_t *to = t->claims.out + first[j] * VV_DEDUP_JUDGE_CLAIM, *tags = to + (first[j + 1] - first[j]) * sizeof(*d);

		memcpy(to + i * sizeof(*d), d, sizeof(*d));
		memcpy(tags + i * sizeof(*c->tag), &c->tag[k], sizeof(*c->tag));
		t->order[at] = (uint32_t)k;
	}
	for (uint32_t j = 0; j < size; j++)
		t->claims.out_len[j] = (first[j + 1] - first[j]) * VV_DEDUP_JUDGE_CLAIM;
	vv_mem_free(first);
	return 0;
}

/* What this rank stored before the session began, which the judges are told once. */
static int write_known(struct vv_rank_dedup_priv *t)
{
	const struct vv_digest *d = t->p->v->history->index.digest;
	size_t n = t->g->introduced ? 0 : t->p->v->history->n_loaded; /* those above are of this session: known, or not its own */
	uint32_t size = t->g->size;
	uint64_t *first = count_judges(t, n, 0);
	int rc = vv_exchange_new(&t->known, size, n * sizeof(struct vv_digest));

	if (rc || !first) {
		vv_mem_free(first);
		return VV_ENOMEM;
	}
	for (size_t k = 0; k < n; k++) {
		uint64_t at = first[size + 1 + vv_dedup_judge_of(&d[k], size)]++;

		memcpy(t->known.out + at * sizeof(struct vv_digest), &d[k], sizeof(struct vv_digest));
	}
	for (uint32_t j = 0; j < size; j++)
		t->known.out_len[j] = (first[j + 1] - first[j]) * sizeof(struct vv_digest);
	vv_mem_free(first);
	return 0;
}

/* What every rank tells every other before the messages. */
struct hello {
	uint64_t claims, known; /* bytes that come */
	uint64_t all_known;     /* bytes of `known` for all judges */
	uint64_t remembers;     /* what it remembers as a judge */
};

static int write_hello(struct vv_rank_dedup_priv *t)
{
	uint32_t size = t->g->size;
	int rc = vv_exchange_new(&t->hello, size, size * sizeof(struct hello));
	struct hello *to = (struct hello *)t->hello.out;
	uint64_t all = 0;

	t->hello.in = vv_mem_new(size, sizeof(*to));
	if (rc || !t->hello.in)
		return VV_ENOMEM;
	for (uint32_t r = 0; r < size; r++)
		all += t->known.out_len[r];
	for (uint32_t r = 0; r < size; r++)
		to[r] = (struct hello){ t->claims.out_len[r], t->known.out_len[r], all, t->g->judge.n };
	return 0;
}

/* Before all ranks agree to talk: what needs nobody else. */
static int prepare(struct vv_rank_dedup_priv *t)
{
	int rc = write_claims(t);

	if (rc == 0)
		rc = write_known(t);
	return rc ? rc : write_hello(t);
}

/* *known: does anybody send such? *old: does any judge remember something, so that there may be queries? */
static int greet(struct vv_rank_dedup_priv *t, uint64_t *known, uint64_t *old)
{
	const struct hello *from = (const struct hello *)t->hello.in;
	int rc = vv_comm_alltoall(t->comm, t->hello.out, t->hello.in, sizeof(*from));

	t->over = rc != 0;
	for (uint32_t r = 0; rc == 0 && r < t->g->size; r++) {
		t->claims.in_len[r] = from[r].claims;
		t->known.in_len[r] = from[r].known;
		*known |= from[r].all_known;
		*old |= from[r].all_known | from[r].remembers;
	}
	return rc;
}

/* Room for what comes, and for the verdicts on it. */
static int make_room(struct vv_rank_dedup_priv *t)
{
	uint32_t size = t->g->size;
	int rc = vv_exchange_room(&t->claims, size, VV_DEDUP_JUDGE_CLAIM);

	if (rc == 0)
		rc = vv_exchange_room(&t->known, size, sizeof(struct vv_digest));
	if (rc == 0)
		rc = vv_exchange_new(&t->verdicts, size, (size_t)(t->claims.in_sum / VV_DEDUP_JUDGE_CLAIM * sizeof(uint32_t)));
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		t->verdicts.out_len[r] = t->claims.in_len[r] / VV_DEDUP_JUDGE_CLAIM * sizeof(uint32_t);
		t->verdicts.in_len[r] = t->claims.out_len[r] / VV_DEDUP_JUDGE_CLAIM * sizeof(uint32_t);
	}
	return rc ? rc : vv_exchange_room(&t->verdicts, size, sizeof(uint32_t));
}

static int send_claims(struct vv_rank_dedup_priv *t, uint64_t *old)
{
	uint64_t known = 0;
	int rc = greet(t, &known, old);

	if (rc == 0)
		rc = vv_rank_dedup_priv_agree(t, make_room(t));
	if (rc == 0 && known)
		rc = send_all(t, &t->known);
	for (uint64_t r = 0, at = 0; rc == 0 && r < t->g->size; at += t->known.in_len[r++])
		vv_dedup_judge_add(&t->g->judge, (uint32_t)r, (const struct vv_digest *)(t->known.in + at),
			     (size_t)(t->known.in_len[r] / sizeof(struct vv_digest)));
	t->g->introduced |= rc == 0;
	return rc ? rc : send_all(t, &t->claims);
}

/* ---- exact: M2, M3 ---------------------------------------------------------------------------------------------------------- */

/* A judge remembers that this rank stored it: where is it now? */
static struct vv_dedup_judge_place recall(struct vv_layer_writer *p, const struct vv_digest *d)
{
	struct vv_index_cache *h = p->v->history;
	uint32_t e = vv_index_find(&h->index, d);

	if (e == VV_INDEX_NONE || e >= p->old_entries || vv_run_rank(vv_index_layer(&h->index, e)) != p->v->ctx.rank ||
	    !vv_trust_entry(&p->v->ctx.lineage, h, e))
		return (struct vv_dedup_judge_place){ 0 };
	return (struct vv_dedup_judge_place){ vv_index_layer(&h->index, e), vv_index_pos(&h->index, e) };
}

/* The number of queries for each rank, to that rank. */
static int count_queries(struct vv_rank_dedup_priv *t)
{
	int rc = vv_exchange_new(&t->queries, t->g->size, t->judged.n_queries * sizeof(struct vv_digest));

	for (uint32_t r = 0; rc == 0 && r < t->g->size; r++)
		t->queries.out_len[r] = t->sums[r] * sizeof(struct vv_digest);
	rc = vv_rank_dedup_priv_agree(t, rc);
	if (rc == 0) {
		rc = vv_comm_alltoall(t->comm, t->queries.out_len, t->queries.in_len, sizeof(uint64_t));
		t->over = rc != 0;
	}
	return rc;
}

/* For the queries and for the answers to them, which are as long. */
static int make_query_room(struct vv_rank_dedup_priv *t)
{
	uint32_t size = t->g->size;
	int rc = vv_exchange_room(&t->queries, size, sizeof(struct vv_digest));

	if (rc == 0)
		rc = vv_exchange_new(&t->answers, size, (size_t)t->queries.in_sum);
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		t->answers.out_len[r] = t->queries.in_len[r];
		t->answers.in_len[r] = t->queries.out_len[r];
	}
	return rc ? rc : vv_exchange_room(&t->answers, size, sizeof(struct vv_dedup_judge_place));
}

static int ask_old_owners(struct vv_rank_dedup_priv *t)
{
	int rc = count_queries(t);

	if (rc == 0)
		rc = vv_rank_dedup_priv_agree(t, make_query_room(t));
	if (rc == 0 && t->judged.n_queries)
		memcpy(t->queries.out, t->judged.query, t->judged.n_queries * sizeof(struct vv_digest));
	if (rc == 0)
		rc = send_all(t, &t->queries);
	for (size_t i = 0; rc == 0 && i < t->queries.in_sum / sizeof(struct vv_digest); i++) {
		struct vv_dedup_judge_place place;
		struct vv_digest d;

		memcpy(&d, t->queries.in + i * sizeof(d), sizeof(d));
		place = recall(t->p, &d);
		memcpy(t->answers.out + i * sizeof(place), &place, sizeof(place));
	}
	if (rc == 0)
		rc = send_all(t, &t->answers);
	return rc ? rc : vv_judge_round_answer(&t->judged, t->answers.in, t->answers.in_sum);
}

/* ---- exact: M4, M5, M6 ------------------------------------------------------------------------------------------------------ */

static int send_verdicts(struct vv_rank_dedup_priv *t, int rc, uint64_t *shared)
{
	uint32_t *verdict = (uint32_t *)t->verdicts.out;

	if (rc == 0)
		rc = vv_judge_round_decide(&t->judged, t->g->host, t->g->copies, verdict);
	*shared = rc ? 0 : vv_dedup_judge_words(verdict, t->judged.n, t->g->copies);
	rc = vv_rank_dedup_priv_sum(t, rc, shared, 1);
	if (rc == 0)
		rc = send_all(t, &t->verdicts);
	return rc ? rc : vv_dedup_judge_check((uint32_t *)t->verdicts.in, t->p->claims->n, t->g->rank, t->g->size);
}

/* What this rank promised, to those who judged it; what was promised to this judge, to those who refer to it. */
static int make_place_room(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in, *gave = (const uint32_t *)t->verdicts.out;
	uint32_t size = t->g->size, copies = t->g->copies;
	int rc = vv_exchange_new(&t->lent, size, vv_dedup_judge_lends(got, t->p->claims->n) * sizeof(uint64_t));

	if (rc == 0)
		rc = vv_exchange_new(&t->where, size, vv_dedup_judge_words(gave, t->judged.n, copies) * sizeof(uint64_t));
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		size_t n_got = (size_t)(t->verdicts.in_len[r] / sizeof(uint32_t)), n_gave = (size_t)(t->verdicts.out_len[r] / sizeof(uint32_t));

		t->lent.out_len[r] = vv_dedup_judge_lends(got, n_got) * sizeof(uint64_t);
		t->lent.in_len[r] = vv_dedup_judge_lends(gave, n_gave) * sizeof(uint64_t);
		t->where.in_len[r] = vv_dedup_judge_words(got, n_got, copies) * sizeof(uint64_t);
		t->where.out_len[r] = vv_dedup_judge_words(gave, n_gave, copies) * sizeof(uint64_t);
		got += n_got;
		gave += n_gave;
	}
	if (rc == 0)
		rc = vv_exchange_room(&t->lent, size, sizeof(uint64_t));
	return rc ? rc : vv_exchange_room(&t->where, size, sizeof(uint64_t));
}

static int send_lent(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in;
	uint64_t *pos = (uint64_t *)t->lent.out;
	int rc;

	for (size_t k = 0; k < t->p->claims->n; k++)
		if (vv_dedup_judge_kind(got[k]) == VV_DEDUP_JUDGE_LEND)
			*pos++ = t->p->claims->pos[t->order[k]];
	rc = send_all(t, &t->lent);
	return rc ? rc : vv_judge_round_lent(&t->judged, t->lent.in, t->lent.in_len);
}

/* A judge that could not make sense of what it was told sends nothing of use, and says so when all are asked next. */
static int send_where(struct vv_rank_dedup_priv *t, int rc)
{
	int sent;

	if (rc == 0)
		vv_judge_round_where(&t->judged, (uint64_t *)t->where.out);
	sent = send_all(t, &t->where);
	return rc ? rc : sent;
}

/* ---- exact: what follows ---------------------------------------------------------------------------------------------------- */

/* Before positions are promised: what is lent, and what others have, so that it is not counted. */
static int note_verdicts(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in;
	struct vv_claims *c = t->p->claims;

	for (size_t k = 0; k < c->n; k++) {
		enum vv_dedup_judge_kind kind = vv_dedup_judge_kind(got[k]);

		if (kind == VV_DEDUP_JUDGE_LEND)
			vv_rank_dedup_priv_lend(t->p, t->order[k]);
		else if (kind != VV_DEDUP_JUDGE_ALONE)
			c->state[t->order[k]] = VV_CLAIM_REFERRED;
	}
	return t->promise(t->p);
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

static int apply_old(struct vv_rank_dedup_priv *t, struct old_ref *old, size_t n)
{
	struct vv_index *x = &t->p->v->history->index;
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
			rc = vv_rank_dedup_priv_refer(t->p, old[i].claim, source, old[i].pos);
	}
	return rc;
}

/* What is stored here and elsewhere too. */
static int note_copies(struct vv_layer_writer *p, size_t claim, const uint64_t *copy, unsigned n)
{
	const struct vv_claims *c = p->claims;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++)
		if (copy[i] != VV_DEDUP_JUDGE_NO_COPY && copy[i] / VV_DEDUP_JUDGE_POS_MAX != p->v->ctx.rank)
			rc = vv_copies_section_add(&p->copies, &(struct vv_copy){ .pos = c->pos[claim],
									  .len = vv_dedup_judge_tag_len(c->tag[claim]),
									  .at = copy[i] % VV_DEDUP_JUDGE_POS_MAX,
									  .rank = (uint32_t)(copy[i] / VV_DEDUP_JUDGE_POS_MAX) });
	return rc;
}

/* Every claim that another rank stores gets its place. */
static int apply_where(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->verdicts.in;
	const uint64_t *word = (const uint64_t *)t->where.in;
	struct vv_index *x = &t->p->v->history->index;
	size_t n = t->p->claims->n, at = 0, n_old = 0;
	uint64_t *source = vv_mem_new(t->g->size, sizeof(*source)); /* 1 + its number */
	struct old_ref *old = vv_mem_new(n, sizeof(*old));
	int rc = source && old ? 0 : VV_ENOMEM;

	for (size_t k = 0; rc == 0 && k < n; k++) {
		uint32_t rank = vv_dedup_judge_rank(got[k]);
		struct vv_dedup_judge_where where;

		rc = vv_dedup_judge_where_next(word, &at, got[k], t->g->size, t->g->copies, &where);
		if (rc == 0 && vv_dedup_judge_kind(got[k]) == VV_DEDUP_JUDGE_OLD)
			old[n_old++] = (struct old_ref){ where.layer, where.pos, t->order[k] };
		if (rc == 0 && vv_dedup_judge_kind(got[k]) == VV_DEDUP_JUDGE_LEND && where.copy)
			rc = note_copies(t->p, t->order[k], where.copy, t->g->copies - 1);
		if (rc || vv_dedup_judge_kind(got[k]) != VV_DEDUP_JUDGE_REFER)
			continue;
		if (!source[rank]) {
			rc = vv_index_source(x, vv_run_layer(t->p->epoch, rank), &source[rank]);
			source[rank]++;
		}
		if (rc == 0)
			rc = vv_rank_dedup_priv_refer(t->p, t->order[k], source[rank] - 1, where.pos);
	}
	if (rc == 0)
		rc = apply_old(t, old, n_old);
	vv_copies_section_settle(&t->p->copies);
	vv_mem_free(source);
	vv_mem_free(old);
	return rc;
}

static int judge(struct vv_rank_dedup_priv *t, bool old)
{
	uint64_t queries;
	int rc;

	t->sums = vv_mem_new(t->g->size, sizeof(*t->sums));
	rc = t->sums ? vv_judge_round_open(&t->judged, &t->g->judge, t->g->size, t->claims.in, t->claims.in_len) : VV_ENOMEM;
	if (!old)
		return rc;
	if (rc == 0)
		rc = vv_judge_round_queries(&t->judged, t->sums);
	queries = t->judged.n_queries;
	rc = vv_rank_dedup_priv_sum(t, rc, &queries, 1);
	return rc == 0 && queries ? ask_old_owners(t) : rc;
}

static int exact(struct vv_rank_dedup_priv *t)
{
	uint64_t shared = 0, old = 0;
	int rc;

	vv_dedup_judge_allow(&t->g->judge, vv_index_limit_judged(t->p->v));
	rc = send_claims(t, &old);
	vv_test_point("claimed");
	if (rc == 0)
		rc = judge(t, old);
	vv_test_point("judged");
	if (!t->over)
		rc = send_verdicts(t, rc, &shared);
	if (!t->over && shared) {
		rc = rc ? rc : note_verdicts(t);
		rc = vv_rank_dedup_priv_agree(t, rc ? rc : make_place_room(t));
	}
	if (rc == 0 && shared)
		rc = send_lent(t);
	vv_test_point("promised");
	if (!t->over && shared)
		rc = send_where(t, rc);
	if (rc == 0 && shared)
		rc = apply_where(t);
	return vv_rank_dedup_priv_agree(t, rc);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

static void talk_free(struct vv_rank_dedup_priv *t)
{
	if (!t)
		return;
	vv_judge_round_close(&t->judged);
	vv_exchange_free(&t->hello, t->g);
	vv_exchange_free(&t->known, t->g);
	vv_exchange_free(&t->claims, t->g);
	vv_exchange_free(&t->queries, t->g);
	vv_exchange_free(&t->answers, t->g);
	vv_exchange_free(&t->verdicts, t->g);
	vv_exchange_free(&t->lent, t->g);
	vv_exchange_free(&t->where, t->g);
	vv_mem_free(t->order);
	vv_mem_free(t->sums);
	vv_mem_free(t);
}

struct vv_comm *vv_rank_dedup_comm(const struct varve *v)
{
	return v->ctx.group->threaded && v->ctx.async ? v->ctx.group->side : v->ctx.group->comm;
}

int vv_rank_dedup_ask(struct vv_layer_writer *p, int rc, int (*promise)(struct vv_layer_writer *p))
{
	struct vv_group *g = p->v->ctx.group;
	struct vv_comm *comm = vv_rank_dedup_comm(p->v);
	uint64_t start = vv_clock_ns(), waited;
	bool silent = !p->v->ctx.dedup || g->how == VV_GROUP_NONE || g->size == 1;
	struct vv_rank_dedup_priv *t = silent || rc ? NULL : vv_mem_new(1, sizeof(*t));

	if (!t && !silent && rc == 0)
		rc = VV_ENOMEM;
	if (t) {
		*t = (struct vv_rank_dedup_priv){ .g = g, .comm = comm, .p = p, .promise = promise };
		rc = g->how == VV_GROUP_EXACT ? prepare(t) : 0;
	}
	vv_test_point("surveyed");
	waited = vv_clock_ns();
	rc = vv_group_agree(g, comm, rc);
	waited = vv_clock_ns() - waited; /* for the slowest to come: not the stage's */
	if (rc || silent) {
		talk_free(t);
		return rc;
	}
	g->talk = t;
	rc = g->how == VV_GROUP_TOPK ? vv_rank_dedup_topk_ask(t) : exact(t);
	if (rc == 0) {
		p->st.bytes_lent = p->claims->lent;
		p->st.seconds_ranks = (double)(vv_clock_ns() - start - waited) / 1e9;
	}
	return rc;
}

void vv_rank_dedup_learn(struct varve *v)
{
	struct vv_rank_dedup_priv *t = v->ctx.group->talk;

	if (t && t->judged.n)
		vv_judge_round_learn(&t->judged);
	vv_rank_dedup_forget(v);
}

void vv_rank_dedup_forget(struct varve *v)
{
	talk_free(v->ctx.group->talk);
	v->ctx.group->talk = NULL;
}
