/* S3's merging schemes: four orders of the same spans. agnostic: file after file. agnostic-block: a block of each file in turn. aware: what is
 * no variable, then variable after variable, each of all files. aware-block: the same, a block of each file's variable in turn. */
#ifndef VV_CORE_BRAID_H
#define VV_CORE_BRAID_H

#include <stddef.h>
#include <stdint.h>

enum vv_braid { VV_BRAID_AGNOSTIC, VV_BRAID_AGNOSTIC_BLOCK, VV_BRAID_AWARE, VV_BRAID_AWARE_BLOCK };

struct vv_span { /* of a file */
	uint32_t file; /* files are numbered in the order of their ranks */
	uint32_t kin;  /* variables with the same number are kin; 0: no variable */
	uint64_t at, len;
};

struct vv_strand { /* a stretch of a span, in the order of the scheme */
	uint32_t span; /* its number */
	uint64_t from, len; /* from: in the span */
};

struct vv_braid_order; /* one at a time, so that there is never a list of them */

/* Spans come sorted by (file, at) and cover their files. group: so many files at a time are braided (0: all). block: bytes, for the -block
 * schemes. */
int vv_braid_new(enum vv_braid scheme, const struct vv_span *span, size_t n, uint32_t group, uint64_t block, struct vv_braid_order **out);
/* The next stretch; false: there is none. */
int vv_braid_next(struct vv_braid_order *b, struct vv_strand *out);
void vv_braid_free(struct vv_braid_order *b); /* NULL is fine */

#endif
