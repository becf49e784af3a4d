#include "engine/files/rank_handover.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/files/stream_input.h"
#include "engine/files/recipes.h"
#include "engine/ranks/exchange.h"
#include "engine/files/handover_message.h"
#include "engine/files/pack_buffer.h"
#include "engine/write/trust.h"
#include <stdlib.h>
#include <string.h>

enum {
	STRETCH = VV_RECIPES_INTERLEAVE_MEMORY,
	/* received memory takes at most this fraction of the free memory: one part in eight */
	SHARE = 8,
};

struct rank_handover_page {
	struct vv_digest digest;
	uint32_t len;
	bool zero;
};

struct rank_handover_stretch { /* a stretch of this rank's files, and the member that places it */
	struct vv_file_span span;
	uint32_t to; /* index of the member */
	struct rank_handover_page *page; /* its pages, if the member is another rank */
	size_t n, cap;
};

/* a reported position; numbers are in the byte order of this machine, which all ranks share */
struct notice {
	uint64_t file;
	struct vv_run run;
};

struct vv_rank_handover {
	struct vv_layer_writer *p;
	struct vv_group *g;
	struct vv_file_set *file_set;
	struct vv_rank_handover_options opt;
	/* ranks, ascending; this one is member[self] */
	uint32_t member[VV_RANK_HANDOVER_RANKS], n_members, self;
	uint64_t most; /* bytes that this rank may hand over */
	struct rank_handover_stretch *stretch;
	size_t n_stretches, stretches_cap;
	pthread_mutex_t lock;
	struct vv_err_state error; /* of the first stretch that failed */
	struct vv_file_span *rest; /* spans that are not handed over */
	size_t n_rest, rest_cap;
	struct vv_handover_messages handed[VV_RANK_HANDOVER_RANKS]; /* to each member */
	/* counters of the bytes that each member handed over */
	struct varve_stats counts[VV_RANK_HANDOVER_RANKS];
	struct vv_exchange messages; /* sent and received ones */
	size_t n_own;        /* files of this rank */
	struct file_owner {
		uint32_t member, file;
	} *remote_file; /* of each file behind the own ones */
	size_t n_remote_files, remote_files_cap;
};

/* ---- members --------------------------------------------------------------------------------- */

/* Forms groups of eight ranks of one host. Returns whether any rank shares its host; the result is
 * the same on all ranks. */
static bool find_members(struct vv_rank_handover *s)
{
	const struct vv_group *g = s->g;
	uint32_t before = 0, i = 0;
	bool company = false;

	for (uint32_t r = 0; r < g->size; r++) {
		company |= g->host[r] != r;
		before += r < g->rank && g->host[r] == g->host[g->rank];
	}
	for (uint32_t r = 0; r < g->size; r++)
		if (g->host[r] == g->host[g->rank] && i++ / VV_RANK_HANDOVER_RANKS == before / VV_RANK_HANDOVER_RANKS)
			s->member[s->n_members++] = r;
	s->self = before % VV_RANK_HANDOVER_RANKS;
	return company;
}

/* The limit of bytes that each rank hands over, the same on all ranks; 0 if a rank is excluded. */
static int find_most(struct vv_rank_handover *s)
{
	uint64_t free = vv_mem_available();

	s->most = s->opt.excluded ? 0 : free ? free / SHARE / s->n_members : UINT64_MAX;
	return vv_comm_allreduce(s->g->comm, &s->most, 1, VARVE_MIN);
}

/* ---- choice of stretches --------------------------------------------------------------------- */

static int add_stretch(struct vv_rank_handover *s, struct vv_file_span span, uint32_t to)
{
	int rc = vv_mem_room(&s->stretch, s->n_stretches, &s->stretches_cap, sizeof(*s->stretch));

	if (rc == 0)
		s->stretch[s->n_stretches++] = (struct rank_handover_stretch){ .span = span, .to = to };
	return rc;
}

/* Stretches are counted in the memory of one kind of one file; `before`: its bytes before the
 * span. */
static int cut_span(struct vv_rank_handover *s, struct vv_file_span x, uint64_t before)
{
	const struct vv_file_set_kind *k = &s->file_set->kind[x.kind_id];
	uint64_t turn = vv_digest_check(k->key, strlen(k->key)), end = x.at + x.len;
	int rc = 0;

	if (!vv_recipes_can_join_ranks(s->file_set, k))
		return add_stretch(s, x, s->self);
	for (; rc == 0 && x.at < end; x.at += x.len, before += x.len) {
		x.len = STRETCH - before % STRETCH;
		x.len = x.len < end - x.at ? x.len : end - x.at;
		rc = add_stretch(s, x, (uint32_t)((turn + before / STRETCH) % s->n_members));
	}
	return rc;
}

static int cut_spans(struct vv_rank_handover *s)
{
	const struct vv_file_set *c = s->file_set;
	uint64_t *before = vv_mem_new(c->n_kinds, sizeof(*before));
	int rc = before ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < c->n_spans; i++) {
		const struct vv_file_span *x = &c->span[i];

		if (i && x->file != c->span[i - 1].file)
			memset(before, 0, c->n_kinds * sizeof(*before));
		rc = cut_span(s, *x, before[x->kind_id]);
		before[x->kind_id] += x->len;
	}
	vv_mem_free(before);
	return rc;
}

static int look_at(const struct vv_rank_handover *s, struct rank_handover_stretch *x, const uint8_t *bytes)
{
	for (size_t at = 0, n; at < x->span.len; at += n) {
		struct rank_handover_page *page;

		n = vv_file_set_cut(s->file_set, &s->file_set->kind[x->span.kind_id], s->opt.chunk, bytes + at, (size_t)x->span.len - at);
		if (vv_mem_room(&x->page, x->n, &x->cap, sizeof(*x->page)) < 0)
			return VV_ENOMEM;
		page = &x->page[x->n++];
		*page = (struct rank_handover_page){ .len = (uint32_t)n, .zero = vv_pack_buffer_is_zero(bytes + at, n) };
		if (!page->zero)
			s->p->v->ctx.digest(bytes + at, n, &page->digest);
	}
	return 0;
}

static void look(void *arg, size_t i)
{
	struct vv_rank_handover *s = arg;
	struct rank_handover_stretch *x = &s->stretch[i];
	uint8_t *bytes;
	int rc;

	if (x->to == s->self)
		return;
	bytes = vv_mem_map((size_t)x->span.len);
	rc = bytes ? vv_file_set_read(s->file_set, x->span.file, x->span.at, bytes, (size_t)x->span.len) : VV_ENOMEM;
	if (rc == 0)
		rc = look_at(s, x, bytes);
	if (rc) {
		pthread_mutex_lock(&s->lock);
		vv_err_save(rc, &s->error);
		pthread_mutex_unlock(&s->lock);
	}
	vv_mem_unmap(bytes, (size_t)x->span.len);
}

/* This rank refers to known content itself. */
static bool is_known(struct vv_rank_handover *s, const struct rank_handover_page *page)
{
	struct varve *v = s->p->v;
	uint64_t layer, pos;
	uint32_t e;

	if (page->zero)
		return true;
	e = vv_index_find(&v->index_cache->index, &page->digest);
	return (e != VV_INDEX_NONE && vv_trust_check_entry(&v->ctx.lineage, v->index_cache, e)) || vv_other_ranks_index_find(v, s->opt.others, &page->digest, &layer, &pos);
}

static int keep(struct vv_rank_handover *s, struct vv_file_span x)
{
	struct vv_file_span *last = s->n_rest ? &s->rest[s->n_rest - 1] : NULL;
	int rc;

	if (last && last->file == x.file && last->kind_id == x.kind_id && last->at + last->len == x.at) {
		last->len += x.len;
		return 0;
	}
	rc = vv_mem_room(&s->rest, s->n_rest, &s->rest_cap, sizeof(*s->rest));
	if (rc == 0)
		s->rest[s->n_rest++] = x;
	return rc;
}

static int share_out(struct vv_rank_handover *s, const struct rank_handover_stretch *x, uint64_t *sum)
{
	struct vv_file_span part = x->span;
	int rc = 0;

	if (x->to == s->self || s->most - *sum < STRETCH)
		return keep(s, part);
	for (size_t i = 0, n; rc == 0 && i < x->n; i += n, part.at += part.len) {
		bool known = is_known(s, &x->page[i]);

		part.len = x->page[i].len;
		for (n = 1; i + n < x->n && is_known(s, &x->page[i + n]) == known; n++)
			part.len += x->page[i + n].len;
		rc = known ? keep(s, part) : vv_handover_message_add(&s->handed[x->to], (struct vv_handover_message){ part.at, part.len, part.file, part.kind_id });
		*sum += known ? 0 : part.len;
	}
	return rc;
}

/* Chooses the stretches to hand over; the file set keeps the other spans. */
static int choose(struct vv_rank_handover *s)
{
	uint64_t sum = 0;
	int rc = cut_spans(s);

	if (rc == 0)
		vv_pool_each(s->p->v->ctx.pool, s->n_stretches, look, s);
	if (s->error.code)
		rc = vv_err_restore(&s->error);
	for (size_t i = 0; rc == 0 && i < s->n_stretches; i++)
		rc = share_out(s, &s->stretch[i], &sum);
	for (size_t i = 0; i < s->n_stretches; i++)
		vv_mem_free(s->stretch[i].page);
	vv_mem_free(s->stretch);
	s->stretch = NULL;
	if (rc)
		return rc;
	vv_mem_free(s->file_set->span);
	s->file_set->span = s->rest;
	s->file_set->n_spans = s->n_rest;
	s->file_set->spans_cap = s->rest_cap;
	s->rest = NULL;
	return 0;
}

/* ---- handover -------------------------------------------------------------------------------- */

static int write_messages(struct vv_rank_handover *s)
{
	struct vv_buf head[VV_RANK_HANDOVER_RANKS] = { { 0 } };
	size_t sum = 0;
	uint8_t *p;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->n_members; i++) {
		if (s->handed[i].n)
			rc = vv_handover_message_put_head(&s->handed[i], s->file_set, &head[i]);
		sum += head[i].n + vv_handover_message_data_len(&s->handed[i]);
	}
	if (rc == 0)
		rc = vv_exchange_new(&s->messages, s->g->size, sum);
	p = s->messages.out;
	for (uint32_t i = 0; rc == 0 && i < s->n_members; i++) {
		if (!s->handed[i].n)
			continue;
		rc = vv_handover_message_put(&s->handed[i], s->file_set, &head[i], p);
		s->messages.out_len[s->member[i]] = head[i].n + vv_handover_message_data_len(&s->handed[i]);
		p += s->messages.out_len[s->member[i]];
	}
	for (uint32_t i = 0; i < s->n_members; i++)
		vv_buf_fini(&head[i]);
	return rc;
}

static int add_remote_file(struct vv_rank_handover *s, uint32_t member, uint32_t file)
{
	struct vv_file_set *c = s->file_set;

	if (vv_mem_room(&c->file, c->n_files, &c->files_cap, sizeof(*c->file)) < 0 ||
	    vv_mem_room(&s->remote_file, s->n_remote_files, &s->remote_files_cap, sizeof(*s->remote_file)) < 0)
		return VV_ENOMEM;
	c->file[c->n_files++] = (struct vv_file_set_file){ .path = "", .name = "", .fd = -1, .format = "", .other_rank_stats = &s->counts[member] };
	s->remote_file[s->n_remote_files++] = (struct file_owner){ member, file };
	return 0;
}

/* Adds the files of a member behind the present ones. */
static int add_member_files(struct vv_rank_handover *s, uint32_t member, const uint8_t *message, size_t n)
{
	struct vv_handover_messages in = { 0 };
	const uint8_t *bytes = NULL;
	int rc = vv_handover_message_get(&in, s->file_set, s->opt.pack, message, n, &bytes);

	for (size_t i = 0; rc == 0 && i < in.n; bytes += in.v[i++].len) {
		const struct vv_handover_message *x = &in.v[i];

		if (i == 0 || x->file != x[-1].file)
			rc = add_remote_file(s, member, x->file);
		if (rc == 0)
			rc = vv_stream_input_add(s->file_set, (uint32_t)(s->file_set->n_files - 1), x->kind, x->at, bytes, (size_t)x->len);
	}
	vv_mem_free(in.v);
	return rc == VV_EPEER ? vv_err_context(rc, "from rank %u", s->member[member]) : rc;
}

static int refuse_rank(uint32_t rank)
{
	return vv_err_set(VV_EPEER, "rank %u, which is not one of those that hand memory over here, sends a message; nothing was stored, try again", rank);
}

static int read_messages(struct vv_rank_handover *s)
{
	const uint8_t *p = s->messages.in;
	uint32_t member = 0;
	int rc = 0;

	for (uint32_t r = 0; rc == 0 && r < s->g->size; p += s->messages.in_len[r++]) {
		bool is_member = member < s->n_members && s->member[member] == r;

		if (s->messages.in_len[r])
			rc = is_member ? add_member_files(s, member, p, (size_t)s->messages.in_len[r]) : refuse_rank(r);
		member += is_member;
	}
	vv_stream_input_sort(s->file_set);
	return rc;
}

static int exchange(struct vv_rank_handover *s)
{
	int rc = choose(s);

	if (rc == 0)
		rc = write_messages(s);
	rc = vv_exchange_send(&s->messages, s->g, rc, 1);
	if (rc)
		return rc;
	vv_comm_free(s->g->comm, s->messages.out);
	s->messages.out = NULL;
	return read_messages(s);
}

int vv_rank_handover_open(struct vv_layer_writer *p, struct vv_file_set *c, const struct vv_rank_handover_options *opt, int rc, struct vv_rank_handover **out)
{
	struct vv_rank_handover *s = vv_mem_new(1, sizeof(*s));

	*out = NULL;
	rc = vv_group_agree(p->v->ctx.group, p->v->ctx.group->comm, rc ? rc : s ? 0 : VV_ENOMEM);
	if (rc == 0) {
		*s = (struct vv_rank_handover){ .p = p, .g = p->v->ctx.group, .file_set = c, .opt = *opt, .n_own = c->n_files, .lock = PTHREAD_MUTEX_INITIALIZER };
		if (find_members(s))
			rc = find_most(s);
	}
	if (rc == 0 && s->most) {
		*out = s;
		return exchange(s);
	}
	vv_mem_free(s);
	return rc;
}

void vv_rank_handover_close(struct vv_rank_handover *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_members; i++)
		vv_mem_free(s->handed[i].v);
	vv_exchange_free(&s->messages, s->g);
	vv_mem_free(s->rest);
	vv_mem_free(s->remote_file);
	vv_mem_free(s);
}

/* ---- return of positions --------------------------------------------------------------------- */

static int write_notices(struct vv_rank_handover *s, struct vv_exchange *m)
{
	const struct vv_file_set_file *file = s->n_own ? s->file_set->file + s->n_own : s->file_set->file;
	struct notice *to;
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < s->n_remote_files; i++)
		n += file[i].runs.n;
	rc = vv_exchange_new(m, s->g->size, n * sizeof(*to));
	if (rc)
		return rc;
	to = (struct notice *)m->out;
	for (size_t i = 0; i < s->n_remote_files; i++) {
		for (size_t k = 0; k < file[i].runs.n; k++)
			*to++ = (struct notice){ .file = s->remote_file[i].file, .run = file[i].runs.v[k] };
		m->out_len[s->member[s->remote_file[i].member]] += file[i].runs.n * sizeof(*to);
	}
	return 0;
}

static int by_place(const void *one, const void *other)
{
	const struct notice *a = one, *b = other;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->run.at > b->run.at) - (a->run.at < b->run.at);
}

static bool is_place(const struct vv_rank_handover *s, const struct vv_run *run)
{
	if (run->len == 0 || run->layer == 0)
		return run->len && run->pos == 0;
	return vv_run_epoch(run->layer) && vv_run_epoch(run->layer) <= s->p->epoch && run->pos <= VV_MAX_PAYLOAD && run->len <= VV_MAX_PAYLOAD - run->pos;
}

static int take_run(struct vv_rank_handover *s, uint32_t file, const struct vv_run *run, uint64_t len)
{
	struct vv_runs *to = &s->file_set->file[file].runs;
	int rc = vv_mem_room(&to->v, to->n, &to->cap, sizeof(*to->v));

	if (rc == 0)
		to->v[to->n++] = (struct vv_run){ run->at, len, run->layer, run->pos };
	return rc;
}

/* Reads the positions that a member reports. They must cover exactly the memory that it
 * received. */
static int read_notices(struct vv_rank_handover *s, const struct vv_handover_messages *handed, struct notice *v, size_t n)
{
	uint64_t used = 0; /* bytes of message k */
	size_t k = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		if (!is_place(s, &v[i].run))
			return VV_EPEER;
	if (n)
		qsort(v, n, sizeof(*v), by_place);
	for (size_t i = 0; rc == 0 && i < n;) {
		const struct vv_handover_message *x = &handed->v[k];
		struct vv_run *run = &v[i].run;
		uint64_t take;

		if (k == handed->n || x->file != v[i].file || x->at + used != run->at)
			return VV_EPEER;
		take = run->len < x->len - used ? run->len : x->len - used;
		rc = take_run(s, x->file, run, take);
		used = used + take == x->len ? 0 : used + take;
		k += used == 0;
		*run = (struct vv_run){ run->at + take, run->len - take, run->layer, run->layer ? run->pos + take : 0 };
		i += run->len == 0;
	}
	return rc ? rc : k == handed->n ? 0 : VV_EPEER;
}

static int read_answers(struct vv_rank_handover *s, const struct vv_exchange *m)
{
	static const struct vv_handover_messages none;
	struct notice *from = (struct notice *)m->in;
	uint32_t member = 0;
	int rc = 0;

	for (uint32_t r = 0; rc == 0 && r < s->g->size; r++) {
		size_t n = (size_t)(m->in_len[r] / sizeof(*from));
		bool is_member = member < s->n_members && s->member[member] == r;

		rc = read_notices(s, is_member ? &s->handed[member] : &none, from, n);
		if (rc == VV_EPEER)
			vv_err_set(rc, "rank %u says where it put memory that it was handed, which cannot be; nothing was stored, try again", r);
		member += is_member;
		from += n;
	}
	return rc;
}

/* Each byte is counted once, by the rank that owns it. A duplicate that the placing rank found
 * within the epoch counts for the owner as a duplicate of another rank. */
static int count(struct vv_rank_handover *s, int rc)
{
	enum { TIME, RANKS, NEW, ZERO, COUNTS };
	uint64_t(*to)[COUNTS] = vv_mem_new(s->g->size, sizeof(*to)), (*from)[COUNTS] = vv_mem_new(s->g->size, sizeof(*from));
	struct varve_stats *st = &s->p->st;

	rc = vv_group_agree(s->g, s->g->comm, rc ? rc : to && from ? 0 : VV_ENOMEM);
	for (uint32_t i = 0; rc == 0 && i < s->n_members; i++) {
		const struct varve_stats *x = &s->counts[i];
		uint64_t *n = to[s->member[i]];

		n[TIME] = x->bytes_dup_time;
		n[RANKS] = x->bytes_dup_ranks + x->bytes_dup_space;
		n[NEW] = x->bytes_new;
		n[ZERO] = x->bytes_zero;
		st->bytes_lent += x->bytes_new;
	}
	if (rc == 0)
		rc = vv_comm_alltoall(s->g->comm, to, from, sizeof(*to));
	for (uint32_t r = 0; rc == 0 && r < s->g->size; r++) {
		st->bytes_dup_time += from[r][TIME];
		st->bytes_dup_ranks += from[r][RANKS];
		st->bytes_new += from[r][NEW];
		st->bytes_zero += from[r][ZERO];
	}
	vv_comm_free(s->g->comm, to);
	vv_comm_free(s->g->comm, from);
	return rc;
}

static void see_off(struct vv_rank_handover *s)
{
	struct vv_file_set *c = s->file_set;

	while (c->n_files > s->n_own)
		vv_run_fini(&c->file[--c->n_files].runs);
}

int vv_rank_handover_return(struct vv_rank_handover *s, int rc)
{
	struct vv_exchange m = { 0 };

	if (!s)
		return rc;
	if (rc == 0)
		rc = write_notices(s, &m);
	rc = vv_exchange_send(&m, s->g, rc, sizeof(struct notice));
	if (rc == 0)
		rc = read_answers(s, &m);
	vv_exchange_free(&m, s->g);
	rc = count(s, rc);
	see_off(s);
	return rc;
}
