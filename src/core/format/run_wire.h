/* Runs as they are stored: a layer's sections SOURCES and RUNS, docs/format.md, section 4. */
#ifndef VV_CORE_FORMAT_RUN_WIRE_H
#define VV_CORE_FORMAT_RUN_WIRE_H

#include "base/parallel_for.h"
#include "core/format/head.h"
#include <stdbool.h>

int vv_run_wire_put(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs);

/* The runs of h's regions. Long tables are read in parts, at once if the loop has threads; what comes out is the same. */
int vv_run_wire_get(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_parallel_for *loop);

/* The same, begun. Of long tables only the parts that they are read in are known: their runs have their place in the head, and come there part by part. All bytes
 * stay where they are until it is freed. */
struct vv_run_wire;

struct vv_run_wire_part {
	uint64_t at;     /* where the run before its first one ends */
	size_t first, n; /* its runs, among those of the region */
};

int vv_run_wire_begin(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_parallel_for *loop, struct vv_run_wire **out);
/* The layers that the runs of all regions name. */
size_t vv_run_wire_sources(const struct vv_run_wire *w, const uint64_t **out);
/* How many parts a region has; 0: it has been read. */
size_t vv_run_wire_parts(const struct vv_run_wire *w, size_t region);
void vv_run_wire_part(const struct vv_run_wire *w, size_t region, size_t i, struct vv_run_wire_part *out);
/* The part's runs are there. By any thread, but a part by one at a time. False: something is wrong with them, and end will say what. */
bool vv_run_wire_read(const struct vv_run_wire *w, size_t region, size_t i);
/* All that was not read is, and what is wrong is told, as if it had been read from front to back. The regions have no parts any more. */
int vv_run_wire_end(struct vv_run_wire *w, const struct vv_parallel_for *loop);
void vv_run_wire_free(struct vv_run_wire *w); /* NULL is fine */

#endif
