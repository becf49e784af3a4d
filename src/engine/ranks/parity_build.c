/* In rounds: each place sends the blocks that others need in the next stripes, and makes the wanted
 * blocks out of those that it gets. All places know the plan, so nobody asks. */
#include "engine/ranks/parity_build.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/test_point.h"
#include "core/format/name.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/parity_file.h"
#include <inttypes.h>
#include <string.h>

enum { ROUND = 8 << 20 }; /* bytes that a process sends or gets in a round, if a stripe has not more */

struct output { /* an object that this process writes */
	struct vv_put *put;
	struct vv_buf b; /* of this round */
	uint64_t *check; /* of its blocks */
	size_t n;
};

struct build {
	const struct vv_parity_io *io;
	struct vv_parity_job *j;
	uint32_t me, n; /* processes */
	struct vv_parity_file *file;      /* of each layer of the set */
	struct output *layer, *parity;    /* the same */
	uint64_t *out_len, *in_len, *at;  /* of each process, in this round */
	uint8_t *out, *in;
	struct vv_parity_built built;
	int rc; /* of this process; the others need its messages all the same */
};

const struct vv_lineage *vv_parity_build_lineage(const struct vv_parity_io *io, uint32_t place)
{
	if (!io->group)
		return io->lineage + place;
	return place == io->group->rank ? io->lineage : NULL;
}

int vv_parity_build_agree(const struct vv_parity_io *io, int rc)
{
	return io->group ? vv_group_agree(io->group, io->comm, rc) : rc;
}

static uint32_t process(const struct build *b, uint32_t place)
{
	return b->io->group ? place : 0;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static void object_name(const struct build *b, size_t member, bool parity, char out[VV_NAME_MAX])
{
	const struct vv_parity_head *h = &b->j->head;
	const struct vv_lineage *lin = b->io->lineage;

	if (parity)
		vv_name_parity(out, lin->name, h->epoch, h->layer[member].rank, h->n_ranks);
	else
		vv_name_layer(out, lin->name, h->epoch, h->layer[member].rank);
}

static int begin_output(struct build *b, size_t member, bool parity)
{
	struct vv_parity_job *j = b->j;
	const struct vv_parity_object *o = (parity ? j->parity : j->data) + member;
	const struct vv_lineage *lin = o->wanted ? vv_parity_build_lineage(b->io, o->to) : NULL;
	struct output *w = (parity ? b->parity : b->layer) + member;
	char object[VV_NAME_MAX];
	int rc;

	if (!lin)
		return 0;
	object_name(b, member, parity, object);
	w->check = vv_mem_new(o->n_blocks, sizeof(*w->check));
	rc = w->check ? vv_store_put_open(lin->store, object, parity ? j->head_len + j->plan.parity_len[member] : j->head.layer[member].len,
					  &w->put) : VV_ENOMEM;
	if (rc || !parity)
		return rc;
	j->head.rank = j->head.layer[member].rank;
	vv_parity_head_put(&j->head, &w->b);
	return vv_buf_check(&w->b);
}

static int flush(struct output *w)
{
	struct iovec iov = { w->b.p, w->b.n };
	int rc = vv_buf_check(&w->b);

	if (rc == 0 && w->b.n)
		rc = vv_store_put_write(w->put, &iov, 1);
	w->b.n = 0;
	return rc;
}

static void flush_all(struct build *b)
{
	for (size_t i = 0; b->rc == 0 && i < b->j->head.n_layers; i++) {
		if (b->layer[i].put)
			b->rc = flush(&b->layer[i]);
		if (b->rc == 0 && b->parity[i].put)
			b->rc = flush(&b->parity[i]);
	}
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Calls fn for every block that moves for these stripes: block `from` of the stripe, for block `block`. */
static void each_move(struct build *b, size_t first, size_t last,
		      void (*fn)(struct build *b, const struct vv_parity_block *stripe, unsigned block, const uint8_t *from, unsigned n))
{
	const struct vv_parity_plan *p = &b->j->plan;
	uint8_t from[VV_ERASURE_BLOCKS];

	for (size_t s = first; s < last; s++) {
		const struct vv_parity_block *stripe = vv_parity_plan_stripe(p, s);

		for (unsigned k = 0; k < (unsigned)(p->code.k + p->code.m); k++)
			if (vv_parity_job_is_wanted(b->j, stripe, k))
				fn(b, stripe, k, from, vv_parity_job_sources(b->j, stripe, k, from));
	}
}

/* Blocks move with the length of the longest. */
static uint32_t stripe_len(const struct build *b, const struct vv_parity_block *stripe)
{
	return stripe[b->j->plan.code.k].len;
}

static void count_move(struct build *b, const struct vv_parity_block *stripe, unsigned block, const uint8_t *from, unsigned n)
{
	uint32_t to = process(b, vv_parity_job_object(b->j, stripe, block)->to);

	for (unsigned i = 0; i < n; i++) {
		uint32_t who = process(b, vv_parity_job_object(b->j, stripe, from[i])->place);

		b->at[who] += stripe_len(b, stripe); /* of all that this process sends, */
		b->at[b->n + to] += stripe_len(b, stripe); /* and gets */
		b->out_len[to] += who == b->me ? stripe_len(b, stripe) : 0;
		b->in_len[who] += to == b->me ? stripe_len(b, stripe) : 0;
	}
}

/* The end of the round that begins at stripe `first`; all processes find the same. */
static size_t find_end(struct build *b, size_t first)
{
	uint64_t most = 0;
	size_t end = first;

	memset(b->at, 0, 2 * b->n * sizeof(*b->at));
	memset(b->out_len, 0, b->n * sizeof(*b->out_len));
	memset(b->in_len, 0, b->n * sizeof(*b->in_len));
	while (end < b->j->plan.n_stripes && most < ROUND) {
		const struct vv_parity_block *stripe = vv_parity_plan_stripe(&b->j->plan, end);

		each_move(b, end, end + 1, count_move);
		end++;
		for (unsigned i = 0; i < (unsigned)(b->j->plan.code.k + b->j->plan.code.m); i++) {
			const struct vv_parity_object *o = vv_parity_job_object(b->j, stripe, i);
			uint64_t sent = b->at[process(b, o->place)], got = b->at[b->n + process(b, o->to)];

			most = sent > most ? sent : most;
			most = got > most ? got : most;
		}
	}
	return end;
}

static void send_block(struct build *b, const struct vv_parity_block *stripe, unsigned block, const uint8_t *from, unsigned n)
{
	uint32_t to = process(b, vv_parity_job_object(b->j, stripe, block)->to), len = stripe_len(b, stripe);

	for (unsigned i = 0; i < n; i++) {
		const struct vv_parity_block *x = &stripe[from[i]];
		uint32_t place = vv_parity_job_object(b->j, stripe, from[i])->place;
		uint8_t *p = b->out + b->at[to];

		if (process(b, place) != b->me)
			continue;
		b->at[to] += len;
		memset(p + x->len, 0, len - x->len);
		if (b->rc == 0)
			b->rc = vv_parity_file_read(&b->file[x->member], vv_parity_build_lineage(b->io, place), b->j, from[i] >= b->j->plan.code.k, x, p);
		b->built.read_bytes += x->len;
	}
}

static void make_block(struct build *b, const struct vv_parity_block *stripe, unsigned block, const uint8_t *from, unsigned n)
{
	const struct vv_parity_block *x = &stripe[block];
	struct output *w = (block < b->j->plan.code.k ? b->layer : b->parity) + x->member;
	uint8_t factor[VV_ERASURE_BLOCKS] = { 1 }, *to;
	const uint8_t *in[VV_ERASURE_BLOCKS];

	if (process(b, vv_parity_job_object(b->j, stripe, block)->to) != b->me)
		return;
	for (unsigned i = 0; i < n; i++) {
		uint64_t *at = &b->at[process(b, vv_parity_job_object(b->j, stripe, from[i])->place)];

		in[i] = b->in + *at;
		*at += stripe_len(b, stripe);
	}
	if (b->rc)
		return;
	to = vv_buf_room(&w->b, stripe_len(b, stripe));
	if (!to) {
		b->rc = VV_ENOMEM;
		return;
	}
	if (from[0] == block)
		memcpy(to, in[0], x->len);
	else if (vv_erasure_code_solve(&b->j->plan.code, n, from, block, factor))
		vv_erasure_code_sum(factor, n, 1, stripe_len(b, stripe), in, &to);
	w->check[w->n++] = vv_digest_check(to, x->len);
	w->b.n += x->len;
}

static uint64_t prefix_sums(const uint64_t *len, uint32_t n, uint64_t *at)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		at[i] = sum;
		sum += len[i];
	}
	return sum;
}

static void free_round(struct build *b)
{
	if (b->io->group) {
		vv_comm_free(b->io->comm, b->out);
		vv_comm_free(b->io->comm, b->in);
	} else {
		vv_mem_free(b->out);
	}
	b->out = b->in = NULL;
}

/* Returns only errors that all processes have. */
static int exchange_round(struct build *b, size_t first, size_t end)
{
	uint64_t in = prefix_sums(b->in_len, b->n, b->at), out = prefix_sums(b->out_len, b->n, b->at);
	int rc;

	b->out = vv_mem_new((size_t)out + 1, 1);
	b->in = b->io->group ? vv_mem_new((size_t)in + 1, 1) : b->out;
	rc = vv_parity_build_agree(b->io, b->out && b->in ? 0 : VV_ENOMEM);
	if (rc == 0)
		each_move(b, first, end, send_block);
	if (rc == 0 && b->io->group)
		rc = vv_comm_alltoallv(b->io->comm, b->out, b->out_len, b->in, b->in_len);
	if (rc)
		return rc;
	prefix_sums(b->in_len, b->n, b->at);
	each_move(b, first, end, make_block);
	flush_all(b);
	return 0;
}

static int all_rounds(struct build *b)
{
	size_t end = 0;
	uint64_t more = 1;
	int rc = 0;

	while (rc == 0 && more) {
		size_t first = end;

		end = find_end(b, first);
		rc = exchange_round(b, first, end);
		free_round(b);
		more = end < b->j->plan.n_stripes; /* sets have plans of different lengths */
		if (rc == 0 && b->io->group)
			rc = vv_comm_allreduce(b->io->comm, &more, 1, VARVE_MAX);
	}
	return rc;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool is_all_read(const struct build *b, size_t member)
{
	size_t n = b->j->data[member].n_blocks;

	return !memchr(b->file[member].was_read, 0, n);
}

/* The checks of a layer's blocks, if this process has seen all of them; else NULL. */
static const uint64_t *layer_checks(const struct build *b, size_t member)
{
	if (b->layer[member].put)
		return b->layer[member].check;
	return is_all_read(b, member) ? b->file[member].found : NULL;
}

/* Every rank has read its own layer. Another set's digests are not this set's. */
static int gather_digests(struct build *b)
{
	struct vv_parity_job *j = b->j;
	struct vv_digest *all, mine = { { 0 } };
	int rc;

	for (size_t i = 0; i < j->head.n_layers; i++)
		if (layer_checks(b, i)) {
			vv_parity_layer_digest(layer_checks(b, i), j->data[i].n_blocks, &j->digest[i]);
			mine = j->digest[i];
		}
	if (!b->io->group)
		return 0;
	all = vv_mem_new(b->n, sizeof(*all));
	rc = vv_parity_build_agree(b->io, all ? 0 : VV_ENOMEM);
	if (rc == 0)
		rc = vv_comm_allgather(b->io->comm, &mine, all, sizeof(mine));
	for (size_t i = 0; rc == 0 && i < j->head.n_layers; i++)
		j->digest[i] = all[j->data[i].place];
	vv_comm_free(b->io->comm, all);
	return rc;
}

static int check_layer(const struct build *b, size_t member)
{
	struct vv_digest found;

	vv_parity_layer_digest(b->layer[member].check, b->layer[member].n, &found);
	if (vv_digest_equal(&found, &b->j->digest[member]))
		return 0;
	return vv_err_set(VV_EDAMAGED, "the layer of rank %u of epoch %" PRIu64 " was rebuilt, and is not as it was written: a block of "
			  "another one is damaged", b->j->head.layer[member].rank, b->j->head.epoch);
}

/* Parity that is written anew gets the checks of its rank's layer, if that is in this store. */
static int read_layer(struct build *b, size_t member)
{
	const struct vv_parity_job *j = b->j;
	const struct vv_lineage *lin = j->data[member].there ? vv_parity_build_lineage(b->io, j->data[member].place) : NULL;
	uint8_t *room = vv_mem_new(j->plan.block_len, 1);
	int rc = room ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && lin && i < j->data[member].n_blocks; i++) {
		uint64_t at = i * (uint64_t)j->plan.block_len, left = j->head.layer[member].len - at;
		struct vv_parity_block x = { (uint32_t)member, i, at, left < j->plan.block_len ? (uint32_t)left : j->plan.block_len };

		if (!b->file[member].was_read[i])
			rc = vv_parity_file_read(&b->file[member], lin, j, false, &x, room);
	}
	vv_mem_free(room);
	return rc;
}

static bool is_layer_intact(const struct build *b, size_t member)
{
	struct vv_digest found;

	vv_parity_layer_digest(layer_checks(b, member), b->j->data[member].n_blocks, &found);
	return vv_digest_equal(&found, &b->j->digest[member]);
}

static int end_parity(struct build *b, size_t member)
{
	struct output *w = &b->parity[member];
	struct vv_parity_checks c = { .n_parity = w->n, .parity = w->check, .digest = b->j->digest };
	int rc = layer_checks(b, member) ? 0 : read_layer(b, member);

	if (rc)
		return rc;
	if (layer_checks(b, member) && is_layer_intact(b, member)) {
		c.n_data = b->j->data[member].n_blocks;
		c.data = b->layer[member].put ? b->layer[member].check : b->file[member].found;
	}
	vv_parity_checks_put(&c, b->j->head.n_layers, &w->b);
	return flush(w);
}

static int end_outputs(struct build *b)
{
	int rc = b->rc;

	for (size_t i = 0; rc == 0 && i < b->j->head.n_layers; i++) {
		if (b->layer[i].put)
			rc = check_layer(b, i);
		if (rc == 0 && b->parity[i].put)
			rc = end_parity(b, i);
	}
	return rc;
}

static int commit(struct build *b, struct output *w, uint64_t *bytes)
{
	uint64_t written = w->put ? w->put->written : 0;
	int rc = w->put ? vv_store_put_commit(w->put) : 0;

	b->built.n_objects += w->put && rc == 0;
	w->put = NULL;
	*bytes += rc ? 0 : written;
	return rc;
}

/* Layers first: parity without its layers protects nothing. */
static int commit_all(struct build *b)
{
	int rc = 0;

	vv_test_point("parity made");
	for (size_t i = 0; rc == 0 && i < b->j->head.n_layers; i++)
		rc = commit(b, &b->layer[i], &b->built.layer_bytes);
	vv_test_point("layers rebuilt");
	for (size_t i = 0; rc == 0 && i < b->j->head.n_layers; i++)
		rc = commit(b, &b->parity[i], &b->built.parity_bytes);
	vv_test_point("parity stored");
	return rc;
}

static int new_build(struct build *b)
{
	size_t n = b->j->head.n_layers;
	int rc;

	b->file = vv_mem_new(n, sizeof(*b->file));
	b->layer = vv_mem_new(n, sizeof(*b->layer));
	b->parity = vv_mem_new(n, sizeof(*b->parity));
	b->out_len = vv_mem_new(b->n, sizeof(*b->out_len));
	b->in_len = vv_mem_new(b->n, sizeof(*b->in_len));
	b->at = vv_mem_new(2 * (size_t)b->n, sizeof(*b->at));
	rc = b->file && b->layer && b->parity && b->out_len && b->in_len && b->at ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = vv_parity_file_init(&b->file[i], b->j, i);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = begin_output(b, i, false);
		rc = rc ? rc : begin_output(b, i, true);
	}
	return rc;
}

static void free_output(struct output *w)
{
	if (w->put)
		vv_store_put_abort(w->put);
	vv_buf_fini(&w->b);
	vv_mem_free(w->check);
}

static void free_build(struct build *b)
{
	for (size_t i = 0; i < b->j->head.n_layers; i++) {
		if (b->file)
			vv_parity_file_fini(&b->file[i]);
		if (b->layer)
			free_output(&b->layer[i]);
		if (b->parity)
			free_output(&b->parity[i]);
	}
	vv_mem_free(b->file);
	vv_mem_free(b->layer);
	vv_mem_free(b->parity);
	if (b->io->group) { /* messages may be under way */
		vv_comm_free(b->io->comm, b->out_len);
		vv_comm_free(b->io->comm, b->in_len);
	} else {
		vv_mem_free(b->out_len);
		vv_mem_free(b->in_len);
	}
	vv_mem_free(b->at);
}

int vv_parity_build_run(const struct vv_parity_io *io, struct vv_parity_job *j, struct vv_parity_built *out)
{
	struct build b = { .io = io, .j = j, .me = io->group ? io->group->rank : 0, .n = io->group ? io->group->size : 1 };
	int rc = vv_parity_build_agree(io, new_build(&b));

	if (rc == 0)
		rc = all_rounds(&b);
	if (rc == 0 && !j->has_digests)
		rc = gather_digests(&b);
	if (rc == 0)
		rc = vv_parity_build_agree(io, end_outputs(&b));
	if (rc == 0)
		rc = vv_parity_build_agree(io, commit_all(&b));
	free_build(&b);
	if (rc == 0)
		*out = b.built;
	return rc;
}

/* ---- damage ---------------------------------------------------------------------------------- */

struct parity_scan {
	const struct vv_parity_io *io;
	struct vv_parity_job *j;
	struct vv_parity_file *file;
	uint8_t *room;      /* for a block */
	struct vv_buf bad;  /* words: object, block */
};

static void add_bad(struct parity_scan *s, uint64_t object, uint64_t block)
{
	vv_buf_add(&s->bad, &object, sizeof(object));
	vv_buf_add(&s->bad, &block, sizeof(block));
}

static uint64_t object_number(const struct vv_parity_block *x, bool parity)
{
	return (uint64_t)x->member << 1 | parity;
}

static int scan_block(struct parity_scan *s, const struct vv_parity_block *x, bool parity)
{
	const struct vv_parity_object *o = (parity ? s->j->parity : s->j->data) + x->member;
	const struct vv_lineage *lin = o->there && x->len ? vv_parity_build_lineage(s->io, o->place) : NULL;
	int rc = lin ? vv_parity_file_read(&s->file[x->member], lin, s->j, parity, x, s->room) : 0;

	if (rc != VV_EDAMAGED && rc != VV_ENOENT)
		return rc;
	add_bad(s, object_number(x, parity), x->number);
	vv_err_clear();
	return 0;
}

/* A layer without checks of its blocks is intact as a whole, or not at all. */
static void scan_digest(struct parity_scan *s, size_t member)
{
	const struct vv_parity_object *o = &s->j->data[member];
	struct vv_digest found;

	if (!o->there || !vv_parity_build_lineage(s->io, o->place) || s->file[member].checks.n_data)
		return;
	vv_parity_layer_digest(s->file[member].found, o->n_blocks, &found);
	for (size_t i = 0; !vv_digest_equal(&found, &s->j->digest[member]) && i < o->n_blocks; i++)
		add_bad(s, (uint64_t)member << 1, i);
}

static int scan_all(struct parity_scan *s)
{
	const struct vv_parity_plan *p = &s->j->plan;
	size_t n = s->j->head.n_layers;
	int rc;

	s->file = vv_mem_new(n, sizeof(*s->file));
	s->room = vv_mem_new(p->block_len, 1);
	rc = s->file && s->room ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = vv_parity_file_init(&s->file[i], s->j, i);
	for (size_t i = 0; rc == 0 && i < p->n_stripes; i++)
		for (unsigned k = 0; rc == 0 && k < (unsigned)(p->code.k + p->code.m); k++)
			rc = scan_block(s, &vv_parity_plan_stripe(p, i)[k], k >= p->code.k);
	for (size_t i = 0; rc == 0 && i < n; i++)
		scan_digest(s, i);
	for (size_t i = 0; s->file && i < n; i++)
		vv_parity_file_fini(&s->file[i]);
	vv_mem_free(s->file);
	vv_mem_free(s->room);
	return rc ? rc : vv_buf_check(&s->bad);
}

static int note_bad(struct vv_parity_job *j, const uint8_t *p, size_t n)
{
	uint64_t word[2];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(word, p + i, sizeof(word));
		if (word[0] >> 1 >= j->head.n_layers)
			return vv_err_set(VV_EPEER, "a rank names a damaged block that cannot be");
		rc = vv_parity_job_add_bad((word[0] & 1 ? j->parity : j->data) + (word[0] >> 1), word[1]);
	}
	return rc;
}

int vv_parity_build_scan(const struct vv_parity_io *io, struct vv_parity_job *j)
{
	enum { MOST = 1 << 28 };
	struct parity_scan s = { .io = io, .j = j };
	struct vv_exchange m = { 0 };
	int rc = scan_all(&s);

	if (!io->group) {
		rc = rc ? rc : note_bad(j, s.bad.p, s.bad.n);
	} else {
		rc = vv_exchange_gather(&m, io->group, rc, s.bad.p, s.bad.n, MOST);
		for (uint32_t r = 0; rc == 0 && r < io->group->size; r++)
			rc = m.in_len[r] ? note_bad(j, vv_exchange_from(&m, io->group, r), (size_t)m.in_len[r]) : 0;
		vv_exchange_free(&m, io->group);
		rc = vv_group_agree(io->group, io->group->comm, rc);
	}
	vv_buf_fini(&s.bad);
	return rc;
}
