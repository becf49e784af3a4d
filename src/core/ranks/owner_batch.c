/* Grouping the claims is the hot loop. It is bound by cache misses, so it takes claims in batches.
 * For a whole batch at once it prefetches the slots of the hash, then the groups named by the
 * slots. */
#include "core/ranks/owner_batch.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/ranks/owner_batch_priv.h"
#include "core/ranks/owner_choice.h"
#include <string.h>

_Static_assert(sizeof(struct vv_owner_batch_group) == 32, "two groups in a cache line");

enum { AHEAD = 16, BATCH = 64 };

/* ---- open */

struct owner_batch_claim {
	struct vv_digest digest;
	uint32_t tag, rank;
};

struct grouping {
	struct vv_owner_batch *c;
	uint64_t *slot; /* half of a digest << 32 | group + 1; 0 = empty */
	size_t mask;
	uint32_t rank; /* the rank whose claims are read */
	size_t next;   /* the next claim */
};

static int check_lengths(struct vv_owner_batch *c, const uint64_t *len)
{
	c->first[0] = 0;
	for (uint32_t r = 0; r < c->ranks; r++) {
		uint64_t n = len[r] / VV_OWNER_INDEX_CLAIM;

		if (len[r] % VV_OWNER_INDEX_CLAIM || n >= UINT32_MAX - c->first[r])
			return vv_err_set(VV_EPEER, "rank %u sent claims of %llu bytes, which is no number of claims that can be", r,
					  (unsigned long long)len[r]);
		c->first[r + 1] = c->first[r] + n;
	}
	c->n = c->first[c->ranks];
	return 0;
}

static int read_claim(struct grouping *g, struct owner_batch_claim *out)
{
	const struct vv_owner_batch *c = g->c;
	const uint8_t *message;
	size_t i, n;

	while (g->next >= c->first[g->rank + 1])
		g->rank++;
	message = c->claims + c->first[g->rank] * VV_OWNER_INDEX_CLAIM;
	n = c->first[g->rank + 1] - c->first[g->rank];
	i = g->next++ - c->first[g->rank];
	memcpy(&out->digest, message + i * sizeof(out->digest), sizeof(out->digest));
	memcpy(&out->tag, message + n * sizeof(out->digest) + i * sizeof(out->tag), sizeof(out->tag));
	out->rank = g->rank;
	if (vv_owner_index_tag_len(out->tag) - 1 >= VV_OWNER_INDEX_LEN_MAX)
		return vv_err_set(VV_EPEER, "rank %u claims a chunk of %u bytes", out->rank, vv_owner_index_tag_len(out->tag));
	return 0;
}

static int put_claim(struct grouping *g, size_t number, const struct owner_batch_claim *claim)
{
	struct vv_owner_batch *c = g->c;
	uint64_t half = claim->digest.w[1] >> 32;
	size_t i = (size_t)claim->digest.w[1] & g->mask;
	struct vv_owner_batch_group *group;

	for (; g->slot[i]; i = (i + 1) & g->mask) {
		if (g->slot[i] >> 32 != half)
			continue;
		group = &c->group[(uint32_t)g->slot[i] - 1];
		if (!vv_digest_equal(&group->digest, &claim->digest))
			continue;
		if (vv_owner_index_tag_len(group->tag) != vv_owner_index_tag_len(claim->tag))
			return vv_err_set(VV_EPEER, "ranks %u and %u claim the same digest for chunks of %u and %u bytes", group->rank,
					  claim->rank, vv_owner_index_tag_len(group->tag), vv_owner_index_tag_len(claim->tag));
		group->n += group->rank != claim->rank;
		group->rank = claim->rank;
		c->group_of[number] = (uint32_t)g->slot[i] - 1;
		return 0;
	}
	g->slot[i] = half << 32 | (c->n_groups + 1);
	c->group_of[number] = (uint32_t)c->n_groups;
	c->group[c->n_groups++] = (struct vv_owner_batch_group){ claim->digest, claim->tag, 1, claim->rank, 0 };
	return 0;
}

/* A group that the claim may belong to, or any other group if it has none yet. */
static const struct vv_owner_batch_group *likely_group(const struct grouping *g, const struct owner_batch_claim *claim)
{
	uint32_t number = (uint32_t)g->slot[claim->digest.w[1] & g->mask];

	return &g->c->group[number ? number - 1 : 0];
}

static int group_claims(struct grouping *g)
{
	struct owner_batch_claim batch[BATCH];
	size_t n;
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < g->c->n; k += n) {
		n = g->c->n - k < BATCH ? g->c->n - k : BATCH;
		for (size_t i = 0; rc == 0 && i < n; i++)
			rc = read_claim(g, &batch[i]);
		if (rc)
			break;
		for (size_t i = 0; i < n; i++)
			vv_owner_index_load(&g->slot[batch[i].digest.w[1] & g->mask]);
		for (size_t i = 0; i < n; i++)
			vv_owner_index_load(likely_group(g, &batch[i]));
		for (size_t i = 0; rc == 0 && i < n; i++)
			rc = put_claim(g, k + i, &batch[i]);
	}
	return rc;
}

/* Lists the ranks of every group that has several, ascending. */
static int list_holders(struct vv_owner_batch *c)
{
	size_t sum = 0;

	for (size_t i = 0; i < c->n_groups; i++)
		if (c->group[i].n > 1) {
			c->group[i].at = (uint32_t)sum;
			c->group[i].rank = VV_OWNER_INDEX_NOBODY;
			sum += c->group[i].n;
		}
	c->holder = vv_mem_grow(NULL, sum + 1, sizeof(*c->holder));
	if (!c->holder)
		return VV_ENOMEM;
	for (uint32_t r = 0; sum && r < c->ranks; r++)
		for (size_t k = c->first[r]; k < c->first[r + 1]; k++) {
			struct vv_owner_batch_group *g = &c->group[c->group_of[k]];

			if (k + AHEAD < c->n)
				vv_owner_index_load(&c->group[c->group_of[k + AHEAD]]);
			if (g->n > 1 && g->rank != r) {
				c->holder[g->at++] = r;
				g->rank = r;
			}
		}
	return 0;
}

static int group_all_claims(struct vv_owner_batch *c, const uint64_t *len)
{
	struct grouping g = { .c = c, .mask = 1023 };
	int rc = check_lengths(c, len);

	if (rc)
		return rc;
	while (g.mask + 1 < 2 * c->n)
		g.mask = g.mask * 2 + 1;
	c->group_of = vv_mem_grow(NULL, c->n + 1, sizeof(*c->group_of));
	c->group = vv_mem_grow(NULL, c->n + 1, sizeof(*c->group));
	c->load = vv_mem_new(c->ranks, sizeof(*c->load));
	g.slot = vv_mem_grow(NULL, g.mask + 1, sizeof(*g.slot));
	if (g.slot) /* new memory that is read before it is written costs two page faults */
		memset(g.slot, 0, (g.mask + 1) * sizeof(*g.slot));
	rc = c->group_of && c->group && c->load && g.slot ? group_claims(&g) : VV_ENOMEM;
	vv_mem_free(g.slot);
	return rc ? rc : list_holders(c);
}

int vv_owner_batch_open(struct vv_owner_batch *c, struct vv_owner_index *j, uint32_t ranks, const void *claims, const uint64_t *len)
{
	int rc = VV_ENOMEM;

	*c = (struct vv_owner_batch){ .owners = j, .ranks = ranks, .claims = claims };
	if (!ranks || ranks > VV_OWNER_INDEX_RANKS_MAX)
		return vv_err_set(VV_EINVAL, "%u ranks; exact dedup is for up to %u", ranks, VV_OWNER_INDEX_RANKS_MAX);
	c->first = vv_mem_new((size_t)ranks + 1, sizeof(*c->first));
	if (c->first)
		rc = group_all_claims(c, len);
	if (rc)
		vv_owner_batch_close(c);
	return rc;
}

void vv_owner_batch_close(struct vv_owner_batch *c)
{
	vv_mem_free(c->first);
	vv_mem_free(c->group);
	vv_mem_free(c->group_of);
	vv_mem_free(c->holder);
	vv_mem_free(c->load);
	vv_mem_free(c->query_owner);
	vv_mem_free(c->query);
	vv_mem_free(c->answer);
	vv_mem_free(c->copy);
	*c = (struct vv_owner_batch){ 0 };
}

/* ---- queries */

static bool claims_it(const struct vv_owner_batch *c, const struct vv_owner_batch_group *g, uint32_t rank)
{
	const uint32_t *h;

	if (g->n == 1)
		return g->rank == rank;
	h = vv_owner_batch_holders(c, g);
	for (uint32_t i = 0; i < g->n && h[i] <= rank; i++)
		if (h[i] == rank)
			return true;
	return false;
}

static void prefetch_batch(const struct vv_owner_batch *c, size_t first)
{
	for (size_t i = first; i < c->n_groups && i < first + BATCH; i++)
		vv_owner_index_prefetch(c->owners, &c->group[i].digest);
}

/* Finds the rank to ask about each group. An owner that claims the content does not have it any
 * more. */
static size_t find_owners(const struct vv_owner_batch *c, uint32_t *owner, uint64_t *n_to)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_groups; i++) {
		const struct vv_owner_batch_group *g = &c->group[i];

		if (i % BATCH == 0)
			prefetch_batch(c, i);
		owner[i] = vv_owner_index_find(c->owners, &g->digest);
		if (owner[i] >= c->ranks || claims_it(c, g, owner[i]))
			owner[i] = VV_OWNER_INDEX_NOBODY;
		else
			n_to[owner[i]]++, n++;
	}
	return n;
}

/* Sorts the queries by owner: a counting sort. */
static int list_queries(struct vv_owner_batch *c, const uint32_t *owner, const uint64_t *n_to)
{
	size_t *next = vv_mem_new(c->ranks, sizeof(*next));

	c->query_owner = vv_mem_new(c->n_queries, sizeof(*c->query_owner));
	c->query = vv_mem_new(c->n_queries, sizeof(*c->query));
	c->answer = vv_mem_new(c->n_queries, sizeof(*c->answer));
	if (!next || !c->query_owner || !c->query || !c->answer) {
		vv_mem_free(next);
		return VV_ENOMEM;
	}
	for (uint32_t r = 1; r < c->ranks; r++)
		next[r] = next[r - 1] + n_to[r - 1];
	for (size_t i = 0; i < c->n_groups; i++) {
		size_t k;

		if (owner[i] == VV_OWNER_INDEX_NOBODY)
			continue;
		k = next[owner[i]]++;
		c->query_owner[k] = (uint64_t)owner[i] << 32 | i;
		c->query[k] = c->group[i].digest;
	}
	vv_mem_free(next);
	return 0;
}

int vv_owner_batch_queries(struct vv_owner_batch *c, uint64_t *n_to)
{
	uint32_t *owner;
	int rc = 0;

	memset(n_to, 0, c->ranks * sizeof(*n_to));
	if (!c->owners->n)
		return 0;
	owner = vv_mem_grow(NULL, c->n_groups + 1, sizeof(*owner));
	if (!owner)
		return VV_ENOMEM;
	c->n_queries = find_owners(c, owner, n_to);
	if (c->n_queries)
		rc = list_queries(c, owner, n_to);
	vv_mem_free(owner);
	return rc;
}

int vv_owner_batch_answer(struct vv_owner_batch *c, const void *answers, uint64_t len)
{
	if (len != c->n_queries * sizeof(*c->answer))
		return vv_err_set(VV_EPEER, "%llu bytes of answers to %zu queries", (unsigned long long)len, c->n_queries);
	if (len)
		memcpy(c->answer, answers, len);
	for (size_t k = 0; k < c->n_queries; k++) {
		struct vv_owner_batch_group *g = &c->group[(uint32_t)c->query_owner[k]];

		if (!c->answer[k].layer) {
			vv_owner_index_forget(c->owners, &g->digest);
			continue;
		}
		if (c->answer[k].pos >= VV_OWNER_INDEX_POS_MAX)
			return vv_err_set(VV_EPEER, "rank %u answers with position %llu, beyond 2^40", (uint32_t)(c->query_owner[k] >> 32),
					  (unsigned long long)c->answer[k].pos);
		*g = (struct vv_owner_batch_group){ g->digest, g->tag, 0, (uint32_t)(c->query_owner[k] >> 32), (uint32_t)k };
	}
	return 0;
}

/* ---- decide */

/* Counts the load that each rank has to store in any case. */
static size_t count_alone(struct vv_owner_batch *c)
{
	size_t shared = 0;

	memset(c->load, 0, c->ranks * sizeof(*c->load));
	for (size_t i = 0; i < c->n_groups; i++) {
		if (c->group[i].n == 1)
			c->load[c->group[i].rank] += vv_owner_index_tag_len(c->group[i].tag);
		shared += c->group[i].n > 1;
	}
	return shared;
}

/* From holders to decisions: the fields of the groups change their meaning here. */
static void make_decisions(struct vv_owner_batch *c)
{
	size_t at = 0;

	for (size_t i = 0; i < c->n_groups; i++) {
		struct vv_owner_batch_group *g = &c->group[i];

		if (g->n < 2) {
			g->tag = g->n ? VV_OWNER_INDEX_STORE : VV_OWNER_INDEX_REMOTE_OLD;
			continue;
		}
		g->tag = VV_OWNER_INDEX_STORE_SHARED;
		g->n = g->rank;
		g->at = (uint32_t)at;
		at += c->copies;
	}
	vv_mem_free(c->holder);
	c->holder = NULL;
}

static uint32_t decision_for(const struct vv_owner_batch *c, const uint32_t *host, const struct vv_owner_batch_group *g, uint32_t rank)
{
	const uint64_t *copy;
	uint32_t named;

	if (g->tag != VV_OWNER_INDEX_STORE_SHARED)
		return vv_owner_index_decision(g->tag, g->rank);
	copy = &c->copy[g->at];
	named = vv_owner_batch_rank_of(copy[rank % g->n]);
	for (uint32_t i = 0; i < g->n; i++) {
		if (vv_owner_batch_rank_of(copy[i]) == rank)
			return vv_owner_index_decision(VV_OWNER_INDEX_STORE_SHARED, rank);
		if (host && host[vv_owner_batch_rank_of(copy[i])] == host[rank])
			named = vv_owner_batch_rank_of(copy[i]);
	}
	return vv_owner_index_decision(VV_OWNER_INDEX_REMOTE, named);
}

int vv_owner_batch_decide(struct vv_owner_batch *c, const uint32_t *host, uint32_t copies, uint32_t *decision)
{
	size_t shared = count_alone(c);

	if (!copies || copies > VV_OWNER_INDEX_COPIES_MAX || shared * copies > UINT32_MAX)
		return vv_err_set(VV_EINVAL, "%u copies of %zu chunks; up to %u copies can be kept", copies, shared, VV_OWNER_INDEX_COPIES_MAX);
	c->copies = copies;
	c->copy = vv_mem_new(shared * copies, sizeof(*c->copy));
	if (!c->copy)
		return VV_ENOMEM;
	vv_owner_choice_choose(c, host, shared);
	make_decisions(c);
	c->decision = decision;
	for (uint32_t r = 0; r < c->ranks; r++)
		for (size_t k = c->first[r]; k < c->first[r + 1]; k++) {
			if (k + AHEAD < c->n)
				vv_owner_index_load(&c->group[c->group_of[k + AHEAD]]);
			decision[k] = decision_for(c, host, &c->group[c->group_of[k]], r);
		}
	return 0;
}

/* ---- shared, where, learn */

static int take_positions(struct vv_owner_batch *c, uint32_t rank, const uint8_t *from)
{
	for (size_t k = c->first[rank]; k < c->first[rank + 1]; k++) {
		const struct vv_owner_batch_group *g = &c->group[c->group_of[k]];
		uint64_t pos, *copy;

		if (vv_owner_index_kind(c->decision[k]) != VV_OWNER_INDEX_STORE_SHARED)
			continue;
		memcpy(&pos, from, sizeof(pos));
		from += sizeof(pos);
		if (pos >= VV_OWNER_INDEX_POS_MAX)
			return vv_err_set(VV_EPEER, "rank %u lends position %llu, beyond 2^40", rank, (unsigned long long)pos);
		copy = &c->copy[g->at];
		while (vv_owner_batch_rank_of(*copy) != rank)
			copy++;
		*copy = rank * VV_OWNER_INDEX_POS_MAX + pos;
	}
	return 0;
}

int vv_owner_batch_set_positions(struct vv_owner_batch *c, const void *lent, const uint64_t *len)
{
	const uint8_t *from = lent;
	int rc = 0;

	for (uint32_t r = 0; rc == 0 && r < c->ranks; r++) {
		size_t n_shared = vv_owner_index_count_shared(&c->decision[c->first[r]], c->first[r + 1] - c->first[r]);

		if (len[r] != n_shared * sizeof(uint64_t))
			return vv_err_set(VV_EPEER, "rank %u sent %llu bytes of positions for %zu chunks that it lends", r,
					  (unsigned long long)len[r], n_shared);
		rc = take_positions(c, r, from);
		from += len[r];
	}
	return rc;
}

/* Writes the position of the copy that the decision names (REMOTE), then the other copies. */
static uint64_t *write_copies(const struct vv_owner_batch *c, const struct vv_owner_batch_group *g, uint32_t decision, uint64_t *word)
{
	uint64_t *others = word + (vv_owner_index_kind(decision) == VV_OWNER_INDEX_REMOTE), *end = others + c->copies - 1;

	for (uint32_t i = 0; i < g->n; i++) {
		uint64_t copy = c->copy[g->at + i];

		if (vv_owner_batch_rank_of(copy) != vv_owner_index_rank(decision))
			*others++ = copy;
		else if (vv_owner_index_kind(decision) == VV_OWNER_INDEX_REMOTE)
			*word = copy % VV_OWNER_INDEX_POS_MAX;
	}
	while (others < end)
		*others++ = VV_OWNER_INDEX_NO_COPY;
	return end;
}

void vv_owner_batch_get_locations(const struct vv_owner_batch *c, uint64_t *word)
{
	for (size_t k = 0; k < c->n; k++) {
		const struct vv_owner_batch_group *g = &c->group[c->group_of[k]];

		if (k + AHEAD < c->n)
			vv_owner_index_load(&c->group[c->group_of[k + AHEAD]]);
		if (g->tag == VV_OWNER_INDEX_REMOTE_OLD) {
			*word++ = c->answer[g->at].layer;
			*word++ = c->answer[g->at].pos;
		} else if (g->tag == VV_OWNER_INDEX_STORE_SHARED) {
			word = write_copies(c, g, c->decision[k], word);
		}
	}
}

void vv_owner_batch_commit(struct vv_owner_batch *c)
{
	vv_owner_index_reserve(c->owners, c->n_groups);
	for (size_t i = 0; i < c->n_groups; i++) {
		const struct vv_owner_batch_group *g = &c->group[i];

		if (i % BATCH == 0)
			prefetch_batch(c, i);
		vv_owner_index_add(c->owners, g->tag == VV_OWNER_INDEX_STORE_SHARED ? vv_owner_batch_rank_of(c->copy[g->at]) : g->rank, &g->digest, 1);
	}
}
