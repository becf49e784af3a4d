/* Layers of this storage node are read as usual. Other bytes are requested in rounds, which limit
 * the memory. The holders of each layer are known from the lists of the storage nodes. Each rank of
 * a storage node answers a share of its requests. Bad bytes are requested from the next holder of
 * the layer, then looked up in other copies. This ends when all are read or no copy is left. */
#include "engine/ranks/remote_read.h"
#include "engine/threads.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/ranks/request_rounds.h"
#include "engine/ranks/copies_lookup.h"
#include "engine/lineage/provenance.h"
#include "engine/ranks/layer_holders.h"
#include "engine/ranks/remote_serve.h"
#include "engine/read/salvage.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 64 << 20 }; /* bytes that a rank sends or receives in a round, about */

struct flaw { /* of an answer */
	uint64_t off, len;
};

struct slice { /* the requests to one rank */
	size_t first, end, next; /* needs; next: the first need without a request */
	uint64_t bytes, asked;
};

enum vv_remote_reader {
	VV_READ_BY_ALL,      /* all ranks that have it in their store */
	VV_READ_BY_ONE_OF_HOST,
	VV_READ_BY_ONE,
};

struct fetch {
	struct vv_context *ctx;
	struct vv_group *g;
	const struct vv_lineage *lin;
	const struct vv_want *want;
	size_t n;
	bool *copied;
	struct vv_listing here;
	struct vv_layer_holders holders;
	bool knows;              /* the holders are known */
	enum vv_remote_reader by; /* who reads a layer */
	uint64_t oldest;         /* oldest epoch that is needed */
	struct vv_salvage_needs local, remote, bad;
	struct vv_warned warned;
	struct slice *slice;     /* of the round in progress */
};

static int order_number(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

/* Number k, cyclically, of the ranks of one storage node or host. */
static uint32_t pick(const uint32_t *of, uint32_t size, uint32_t which, uint32_t k)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < size; r++)
		n += of[r] == which;
	k %= n;
	for (uint32_t r = 0;; r++)
		if (of[r] == which && k-- == 0)
			return r;
}

/* The rank that reads a layer. */
static uint32_t reader(const struct fetch *f, uint64_t layer)
{
	const struct vv_group *g = f->g;

	if (f->by == VV_READ_BY_ONE)
		return vv_run_rank(layer) % g->size;
	return pick(g->host, g->size, g->host[g->rank], vv_run_rank(layer));
}

static bool is_here(const struct fetch *f, uint64_t layer)
{
	if (f->by)
		return reader(f, layer) == f->g->rank;
	return !f->g->has_local_stores || vv_catalog_has_layer(&f->here, layer);
}

/* ---- this storage node ----------------------------------------------------------------------- */

/* Large pieces are requested in steps, so that rounds are even. */
static int add_remote(struct fetch *f, const struct vv_salvage_need *need)
{
	int rc = 0;

	for (uint64_t at = 0; rc == 0 && at < need->len; at += VV_REMOTE_SERVE_MOST) {
		struct vv_salvage_need part = vv_salvage_part(need, at, at + VV_REMOTE_SERVE_MOST < need->len ? at + VV_REMOTE_SERVE_MOST : need->len);

		rc = vv_salvage_add(&f->remote, &part);
	}
	return rc;
}

static struct vv_salvage_need need_of(const struct vv_want *w, uint32_t number, const struct vv_run *r)
{
	uint64_t from = r->at > w->at ? r->at : w->at, end = w->at + w->len;
	struct vv_salvage_need need = { .layer = r->layer, .pos = r->pos + (from - r->at), .to = w->to + (from - w->at), .want = number };

	need.len = (r->at + r->len < end ? r->at + r->len : end) - from;
	need.home = need.layer;
	need.home_pos = need.pos;
	return need;
}

static int list_here(struct fetch *f)
{
	f->oldest = UINT64_MAX;
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->want[i].runs->n; k++) {
			uint64_t layer = f->want[i].runs->v[k].layer;

			if (layer && vv_run_epoch(layer) < f->oldest)
				f->oldest = vv_run_epoch(layer);
		}
	return f->g->has_local_stores && f->oldest != UINT64_MAX ? vv_catalog_list(f->lin, f->oldest, &f->here) : 0;
}

/* Stretches of the wants in this storage node, and the want of each. */
struct remote_read_stretches {
	struct vv_want *v;
	uint32_t *want;
	size_t n, cap, want_cap;
};

static int begin_stretch(struct remote_read_stretches *s, const struct vv_want *w, const struct vv_salvage_need *first)
{
	if (vv_mem_room(&s->v, s->n, &s->cap, sizeof(*s->v)) < 0 || vv_mem_room(&s->want, s->n, &s->want_cap, sizeof(*s->want)) < 0)
		return VV_ENOMEM;
	s->want[s->n] = first->want;
	s->v[s->n] = *w;
	s->v[s->n].at += (uint64_t)(first->to - w->to);
	s->v[s->n].to = first->to;
	s->v[s->n++].len = 0;
	return 0;
}

static int divide_want(struct fetch *f, uint32_t number, struct remote_read_stretches *out)
{
	const struct vv_want *w = &f->want[number];
	bool open = false;
	int rc = 0;

	for (size_t k = vv_run_find(w->runs, w->at); rc == 0 && k < w->runs->n && w->runs->v[k].at < w->at + w->len; k++) {
		struct vv_salvage_need need = need_of(w, number, &w->runs->v[k]);

		if (need.layer && !is_here(f, need.layer)) {
			open = false;
			rc = add_remote(f, &need);
			continue;
		}
		if (!open)
			rc = begin_stretch(out, w, &need);
		open = true;
		if (rc == 0)
			out->v[out->n - 1].len += need.len;
	}
	return rc;
}

/* After damage: everything is read again, piece by piece. */
static int doubt(struct fetch *f, const struct remote_read_stretches *s)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct vv_want *w = &s->v[i];

		for (size_t k = vv_run_find(w->runs, w->at); rc == 0 && k < w->runs->n && w->runs->v[k].at < w->at + w->len; k++) {
			struct vv_salvage_need need = need_of(w, s->want[i], &w->runs->v[k]);

			if (need.layer == 0)
				vv_mem_zero(need.to, (size_t)need.len);
			else
				rc = vv_salvage_add(&f->local, &need);
		}
	}
	return rc;
}

static int read_here(struct fetch *f)
{
	struct remote_read_stretches s = { 0 };
	int rc = vv_threads_start(f->ctx);

	if (rc == 0)
		rc = list_here(f);
	for (size_t i = 0; rc == 0 && i < f->n; i++)
		rc = divide_want(f, (uint32_t)i, &s);
	if (rc == 0) {
		rc = vv_restore_read(f->lin, f->ctx->pool, s.v, s.n);
		if (vv_salvage_is_damage(rc))
			rc = doubt(f, &s);
	}
	vv_mem_free(s.v);
	vv_mem_free(s.want);
	return rc;
}

static int read_local(struct fetch *f)
{
	int rc = vv_salvage_read(f->lin, &f->local, &f->bad, &f->warned);

	f->local.n = 0;
	return rc;
}

/* ---- other storage nodes: assigning the requests --------------------------------------------- */

/* A rank of the storage node, chosen so that requesting ranks and layers are spread over all of
 * them. */
static uint32_t member(const struct vv_group *g, uint32_t place, uint64_t layer)
{
	return pick(g->storage_node, g->size, place, g->rank + vv_run_rank(layer));
}

static int by_rank(const void *a, const void *b)
{
	const struct vv_salvage_need *x = a, *y = b;

	if (x->rank != y->rank)
		return order_number(x->rank, y->rank);
	return x->layer != y->layer ? order_number(x->layer, y->layer) : order_number(x->pos, y->pos);
}

/* The next other storage node with the layer; NULL: none is left. Without stores of their own,
 * ranks know no holders. */
static const struct vv_holder *next_holder(const struct fetch *f, const struct vv_salvage_need *need, uint32_t *holders_tried)
{
	const struct vv_layer_holders *l = &f->holders;
	size_t first = vv_layer_holders_find(l, need->layer);

	for (size_t h = first + need->holders_tried; h < l->n && l->v[h].layer == need->layer; h++)
		if (l->v[h].storage_node != f->g->storage_node[f->g->rank]) {
			*holders_tried = (uint32_t)(h - first + 1);
			return &l->v[h];
		}
	return NULL;
}

/* Chooses the rank that answers. before: the need before it, often of the same layer; or NULL.
 * False: there is none. */
static bool choose_rank(const struct fetch *f, struct vv_salvage_need *need, const struct vv_salvage_need *before)
{
	const struct vv_holder *h = f->by ? NULL : next_holder(f, need, &need->holders_tried);

	if (f->by)
		need->rank = reader(f, need->layer);
	else if (h && before && before->layer == need->layer && before->holders_tried == need->holders_tried)
		need->rank = before->rank;
	else if (h)
		need->rank = member(f->g, h->storage_node, need->layer);
	return f->by || h;
}

/* Sorts the needs by the ranks that answer them. Needs without a holder are bad. */
static int assign(struct fetch *f)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->remote.n; i++) {
		struct vv_salvage_need need = f->remote.v[i];

		if (choose_rank(f, &need, n ? &f->remote.v[n - 1] : NULL))
			f->remote.v[n++] = need;
		else
			rc = vv_salvage_add(&f->bad, &need);
	}
	f->remote.n = n;
	if (n)
		qsort(f->remote.v, n, sizeof(*f->remote.v), by_rank);
	memset(f->slice, 0, f->g->size * sizeof(*f->slice));
	for (size_t i = 0, end; i < n; i = end) {
		struct slice *s = &f->slice[f->remote.v[i].rank];

		s->first = s->next = i;
		for (end = i; end < n && f->remote.v[end].rank == f->remote.v[i].rank; end++)
			s->bytes += f->remote.v[end].len;
		s->end = end;
	}
	return rc;
}

/* Enough rounds that no rank sends or receives much more than ROUND bytes in one. */
static int count_rounds(struct fetch *f, uint64_t *rounds)
{
	uint32_t size = f->g->size;
	uint64_t *ask = vv_mem_new(size, sizeof(*ask)), *answer = vv_mem_new(size, sizeof(*answer));
	uint64_t sum[2] = { 0 };
	int rc = vv_group_agree(f->g, f->g->comm, ask && answer ? 0 : VV_ENOMEM);

	for (uint32_t r = 0; rc == 0 && r < size; r++)
		ask[r] = f->slice[r].bytes;
	if (rc == 0)
		rc = vv_comm_alltoall(f->g->comm, ask, answer, sizeof(*ask));
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		sum[0] += ask[r];
		sum[1] += answer[r];
	}
	*rounds = (sum[sum[1] > sum[0]] + ROUND - 1) / ROUND;
	if (rc == 0)
		rc = vv_comm_allreduce(f->g->comm, rounds, 1, VARVE_MAX);
	vv_comm_free(f->g->comm, ask);
	vv_comm_free(f->g->comm, answer);
	return rc;
}

/* ---- a round --------------------------------------------------------------------------------- */

struct remote_read_round {
	struct vv_exchange ask, answer, flaws;
	struct vv_salvage_needs bad; /* of this rank's answers */
	/* per rank: the first need requested in this round; slice.next ends them */
	size_t *first;
};

/* Advances the slice over the requests to rank `to` in this round. */
static void choose_requests(struct fetch *f, uint32_t to, uint64_t round, uint64_t rounds)
{
	struct slice *s = &f->slice[to];
	struct vv_request_rounds pair = { .from = f->g->rank, .to = to, .bytes = s->bytes, .rounds = rounds };

	for (; s->next < s->end && vv_request_rounds_is_due(&pair, s->asked, f->remote.v[s->next].len, round); s->next++)
		s->asked += f->remote.v[s->next].len;
}

static int write_requests(struct fetch *f, struct remote_read_round *o, uint64_t round, uint64_t rounds)
{
	struct vv_request *to;
	size_t n = 0;
	int rc;

	o->first = vv_mem_new(f->g->size, sizeof(*o->first));
	if (!o->first)
		return VV_ENOMEM;
	for (uint32_t r = 0; r < f->g->size; r++) {
		struct slice *s = &f->slice[r];

		o->first[r] = s->next;
		choose_requests(f, r, round, rounds);
		n += s->next - o->first[r];
	}
	rc = vv_exchange_new(&o->ask, f->g->size, n * sizeof(*to));
	to = (struct vv_request *)o->ask.out;
	for (uint32_t r = 0; rc == 0 && r < f->g->size; r++) {
		for (size_t i = o->first[r]; i < f->slice[r].next; i++)
			*to++ = (struct vv_request){ f->remote.v[i].layer, f->remote.v[i].pos, f->remote.v[i].len,
						  vv_provenance_token(f->lin, vv_run_epoch(f->remote.v[i].layer)) };
		o->ask.out_len[r] = (f->slice[r].next - o->first[r]) * sizeof(*to);
	}
	return rc;
}

static int answer(struct fetch *f, struct remote_read_round *o)
{
	uint32_t size = f->g->size;
	uint64_t sum = 0, *len = vv_mem_new(size, sizeof(*len));
	int rc = len ? vv_remote_serve_check(&o->ask, size, len) : VV_ENOMEM;

	for (uint32_t r = 0; rc == 0 && r < size; r++)
		sum += len[r];
	if (rc == 0)
		rc = vv_exchange_new(&o->answer, size, (size_t)sum);
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		o->answer.out_len[r] = len[r];
		for (size_t i = o->first[r]; i < f->slice[r].next; i++)
			o->answer.in_len[r] += f->remote.v[i].len;
	}
	if (rc == 0)
		rc = vv_remote_serve_read(f->lin, f->ctx->pool, &o->ask, o->answer.out, &o->bad, &f->warned);
	vv_mem_free(len);
	return rc;
}

static int by_to(const void *a, const void *b)
{
	const struct vv_salvage_need *x = a, *y = b;

	return order_number((uintptr_t)x->to, (uintptr_t)y->to);
}

/* Writes the flaws of each rank's answer, in the offsets of that answer. */
static int write_flaws(struct fetch *f, struct remote_read_round *o)
{
	int rc = vv_exchange_new(&o->flaws, f->g->size, o->bad.n * sizeof(struct flaw));
	struct flaw *to = (struct flaw *)o->flaws.out;
	uint8_t *start = o->answer.out;
	size_t i = 0;

	if (rc)
		return rc;
	if (o->bad.n)
		qsort(o->bad.v, o->bad.n, sizeof(*o->bad.v), by_to);
	for (uint32_t r = 0; r < f->g->size; start += o->answer.out_len[r++])
		for (; i < o->bad.n && o->bad.v[i].to < start + o->answer.out_len[r]; i++) {
			*to++ = (struct flaw){ (uint64_t)(o->bad.v[i].to - start), o->bad.v[i].len };
			o->flaws.out_len[r] += sizeof(*to);
		}
	return 0;
}

/* Takes the answer of one rank, with its flaws, ascending. */
static int take_answer(struct fetch *f, size_t first, size_t end, const uint8_t *p, const struct flaw *w, size_t n)
{
	uint64_t at = 0;
	int rc = 0;

	for (size_t i = first, k = 0; rc == 0 && i < end; at += f->remote.v[i++].len) {
		const struct vv_salvage_need *need = &f->remote.v[i];

		memcpy(need->to, p + at, (size_t)need->len);
		for (; rc == 0 && k < n && w[k].off < at + need->len; k++) {
			uint64_t to = w[k].off - at + w[k].len;
			struct vv_salvage_need bad;

			if (w[k].off < at || w[k].len > need->len || to > need->len)
				return vv_err_set(VV_EPEER, "a rank tells of damage that cannot be");
			bad = vv_salvage_part(need, w[k].off - at, to);
			rc = vv_salvage_add(&f->bad, &bad);
		}
	}
	return rc;
}

static int take_answers(struct fetch *f, struct remote_read_round *o)
{
	const uint8_t *p = o->answer.in;
	const struct flaw *w = (const struct flaw *)o->flaws.in;
	int rc = 0;

	for (uint32_t r = 0; rc == 0 && r < f->g->size; r++) {
		size_t n = o->flaws.in ? (size_t)(o->flaws.in_len[r] / sizeof(*w)) : 0;

		rc = take_answer(f, o->first[r], f->slice[r].next, p, w, n);
		p += o->answer.in_len[r];
		w = n ? w + n : w;
	}
	return rc;
}

static int run_round(struct fetch *f, uint64_t round, uint64_t rounds)
{
	struct remote_read_round o = { 0 };
	uint64_t flaws = 0;
	int rc = vv_exchange_send(&o.ask, f->g, write_requests(f, &o, round, rounds), sizeof(struct vv_request));

	if (rc == 0)
		rc = vv_exchange_reply(&o.answer, f->g, answer(f, &o), 1);
	if (rc == 0) {
		flaws = o.bad.n;
		rc = vv_group_sum(f->g, f->g->comm, 0, &flaws, 1);
	}
	if (rc == 0 && flaws)
		rc = vv_exchange_send(&o.flaws, f->g, write_flaws(f, &o), sizeof(struct flaw));
	if (rc == 0)
		rc = vv_group_agree(f->g, f->g->comm, take_answers(f, &o));
	vv_exchange_free(&o.ask, f->g);
	vv_exchange_free(&o.answer, f->g);
	vv_exchange_free(&o.flaws, f->g);
	vv_salvage_fini(&o.bad);
	vv_mem_free(o.first);
	return rc;
}

/* All ranks call it together. In one store for all ranks, each of them holds every layer. */
static int learn_holders(struct fetch *f)
{
	int rc = 0;

	if (f->g->has_local_stores && !f->knows)
		rc = vv_layer_holders_exchange(f->g, 0, f->lin, f->oldest, &f->holders);
	f->knows = true;
	return rc;
}

static int read_remote(struct fetch *f)
{
	uint64_t rounds = 0;
	int rc = learn_holders(f);

	if (rc == 0 && !f->slice) {
		f->slice = vv_mem_new(f->g->size, sizeof(*f->slice));
		rc = vv_group_agree(f->g, f->g->comm, f->slice ? 0 : VV_ENOMEM);
	}
	if (rc == 0)
		rc = vv_group_agree(f->g, f->g->comm, assign(f));
	if (rc == 0)
		rc = count_rounds(f, &rounds);
	for (uint64_t k = 0; rc == 0 && k < rounds; k++)
		rc = run_round(f, k, rounds);
	f->remote.n = 0;
	return rc;
}

/* ---- other copies ---------------------------------------------------------------------------- */

static int err_no_copy(const struct vv_salvage_need *need)
{
	return vv_err_set(VV_EDAMAGED, "bytes of the layer of rank %u in epoch %" PRIu64 " are missing or damaged, and no rank's store has "
			  "another copy; bring that rank's store back, or restart from an older epoch",
			  vv_run_rank(need->home), vv_run_epoch(need->home));
}

/* Bad bytes are requested from the next holder of their layer, if there is one. */
static int try_holders(struct fetch *f)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->bad.n; i++) {
		uint32_t holders_tried;

		if (next_holder(f, &f->bad.v[i], &holders_tried))
			rc = add_remote(f, &f->bad.v[i]);
		else
			f->bad.v[n++] = f->bad.v[i];
	}
	f->bad.n = n;
	return rc;
}

/* Bad bytes are requested from the next layer that has a copy. */
static int try_next(struct fetch *f, const struct vv_copies_lookup *a)
{
	struct vv_salvage_needs todo = f->bad;
	int rc = 0;

	f->bad = (struct vv_salvage_needs){ 0 };
	for (size_t i = 0; rc == 0 && i < todo.n; i++)
		for (uint64_t at = 0; rc == 0 && at < todo.v[i].len;) {
			struct vv_salvage_need need = vv_salvage_part(&todo.v[i], at, todo.v[i].len);
			const struct vv_other_copy *x = vv_copies_lookup_find(a, need.home, need.home_pos, need.copies_tried);

			if (!x) {
				rc = err_no_copy(&need);
				break;
			}
			if (x->pos + x->len - need.home_pos < need.len)
				need.len = x->pos + x->len - need.home_pos;
			need.layer = x->layer;
			need.pos = x->at + (need.home_pos - x->pos);
			need.copies_tried++;
			need.holders_tried = 0;
			f->copied[need.want] = true;
			rc = is_here(f, need.layer) ? vv_salvage_add(&f->local, &need) : add_remote(f, &need);
			at += need.len;
		}
	vv_salvage_fini(&todo);
	return rc;
}

static int try_copies(struct fetch *f)
{
	int rc = learn_holders(f);
	struct vv_copies_lookup a = { 0 };
	uint64_t *home;

	if (rc == 0)
		rc = try_holders(f);
	home = vv_mem_new(f->bad.n, sizeof(*home));
	rc = rc || home ? rc : VV_ENOMEM;
	for (size_t i = 0; home && i < f->bad.n; i++)
		home[i] = f->bad.v[i].home;
	rc = vv_copies_lookup_exchange(f->g, rc, f->lin, home, f->bad.n, &a, &f->warned);
	vv_mem_free(home);
	if (rc == 0)
		rc = try_next(f, &a);
	vv_copies_lookup_fini(&a);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Bytes that any rank could not reach may be intact. The code is the same on all ranks. */
static int blame_outage(struct fetch *f, int rc)
{
	struct vv_err_state error;
	int outage;

	if (rc != VV_EDAMAGED)
		return rc;
	vv_err_save(rc, &error);
	outage = vv_group_agree(f->g, f->g->comm, f->warned.outage.code ? vv_err_restore(&f->warned.outage) : 0);
	return outage ? outage : vv_err_restore(&error);
}

static int run(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied, enum vv_remote_reader by)
{
	struct fetch f = { .ctx = ctx, .g = ctx->group, .lin = &ctx->lineage, .want = want, .n = n, .copied = copied, .by = by };

	if (rc == 0)
		rc = read_here(&f);
	for (;;) {
		uint64_t left[2];

		if (rc == 0)
			rc = read_local(&f);
		left[0] = f.remote.n;
		left[1] = f.bad.n;
		rc = vv_group_sum(f.g, f.g->comm, rc, left, 2);
		if (rc || !(left[0] + left[1]))
			break;
		rc = left[0] ? read_remote(&f) : try_copies(&f);
	}
	rc = blame_outage(&f, rc);
	vv_catalog_listing_fini(&f.here);
	vv_layer_holders_fini(&f.holders);
	vv_salvage_fini(&f.local);
	vv_salvage_fini(&f.remote);
	vv_salvage_fini(&f.bad);
	vv_mem_free(f.slice);
	vv_mem_free(f.warned.layer);
	return rc;
}

int vv_remote_read_read(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied)
{
	return run(ctx, rc, want, n, copied, VV_READ_BY_ALL);
}

int vv_remote_read_spread(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied)
{
	return run(ctx, rc, want, n, copied, ctx->group->has_local_stores ? VV_READ_BY_ALL : VV_READ_BY_ONE_OF_HOST);
}

int vv_remote_read_once(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied)
{
	return run(ctx, rc, want, n, copied, ctx->group->has_local_stores ? VV_READ_BY_ALL : VV_READ_BY_ONE);
}
