#include "image/restore/find_images.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/remote_read.h"
#include "engine/ranks/remote_table.h"
#include "engine/ranks/group.h"

static uint32_t rank_of(const struct vv_find_images *m)
{
	return m->v && m->v->ctx.group ? m->v->ctx.group->rank : 0;
}

static uint32_t ranks_of(const struct vv_find_images *m)
{
	return m->v && m->v->ctx.group ? m->v->ctx.group->size : 1;
}

static bool is_apart(const struct vv_find_images *m)
{
	return m->v && m->v->ctx.group && m->v->ctx.group->has_local_stores;
}

/* All ranks read together: from their own stores, or each a part of one store. */
static int read_apart(void *arg, int rc, const struct vv_want *want, size_t n)
{
	bool *copied = vv_mem_new(n, sizeof(*copied));

	rc = vv_remote_read_spread(arg, rc || copied ? rc : VV_ENOMEM, want, n, copied);
	vv_mem_free(copied);
	return rc;
}

static int open_apart(const struct vv_find_images *m, uint64_t memory, struct vv_serve_images *out, size_t *n_out)
{
	struct vv_unpack files = { 0 };
	struct vv_run_table t = { 0 };
	const struct vv_unpack_reader from = { &m->v->ctx, read_apart };
	int rc = vv_remote_table_table(&m->v->ctx, 0, m->epoch, &t);

	if (rc)
		return rc;
	*n_out = 1;
	rc = vv_unpack_take(m->lin, &t, &from, &files);
	return vv_serve_images_open_files(out, rc, &files, m->pool, memory, &from, m->lazy);
}

/* One rank that restores the trees of several ranks reads them together: their common data is in
 * the same blocks. */
static int open_all(const struct vv_find_images *m, uint64_t memory, struct vv_serve_images *out)
{
	struct vv_unpack files = { 0 };
	int rc = vv_unpack_open(m->lin, m->epoch, m->pool, &files);

	return vv_serve_images_open_files(out, rc, &files, m->pool, memory, NULL, false);
}

enum { OTHERS, BYTES, TOO_MANY, WORDS };

static void count_bytes(const struct vv_unpack *files, uint32_t rank, uint64_t memory, uint64_t *word)
{
	for (size_t i = 0; i < files->n_files; i++) {
		const struct vv_run_table_region *r = vv_unpack_at(files, i).region;

		word[BYTES] += r->shape.len;
		for (size_t k = 0; k < r->runs.n; k++)
			word[OTHERS] += r->runs.v[k].layer && vv_run_rank(r->runs.v[k].layer) != rank ? r->runs.v[k].len : 0;
	}
	word[TOO_MANY] = word[BYTES] > memory;
}

/* Ranks may have compressed blocks for each other, and each rank would then decompress nearly all
 * of them. Instead each rank decompresses its own blocks once and sends the others their parts.
 * That is done if it concerns most bytes and there is enough memory. */
static int open_mine(const struct vv_find_images *m, uint64_t memory, struct vv_serve_images *out)
{
	struct vv_unpack files = { 0 };
	uint64_t word[WORDS] = { 0 };
	const struct vv_unpack_reader from = { &m->v->ctx, read_apart };
	int rc = vv_unpack_open_rank(m->lin, m->epoch, rank_of(m), m->pool, &files);
	bool share;

	if (rc == 0)
		count_bytes(&files, rank_of(m), memory, word);
	rc = vv_group_sum(m->v->ctx.group, m->v->ctx.group->comm, rc, word, WORDS);
	share = rc == 0 && !m->lazy && word[OTHERS] > word[BYTES] / 2 && !word[TOO_MANY];
	rc = vv_serve_images_open_files(out, rc, &files, m->pool, memory, share ? &from : NULL, false);
	if (!share || rc != VV_EDAMAGED)
		return rc;
	vv_serve_images_close(out); /* each rank finds its own damaged parts separately */
	rc = vv_unpack_open_rank(m->lin, m->epoch, rank_of(m), m->pool, &files);
	return vv_serve_images_open_files(out, rc, &files, m->pool, memory, NULL, false);
}

static int open_here(const struct vv_find_images *m, size_t n, uint64_t memory, struct vv_serve_images *out, size_t *n_out)
{
	int rc = 0;

	if (ranks_of(m) == 1 || ranks_of(m) == m->saved_by) {
		*n_out = 1;
		return ranks_of(m) == 1 ? open_all(m, memory * n, out) : open_mine(m, memory, out);
	}
	while (rc == 0 && *n_out < n) {
		struct vv_unpack files = { 0 };

		rc = vv_unpack_open_rank(m->lin, m->epoch, rank_of(m) + (uint32_t)*n_out * ranks_of(m), m->pool, &files);
		rc = vv_serve_images_open_files(&out[(*n_out)++], rc, &files, m->pool, memory, NULL, false);
	}
	return rc;
}

/* This rank's share of the memory that may be used on this host, per image set, in bytes. */
static uint64_t share_of(const struct vv_find_images *m, size_t n)
{
	const struct vv_group *g = m->v ? m->v->ctx.group : NULL;
	uint64_t sharing = 1, memory;

	for (uint32_t r = 0; g && r < g->size; r++)
		sharing += r != g->rank && g->host[r] == g->host[g->rank];
	memory = m->memory ? m->memory : vv_serve_images_memory() / sharing;
	return memory / n ? memory / n : 1;
}

int vv_find_images_open(const struct vv_find_images *m, struct vv_serve_images **out, size_t *n_out)
{
	uint32_t rank = rank_of(m), ranks = ranks_of(m);
	size_t n = m->saved_by > rank ? (m->saved_by - rank + ranks - 1) / ranks : 0;
	uint64_t memory = share_of(m, n ? n : 1);
	int rc;

	*n_out = 0;
	*out = vv_mem_new(n, sizeof(**out));
	rc = *out ? 0 : VV_ENOMEM;
	if (m->v && m->v->ctx.group)
		rc = vv_group_agree(m->v->ctx.group, m->v->ctx.group->comm, rc);
	if (rc)
		return rc;
	return is_apart(m) ? open_apart(m, memory, *out, n_out) : open_here(m, n, memory, *out, n_out);
}
