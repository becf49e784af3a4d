/* New bytes on their way into a layer: gathered into blocks, coded and checked on all cores, written in order by a thread of
 * its own, so that whoever adds them need not wait for the sink until it is far behind. */
#ifndef VV_ENGINE_WRITE_BLOCK_WRITER_H
#define VV_ENGINE_WRITE_BLOCK_WRITER_H

#include "base/pool.h"
#include "codec/codec.h"
#include "core/format/layer.h"
#include "store/store.h"

struct vv_costs;
struct vv_block_writer;

enum { VV_BLOCK_WRITER_SLAB = 8 << 20 };

struct vv_block_writer_tag_count { /* what a block holds: so many of the chunks that were added under the tag */
	uint32_t tag, adds;
};

struct vv_block_writer_options {
	size_t block;                 /* bytes per block before coding */
	const struct vv_codec *codec; /* NULL: none, or the first candidate of `automatic` */
	int level;
	bool automatic;   /* code only where a sample shows that it pays, */
	struct vv_costs *costs; /* by these */
	bool always;      /* automatic: whatever shrinks is coded, however fast the sink is */
	bool low_latency;      /* somebody may wait for what is being stored */
	bool copy;        /* what is added is copied at once: the caller need not keep it */
	bool on_caller;        /* with `copy`: whoever adds codes and writes, too */
	bool small_pages;      /* with `copy`: there is too little to fill large pages */
	size_t memory;    /* for coding, at most; with `copy`: bytes before coding that are under way; 0 = no limit */
	/* Called on the writing thread: a block is written that holds this; or, with NULL, nothing more will be. May be NULL. */
	void (*stored)(void *arg, const struct vv_block_writer_tag_count *owed, int n);
	void *arg;
};

/* With `copy`: what a block has of its own memory, if it may be of so many bytes. */
static inline size_t vv_block_writer_slab(size_t block)
{
	return block < VV_BLOCK_WRITER_SLAB ? VV_BLOCK_WRITER_SLAB : block;
}

int vv_block_writer_open(struct vv_pool *pool, struct vv_put *put, const struct vv_block_writer_options *opt, struct vv_block_writer **out);
/* Appends a chunk of n bytes, which are of this form (NULL: nothing is known of them), to the payload, whole in one block if one can hold
 * it. The bytes stay where they are, unchanged, until they are stored, or the flush is closed; with `copy` until this returns. */
int vv_block_writer_add(struct vv_block_writer *f, const void *p, size_t n, const struct vv_form *form, uint32_t tag, bool copy);
/* With `copy`: as if n bytes were added, which begin memory of `room` bytes that was mapped. They are not copied: that memory becomes the flush's own,
 * and *slab is as much that was the flush's. Only where they can begin a block, and room is vv_block_writer_slab(); else nothing is taken. */
int vv_block_writer_take(struct vv_block_writer *f, uint8_t **slab, size_t room, size_t n, bool *taken);
/* From now on blocks of up to `block` bytes (at most the options') are coded by this codec (NULL: none) and recipe, whatever the options
 * say. What was added before is in blocks of its own. */
int vv_block_writer_set_codec(struct vv_block_writer *f, const struct vv_codec *codec, const struct vv_recipe *how, size_t block);
/* Would n more bytes be taken without waiting for the sink? */
bool vv_block_writer_has_room(struct vv_block_writer *f, size_t n);
/* What was added is written as soon as can be, even if it does not fill a block. */
int vv_block_writer_push(struct vv_block_writer *f);
/* Everything that was added is written; the blocks so far, the flush's own. */
int vv_block_writer_drain(struct vv_block_writer *f, const struct vv_blocks **out);
/* What codes the tables of the layer, whose blocks were coded like this; NULL: nothing. */
vv_layer_coder vv_block_writer_coder(const struct vv_block_writer *f);
/* Writes what is left; the blocks as written. */
int vv_block_writer_finish(struct vv_block_writer *f, struct vv_blocks *out);
void vv_block_writer_free(struct vv_block_writer *f); /* NULL is fine; waits for what is under way */

#endif
