/* Runs: the places of the bytes of a region. One model serves all five papers. A ref is (layer,
 * position), a run is a destination range with a ref, a table is the runs of a region in ascending
 * order. */
#ifndef VV_CORE_FORMAT_RUN_H
#define VV_CORE_FORMAT_RUN_H

#include <stddef.h>
#include <stdint.h>

#define VV_MAX_EPOCH 9999999999ull
#define VV_MAX_RANKS (1u << 20)
#define VV_MAX_REGION_BYTES (1ull << 40)
#define VV_MAX_PAYLOAD (1ull << 40)

/* A layer is one epoch of one rank, packed in one word so that runs compare and sort by it. 0 is no
 * layer. */
static inline uint64_t vv_run_layer(uint64_t epoch, uint32_t rank)
{
	return epoch << 20 | rank;
}

static inline uint64_t vv_run_epoch(uint64_t layer)
{
	return layer >> 20;
}

static inline uint32_t vv_run_rank(uint64_t layer)
{
	return (uint32_t)(layer & (VV_MAX_RANKS - 1));
}

struct vv_run {
	uint64_t at;
	uint64_t len;
	uint64_t layer; /* 0: the bytes are zero */
	uint64_t pos;   /* in the layer's payload; 0 for zero runs */
};

struct vv_runs {
	struct vv_run *v;
	size_t n;
	size_t cap;
};

/* Does b continue a, so that the two are one run? */
static inline int vv_run_joins(const struct vv_run *a, const struct vv_run *b)
{
	return a->at + a->len == b->at && a->layer == b->layer && (a->layer == 0 || a->pos + a->len == b->pos);
}

/* The part of the run in at..end. */
static inline struct vv_run vv_run_clip(struct vv_run run, uint64_t at, uint64_t end)
{
	if (run.at < at) {
		run.pos += run.layer ? at - run.at : 0;
		run.len -= at - run.at;
		run.at = at;
	}
	if (run.at + run.len > end)
		run.len = end - run.at;
	return run;
}

void vv_run_fini(struct vv_runs *r);
/* Makes room for n runs in total. */
int vv_run_reserve(struct vv_runs *r, size_t n);
/* Adds a run at or after the end of the last one; a run that continues the last one is joined to
 * it. */
int vv_run_add(struct vv_runs *r, struct vv_run run);
/* The first run that ends after `at`; r->n if there is none. */
size_t vv_run_find(const struct vv_runs *r, uint64_t at);
/* Do the runs cover 0..len exactly? */
int vv_run_covers(const struct vv_runs *r, uint64_t len);
/* Adds the part of `from` that lies in at..end to out, at the same positions. */
int vv_run_slice(const struct vv_runs *from, uint64_t at, uint64_t end, struct vv_runs *out);
/* Combines two tables: the runs of `above`, and in its gaps those of `below`. Gaps of both stay
 * gaps. */
int vv_run_overlay(const struct vv_runs *above, const struct vv_runs *below, struct vv_runs *out);

#endif
