/* Tan 2023: dedup of small chunks, *grains*, within a set of regions and over time. docs/dedup.md
 * is the specification. The result depends on the bytes alone, not on the caller, the number of
 * threads or the machine.
 *
 * The complete grains of all regions of a set are numbered; each region begins at a multiple of
 * VV_GRAIN_TILE. The rest of a region, less than a grain, is its tail and is not handled here. An
 * epoch is processed in slices of VV_GRAIN_SLICE numbers. Changes are described by pieces, none of
 * which crosses the border of a slice. The new bytes are the epoch's *data*, grain by grain. */
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

/* digests at most, in a generation: a table of them has fewer than 2^32 slots */
#define VV_GRAIN_LIMIT ((uint64_t)1 << 31)
#define VV_GRAIN_NUMBERS (UINT32_MAX - (uint64_t)VV_GRAIN_SLICE) /* at most, in a set */

enum vv_method { VV_METHOD_FULL, VV_METHOD_BASIC, VV_METHOD_LIST, VV_METHOD_TREE, VV_METHOD_RUN };

enum vv_piece_kind {
	VV_PIECE_ZERO,   /* zeros */
	VV_PIECE_NEW,    /* the epoch's data, from grain `number` of it on */
	/* the data of epoch `ordinal`, this one or an older, from grain `number` of it on */
	VV_PIECE_COPY,
	/* each grain repeats the one `number` grains before it, which may be in the same piece */
	VV_PIECE_REPEAT,
};

/* `len` grains from number `at` on. */
struct vv_piece {
	uint32_t at;
	uint32_t len;
	uint64_t from; /* kind << 62 | ordinal << 40 | number; the ordinal is 0 but for COPY */
};

/* ordinals are below this; the engine numbers the epochs of a session with them */
#define VV_GRAIN_ORDINALS (1u << 22)

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
	/* a bit per 4096 bytes: those that may have changed since the last pass; NULL: all */
	const uint64_t *maybe;
	uint32_t first; /* number of its first grain: vv_grain_number_spans */
	uint32_t n;     /* complete grains */
};

/* Numbers the spans' grains; *end: one more than the highest number, a multiple of
 * VV_GRAIN_TILE. */
int vv_grain_number_spans(struct vv_span *span, size_t n, uint32_t chunk, uint32_t *end);
/* The span that contains the grain of this number. */
size_t vv_grain_span_of(const struct vv_span *span, size_t n, uint32_t number);
/* The number of digests to remember in each of the two generations, at least 1024. `memory` is the
 * total in bytes, without the regions. It pays for a digest of each grain, the work on a slice, and
 * two tables. The work takes 64 bytes per number of a slice, but at most a quarter of `memory`. The
 * tables have slots of 24 bytes and are three quarters full. With `states`, the limit is at most
 * `states` for each number plus 1024. The method `tree` has four tables and remembers half as
 * many. */
size_t vv_grain_limit(uint64_t memory, uint32_t end, uint32_t states);
/* Sets and returns the error of a collision. The bytes at `offset` of region `id` have the digest
 * of bytes at another place and differ from them. zero: the other bytes are zeros. */
int vv_grain_collide(uint32_t chunk, uint64_t id, uint64_t offset, bool zero, uint64_t other, uint64_t other_offset);
const char *vv_grain_method_name(enum vv_method method);

#endif
