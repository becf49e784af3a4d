/* New bytes of a layer: gathered into blocks, compressed and checked on all cores, and written in
 * order by a thread. So the caller waits for the sink only when it is far behind. */
#ifndef VV_ENGINE_WRITE_BLOCK_WRITER_H
#define VV_ENGINE_WRITE_BLOCK_WRITER_H

#include "base/pool.h"
#include "codec/codec.h"
#include "core/format/layer.h"
#include "store/store.h"

struct vv_costs;
struct vv_block_writer;
struct vv_delta;
struct vv_delta_source;

enum { VV_BLOCK_WRITER_SLAB = 8 << 20 };

/* a part of a block's content: a number of chunks added with the tag */
struct vv_block_writer_tag_count {
	uint32_t tag, adds;
};

struct vv_block_writer_options {
	size_t block;                 /* bytes per block before compression */
	const struct vv_codec *codec; /* NULL: none, or the first candidate of `automatic` */
	int level;
	bool automatic;   /* compress only where a sample shows that it pays, */
	struct vv_costs *costs; /* by these */
	bool always;      /* automatic: compress all data that shrink, however fast the sink is */
	bool low_latency;      /* a thread may wait for bytes that are being stored */
	bool copy;        /* added bytes are copied at once: the caller need not keep them */
	bool on_caller;        /* with `copy`: the caller also compresses and writes */
	bool small_pages;      /* with `copy`: there is too little to fill large pages */
	/* Limit for compression; with `copy`: of uncompressed bytes in progress. 0 = no limit. */
	size_t memory;
	const struct vv_delta_source *deltas; /* NULL: no block is stored as a difference */
	/* A block with this content is written. With NULL: nothing more will be written. Any thread
	 * that writes blocks calls it, also those of the store, several at once. May be NULL. */
	void (*stored)(void *arg, const struct vv_block_writer_tag_count *owed, int n);
	void *arg;
};

/* With `copy`: the size of a block's own memory, for blocks of up to so many bytes. */
static inline size_t vv_block_writer_slab(size_t block)
{
	return block < VV_BLOCK_WRITER_SLAB ? VV_BLOCK_WRITER_SLAB : block;
}

int vv_block_writer_open(struct vv_pool *pool, struct vv_put *put, const struct vv_block_writer_options *opt, struct vv_block_writer **out);
/* Appends a chunk of n bytes of this form (NULL: unknown) to the payload, in one block if one can
 * hold it. The caller keeps the bytes unchanged until they are stored, or the flush is closed; with
 * `copy` until this returns. */
int vv_block_writer_add(struct vv_block_writer *f, const void *p, size_t n, const struct vv_form *form, uint32_t tag, bool copy);
/* With `copy`: adds the first n bytes of mapped memory of `room` bytes without copying them. The
 * flush takes ownership of that memory, and *slab becomes equal memory of the flush. This works
 * only where the bytes can begin a block, and room is vv_block_writer_slab(); otherwise nothing is
 * taken. */
int vv_block_writer_take(struct vv_block_writer *f, uint8_t **slab, size_t room, size_t n, bool *taken);
/* From now on blocks of up to `block` bytes (at most the options') use this codec (NULL: none) and
 * recipe, instead of the options. Bytes added before are in blocks of their own. */
int vv_block_writer_set_codec(struct vv_block_writer *f, const struct vv_codec *codec, const struct vv_recipe *how, size_t block);
/* While `plain`, blocks are stored as they are: the program waits for them. */
int vv_block_writer_set_plain(struct vv_block_writer *f, bool plain);
/* Until the next call of vv_block_writer_set_codec, blocks are stored as such differences where
 * that pays; NULL: they are not. The options have a source. */
void vv_block_writer_set_delta(struct vv_block_writer *f, const struct vv_delta *how);
/* Would n more bytes be taken without waiting for the sink? */
bool vv_block_writer_has_room(struct vv_block_writer *f, size_t n);
/* Writes the added bytes as soon as possible, even if they do not fill a block. */
int vv_block_writer_push(struct vv_block_writer *f);
/* Waits until all added bytes are written. *out: the blocks so far, owned by the flush. */
int vv_block_writer_drain(struct vv_block_writer *f, const struct vv_blocks **out);
/* The compressor for the layer's tables, by the compression of its blocks; NULL: none. */
vv_layer_coder vv_block_writer_coder(const struct vv_block_writer *f);
/* Writes the remaining bytes; *out: all blocks as written. */
int vv_block_writer_finish(struct vv_block_writer *f, struct vv_blocks *out);
/* NULL is fine; waits for blocks in progress */
void vv_block_writer_free(struct vv_block_writer *f);

#endif
