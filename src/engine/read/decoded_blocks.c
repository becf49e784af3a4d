#include "engine/read/decoded_blocks.h"
#include "base/err.h"
#include "base/mem.h"

struct decode {
	struct vv_layer_file *file;
	size_t block;
	uint8_t *to;
	const uint8_t **result;
};

struct decoding {
	struct decode *v;
	size_t n;
};

/* A damaged block is left out: who needs it reads it again, and reports the error. */
static void decode_one(void *arg, size_t i)
{
	struct decode *x = &((struct decoding *)arg)->v[i];
	uint8_t *scratch = vv_mem_new(x->file->blocks.v[x->block].stored_len, 1);

	if (scratch && vv_layer_file_read_block(x->file, x->block, x->to, scratch) == 0)
		*x->result = x->to;
	vv_err_clear();
	vv_mem_free(scratch);
}

static size_t count(const struct vv_open_layers *w, uint64_t *bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		for (size_t b = 0; b < w->file[i]->blocks.n; b++) {
			if (!w->file[i]->blocks.v[b].codec)
				continue;
			*bytes += w->file[i]->blocks.v[b].raw_len;
			n++;
		}
	return n;
}

static int list(struct vv_decoded_blocks *d, const struct vv_open_layers *w, struct decoding *all)
{
	size_t at = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct vv_blocks *b = &w->file[i]->blocks;

		d->block[i] = vv_mem_new(b->n, sizeof(*d->block[i]));
		if (!d->block[i])
			return VV_ENOMEM;
		for (size_t k = 0; k < b->n; k++) {
			if (!b->v[k].codec)
				continue;
			all->v[all->n++] = (struct decode){ w->file[i], k, d->bytes + at, &d->block[i][k] };
			at += b->v[k].raw_len;
		}
	}
	return 0;
}

int vv_decoded_blocks_read(struct vv_decoded_blocks *d, const struct vv_open_layers *w, struct vv_pool *pool, uint64_t most)
{
	struct decoding all = { 0 };
	uint64_t bytes = 0;
	size_t n = count(w, &bytes);
	int rc;

	if (n == 0 || bytes > most)
		return 0;
	d->len = (size_t)bytes;
	d->bytes = vv_mem_map(d->len);
	all.v = vv_mem_new(n, sizeof(*all.v));
	rc = d->bytes && all.v ? list(d, w, &all) : VV_ENOMEM;
	if (rc == 0)
		vv_pool_each(pool, n, decode_one, &all);
	vv_mem_free(all.v);
	return rc;
}

void vv_decoded_blocks_fini(struct vv_decoded_blocks *d)
{
	for (size_t i = 0; i < VV_OPEN_LAYERS_LAYERS; i++)
		vv_mem_free(d->block[i]);
	vv_mem_unmap(d->bytes, d->len);
	*d = (struct vv_decoded_blocks){ 0 };
}

const uint8_t *vv_decoded_blocks_get(const struct vv_decoded_blocks *d, const struct vv_open_layers *w, size_t i, const struct vv_block *block)
{
	return d->block[i] ? d->block[i][block - w->file[i]->blocks.v] : NULL;
}
