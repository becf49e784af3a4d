/* A part of a region from tables that lie one over the other, without merging them: each page is taken from the newest layer that has it. Where what changed are pages all over the memory, most of the
 * time of a restart besides copying went into a merged table that was read once. */
#ifndef VV_ENGINE_READ_NEWEST_PAGE_H
#define VV_ENGINE_READ_NEWEST_PAGE_H

#include "engine/read/restore.h"
#include "engine/read/open_layers.h"

enum { VV_NEWEST_PAGE_PAGE = 4096 }; /* parts begin and end with one, and so must what the layers have of them */

/* n tables, newest first; of the layers that they name all are open that hold what is wanted. false: not all of it was copied, for whatever reason; the part holds anything then. */
bool vv_newest_page_copy(const struct vv_open_layers *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part);

#endif
