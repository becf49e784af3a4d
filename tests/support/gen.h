/* Random but repeatable things for tests: bytes, runs, heads, payloads, whole layer images. Everything follows from the
 * state that the caller passes; memory comes from the library and is the caller's. A want of memory ends the program. */
#ifndef VV_TEST_GEN_H
#define VV_TEST_GEN_H

#include "base/buf.h"
#include "core/format/head.h"
#include "core/format/payload.h"
#include <stddef.h>
#include <stdint.h>

/* splitmix64 */
uint64_t gen_next(uint64_t *state);
/* 0 .. n-1; n at least 1. */
uint64_t gen_below(uint64_t *state, uint64_t n);
void gen_bytes(uint64_t *state, void *p, size_t n);
/* Words and numbers, as a log file has them. */
void gen_text(uint64_t *state, void *p, size_t n);

/* Runs over 0..len; with_gaps leaves some of it out. Layers are epochs 1..epoch of a few ranks, or zero; runs of
 * `own` stay below payload. */
void gen_runs(uint64_t *state, struct vv_runs *out, uint64_t len, int with_gaps, uint64_t own, uint64_t payload);
/* A head that the format allows: up to max_regions regions, with runs and stats. */
void gen_head(uint64_t *state, struct vv_head *h, size_t max_regions);
/* Uncoded blocks over some of 0..payload, their bytes appended to `bytes`; whole: over all of it, one extent each. */
void gen_blocks(uint64_t *state, uint64_t payload, int whole, struct vv_blocks *b, struct vv_buf *bytes);
void gen_digests(uint64_t *state, uint64_t payload, struct vv_digests *d);
/* A complete layer file. head_digest may be NULL. */
void gen_image(uint64_t *state, size_t max_regions, struct vv_buf *out, struct vv_digest *head_digest);

#endif
