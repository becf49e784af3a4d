#include "engine/ranks/parity_sets.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/parity_file.h"
#include "engine/ranks/parity_match.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- present objects ------------------------------------------------------------------------- */

static int add(struct vv_parity_sets *s, uint64_t layer, uint32_t ranks, uint32_t place)
{
	if (vv_mem_room(&s->v, s->n, &s->cap, sizeof(*s->v)) < 0)
		return VV_ENOMEM;
	s->v[s->n++] = (struct vv_parity_holder){ layer, ranks, place };
	return 0;
}

int vv_parity_sets_add(struct vv_parity_sets *s, const struct vv_listing *l, uint32_t place)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_layers; i++)
		rc = add(s, l->layer[i].layer, 0, place);
	for (size_t i = 0; rc == 0 && i < l->n_parity; i++)
		rc = add(s, l->parity[i].layer, l->parity[i].ranks, place);
	return rc;
}

static int by_object(const void *a, const void *b)
{
	const struct vv_parity_holder *x = a, *y = b;
	uint64_t p = vv_run_epoch(x->layer), q = vv_run_epoch(y->layer);

	if (p != q)
		return p < q ? -1 : 1;
	if (x->ranks != y->ranks)
		return x->ranks < y->ranks ? -1 : 1;
	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

void vv_parity_sets_sort(struct vv_parity_sets *s)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_object);
}

void vv_parity_sets_fini(struct vv_parity_sets *s)
{
	vv_mem_free(s->v);
	vv_mem_free(s->domain);
	vv_mem_free(s->chain);
	*s = (struct vv_parity_sets){ 0 };
}

/* The first holder of the object; s->n if it has none. */
static size_t find(const struct vv_parity_sets *s, uint64_t layer, uint32_t ranks)
{
	struct vv_parity_holder key = { layer, ranks, 0 };
	size_t i;

	VV_SEARCH(i, 0, s->n, by_object(&s->v[i], &key) < 0);
	return i < s->n && s->v[i].layer == layer && s->v[i].ranks == ranks ? i : s->n;
}

bool vv_parity_sets_holds(const struct vv_parity_sets *s, uint64_t layer, uint32_t place)
{
	struct vv_parity_holder key = { layer, 0, place };
	size_t i;

	VV_SEARCH(i, 0, s->n, by_object(&s->v[i], &key) < 0);
	return i < s->n && by_object(&s->v[i], &key) == 0;
}

bool vv_parity_sets_has_layer(const struct vv_parity_sets *s, uint64_t layer)
{
	return find(s, layer, 0) < s->n;
}

static size_t end_of_epoch(const struct vv_parity_sets *s, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, s->n, vv_run_epoch(s->v[i].layer) <= epoch);
	return i;
}

uint32_t vv_parity_sets_epoch(const struct vv_parity_sets *s, uint64_t epoch, size_t *missing)
{
	size_t end = end_of_epoch(s, epoch);
	uint32_t ranks = end && vv_run_epoch(s->v[end - 1].layer) == epoch ? s->v[end - 1].ranks : 0;

	*missing = 0;
	for (uint32_t r = 0; r < ranks; r++)
		*missing += (find(s, vv_run_layer(epoch, r), 0) == s->n) + (find(s, vv_run_layer(epoch, r), ranks) == s->n);
	return ranks;
}

bool vv_parity_sets_is_partial(const struct vv_parity_sets *s, uint64_t from)
{
	size_t missing = 0;

	for (size_t i = end_of_epoch(s, from - 1); i < s->n; i = end_of_epoch(s, vv_run_epoch(s->v[i].layer)))
		if (!vv_parity_sets_epoch(s, vv_run_epoch(s->v[i].layer), &missing) || missing)
			return true;
	return false;
}

uint64_t vv_parity_sets_next(const struct vv_parity_sets *s, uint64_t epoch)
{
	for (size_t i = end_of_epoch(s, epoch); i < s->n; i++)
		if (s->v[i].ranks)
			return vv_run_epoch(s->v[i].layer);
	return 0;
}

/* ---- the sets of an epoch -------------------------------------------------------------------- */

struct loader {
	const struct vv_parity_sets *s;
	struct vv_parity_job *v;
	size_t n, cap;
	bool refusal_logged; /* a set is beyond the limits of this version */
};

static bool is_known(const struct loader *l, const struct vv_parity_head *h)
{
	bool known = false;

	for (size_t i = 0; !known && i < l->n; i++)
		known = vv_parity_head_same(&l->v[i].head, h);
	return known;
}

/* Does the commit record name these layers? */
static bool is_recorded(const struct vv_commit *c, const struct vv_parity_head *h)
{
	bool same = c->n_ranks == h->n_ranks;

	for (size_t i = 0; same && i < h->n_layers; i++)
		same = c->rank[h->layer[i].rank].file_len == h->layer[i].len && vv_digest_equal(&c->rank[h->layer[i].rank].head, &h->layer[i].head);
	return same;
}

/* Once, since each object of the set has the same head. */
static void log_refusal(struct loader *l, uint64_t epoch)
{
	if (!l->refusal_logged)
		vv_log_warn("the parity of epoch %" PRIu64 " is not used: %s", epoch, vv_err_last());
	l->refusal_logged = true;
}

/* Takes ownership of the head. Two sets of an epoch have no layer in common: the first counts. */
static int add_job(struct loader *l, struct vv_parity_head *h, struct vv_parity_job **out)
{
	int rc = vv_mem_room(&l->v, l->n, &l->cap, sizeof(*l->v));
	uint64_t epoch = h->epoch;

	*out = NULL;
	for (size_t i = 0; rc == 0 && i < l->n; i++)
		for (size_t k = 0; k < h->n_layers; k++)
			if (vv_parity_job_find(&l->v[i], h->layer[k].rank) < l->v[i].head.n_layers) {
				vv_parity_head_fini(h);
				return 0;
			}
	if (rc == 0)
		rc = vv_parity_job_init(&l->v[l->n], h);
	if (rc == VV_EINVAL)
		log_refusal(l, epoch);
	if (rc == VV_EDAMAGED || rc == VV_EINVAL)
		rc = 0;
	else if (rc == 0)
		*out = &l->v[l->n++];
	vv_parity_head_fini(h);
	return rc;
}

/* From the first intact object of each set in a store. A set of other layers than the record's is
 * left from a job that wrote the same number. */
static int read_sets(struct loader *l, const struct vv_lineage *lin, uint64_t epoch, uint32_t place, const struct vv_commit *record)
{
	const struct vv_parity_sets *s = l->s;
	int rc = 0;

	for (size_t i = end_of_epoch(s, epoch - 1); rc == 0 && i < s->n && vv_run_epoch(s->v[i].layer) == epoch; i++) {
		uint32_t rank = vv_run_rank(s->v[i].layer);
		struct vv_parity_checks c = { 0 };
		struct vv_parity_head h = { 0 };
		struct vv_parity_job *j = NULL;

		if (!s->v[i].ranks || s->v[i].place != place)
			continue;
		rc = vv_parity_file_head(lin, epoch, rank, s->v[i].ranks, &h);
		if (rc == 0 && (is_known(l, &h) || (record->n_ranks && !is_recorded(record, &h))))
			vv_parity_head_fini(&h);
		else if (rc == 0)
			rc = add_job(l, &h, &j);
		if (rc == 0 && j) {
			rc = vv_parity_file_checks(lin, j, vv_parity_job_find(j, rank), &c);
			j->is_recorded = record->n_ranks != 0;
			if (rc == 0)
				memcpy(j->digest, c.digest, j->head.n_layers * sizeof(*j->digest));
			else
				vv_parity_job_fini(&l->v[--l->n]);
			vv_parity_checks_fini(&c);
		}
		rc = rc == VV_EDAMAGED || rc == VV_ENOENT ? 0 : rc;
	}
	return rc;
}

static int put_sets(const struct loader *l, struct vv_buf *b)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct vv_parity_job *j = &l->v[i];

		vv_wire_put_u64(b, j->is_recorded);
		vv_wire_put_u64(b, j->head_len);
		vv_parity_head_put(&j->head, b);
		vv_buf_add(b, j->digest, j->head.n_layers * sizeof(*j->digest));
	}
	return vv_buf_check(b);
}

/* Adds those of a commit record, or the others. */
static int get_sets(struct loader *l, const uint8_t *p, size_t n, bool recorded)
{
	struct vv_wire w = vv_wire_over(p, n);
	int rc = 0;

	while (rc == 0 && vv_wire_left(&w)) {
		bool counts = (vv_wire_u64(&w) != 0) == recorded;
		uint64_t len = vv_wire_u64(&w);
		const uint8_t *head = vv_wire_bytes(&w, (size_t)len), *digest;
		struct vv_parity_head h = { 0 };
		struct vv_parity_job *j = NULL;
		int64_t got = head ? vv_parity_head_get(&h, head, (size_t)len, len) : 0;

		w.bad |= got != (int64_t)len;
		digest = vv_wire_bytes(&w, h.n_layers * sizeof(struct vv_digest));
		if (got == VV_ENOMEM)
			rc = VV_ENOMEM;
		else if (w.bad)
			rc = vv_err_set(VV_EPEER, "a rank sends a parity set that cannot be");
		if (rc || !counts || is_known(l, &h))
			vv_parity_head_fini(&h);
		else
			rc = add_job(l, &h, &j);
		if (j)
			memcpy(j->digest, digest, j->head.n_layers * sizeof(*j->digest));
	}
	return rc;
}

/* All ranks learn the sets that any rank has read, in the order of the ranks. A rank without the
 * commit record cannot know which sets are out of date. */
static int share_sets(struct loader *mine, int rc, struct loader *out)
{
	enum { MOST = 1 << 28 };
	struct vv_group *g = mine->s->io.group;
	struct vv_exchange m = { 0 };
	struct vv_buf b = { 0 };

	rc = rc ? rc : put_sets(mine, &b);
	rc = vv_exchange_gather(&m, g, rc, b.p, b.n, MOST);
	for (uint32_t r = 0; rc == 0 && r < 2 * g->size; r++) {
		uint32_t from = r % g->size;

		rc = m.in_len[from] ? get_sets(out, vv_exchange_from(&m, g, from), (size_t)m.in_len[from], r < g->size) : 0;
	}
	vv_exchange_free(&m, g);
	vv_buf_fini(&b);
	return vv_group_agree(g, g->comm, rc);
}

static void free_loader(struct loader *l)
{
	for (size_t i = 0; i < l->n; i++)
		vv_parity_job_fini(&l->v[i]);
	vv_mem_free(l->v);
	*l = (struct loader){ 0 };
}

struct locator {
	const struct vv_parity_sets *s;
	struct owner { /* of each rank's layer and parity */
		struct vv_parity_job *job; /* or NULL */
		size_t member;
	} *owner;
	uint32_t ranks;
	size_t first, end; /* the holders of this epoch, */
	uint64_t *match;   /* and how well their objects match */
};

static const struct owner *owner_of(const struct locator *l, const struct vv_parity_holder *h)
{
	static const struct owner none;
	uint32_t rank = vv_run_rank(h->layer);
	const struct owner *o = rank < l->ranks ? &l->owner[rank] : &none;

	return o->job && h->ranks && h->ranks != o->job->head.n_ranks ? &none : o;
}

static int new_locator(struct locator *l, const struct loader *from, uint64_t epoch)
{
	*l = (struct locator){ .s = from->s, .first = end_of_epoch(from->s, epoch - 1), .end = end_of_epoch(from->s, epoch) };
	for (size_t i = 0; i < from->n; i++)
		l->ranks = from->v[i].head.n_ranks > l->ranks ? from->v[i].head.n_ranks : l->ranks;
	l->owner = vv_mem_new(l->ranks, sizeof(*l->owner));
	l->match = vv_mem_new(l->end - l->first, sizeof(*l->match));
	for (size_t i = 0; l->owner && i < from->n; i++)
		for (size_t k = 0; k < from->v[i].head.n_layers; k++)
			l->owner[from->v[i].head.layer[k].rank] = (struct owner){ &from->v[i], k };
	return l->owner && l->match ? 0 : VV_ENOMEM;
}

/* Each process looks at the objects in its own stores, and learns how those of the others match. */
static int look_at_holders(const struct locator *l, int rc)
{
	const struct vv_parity_sets *s = l->s;

	for (size_t i = l->first; rc == 0 && i < l->end; i++) {
		const struct vv_lineage *lin = vv_parity_build_lineage(&s->io, s->v[i].place);
		const struct owner *o = owner_of(l, &s->v[i]);
		enum vv_parity_match match = VV_PARITY_UNSEEN;

		if (lin && o->job)
			rc = vv_parity_match_object(lin, o->job, o->member, s->v[i].ranks != 0, &match);
		l->match[i - l->first] = match;
	}
	if (!s->io.group)
		return rc;
	rc = vv_group_agree(s->io.group, s->io.group->comm, rc);
	return rc || l->first == l->end ? rc : vv_comm_allreduce(s->io.group->comm, l->match, l->end - l->first, VARVE_SUM);
}

const struct vv_parity_chain *vv_parity_sets_chain(const struct vv_parity_sets *s, uint32_t rank)
{
	static const struct vv_parity_chain none = { .place = VV_PARITY_NO_PLACE, .newest = VV_PARITY_NO_PLACE };

	return rank < s->n_chains ? &s->chain[rank] : &none;
}

/* The holder that matches best, or else one whose object may have intact blocks. Of two that match
 * alike, it is the one with the newest layer of the rank: the other one was away since. */
static void locate(struct vv_parity_object *o, const struct vv_parity_chain *c, uint32_t place, uint64_t match)
{
	bool better = match > VV_PARITY_STALE && (match > o->match || (match == o->match && place == c->newest));
	uint64_t worse = better ? o->match : match;

	if (worse == VV_PARITY_STALE || worse == VV_PARITY_DAMAGED) {
		o->has_other = true;
		o->other = better ? o->place : place;
	}
	if (better) {
		o->there = true;
		o->place = place;
		o->match = (uint8_t)match;
	}
	o->continues |= match == VV_PARITY_MATCHES && place == c->place;
}

static int locate_all(struct loader *from, uint64_t epoch)
{
	struct locator l;
	int rc = look_at_holders(&l, new_locator(&l, from, epoch));

	for (size_t i = 0; i < from->n; i++)
		from->v[i].has_digests = true;
	for (size_t i = l.first; rc == 0 && i < l.end; i++) {
		const struct vv_parity_holder *h = &l.s->v[i];
		const struct owner *o = owner_of(&l, h);

		if (o->job)
			locate((h->ranks ? o->job->parity : o->job->data) + o->member, vv_parity_sets_chain(l.s, vv_run_rank(h->layer)), h->place,
			       l.match[i - l.first]);
	}
	vv_mem_free(l.owner);
	if (l.s->io.group) /* the ranks may still read it */
		vv_comm_free(l.s->io.group->comm, l.match);
	else
		vv_mem_free(l.match);
	return rc;
}

/* The first intact commit record of the epoch in a store with objects of it; without ranks:
 * none. */
static int find_record(const struct vv_parity_sets *s, uint64_t epoch, struct vv_commit *out)
{
	uint32_t last_place = VV_PARITY_NO_PLACE;
	int rc = VV_ENOENT;

	for (size_t i = end_of_epoch(s, epoch - 1); i < s->n && vv_run_epoch(s->v[i].layer) == epoch && (rc == VV_ENOENT || rc == VV_EDAMAGED); i++) {
		const struct vv_lineage *lin = s->v[i].place == last_place ? NULL : vv_parity_build_lineage(&s->io, s->v[i].place);

		last_place = s->v[i].place;
		rc = lin ? vv_catalog_commit(lin, epoch, out) : rc;
	}
	if (rc != VV_ENOENT && rc != VV_EDAMAGED)
		return rc;
	vv_err_clear();
	return 0;
}

int vv_parity_sets_load(const struct vv_parity_sets *s, uint64_t epoch, struct vv_parity_job **out, size_t *n)
{
	struct loader mine = { .s = s }, all = { .s = s };
	struct vv_commit record = { 0 };
	uint32_t places = 0;
	int rc = find_record(s, epoch, &record);

	for (size_t i = 0; i < s->n; i++)
		places = s->v[i].place >= places ? s->v[i].place + 1 : places;
	for (uint32_t p = 0; rc == 0 && p < places; p++)
		if (vv_parity_build_lineage(&s->io, p))
			rc = read_sets(&mine, vv_parity_build_lineage(&s->io, p), epoch, p, &record);
	vv_commit_fini(&record);
	if (s->io.group) {
		rc = share_sets(&mine, rc, &all);
		free_loader(&mine);
	} else {
		all = mine;
	}
	if (rc == 0)
		rc = locate_all(&all, epoch);
	if (rc) {
		free_loader(&all);
		return rc;
	}
	*out = all.v;
	*n = all.n;
	return 0;
}

void vv_parity_sets_scheme(unsigned k, unsigned m, char out[VV_PARITY_SCHEME])
{
	if (k == 1 && m == 1)
		snprintf(out, VV_PARITY_SCHEME, "partner");
	else if (m == 1)
		snprintf(out, VV_PARITY_SCHEME, "xor:%u", k + 1);
	else
		snprintf(out, VV_PARITY_SCHEME, "rs:%u+%u", k, m);
}
