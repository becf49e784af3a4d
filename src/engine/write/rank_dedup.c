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

/* ---- claims ---------------------------------------------------------------------------------- */

int vv_rank_dedup_begin(struct vv_layer_writer *p)
{
	struct vv_claims *c;

	if (!p->v->ctx.dedup || p->v->ctx.group->dedup == VV_GROUP_NONE || p->v->ctx.ranks == 1)
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
	struct vv_index *x = &p->v->index_cache->index;
	struct vv_claims *c = p->claims;
	uint32_t e = vv_index_find(x, d);
	int rc = 0;

	if (e == VV_INDEX_NONE)
		rc = vv_index_add(x, d, p->layer, 0, &e);
	else if (e < p->old_entries) /* it exists, but must not be used */
		rc = vv_index_supersede(x, d, p->layer, 0, &e);
	if (rc)
		return rc;
	r->now[i] = e + VV_CHUNK_FIRST;
	if (e - p->old_entries < c->n)
		return 0;
	c->tag[c->n] = vv_owner_index_tag((uint32_t)vv_region_chunk_len(r, i), chunk);
	c->pos[c->n] = UINT64_MAX;
	c->state[c->n++] = VV_CLAIM_LOCAL;
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Exchanges bytes with every rank; memory for both directions exists, and all ranks know it. */
static int send_all(struct vv_rank_dedup_priv *t, struct vv_exchange *m)
{
	int rc = vv_comm_alltoallv(t->comm, m->out, m->out_len, m->in, m->in_len);

	t->failed = rc != 0;
	return rc;
}

/* ---- exact: M1 ------------------------------------------------------------------------------- */

/* Counting sort of n digests by their home ranks. Returns the first index of each home rank j, for
 * j up to the number of ranks. A second copy follows, to be incremented. */
static uint64_t *count_home_ranks(const struct vv_rank_dedup_priv *t, size_t n, size_t from)
{
	const struct vv_digest *d = t->p->v->index_cache->index.digest + from;
	uint32_t size = t->g->size;
	uint64_t *first = vv_mem_new(2 * (size_t)size + 1, sizeof(*first));

	for (size_t k = 0; first && k < n; k++)
		first[vv_owner_index_home(&d[k], size) + 1]++;
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
	uint64_t *first = count_home_ranks(t, c->n, t->p->old_entries);
	int rc = vv_exchange_new(&t->claims, size, c->n * VV_OWNER_INDEX_CLAIM);

	t->order = vv_mem_new(c->n, sizeof(*t->order));
	if (rc || !first || !t->order) {
		vv_mem_free(first);
		return VV_ENOMEM;
	}
	for (size_t k = 0; k < c->n; k++) {
		const struct vv_digest *d = vv_rank_dedup_priv_digest(t->p, k);
		uint32_t j = vv_owner_index_home(d, size);
		uint64_t at = first[size + 1 + j]++, i = at - first[j];
		uint8_t *to = t->claims.out + first[j] * VV_OWNER_INDEX_CLAIM, *tags = to + (first[j + 1] - first[j]) * sizeof(*d);

		memcpy(to + i * sizeof(*d), d, sizeof(*d));
		memcpy(tags + i * sizeof(*c->tag), &c->tag[k], sizeof(*c->tag));
		t->order[at] = (uint32_t)k;
	}
	for (uint32_t j = 0; j < size; j++)
		t->claims.out_len[j] = (first[j + 1] - first[j]) * VV_OWNER_INDEX_CLAIM;
	vv_mem_free(first);
	return 0;
}

/* Writes the content that this rank stored before the session began. The home ranks get it once. */
static int write_known(struct vv_rank_dedup_priv *t)
{
	const struct vv_digest *d = t->p->v->index_cache->index.digest;
	/* entries above are of this session: known, or not its own */
	size_t n = t->g->owners_loaded ? 0 : t->p->v->index_cache->n_loaded;
	uint32_t size = t->g->size;
	uint64_t *first = count_home_ranks(t, n, 0);
	int rc = vv_exchange_new(&t->known, size, n * sizeof(struct vv_digest));

	if (rc || !first) {
		vv_mem_free(first);
		return VV_ENOMEM;
	}
	for (size_t k = 0; k < n; k++) {
		uint64_t at = first[size + 1 + vv_owner_index_home(&d[k], size)]++;

		memcpy(t->known.out + at * sizeof(struct vv_digest), &d[k], sizeof(struct vv_digest));
	}
	for (uint32_t j = 0; j < size; j++)
		t->known.out_len[j] = (first[j + 1] - first[j]) * sizeof(struct vv_digest);
	vv_mem_free(first);
	return 0;
}

/* Every rank sends these to every other before the messages. */
struct message_counts {
	uint64_t claims, known; /* bytes that will come */
	uint64_t all_known;     /* bytes of `known` for all home ranks */
	uint64_t remembers;     /* number of entries that it remembers as a home rank */
};

static int write_counts(struct vv_rank_dedup_priv *t)
{
	uint32_t size = t->g->size;
	int rc = vv_exchange_new(&t->counts, size, size * sizeof(struct message_counts));
	struct message_counts *to = (struct message_counts *)t->counts.out;
	uint64_t all = 0;

	t->counts.in = vv_mem_new(size, sizeof(*to));
	if (rc || !t->counts.in)
		return VV_ENOMEM;
	for (uint32_t r = 0; r < size; r++)
		all += t->known.out_len[r];
	for (uint32_t r = 0; r < size; r++)
		to[r] = (struct message_counts){ t->claims.out_len[r], t->known.out_len[r], all, t->g->owners.n };
	return 0;
}

/* Before all ranks agree to communicate: the preparations that need no other rank. */
static int prepare(struct vv_rank_dedup_priv *t)
{
	int rc = write_claims(t);

	if (rc == 0)
		rc = write_known(t);
	return rc ? rc : write_counts(t);
}

/* known: does any rank send known content? *old: does any home rank remember entries, so that there
 * may be queries? */
static int greet(struct vv_rank_dedup_priv *t, uint64_t *known, uint64_t *old)
{
	const struct message_counts *from = (const struct message_counts *)t->counts.in;
	int rc = vv_comm_alltoall(t->comm, t->counts.out, t->counts.in, sizeof(*from));

	t->failed = rc != 0;
	for (uint32_t r = 0; rc == 0 && r < t->g->size; r++) {
		t->claims.in_len[r] = from[r].claims;
		t->known.in_len[r] = from[r].known;
		*known |= from[r].all_known;
		*old |= from[r].all_known | from[r].remembers;
	}
	return rc;
}

/* Memory for the incoming messages, and for the decisions on them. */
static int make_room(struct vv_rank_dedup_priv *t)
{
	uint32_t size = t->g->size;
	int rc = vv_exchange_alloc_in(&t->claims, size, VV_OWNER_INDEX_CLAIM);

	if (rc == 0)
		rc = vv_exchange_alloc_in(&t->known, size, sizeof(struct vv_digest));
	if (rc == 0)
		rc = vv_exchange_new(&t->decisions, size, (size_t)(t->claims.in_sum / VV_OWNER_INDEX_CLAIM * sizeof(uint32_t)));
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		t->decisions.out_len[r] = t->claims.in_len[r] / VV_OWNER_INDEX_CLAIM * sizeof(uint32_t);
		t->decisions.in_len[r] = t->claims.out_len[r] / VV_OWNER_INDEX_CLAIM * sizeof(uint32_t);
	}
	return rc ? rc : vv_exchange_alloc_in(&t->decisions, size, sizeof(uint32_t));
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
		vv_owner_index_add(&t->g->owners, (uint32_t)r, (const struct vv_digest *)(t->known.in + at),
			     (size_t)(t->known.in_len[r] / sizeof(struct vv_digest)));
	t->g->owners_loaded |= rc == 0;
	return rc ? rc : send_all(t, &t->claims);
}

/* ---- exact: M2, M3 --------------------------------------------------------------------------- */

/* A home rank remembers that this rank stored it: returns its present location. */
static struct vv_owner_index_answer locate_stored(struct vv_layer_writer *p, const struct vv_digest *d)
{
	struct vv_index_cache *h = p->v->index_cache;
	uint32_t e = vv_index_find(&h->index, d);

	if (e == VV_INDEX_NONE || e >= p->old_entries || vv_run_rank(vv_index_layer(&h->index, e)) != p->v->ctx.rank ||
	    !vv_trust_check_entry(&p->v->ctx.lineage, h, e))
		return (struct vv_owner_index_answer){ 0 };
	return (struct vv_owner_index_answer){ vv_index_layer(&h->index, e), vv_index_pos(&h->index, e) };
}

/* Sends each rank the number of queries for it. */
static int count_queries(struct vv_rank_dedup_priv *t)
{
	int rc = vv_exchange_new(&t->queries, t->g->size, t->batch.n_queries * sizeof(struct vv_digest));

	for (uint32_t r = 0; rc == 0 && r < t->g->size; r++)
		t->queries.out_len[r] = t->sums[r] * sizeof(struct vv_digest);
	rc = vv_rank_dedup_priv_agree(t, rc);
	if (rc == 0) {
		rc = vv_comm_alltoall(t->comm, t->queries.out_len, t->queries.in_len, sizeof(uint64_t));
		t->failed = rc != 0;
	}
	return rc;
}

/* Memory for the queries and for their answers, which are as long. */
static int make_query_room(struct vv_rank_dedup_priv *t)
{
	uint32_t size = t->g->size;
	int rc = vv_exchange_alloc_in(&t->queries, size, sizeof(struct vv_digest));

	if (rc == 0)
		rc = vv_exchange_new(&t->answers, size, (size_t)t->queries.in_sum);
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		t->answers.out_len[r] = t->queries.in_len[r];
		t->answers.in_len[r] = t->queries.out_len[r];
	}
	return rc ? rc : vv_exchange_alloc_in(&t->answers, size, sizeof(struct vv_owner_index_answer));
}

static int ask_old_owners(struct vv_rank_dedup_priv *t)
{
	int rc = count_queries(t);

	if (rc == 0)
		rc = vv_rank_dedup_priv_agree(t, make_query_room(t));
	if (rc == 0 && t->batch.n_queries)
		memcpy(t->queries.out, t->batch.query, t->batch.n_queries * sizeof(struct vv_digest));
	if (rc == 0)
		rc = send_all(t, &t->queries);
	for (size_t i = 0; rc == 0 && i < t->queries.in_sum / sizeof(struct vv_digest); i++) {
		struct vv_owner_index_answer place;
		struct vv_digest d;

		memcpy(&d, t->queries.in + i * sizeof(d), sizeof(d));
		place = locate_stored(t->p, &d);
		memcpy(t->answers.out + i * sizeof(place), &place, sizeof(place));
	}
	if (rc == 0)
		rc = send_all(t, &t->answers);
	return rc ? rc : vv_owner_batch_answer(&t->batch, t->answers.in, t->answers.in_sum);
}

/* ---- exact: M4, M5, M6 ----------------------------------------------------------------------- */

static int send_decisions(struct vv_rank_dedup_priv *t, int rc, uint64_t *shared)
{
	uint32_t *decision = (uint32_t *)t->decisions.out;

	if (rc == 0)
		rc = vv_owner_batch_decide(&t->batch, t->g->host, t->g->copies, decision);
	*shared = rc ? 0 : vv_owner_index_count_words(decision, t->batch.n, t->g->copies);
	rc = vv_rank_dedup_priv_sum(t, rc, shared, 1);
	if (rc == 0)
		rc = send_all(t, &t->decisions);
	return rc ? rc : vv_owner_index_check((uint32_t *)t->decisions.in, t->p->claims->n, t->g->rank, t->g->size);
}

/* Memory for positions that this rank promised, sent to the home ranks that decided. Memory for
 * positions promised to this home rank, sent to the ranks that refer to them. */
static int make_place_room(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->decisions.in, *gave = (const uint32_t *)t->decisions.out;
	uint32_t size = t->g->size, copies = t->g->copies;
	int rc = vv_exchange_new(&t->shared_positions, size, vv_owner_index_count_shared(got, t->p->claims->n) * sizeof(uint64_t));

	if (rc == 0)
		rc = vv_exchange_new(&t->locations, size, vv_owner_index_count_words(gave, t->batch.n, copies) * sizeof(uint64_t));
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		size_t n_got = (size_t)(t->decisions.in_len[r] / sizeof(uint32_t)), n_gave = (size_t)(t->decisions.out_len[r] / sizeof(uint32_t));

		t->shared_positions.out_len[r] = vv_owner_index_count_shared(got, n_got) * sizeof(uint64_t);
		t->shared_positions.in_len[r] = vv_owner_index_count_shared(gave, n_gave) * sizeof(uint64_t);
		t->locations.in_len[r] = vv_owner_index_count_words(got, n_got, copies) * sizeof(uint64_t);
		t->locations.out_len[r] = vv_owner_index_count_words(gave, n_gave, copies) * sizeof(uint64_t);
		got += n_got;
		gave += n_gave;
	}
	if (rc == 0)
		rc = vv_exchange_alloc_in(&t->shared_positions, size, sizeof(uint64_t));
	return rc ? rc : vv_exchange_alloc_in(&t->locations, size, sizeof(uint64_t));
}

static int send_shared_positions(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->decisions.in;
	uint64_t *pos = (uint64_t *)t->shared_positions.out;
	int rc;

	for (size_t k = 0; k < t->p->claims->n; k++)
		if (vv_owner_index_kind(got[k]) == VV_OWNER_INDEX_STORE_SHARED)
			*pos++ = t->p->claims->pos[t->order[k]];
	rc = send_all(t, &t->shared_positions);
	return rc ? rc : vv_owner_batch_set_positions(&t->batch, t->shared_positions.in, t->shared_positions.in_len);
}

/* A home rank that received invalid positions sends no valid locations, and reports the error at
 * the next agreement. */
static int send_where(struct vv_rank_dedup_priv *t, int rc)
{
	int sent;

	if (rc == 0)
		vv_owner_batch_get_locations(&t->batch, (uint64_t *)t->locations.out);
	sent = send_all(t, &t->locations);
	return rc ? rc : sent;
}

/* ---- exact: results -------------------------------------------------------------------------- */

/* Before positions are promised: marks shared claims, and claims of other ranks, which get no
 * position. */
static int note_decisions(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->decisions.in;
	struct vv_claims *c = t->p->claims;

	for (size_t k = 0; k < c->n; k++) {
		enum vv_owner_index_kind kind = vv_owner_index_kind(got[k]);

		if (kind == VV_OWNER_INDEX_STORE_SHARED)
			vv_rank_dedup_priv_mark_shared(t->p, t->order[k]);
		else if (kind != VV_OWNER_INDEX_STORE)
			c->state[t->order[k]] = VV_CLAIM_REMOTE;
	}
	return t->assign_positions(t->p);
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
	struct vv_index *x = &t->p->v->index_cache->index;
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
			rc = vv_rank_dedup_priv_mark_remote(t->p, old[i].claim, source, old[i].pos);
	}
	return rc;
}

/* Records content that is stored here and elsewhere too. */
static int note_copies(struct vv_layer_writer *p, size_t claim, const uint64_t *copy, unsigned n)
{
	const struct vv_claims *c = p->claims;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++)
		if (copy[i] != VV_OWNER_INDEX_NO_COPY && copy[i] / VV_OWNER_INDEX_POS_MAX != p->v->ctx.rank)
			rc = vv_copies_section_add(&p->copies, &(struct vv_copy){ .pos = c->pos[claim],
									  .len = vv_owner_index_tag_len(c->tag[claim]),
									  .at = copy[i] % VV_OWNER_INDEX_POS_MAX,
									  .rank = (uint32_t)(copy[i] / VV_OWNER_INDEX_POS_MAX) });
	return rc;
}

/* Every claim that another rank stores gets its location. */
static int apply_where(struct vv_rank_dedup_priv *t)
{
	const uint32_t *got = (const uint32_t *)t->decisions.in;
	const uint64_t *word = (const uint64_t *)t->locations.in;
	struct vv_index *x = &t->p->v->index_cache->index;
	size_t n = t->p->claims->n, at = 0, n_old = 0;
	uint64_t *source = vv_mem_new(t->g->size, sizeof(*source)); /* 1 + its number */
	struct old_ref *old = vv_mem_new(n, sizeof(*old));
	int rc = source && old ? 0 : VV_ENOMEM;

	for (size_t k = 0; rc == 0 && k < n; k++) {
		uint32_t rank = vv_owner_index_rank(got[k]);
		struct vv_owner_index_location where;

		rc = vv_owner_index_next_location(word, &at, got[k], t->g->size, t->g->copies, &where);
		if (rc == 0 && vv_owner_index_kind(got[k]) == VV_OWNER_INDEX_REMOTE_OLD)
			old[n_old++] = (struct old_ref){ where.layer, where.pos, t->order[k] };
		if (rc == 0 && vv_owner_index_kind(got[k]) == VV_OWNER_INDEX_STORE_SHARED && where.copy)
			rc = note_copies(t->p, t->order[k], where.copy, t->g->copies - 1);
		if (rc || vv_owner_index_kind(got[k]) != VV_OWNER_INDEX_REMOTE)
			continue;
		if (!source[rank]) {
			rc = vv_index_source(x, vv_run_layer(t->p->epoch, rank), &source[rank]);
			source[rank]++;
		}
		if (rc == 0)
			rc = vv_rank_dedup_priv_mark_remote(t->p, t->order[k], source[rank] - 1, where.pos);
	}
	if (rc == 0)
		rc = apply_old(t, old, n_old);
	vv_copies_section_sort(&t->p->copies);
	vv_mem_free(source);
	vv_mem_free(old);
	return rc;
}

static int open_batch(struct vv_rank_dedup_priv *t, bool old)
{
	uint64_t queries;
	int rc;

	t->sums = vv_mem_new(t->g->size, sizeof(*t->sums));
	rc = t->sums ? vv_owner_batch_open(&t->batch, &t->g->owners, t->g->size, t->claims.in, t->claims.in_len) : VV_ENOMEM;
	if (!old)
		return rc;
	if (rc == 0)
		rc = vv_owner_batch_queries(&t->batch, t->sums);
	queries = t->batch.n_queries;
	rc = vv_rank_dedup_priv_sum(t, rc, &queries, 1);
	return rc == 0 && queries ? ask_old_owners(t) : rc;
}

static int exact(struct vv_rank_dedup_priv *t)
{
	uint64_t shared = 0, old = 0;
	int rc;

	vv_owner_index_set_cap(&t->g->owners, vv_index_limit_owner_entries(t->p->v));
	rc = send_claims(t, &old);
	vv_test_point("claimed");
	if (rc == 0)
		rc = open_batch(t, old);
	vv_test_point("judged");
	if (!t->failed)
		rc = send_decisions(t, rc, &shared);
	if (!t->failed && shared) {
		rc = rc ? rc : note_decisions(t);
		rc = vv_rank_dedup_priv_agree(t, rc ? rc : make_place_room(t));
	}
	if (rc == 0 && shared)
		rc = send_shared_positions(t);
	vv_test_point("promised");
	if (!t->failed && shared)
		rc = send_where(t, rc);
	if (rc == 0 && shared)
		rc = apply_where(t);
	return vv_rank_dedup_priv_agree(t, rc);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void epoch_free(struct vv_rank_dedup_priv *t)
{
	if (!t)
		return;
	vv_owner_batch_close(&t->batch);
	vv_exchange_free(&t->counts, t->g);
	vv_exchange_free(&t->known, t->g);
	vv_exchange_free(&t->claims, t->g);
	vv_exchange_free(&t->queries, t->g);
	vv_exchange_free(&t->answers, t->g);
	vv_exchange_free(&t->decisions, t->g);
	vv_exchange_free(&t->shared_positions, t->g);
	vv_exchange_free(&t->locations, t->g);
	vv_mem_free(t->order);
	vv_mem_free(t->sums);
	vv_mem_free(t);
}

struct vv_comm *vv_rank_dedup_comm(const struct varve *v)
{
	return v->ctx.group->threaded && v->ctx.async ? v->ctx.group->side : v->ctx.group->comm;
}

int vv_rank_dedup_exchange(struct vv_layer_writer *p, int rc, int (*promise)(struct vv_layer_writer *p))
{
	struct vv_group *g = p->v->ctx.group;
	struct vv_comm *comm = vv_rank_dedup_comm(p->v);
	uint64_t start = vv_clock_ns(), waited;
	bool silent = !p->v->ctx.dedup || g->dedup == VV_GROUP_NONE || g->size == 1;
	struct vv_rank_dedup_priv *t = silent || rc ? NULL : vv_mem_new(1, sizeof(*t));

	if (!t && !silent && rc == 0)
		rc = VV_ENOMEM;
	if (t) {
		*t = (struct vv_rank_dedup_priv){ .g = g, .comm = comm, .p = p, .assign_positions = promise };
		rc = g->dedup == VV_GROUP_EXACT ? prepare(t) : 0;
	}
	vv_test_point("surveyed");
	waited = vv_clock_ns();
	rc = vv_group_agree(g, comm, rc);
	waited = vv_clock_ns() - waited; /* for the slowest rank: not part of the stage */
	if (rc || silent) {
		epoch_free(t);
		return rc;
	}
	g->dedup_epoch = t;
	rc = g->dedup == VV_GROUP_TOPK ? vv_rank_dedup_topk_exchange(t) : exact(t);
	if (rc == 0) {
		p->st.bytes_lent = p->claims->shared_bytes;
		p->st.seconds_ranks = (double)(vv_clock_ns() - start - waited) / 1e9;
	}
	return rc;
}

void vv_rank_dedup_commit(struct varve *v)
{
	struct vv_rank_dedup_priv *t = v->ctx.group->dedup_epoch;

	if (t && t->batch.n)
		vv_owner_batch_commit(&t->batch);
	vv_rank_dedup_discard(v);
}

void vv_rank_dedup_discard(struct varve *v)
{
	epoch_free(v->ctx.group->dedup_epoch);
	v->ctx.group->dedup_epoch = NULL;
}
