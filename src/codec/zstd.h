/* What other codecs need of zstd, which has no other home than zstd.c. */
#ifndef VV_CODEC_ZSTD_H
#define VV_CODEC_ZSTD_H

#include <stdbool.h>
#include <stddef.h>

struct vv_zstd_how {
	int level;
	unsigned window; /* log2 of how far back it looks, by long-distance matching too; 0: as the level has it */
	unsigned least;  /* bytes that must be as before to be told so; 0: as the level has it */
	bool little;     /* of what is little tables are small, too: they cost more to clear than it costs to code */
};

/* One frame of n bytes in to[cap]. *out = 0 where it is not shorter than n, or longer than cap. */
int vv_zstd_encode(const void *from, size_t n, void *to, size_t cap, const struct vv_zstd_how *how, size_t *out);

#endif
