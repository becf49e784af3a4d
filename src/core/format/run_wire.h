/* The stored form of runs: a layer's sections SOURCES and RUNS, docs/format.md, section 4. */
#ifndef VV_CORE_FORMAT_RUN_WIRE_H
#define VV_CORE_FORMAT_RUN_WIRE_H

#include "base/parallel_for.h"
#include "core/format/head.h"
#include <stdbool.h>

int vv_run_wire_put(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs);

/* Reads the runs of h's regions. Long tables are read in parts, in parallel if the loop has
 * threads; the result is the same. */
int vv_run_wire_get(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_parallel_for *loop);

/* The same in steps. At first only the parts of long tables are known. The head has room for their
 * runs, which are read part by part. All input bytes must stay in place until it is freed. */
struct vv_run_wire;

struct vv_run_wire_part {
	uint64_t at;     /* the end of the run before its first one */
	size_t first, n; /* its runs, among those of the region */
};

int vv_run_wire_begin(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_parallel_for *loop, struct vv_run_wire **out);
/* The layers named by the runs of all regions. */
size_t vv_run_wire_sources(const struct vv_run_wire *w, const uint64_t **out);
/* The number of parts of a region; 0: the region has been read. */
size_t vv_run_wire_parts(const struct vv_run_wire *w, size_t region);
void vv_run_wire_part(const struct vv_run_wire *w, size_t region, size_t i, struct vv_run_wire_part *out);
/* Reads the runs of a part. Any thread may call it, but for each part only one at a time. False:
 * they are damaged, and vv_run_wire_end will report the fault. */
bool vv_run_wire_read(const struct vv_run_wire *w, size_t region, size_t i);
/* Reads all unread parts and reports faults, as if everything had been read from front to back. The
 * regions have no parts afterwards. */
int vv_run_wire_end(struct vv_run_wire *w, const struct vv_parallel_for *loop);
void vv_run_wire_free(struct vv_run_wire *w); /* NULL is fine */

#endif
