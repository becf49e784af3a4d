/* The interface of zstd.c for other codecs. */
#ifndef VV_CODEC_ZSTD_H
#define VV_CODEC_ZSTD_H

#include <stdbool.h>
#include <stddef.h>

struct vv_zstd_how {
	int level;
	/* log2 of the window in bytes, with long-distance matching; 0: that of the level */
	unsigned window;
	unsigned least;  /* the shortest match in bytes; 0: that of the level */
	/* small tables for short inputs: clearing large tables costs more than the compression */
	bool little;
	bool literals; /* no matches: Huffman codes alone */
};

/* Writes one frame of n bytes into to[cap]. *out = 0 if it is not shorter than n, or longer than
 * cap. */
int vv_zstd_encode(const void *from, size_t n, void *to, size_t cap, const struct vv_zstd_how *how, size_t *out);

#endif
