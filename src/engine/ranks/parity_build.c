/* Works in rounds of some stripes. Each process sends the blocks that others need. It computes the
 * wanted blocks of its own stripes, and sends them on. All processes know the plan, so nobody
 * asks. */
#include "engine/ranks/parity_build.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/test_point.h"
#include "core/format/name.h"
#include "engine/ranks/parity_file.h"
#include <inttypes.h>
#include <string.h>

enum { ROUND = 8 << 20 }; /* bytes that a process sends to others or gets in a round, if a stripe has not more */

struct output { /* an object that this process writes */
	struct vv_put *put;
	struct vv_buf b; /* of this round */
	uint64_t *check; /* of its blocks */
	size_t n;
};

struct moves { /* of blocks, in a round */
	uint64_t *out_len, *in_len; /* to and from each process, */
	uint64_t *out_at, *in_at;   /* and as far as they are used */
	uint8_t *out, *in;          /* for all rounds; */
	uint64_t out_cap, in_cap;   /* their bytes */
};

struct factors {
	unsigned n_from, n_rows;
	uint8_t from[VV_ERASURE_BLOCKS], row[VV_ERASURE_BLOCKS]; /* the blocks */
	uint8_t v[VV_ERASURE_BLOCKS * VV_ERASURE_PARITY];
};

struct build {
	const struct vv_parity_io *io;
	struct vv_parity_job *j;
	uint32_t me, n; /* processes */
	struct vv_parity_file *file;   /* of each layer of the set */
	struct output *layer, *parity; /* the same */
	uint32_t *coder;               /* of each stripe: the process that computes its wanted blocks */
	uint64_t *sent, *got, most;    /* bytes in this round: of each process, and the greatest */
	struct moves read, rows;       /* blocks that are read; computed ones */
	uint8_t *block[VV_ERASURE_BLOCKS]; /* of a stripe, where this process has them */
	struct factors factors;
	struct vv_parity_built built;
	int rc; /* of this process; the others need its messages all the same */
};

const struct vv_lineage *vv_parity_build_lineage(const struct vv_parity_io *io, uint32_t place)
{
	if (!io->group)
		return io->lineage + place;
	return place == io->group->rank ? io->lineage : NULL;
}

static int agree(const struct vv_parity_io *io, int rc)
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

/* A stripe of which blocks are wanted. One process computes all that are lost. So it gets each
 * other block once, and sends each result to the process that writes it. */
struct work {
	const struct vv_parity_block *stripe;
	uint32_t len; /* blocks move with the length of the longest */
	unsigned n_from, n_rows, n_copies;
	uint8_t from[VV_ERASURE_BLOCKS]; /* the blocks that are read, */
	uint8_t row[VV_ERASURE_BLOCKS];  /* those computed from them, */
	uint8_t copy[VV_ERASURE_BLOCKS]; /* and intact ones of an object that is written again */
};

static struct work look_at(const struct build *b, size_t number)
{
	const struct vv_parity_plan *p = &b->j->plan;
	struct work w = { .stripe = vv_parity_plan_stripe(p, number) };
	uint8_t from[VV_ERASURE_BLOCKS];

	w.len = w.stripe[p->code.k].len;
	for (unsigned k = 0; k < (unsigned)(p->code.k + p->code.m); k++) {
		unsigned n = vv_parity_job_is_wanted(b->j, w.stripe, k) ? vv_parity_job_sources(b->j, w.stripe, k, from) : 0;

		if (n && from[0] == k) {
			w.copy[w.n_copies++] = (uint8_t)k;
		} else if (n) {
			w.row[w.n_rows++] = (uint8_t)k;
			w.n_from = n;
			memcpy(w.from, from, n);
		}
	}
	return w;
}

static uint32_t reader(const struct build *b, const struct work *w, unsigned block)
{
	return process(b, vv_parity_job_object(b->j, w->stripe, block)->place);
}

static uint32_t writer(const struct build *b, const struct work *w, unsigned block)
{
	return process(b, vv_parity_job_object(b->j, w->stripe, block)->to);
}

/* `block` moves between two processes. */
typedef void (*move_fn)(struct build *b, struct moves *m, const struct work *w, unsigned block, uint32_t from, uint32_t to);

static void each_read_block(struct build *b, size_t number, const struct work *w, move_fn fn)
{
	for (unsigned i = 0; i < w->n_from; i++)
		fn(b, &b->read, w, w->from[i], reader(b, w, w->from[i]), b->coder[number]);
	for (unsigned i = 0; i < w->n_copies; i++)
		fn(b, &b->read, w, w->copy[i], reader(b, w, w->copy[i]), writer(b, w, w->copy[i]));
}

static void each_row(struct build *b, size_t number, const struct work *w, move_fn fn)
{
	for (unsigned i = 0; i < w->n_rows; i++)
		fn(b, &b->rows, w, w->row[i], b->coder[number], writer(b, w, w->row[i]));
}

static void count_move(struct build *b, struct moves *m, const struct work *w, unsigned block, uint32_t from, uint32_t to)
{
	uint32_t len = from == to ? 0 : w->len;

	(void)block;
	b->sent[from] += len;
	b->got[to] += len;
	b->most = b->sent[from] > b->most ? b->sent[from] : b->most;
	b->most = b->got[to] > b->most ? b->got[to] : b->most;
	m->out_len[to] += from == b->me ? w->len : 0;
	m->in_len[from] += to == b->me ? w->len : 0;
}

/* Of the processes that need a result or read a block, the one that gets least in this round. With
 * each of them the sum of the messages is the same. So a host that writes everything again does not
 * get all the blocks of the others. */
static uint32_t choose_coder(const struct build *b, const struct work *w)
{
	uint32_t best = w->n_rows ? writer(b, w, w->row[0]) : 0;

	for (unsigned i = 1; i < w->n_rows; i++)
		if (b->got[writer(b, w, w->row[i])] < b->got[best])
			best = writer(b, w, w->row[i]);
	for (unsigned i = 0; i < w->n_from; i++)
		if (b->got[reader(b, w, w->from[i])] < b->got[best])
			best = reader(b, w, w->from[i]);
	return best;
}

static void begin_moves(struct build *b, struct moves *m)
{
	memset(m->out_len, 0, b->n * sizeof(*m->out_len));
	memset(m->in_len, 0, b->n * sizeof(*m->in_len));
}

/* The end of the round that begins at stripe `first`; all processes find the same. */
static size_t find_end(struct build *b, size_t first)
{
	size_t end = first;

	memset(b->sent, 0, b->n * sizeof(*b->sent));
	memset(b->got, 0, b->n * sizeof(*b->got));
	begin_moves(b, &b->read);
	begin_moves(b, &b->rows);
	for (b->most = 0; end < b->j->plan.n_stripes && b->most < ROUND; end++) {
		struct work w = look_at(b, end);

		b->coder[end] = choose_coder(b, &w);
		each_read_block(b, end, &w, count_move);
		each_row(b, end, &w, count_move);
	}
	return end;
}

static void place_out(struct build *b, struct moves *m, const struct work *w, unsigned block, uint32_t from, uint32_t to)
{
	if (from != b->me)
		return;
	b->block[block] = m->out + m->out_at[to];
	m->out_at[to] += w->len;
}

static void take_in(struct build *b, struct moves *m, const struct work *w, unsigned block, uint32_t from, uint32_t to)
{
	if (to != b->me)
		return;
	b->block[block] = m->in + m->in_at[from];
	m->in_at[from] += w->len;
}

static void read_block(struct build *b, struct moves *m, const struct work *w, unsigned block, uint32_t from, uint32_t to)
{
	const struct vv_parity_block *x = &w->stripe[block];
	uint32_t place = vv_parity_job_object(b->j, w->stripe, block)->place;

	if (from != b->me)
		return;
	place_out(b, m, w, block, from, to);
	memset(b->block[block] + x->len, 0, w->len - x->len);
	if (b->rc == 0)
		b->rc = vv_parity_file_read(&b->file[x->member], vv_parity_build_lineage(b->io, place), b->j, block >= b->j->plan.code.k, x,
					    b->block[block]);
	b->built.read_bytes += x->len;
}

/* The factors of the stripe before are often those of this one. */
static int find_factors(struct build *b, const struct work *w)
{
	struct factors *f = &b->factors;

	if (f->n_from == w->n_from && f->n_rows == w->n_rows && memcmp(f->from, w->from, w->n_from) == 0 && memcmp(f->row, w->row, w->n_rows) == 0)
		return 0;
	f->n_rows = 0;
	for (unsigned i = 0; i < w->n_rows; i++)
		if (!vv_erasure_code_solve(&b->j->plan.code, w->n_from, w->from, w->row[i], f->v + i * w->n_from))
			return vv_err_set(VV_EDAMAGED, "parity: the blocks of a stripe do not determine the lost ones");
	f->n_from = w->n_from;
	f->n_rows = w->n_rows;
	memcpy(f->from, w->from, w->n_from);
	memcpy(f->row, w->row, w->n_rows);
	return 0;
}

static void compute(struct build *b, size_t number)
{
	struct work w = look_at(b, number);
	const uint8_t *in[VV_ERASURE_BLOCKS];
	uint8_t *out[VV_ERASURE_PARITY];

	each_read_block(b, number, &w, take_in);
	each_row(b, number, &w, place_out);
	if (b->coder[number] != b->me || !w.n_rows || b->rc)
		return;
	for (unsigned i = 0; i < w.n_from; i++)
		in[i] = b->block[w.from[i]];
	for (unsigned i = 0; i < w.n_rows; i++)
		out[i] = b->block[w.row[i]];
	b->rc = find_factors(b, &w);
	if (b->rc == 0)
		vv_erasure_code_sum(b->factors.v, w.n_from, w.n_rows, w.len, in, out);
}

static void keep_block(struct build *b, struct moves *m, const struct work *w, unsigned block, uint32_t from, uint32_t to)
{
	const struct vv_parity_block *x = &w->stripe[block];
	struct output *o = (block < b->j->plan.code.k ? b->layer : b->parity) + x->member;

	(void)m;
	(void)from;
	if (to != b->me || b->rc)
		return;
	o->check[o->n++] = vv_digest_check(b->block[block], x->len);
	vv_buf_add(&o->b, b->block[block], x->len);
}

/* Puts the blocks of a stripe behind those of the stripes before. */
static void keep(struct build *b, size_t number)
{
	struct work w = look_at(b, number);

	each_read_block(b, number, &w, take_in);
	each_row(b, number, &w, take_in);
	each_row(b, number, &w, keep_block);
	for (unsigned i = 0; i < w.n_copies; i++)
		keep_block(b, NULL, &w, w.copy[i], 0, writer(b, &w, w.copy[i]));
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

static void free_buffers(const struct build *b, struct moves *m)
{
	if (b->io->group) {
		vv_comm_free(b->io->comm, m->out);
		vv_comm_free(b->io->comm, m->in);
	} else {
		vv_mem_free(m->out);
	}
	m->out = m->in = NULL;
}

/* Room for `need` bytes. A buffer is used again and has large pages, because a page fault takes
 * longer than the copy of a page. */
static int make_room(uint8_t **p, uint64_t *cap, uint64_t need)
{
	if (*p && need <= *cap)
		return 0;
	vv_mem_free(*p);
	*cap = need + need / 8;
	*p = vv_mem_new((size_t)*cap + 1, 1);
	if (*p)
		vv_mem_widen(*p, (size_t)*cap);
	return *p ? 0 : VV_ENOMEM;
}

static int make_buffers(struct build *b, struct moves *m)
{
	uint64_t in = prefix_sums(m->in_len, b->n, m->in_at), out = prefix_sums(m->out_len, b->n, m->out_at);
	int rc = make_room(&m->out, &m->out_cap, out);

	if (b->io->group)
		return rc ? rc : make_room(&m->in, &m->in_cap, in);
	m->in = m->out;
	return rc;
}

static int send(struct build *b, struct moves *m)
{
	return b->io->group ? vv_comm_alltoallv(b->io->comm, m->out, m->out_len, m->in, m->in_len) : 0;
}

/* Returns only errors that all processes have. */
static int one_round(struct build *b, size_t first, size_t end)
{
	int rc;

	for (size_t s = first; s < end; s++) {
		struct work w = look_at(b, s);

		each_read_block(b, s, &w, read_block);
	}
	rc = send(b, &b->read);
	for (size_t s = first; rc == 0 && s < end; s++)
		compute(b, s);
	rc = rc ? rc : send(b, &b->rows);
	prefix_sums(b->read.in_len, b->n, b->read.in_at);
	for (size_t s = first; rc == 0 && s < end; s++)
		keep(b, s);
	if (rc == 0)
		flush_all(b);
	return rc;
}

/* Sets have plans of different lengths: *more is the number of processes with stripes left. */
static int begin_round(struct build *b, uint64_t *more)
{
	int rc = make_buffers(b, &b->read);

	rc = rc ? rc : make_buffers(b, &b->rows);
	return b->io->group ? vv_group_sum(b->io->group, b->io->comm, rc, more, 1) : rc;
}

static int all_rounds(struct build *b)
{
	uint64_t more = 1;
	size_t end = 0;
	int rc = 0;

	while (rc == 0 && more) {
		size_t first = end;

		end = find_end(b, first);
		more = end > first;
		rc = begin_round(b, &more);
		if (rc == 0 && more)
			rc = one_round(b, first, end);
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
static uint64_t *layer_checks(const struct build *b, size_t member)
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
	rc = agree(b->io, all ? 0 : VV_ENOMEM);
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

/* Reads the remaining blocks of a layer in this store. */
static int read_layer(struct build *b, size_t member)
{
	const struct vv_parity_job *j = b->j;
	const struct vv_lineage *lin = j->data[member].there ? vv_parity_build_lineage(b->io, j->data[member].place) : NULL;
	uint8_t *room = vv_mem_new(j->plan.block_len, 1);
	int rc = room ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && lin && i < j->data[member].n_blocks; i++) {
		uint64_t at = i * (uint64_t)j->plan.block_len, left = j->head.layer[member].len - at;
		struct vv_parity_block x = { .at = at, .number = (uint32_t)i, .member = (uint32_t)member,
					     .len = left < j->plan.block_len ? (uint32_t)left : j->plan.block_len };

		if (!b->file[member].was_read[i])
			rc = vv_parity_file_read(&b->file[member], lin, j, false, &x, room);
	}
	vv_mem_free(room);
	return rc;
}

/* Blocks of a layer without checks were not checked when they were read, and parity gets the checks
 * of its rank's layer. So the digest of the whole layer must be right. */
static int check_source(struct build *b, size_t member)
{
	const struct vv_parity_file *f = &b->file[member];
	struct vv_digest found;
	int rc;

	if (!b->parity[member].put && (!f->layer || f->checks.n_data))
		return 0;
	rc = layer_checks(b, member) ? 0 : read_layer(b, member);
	if (rc || !layer_checks(b, member)) /* the layer is in another store */
		return rc;
	vv_parity_layer_digest(layer_checks(b, member), b->j->data[member].n_blocks, &found);
	if (vv_digest_equal(&found, &b->j->digest[member]))
		return 0;
	return vv_err_set(VV_EDAMAGED, "the layer of rank %u of epoch %" PRIu64 " is not as parity was made over it", b->j->head.layer[member].rank,
			  b->j->head.epoch);
}

static int end_parity(struct build *b, size_t member)
{
	struct output *w = &b->parity[member];
	struct vv_parity_checks c = { .n_parity = w->n, .parity = w->check, .data = layer_checks(b, member), .digest = b->j->digest };

	c.n_data = c.data ? b->j->data[member].n_blocks : 0;
	vv_parity_checks_put(&c, b->j->head.n_layers, &w->b);
	return flush(w);
}

static int end_outputs(struct build *b)
{
	int rc = b->rc;

	for (size_t i = 0; rc == 0 && i < b->j->head.n_layers; i++) {
		rc = b->layer[i].put ? check_layer(b, i) : check_source(b, i);
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

static int new_moves(const struct build *b, struct moves *m)
{
	m->out_len = vv_mem_new(b->n, sizeof(*m->out_len));
	m->in_len = vv_mem_new(b->n, sizeof(*m->in_len));
	m->out_at = vv_mem_new(b->n, sizeof(*m->out_at));
	m->in_at = vv_mem_new(b->n, sizeof(*m->in_at));
	return m->out_len && m->in_len && m->out_at && m->in_at ? 0 : VV_ENOMEM;
}

static void free_moves(const struct build *b, struct moves *m)
{
	free_buffers(b, m);
	if (b->io->group) { /* messages may be under way */
		vv_comm_free(b->io->comm, m->out_len);
		vv_comm_free(b->io->comm, m->in_len);
	} else {
		vv_mem_free(m->out_len);
		vv_mem_free(m->in_len);
	}
	vv_mem_free(m->out_at);
	vv_mem_free(m->in_at);
}

static int new_build(struct build *b)
{
	size_t n = b->j->head.n_layers;
	int rc;

	b->file = vv_mem_new(n, sizeof(*b->file));
	b->layer = vv_mem_new(n, sizeof(*b->layer));
	b->parity = vv_mem_new(n, sizeof(*b->parity));
	b->coder = vv_mem_new(b->j->plan.n_stripes, sizeof(*b->coder));
	b->sent = vv_mem_new(2 * (size_t)b->n, sizeof(*b->sent));
	b->got = b->sent + b->n;
	rc = b->file && b->layer && b->parity && b->coder && b->sent ? new_moves(b, &b->read) : VV_ENOMEM;
	rc = rc ? rc : new_moves(b, &b->rows);
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
	vv_mem_free(b->coder);
	vv_mem_free(b->sent);
	free_moves(b, &b->read);
	free_moves(b, &b->rows);
}

int vv_parity_build_run(const struct vv_parity_io *io, struct vv_parity_job *j, struct vv_parity_built *out)
{
	struct build b = { .io = io, .j = j, .me = io->group ? io->group->rank : 0, .n = io->group ? io->group->size : 1 };
	int rc = agree(io, new_build(&b));

	if (rc == 0)
		rc = all_rounds(&b);
	if (rc == 0 && !j->has_digests)
		rc = gather_digests(&b);
	if (rc == 0)
		rc = agree(io, end_outputs(&b));
	if (rc == 0)
		rc = agree(io, commit_all(&b));
	free_build(&b);
	if (rc == 0)
		*out = b.built;
	return rc;
}
