/* Islam 2012's merging schemes: four orders of the same spans.
 * Scheme agnostic: file after file.
 * Scheme agnostic-block: a block of each file in turn.
 * Scheme aware: the bytes of no variable, then variable after variable, each of all files.
 * Scheme aware-block: the same, a block of each file's variable in turn. */
#ifndef VV_CORE_PLAN_PACK_ORDER_H
#define VV_CORE_PLAN_PACK_ORDER_H

#include <stddef.h>
#include <stdint.h>

enum vv_pack_order { VV_PACK_ORDER_AGNOSTIC, VV_PACK_ORDER_AGNOSTIC_BLOCK, VV_PACK_ORDER_AWARE, VV_PACK_ORDER_AWARE_BLOCK };

struct vv_file_span { /* of a file */
	uint32_t file; /* files are numbered in the order of their ranks */
	uint32_t kind_id;  /* variables with the same number belong together; 0: no variable */
	uint64_t at, len;
};

struct vv_pack_order_piece { /* a stretch of a span, in the order of the scheme */
	uint32_t span; /* its number */
	uint64_t from, len; /* from: in the span */
};

/* returns pieces one at a time, so that there is never a list of them */
struct vv_pack_order_iterator;

/* Spans come sorted by (file, at) and cover their files. The argument `group` is the number of
 * files that are interleaved at a time (0: all). The -block schemes take blocks of `block`
 * bytes. */
int vv_pack_order_new(enum vv_pack_order scheme, const struct vv_file_span *span, size_t n, uint32_t group, uint64_t block, struct vv_pack_order_iterator **out);
/* The next piece; false: there is none. */
int vv_pack_order_next(struct vv_pack_order_iterator *b, struct vv_pack_order_piece *out);
void vv_pack_order_free(struct vv_pack_order_iterator *b); /* NULL is fine */

#endif
