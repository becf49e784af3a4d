/* Several streams of items in one block, each compressed by itself: the form that the codecs trail
 * and text share. docs/format.md, codec 6. */
#ifndef VV_CODEC_STREAM_H
#define VV_CODEC_STREAM_H

#include "base/wire.h"
#include "codec/split.h"

struct vv_stream_out {
	uint8_t *to;
	size_t at, cap;
	bool full; /* something did not fit */
	struct vv_recipe how;
};

void vv_stream_put(struct vv_stream_out *o, const void *p, size_t n);
/* Stores planes of m bytes each: the number of all bytes, the number of stored bytes, and the
 * stored bytes. The latter are uncompressed, or the length of each plane and the planes. */
int vv_stream_put_planes(struct vv_stream_out *o, const uint8_t *plane, unsigned n_planes, size_t m);
/* Splits n bytes of items into planes, and stores them. */
int vv_stream_put_items(struct vv_stream_out *o, const uint8_t *p, size_t n, unsigned width);

enum { VV_STREAM_HEADER = 20 }; /* bytes of both numbers, at most */

struct vv_stream_in {
	unsigned width;
	size_t n;                /* items of `width` bytes */
	bool made;               /* decompressed into `split`; else the planes lie in place */
	const uint8_t *as_it_is;
	struct vv_split split;
};

/* Reads a stream of at most so many items. The caller releases s->split if it was `made`. */
int vv_stream_get(struct vv_wire *w, unsigned width, size_t most, uint32_t coder, struct vv_stream_in *s);
/* Joins n items from item `at` on. Returns their bytes in x. */
void vv_stream_join(const struct vv_stream_in *s, size_t at, size_t n, uint8_t *x);

#endif
