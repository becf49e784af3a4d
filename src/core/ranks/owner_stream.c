#include "core/ranks/owner_stream.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <string.h>

struct owner_stream_fresh { /* content that is claimed for the first time in this round */
	uint32_t first;  /* the rank that its segment suggests */
	uint32_t owner;  /* the first of its claimers in the order from there on */
};

struct owner_stream_round {
	struct vv_owner_stream *d;
	const uint8_t **claim; /* of each rank */
	size_t *n;
	size_t all;
	size_t before;       /* entries of earlier rounds */
	struct owner_stream_fresh *fresh; /* entries of this one */
	size_t fresh_cap;
	uint64_t *decision;   /* by claim: STORED; or the number of its entry, FRESH */
};

#define FRESH (1ull << 63)

int vv_owner_stream_init(struct vv_owner_stream *d, uint32_t ranks, size_t limit)
{
	*d = (struct vv_owner_stream){ .ranks = ranks, .limit = limit };
	d->awaited.of = vv_mem_new(ranks, sizeof(*d->awaited.of));
	d->owed.of = vv_mem_new(ranks, sizeof(*d->owed.of));
	d->reply_len = vv_mem_new(ranks, sizeof(*d->reply_len));
	return d->awaited.of && d->owed.of && d->reply_len ? 0 : VV_ENOMEM;
}

void vv_owner_stream_fini(struct vv_owner_stream *d)
{
	vv_index_fini(&d->young);
	vv_index_fini(&d->old);
	vv_mem_free(d->awaited.entry);
	vv_mem_free(d->awaited.of);
	vv_mem_free(d->owed.entry);
	vv_mem_free(d->owed.of);
	vv_mem_free(d->reply);
	vv_mem_free(d->reply_len);
	*d = (struct vv_owner_stream){ 0 };
}

/* ---- the rest of the round before ------------------------------------------------------------ */

static int take_places(struct vv_owner_stream *d, uint32_t rank, const uint32_t *entry, const uint8_t *said)
{
	for (size_t i = 0; i < d->awaited.of[rank]; i++) {
		uint64_t pos;

		memcpy(&pos, said + i * sizeof(pos), sizeof(pos));
		if (pos >= VV_OWNER_INDEX_POS_MAX)
			return vv_err_set(VV_EPEER, "rank %u says that it stored content at %" PRIu64 ", which cannot be", rank, pos);
		vv_index_move(&d->young, entry[i], rank, pos);
	}
	return 0;
}

/* Splits each message into its beginning and its claims. */
static int open_messages(struct owner_stream_round *a, const uint8_t *said, const uint64_t *len)
{
	struct vv_owner_stream *d = a->d;
	const uint32_t *entry = d->awaited.entry;
	int rc = 0;

	d->more = 0;
	for (uint32_t r = 0; rc == 0 && r < d->ranks; said += len[r++]) {
		uint64_t lead = sizeof(uint64_t) * (1 + (uint64_t)d->awaited.of[r]), more;

		if (len[r] < lead || (len[r] - lead) % VV_OWNER_STREAM_CLAIM || (len[r] - lead) / VV_OWNER_STREAM_CLAIM > VV_INDEX_MAX - a->all)
			return vv_err_set(VV_EPEER, "rank %u sends a message of %" PRIu64 " bytes, which cannot be", r, len[r]);
		memcpy(&more, said, sizeof(more));
		d->more += more != 0;
		a->claim[r] = said + lead;
		a->n[r] = (size_t)((len[r] - lead) / VV_OWNER_STREAM_CLAIM);
		a->all += a->n[r];
		rc = take_places(d, r, entry, said + sizeof(more));
		entry = d->awaited.of[r] ? entry + d->awaited.of[r] : entry;
	}
	return rc;
}

static uint64_t place_of(const struct vv_index *x, uint32_t e)
{
	return vv_owner_stream_decision(VV_OWNER_STREAM_STORED, (uint32_t)vv_index_from(x, e), vv_index_pos(x, e));
}

/* Forgets the older half when the limit is reached. */
static void age(struct vv_owner_stream *d)
{
	if (d->young.n < d->limit / 2)
		return;
	vv_index_fini(&d->old);
	d->old = d->young;
	d->young = (struct vv_index){ 0 };
}

/* ---- claims ---------------------------------------------------------------------------------- */

static uint32_t distance(const struct vv_owner_stream *d, uint32_t from, uint32_t rank)
{
	return rank >= from ? rank - from : rank + d->ranks - from;
}

static int take_claim(struct owner_stream_round *a, uint32_t rank, const uint8_t *claim, uint64_t *out)
{
	struct vv_owner_stream *d = a->d;
	struct vv_digest digest;
	uint32_t segment, e;
	struct owner_stream_fresh *f;
	int rc = 0;

	memcpy(&digest, claim, sizeof(digest));
	memcpy(&segment, claim + sizeof(digest), sizeof(segment));
	e = vv_index_find(&d->young, &digest);
	if (e == VV_INDEX_NONE) {
		e = vv_index_find(&d->old, &digest);
		if (e != VV_INDEX_NONE) {
			*out = place_of(&d->old, e);
			return 0;
		}
		rc = vv_index_add_from(&d->young, &digest, rank, 0, &e);
		if (rc == 0)
			rc = vv_mem_room(&a->fresh, e - a->before, &a->fresh_cap, sizeof(*a->fresh));
		if (rc == 0)
			a->fresh[e - a->before] = (struct owner_stream_fresh){ segment % d->ranks, rank };
	} else if (e < a->before) {
		*out = place_of(&d->young, e);
		return 0;
	}
	if (rc)
		return rc;
	f = &a->fresh[e - a->before];
	if (distance(d, f->first, rank) < distance(d, f->first, f->owner))
		f->owner = rank;
	*out = FRESH | e;
	return 0;
}

static int add_due(struct vv_owner_stream_pending *due, uint32_t rank, uint32_t entry)
{
	int rc = vv_mem_room(&due->entry, due->n, &due->cap, sizeof(*due->entry));

	if (rc == 0) {
		due->entry[due->n++] = entry;
		due->of[rank]++;
	}
	return rc;
}

static int decide(struct owner_stream_round *a, uint32_t rank, uint64_t *decision)
{
	struct vv_owner_stream *d = a->d;
	uint32_t e = (uint32_t)*decision, owner;

	if (!(*decision & FRESH))
		return 0;
	owner = a->fresh[e - a->before].owner;
	*decision = vv_owner_stream_decision(owner == rank ? VV_OWNER_STREAM_STORE : VV_OWNER_STREAM_PENDING, owner, 0);
	vv_index_move(&d->young, e, owner, 0);
	return add_due(owner == rank ? &d->awaited : &d->owed, rank, e);
}

static int decide_claims(struct owner_stream_round *a)
{
	struct vv_owner_stream *d = a->d;
	uint64_t *v = a->decision;
	int rc = 0;

	a->before = d->young.n;
	for (uint32_t r = 0; rc == 0 && r < d->ranks; r++)
		for (size_t i = 0; rc == 0 && i < a->n[r]; i++)
			rc = take_claim(a, r, a->claim[r] + i * VV_OWNER_STREAM_CLAIM, v++);
	d->awaited.n = d->owed.n = 0;
	memset(d->awaited.of, 0, d->ranks * sizeof(*d->awaited.of));
	memset(d->owed.of, 0, d->ranks * sizeof(*d->owed.of));
	v = a->decision;
	for (uint32_t r = 0; rc == 0 && r < d->ranks; r++)
		for (size_t i = 0; rc == 0 && i < a->n[r]; i++)
			rc = decide(a, r, v++);
	return rc;
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Writes the places owed to each rank, then leaves room for the decisions on its claims, which
 * begin at *at of each. */
static int begin_replies(struct owner_stream_round *a, size_t *at)
{
	struct vv_owner_stream *d = a->d;
	const uint32_t *entry = d->owed.entry;
	size_t n = 0;

	if (a->all + d->owed.n > d->replies_cap) {
		uint64_t *reply = vv_mem_grow(d->reply, a->all + d->owed.n, sizeof(*reply));

		if (!reply)
			return VV_ENOMEM;
		d->reply = reply;
		d->replies_cap = a->all + d->owed.n;
	}
	for (uint32_t r = 0; r < d->ranks; r++) {
		for (size_t i = 0; i < d->owed.of[r]; i++)
			d->reply[n++] = place_of(&d->young, *entry++);
		at[r] = n;
		n += a->n[r];
		d->reply_len[r] = (d->owed.of[r] + a->n[r]) * sizeof(*d->reply);
	}
	return 0;
}

int vv_owner_stream_run(struct vv_owner_stream *d, const uint8_t *said, const uint64_t *len)
{
	struct owner_stream_round a = { .d = d };
	size_t *at = vv_mem_new(d->ranks, sizeof(*at));
	int rc;

	a.claim = vv_mem_new(d->ranks, sizeof(*a.claim));
	a.n = vv_mem_new(d->ranks, sizeof(*a.n));
	rc = at && a.claim && a.n ? open_messages(&a, said, len) : VV_ENOMEM;
	if (rc == 0)
		rc = begin_replies(&a, at);
	if (rc == 0)
		age(d);
	a.decision = rc ? NULL : vv_mem_new(a.all, sizeof(*a.decision));
	if (rc == 0)
		rc = a.decision ? decide_claims(&a) : VV_ENOMEM;
	for (size_t r = 0, from = 0; rc == 0 && r < d->ranks; from += a.n[r++])
		if (a.n[r])
			memcpy(d->reply + at[r], a.decision + from, a.n[r] * sizeof(*a.decision));
	vv_mem_free(at);
	vv_mem_free(a.claim);
	vv_mem_free(a.n);
	vv_mem_free(a.fresh);
	vv_mem_free(a.decision);
	return rc;
}
