/* Fills a part of a region from overlaid tables, without merging them: each page comes from the
 * newest layer that has it. With changed pages all over the memory, merging took most of a
 * restart's time besides copying, for a table that was read once. */
#ifndef VV_ENGINE_READ_NEWEST_PAGE_H
#define VV_ENGINE_READ_NEWEST_PAGE_H

#include "engine/read/restore.h"
#include "engine/read/open_layers.h"

/* parts begin and end at a page border, and so must the layers' runs in them */
enum { VV_NEWEST_PAGE_PAGE = 4096 };

/* Takes n tables, newest first. All of their layers with wanted bytes are open. false: not all of
 * it was copied, for whatever reason; the part's content is then undefined. */
bool vv_newest_page_copy(const struct vv_open_layers *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part);

#endif
