/* New bytes on their way into a layer: gathered into blocks, coded and checked on all cores, written in order. */
#ifndef VV_ENGINE_FLUSH_H
#define VV_ENGINE_FLUSH_H

#include "base/pool.h"
#include "codec/codec.h"
#include "core/payload.h"
#include "store/store.h"

struct vv_flush;

struct vv_flush_options {
	size_t block;                 /* bytes per block before coding */
	const struct vv_codec *codec; /* NULL: none, or the first candidate of `automatic` */
	int level;
	bool automatic; /* code only where a sample shows that it pays */
};

/* From the option's text: "none", "zstd:3", "auto". */
int vv_flush_parse_codec(const char *text, struct vv_flush_options *out);

int vv_flush_open(struct vv_pool *pool, struct vv_put *put, const struct vv_flush_options *opt, struct vv_flush **out);
/* Appends a chunk of n bytes to the payload, whole in one block if one can hold it. The bytes stay where they are, unchanged, until the flush is closed. */
int vv_flush_add(struct vv_flush *f, const void *p, size_t n);
/* Writes what is left; the blocks as written. */
int vv_flush_finish(struct vv_flush *f, struct vv_blocks *out);
void vv_flush_free(struct vv_flush *f); /* NULL is fine; waits for what is under way */

#endif
