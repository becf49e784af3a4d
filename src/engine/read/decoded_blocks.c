#include "engine/read/decoded_blocks.h"
#include "base/err.h"
#include "base/held.h"
#include "base/mem.h"
#include "codec/context_pool.h"

enum {
	AHEAD = 32,    /* a thread that must wait decodes one of so many next blocks, */
	SHARE_OF = 4,  /* if they take a quarter of the memory at most */
};

struct vv_decoded_block {
	size_t layer, number;
	size_t len;
	uint8_t *bytes;
	struct vv_decoded_block *newer;
	size_t users;
	bool ready, failed; /* neither: it is being decoded */
};

int vv_decoded_blocks_open(struct vv_decoded_blocks *d, const struct vv_open_layers *layers, uint64_t most)
{
	int rc = 0;

	*d = (struct vv_decoded_blocks){ .layers = layers, .most = most };
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->change, NULL);
	for (size_t i = 0; rc == 0 && i < layers->n; i++) {
		d->block[i] = vv_mem_new(layers->file[i]->blocks.n, sizeof(struct vv_decoded_block *));
		rc = d->block[i] ? 0 : VV_ENOMEM;
	}
	return rc;
}

static void drop(struct vv_decoded_blocks *d, struct vv_decoded_block *block)
{
	d->block[block->layer][block->number] = NULL;
	d->bytes -= block->len;
	vv_mem_unmap(block->bytes, block->len);
	vv_mem_free(block);
}

void vv_decoded_blocks_close(struct vv_decoded_blocks *d)
{
	for (struct vv_decoded_block *x = d->oldest, *next; x; x = next) {
		next = x->newer;
		drop(d, x);
	}
	for (size_t i = 0; i < VV_OPEN_LAYERS_LAYERS; i++)
		vv_mem_free(d->block[i]);
	pthread_cond_destroy(&d->change);
	pthread_mutex_destroy(&d->lock);
}

/* Removes the oldest unused block from the list. NULL: all are in use. */
static struct vv_decoded_block *take_unused(struct vv_decoded_blocks *d)
{
	struct vv_decoded_block *before = NULL, *x = d->oldest;

	for (; x && x->users; x = x->newer)
		before = x;
	if (!x)
		return NULL;
	if (before)
		before->newer = x->newer;
	else
		d->oldest = x->newer;
	if (d->newest == x)
		d->newest = before;
	return x;
}

/* Called with the lock held. *bytes: memory of a removed block, if one was as long; NULL: of
 * none. */
static bool make_room(struct vv_decoded_blocks *d, size_t len, uint8_t **bytes)
{
	struct vv_decoded_block *unused;

	VV_HELD(&d->lock);
	if (len > d->most)
		return false;
	while (d->bytes + len > d->most) {
		unused = take_unused(d);
		if (!unused)
			return false;
		if (!*bytes && unused->len == len) {
			*bytes = unused->bytes;
			unused->bytes = NULL;
		}
		drop(d, unused);
	}
	return true;
}

/* Called with the lock held. */
static struct vv_decoded_block *add(struct vv_decoded_blocks *d, size_t i, size_t b)
{
	size_t len = d->layers->file[i]->blocks.v[b].raw_len;
	uint8_t *bytes = NULL;
	struct vv_decoded_block *block = make_room(d, len, &bytes) ? vv_mem_new(1, sizeof(*block)) : NULL;

	VV_HELD(&d->lock);
	vv_err_clear();
	if (!block) {
		vv_mem_unmap(bytes, len);
		return NULL;
	}
	*block = (struct vv_decoded_block){ .layer = i, .number = b, .len = len, .bytes = bytes, .users = 1 };
	d->block[i][b] = block;
	d->bytes += len;
	if (d->newest)
		d->newest->newer = block;
	else
		d->oldest = block;
	d->newest = block;
	return block;
}

static bool decode(struct vv_decoded_blocks *d, struct vv_decoded_block *block)
{
	struct vv_layer_file *file = d->layers->file[block->layer];
	uint8_t *stored = vv_context_pool_room(file->blocks.v[block->number].stored_len);
	bool fine;

	if (!block->bytes)
		block->bytes = vv_mem_map_wide(block->len);
	fine = stored && block->bytes && vv_layer_file_read_block(file, block->number, block->bytes, stored) == 0;
	vv_context_pool_room_back(stored);
	vv_err_clear();
	return fine;
}

/* Called with the lock held, before and after. */
static void decode_unlocked(struct vv_decoded_blocks *d, struct vv_decoded_block *block)
{
	bool fine;

	VV_HELD(&d->lock);
	pthread_mutex_unlock(&d->lock);
	fine = decode(d, block);
	pthread_mutex_lock(&d->lock);
	block->ready = fine;
	block->failed = !fine;
	pthread_cond_broadcast(&d->change);
}

/* Decodes one of the blocks after b while another thread decodes b: this thread would wait for it.
 * Most layers are read in their order. Called with the lock held, before and after. */
static bool decode_ahead(struct vv_decoded_blocks *d, size_t i, size_t b)
{
	const struct vv_blocks *blocks = &d->layers->file[i]->blocks;
	size_t n = (size_t)(d->most / SHARE_OF / blocks->v[b].raw_len), end;
	struct vv_decoded_block *block;

	VV_HELD(&d->lock);
	n = n < AHEAD ? n : AHEAD;
	b++;
	end = n < blocks->n - b ? b + n : blocks->n;
	for (; b < end && (d->block[i][b] || !blocks->v[b].codec); b++)
		;
	block = b < end ? add(d, i, b) : NULL;
	if (!block)
		return false;
	decode_unlocked(d, block);
	block->users--;
	return true;
}

struct vv_decoded_block *vv_decoded_blocks_get(struct vv_decoded_blocks *d, size_t i, size_t b)
{
	struct vv_decoded_block *block;

	pthread_mutex_lock(&d->lock);
	block = d->block[i][b];
	if (block) {
		block->users++;
	} else {
		block = add(d, i, b);
		if (block)
			decode_unlocked(d, block);
	}
	while (block && !block->ready && !block->failed)
		if (!decode_ahead(d, i, b))
			pthread_cond_wait(&d->change, &d->lock);
	if (block && block->failed) {
		block->users--;
		block = NULL;
	}
	pthread_mutex_unlock(&d->lock);
	return block;
}

void vv_decoded_blocks_release(struct vv_decoded_blocks *d, struct vv_decoded_block *block)
{
	pthread_mutex_lock(&d->lock);
	block->users--;
	pthread_mutex_unlock(&d->lock);
}

const uint8_t *vv_decoded_blocks_bytes(const struct vv_decoded_block *block)
{
	return block->bytes;
}
