/* Tan 2023: dedup of small chunks, *grains*, within a set of regions and in time. docs/dedup.md is the specification: what comes out depends
 * on the bytes alone, not on who does it, in how many threads, on which machine.
 *
 * The whole grains of all regions of a set are numbered; each region begins at a multiple of VV_GRAIN_TILE. What is left of a
 * region, less than a grain, is its tail and none of our business. An epoch is looked at in slices of VV_GRAIN_SLICE numbers. What has changed
 * is told in pieces, none of which goes over the border of a slice; the bytes that are new are the epoch's *data*, grain by grain. */
#ifndef VV_CORE_DEDUP_GRAIN_H
#define VV_CORE_DEDUP_GRAIN_H

#include "core/format/digest.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VV_GRAIN_MIN = 32, /* bytes; a power of two */
	VV_GRAIN_MAX = 4096,
	VV_GRAIN_TILE = 32,       /* numbers */
	VV_GRAIN_SLICE = 1 << 21, /* numbers */
};

#define VV_GRAIN_LIMIT ((uint64_t)1 << 31) /* digests at most, in a generation: a table of them has fewer than 2^32 slots */
#define VV_GRAIN_NUMBERS (UINT32_MAX - (uint64_t)VV_GRAIN_SLICE) /* at most, in a set */

enum vv_method { VV_METHOD_FULL, VV_METHOD_BASIC, VV_METHOD_LIST, VV_METHOD_TREE, VV_METHOD_RUN };

enum vv_piece_kind {
	VV_PIECE_ZERO,   /* zeros */
	VV_PIECE_NEW,    /* the epoch's data, from grain `number` of it on */
	VV_PIECE_COPY,   /* the data of epoch `ordinal`, this one or an older, from grain `number` of it on */
	VV_PIECE_REPEAT, /* what this epoch has `number` grains before each; that may be in the piece itself */
};

/* `len` grains from number `at` on. */
struct vv_piece {
	uint32_t at;
	uint32_t len;
	uint64_t from; /* kind << 62 | ordinal << 40 | number; the ordinal is 0 but for COPY */
};

#define VV_GRAIN_ORDINALS (1u << 22) /* ordinals are below this; an ordinal is the number of an epoch in a session, given by the engine */

static inline uint64_t vv_grain_from(enum vv_piece_kind kind, uint32_t ordinal, uint64_t number)
{
	return (uint64_t)kind << 62 | (uint64_t)ordinal << 40 | number;
}

static inline enum vv_piece_kind vv_grain_kind(uint64_t from)
{
	return (enum vv_piece_kind)(from >> 62);
}

static inline uint32_t vv_grain_ordinal(uint64_t from)
{
	return (uint32_t)(from >> 40 & (VV_GRAIN_ORDINALS - 1));
}

static inline uint64_t vv_grain_number(uint64_t from)
{
	return from & ((1ull << 40) - 1);
}

/* A region of the set. */
struct vv_span {
	uint64_t id; /* the same in all epochs in which it is the same region */
	uint8_t *p;
	uint64_t len;
	const uint64_t *maybe; /* a bit per 4096 bytes: those that may have changed since the last pass; NULL: all */
	uint32_t first; /* number of its first grain: vv_grain_number_spans */
	uint32_t n;     /* whole grains */
};

/* Numbers the spans' grains; *end: one more than the highest number, a multiple of VV_GRAIN_TILE. */
int vv_grain_number_spans(struct vv_span *span, size_t n, uint32_t chunk, uint32_t *end);
/* The span that a grain's number is of. */
size_t vv_grain_span_of(const struct vv_span *span, size_t n, uint32_t number);
/* How many digests are remembered in each of the two generations, if `memory` bytes may be used in all beside the regions: they pay for a
 * digest of each grain, the work on a slice (64 bytes per number of it, but no more than a quarter of them), and two tables whose slots of 24 bytes are three quarters full; 1024 at least.
 * With `states` no more than so many for each number, and 1024. Of the method `tree`, which has four tables, half as many. */
size_t vv_grain_limit(uint64_t memory, uint32_t end, uint32_t states);
/* The error that the bytes at `offset` of region `id` have the digest of those at another place, or with zero of as many zeros, and are not equal. */
int vv_grain_collide(uint32_t chunk, uint64_t id, uint64_t offset, bool zero, uint64_t other, uint64_t other_offset);
const char *vv_grain_method_name(enum vv_method method);

#endif
