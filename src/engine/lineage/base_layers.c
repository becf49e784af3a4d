#include "engine/lineage/base_layers.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "core/format/run.h"
#include "engine/lineage/layer_file.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Layers that keep a descriptor. Many layers with bases may be open together, so each has one of
 * them: further ones are opened again for each block, without their tables. */
enum { OPEN = 1 };

struct vv_base_layers {
	const struct vv_lineage *lin;
	uint32_t rank;
	pthread_mutex_t lock; /* of the members below */
	struct vv_layer_file **file; /* by their number */
	size_t n, cap;
};

int vv_base_layers_new(const struct vv_lineage *lin, uint32_t rank, struct vv_base_layers **out)
{
	struct vv_base_layers *b = vv_mem_new(1, sizeof(*b));

	if (!b)
		return VV_ENOMEM;
	*b = (struct vv_base_layers){ .lin = lin, .rank = rank, .lock = PTHREAD_MUTEX_INITIALIZER };
	*out = b;
	return 0;
}

void vv_base_layers_free(struct vv_base_layers *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++)
		vv_layer_file_close(b->file[i]);
	vv_mem_free(b->file);
	pthread_mutex_destroy(&b->lock);
	vv_mem_free(b);
}

static int open_locked(struct vv_base_layers *b, uint64_t layer, struct vv_layer_file **out)
{
	size_t i;
	int rc;

	VV_SEARCH(i, 0, b->n, b->file[i]->layer < layer);
	if (i < b->n && b->file[i]->layer == layer) {
		*out = b->file[i];
		return 0;
	}
	rc = vv_mem_room(&b->file, b->n, &b->cap, sizeof(struct vv_layer_file *));
	if (rc == 0)
		rc = vv_layer_file_open(b->lin, layer, VV_LAYER_FILE_BLOCKS, out);
	if (rc)
		return rc;
	if (b->n >= OPEN && !b->lin->store->is_remote)
		vv_layer_file_release(*out);
	memmove(b->file + i + 1, b->file + i, (b->n++ - i) * sizeof(struct vv_layer_file *));
	b->file[i] = *out;
	return 0;
}

int vv_base_layers_open(struct vv_base_layers *b, uint64_t epoch, struct vv_layer_file **out)
{
	int rc;

	pthread_mutex_lock(&b->lock);
	rc = open_locked(b, vv_run_layer(epoch, b->rank), out);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* Bases, cut at the borders of their blocks. */
struct base_piece {
	struct vv_layer_file *file;
	size_t block;
	uint32_t from, len; /* in the decoded block */
	uint8_t *to;
};

struct base_pieces {
	struct base_piece *v;
	size_t n, cap;
};

static int cut(struct base_pieces *p, struct vv_layer_file *f, uint64_t pos, uint64_t len, uint8_t *to)
{
	struct vv_payload_cursor c = { 0 };

	while (len) {
		uint32_t from;
		int64_t n = vv_layer_file_locate(f, pos, len, &c, &from);

		if (n < 0)
			return (int)n;
		if (f->blocks.v[c.block].codec == VV_CODEC_DELTA) {
			vv_err_set(VV_EDAMAGED, "block %zu, the base of another block, has a base itself", c.block);
			return vv_layer_file_name_in_error(f, VV_EDAMAGED);
		}
		if (vv_mem_room(&p->v, p->n, &p->cap, sizeof(*p->v)) < 0)
			return VV_ENOMEM;
		p->v[p->n++] = (struct base_piece){ f, c.block, from, (uint32_t)n, to };
		to += n;
		pos += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static int by_block(const void *a, const void *b)
{
	const struct base_piece *x = a, *y = b;

	if (x->file != y->file)
		return x->file->layer < y->file->layer ? -1 : 1;
	return (x->block > y->block) - (x->block < y->block);
}

/* The tables of the file are known, and need not be read again. */
static int read_again(const struct vv_base_layers *b, const struct base_piece *x, uint8_t *raw, uint8_t *stored)
{
	struct vv_layer_file *f = NULL, same = *x->file;
	int rc = vv_layer_file_open(b->lin, x->file->layer, 0, &f);

	if (rc)
		return rc;
	rc = vv_layer_file_check_same_blocks(f, x->file);
	same.get = f->get;
	if (rc == 0)
		rc = vv_layer_file_read_block(&same, x->block, raw, stored);
	vv_layer_file_close(f);
	return rc;
}

static int read_block(const struct vv_base_layers *b, const struct base_piece *x, uint8_t *raw, uint8_t *stored)
{
	return x->file->get ? vv_layer_file_read_block(x->file, x->block, raw, stored) : read_again(b, x, raw, stored);
}

/* Mostly the base is one block. */
static int read_whole(const struct vv_base_layers *layers, const struct base_piece *x, const struct vv_block *b)
{
	uint8_t *stored = b->codec ? vv_context_pool_room(b->stored_len) : NULL;
	int rc = stored || !b->codec ? read_block(layers, x, x->to, stored) : VV_ENOMEM;

	vv_context_pool_room_back(stored);
	return rc;
}

/* Reads n pieces of one block. */
static int read_pieces(const struct vv_base_layers *layers, const struct base_piece *x, size_t n)
{
	const struct vv_block *b = &x->file->blocks.v[x->block];
	uint8_t *room;
	int rc;

	if (n == 1 && x->len == b->raw_len)
		return read_whole(layers, x, b);
	room = vv_context_pool_room((size_t)b->raw_len + (b->codec ? b->stored_len : 0));
	rc = room ? read_block(layers, x, room, room + b->raw_len) : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		memcpy(x[i].to, room + x[i].from, x[i].len);
	vv_context_pool_room_back(room);
	return rc;
}

static int read_all(const struct vv_base_layers *layers, struct base_pieces *p)
{
	int rc = 0;

	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_block);
	for (size_t i = 0, n; rc == 0 && i < p->n; i += n) {
		for (n = 1; i + n < p->n && by_block(&p->v[i], &p->v[i + n]) == 0; n++)
			;
		rc = read_pieces(layers, &p->v[i], n);
	}
	return rc;
}

int vv_base_layers_read(struct vv_base_layers *b, const struct vv_delta_base *v, size_t n, uint8_t *to)
{
	struct base_pieces p = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; to += v[i++].len) {
		struct vv_layer_file *f = NULL;

		if (!v[i].epoch) {
			memset(to, 0, (size_t)v[i].len);
			continue;
		}
		rc = vv_base_layers_open(b, v[i].epoch, &f);
		if (rc == 0)
			rc = cut(&p, f, v[i].pos, v[i].len, to);
	}
	if (rc == 0)
		rc = read_all(b, &p);
	vv_mem_free(p.v);
	return rc;
}
