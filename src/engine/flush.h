/* New bytes on their way into a layer: gathered into blocks, coded and checked on all cores, written in order by a thread of
 * its own, so that whoever adds them need not wait for the sink until it is far behind. */
#ifndef VV_ENGINE_FLUSH_H
#define VV_ENGINE_FLUSH_H

#include "base/pool.h"
#include "codec/codec.h"
#include "core/layer.h"
#include "store/store.h"

struct vv_flush;

#define VV_FLUSH_FAILED UINT32_MAX

struct vv_flush_options {
	size_t block;                 /* bytes per block before coding */
	const struct vv_codec *codec; /* NULL: none, or the first candidate of `automatic` */
	int level;
	bool automatic;   /* code only where a sample shows that it pays */
	bool always;      /* automatic: whatever shrinks is coded, however fast the sink is */
	bool prompt;      /* somebody may wait for what is being stored */
	size_t memory;    /* for coding, at most; 0 = no limit */
	/* Called on the writing thread: `adds` of the chunks that were added under the tag are written; or, with the tag
	 * VV_FLUSH_FAILED, that nothing more will be. May be NULL. */
	void (*stored)(void *arg, uint32_t tag, uint32_t adds);
	void *arg;
};

/* From the option's text: "none", "zstd:3", "auto". */
int vv_flush_parse_codec(const char *text, struct vv_flush_options *out);

int vv_flush_open(struct vv_pool *pool, struct vv_put *put, const struct vv_flush_options *opt, struct vv_flush **out);
/* Appends a chunk of n bytes, which are of this form (NULL: nothing is known of them), to the payload, whole in one block if one can hold
 * it. The bytes stay where they are, unchanged, until they are stored, or the flush is closed. */
int vv_flush_add(struct vv_flush *f, const void *p, size_t n, const struct vv_form *form, uint32_t tag);
/* Would n more bytes be taken without waiting for the sink? */
bool vv_flush_room(struct vv_flush *f, size_t n);
/* What was added is written as soon as can be, even if it does not fill a block. */
int vv_flush_push(struct vv_flush *f);
/* What codes the tables of the layer, whose blocks were coded like this; NULL: nothing. */
vv_layer_coder vv_flush_coder(const struct vv_flush *f);
/* Writes what is left; the blocks as written. */
int vv_flush_finish(struct vv_flush *f, struct vv_blocks *out);
void vv_flush_free(struct vv_flush *f); /* NULL is fine; waits for what is under way */

#endif
