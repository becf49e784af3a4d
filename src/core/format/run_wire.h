/* Runs as they are stored: a layer's sections SOURCES and RUNS, docs/format.md, section 4. */
#ifndef VV_CORE_RUNWIRE_H
#define VV_CORE_RUNWIRE_H

#include "base/parallel_for.h"
#include "core/format/head.h"
#include <stdbool.h>

int vv_runwire_put(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs);

/* The runs of h's regions. Long tables are read in parts, at once if the loop has threads; what comes out is the same. */
int vv_runwire_get(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_loop *loop);

/* The same, begun. Of long tables only the parts that they are read in are known: their runs have their place in the head, and come there part by part. All bytes
 * stay where they are until it is freed. */
struct vv_runwire;

struct vv_runwire_part {
	uint64_t at;     /* where the run before its first one ends */
	size_t first, n; /* its runs, among those of the region */
};

int vv_runwire_begin(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_loop *loop, struct vv_runwire **out);
/* The layers that the runs of all regions name. */
size_t vv_runwire_sources(const struct vv_runwire *w, const uint64_t **out);
/* How many parts a region has; 0: it has been read. */
size_t vv_runwire_parts(const struct vv_runwire *w, size_t region);
void vv_runwire_part(const struct vv_runwire *w, size_t region, size_t i, struct vv_runwire_part *out);
/* The part's runs are there. By any thread, but a part by one at a time. False: something is wrong with them, and end will say what. */
bool vv_runwire_read(const struct vv_runwire *w, size_t region, size_t i);
/* All that was not read is, and what is wrong is told, as if it had been read from front to back. The regions have no parts any more. */
int vv_runwire_end(struct vv_runwire *w, const struct vv_loop *loop);
void vv_runwire_free(struct vv_runwire *w); /* NULL is fine */

#endif
