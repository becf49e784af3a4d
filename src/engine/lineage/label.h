/* Labels of epochs: names that people give to epochs. A label is an object beside the commit
 * record, and its name is the label (docs/format.md, section 2). An epoch may have several. If
 * several epochs of a lineage have the same label, it means the newest of them. */
#ifndef VV_ENGINE_LINEAGE_LABEL_H
#define VV_ENGINE_LINEAGE_LABEL_H

#include "engine/lineage/catalog.h"

/* Both are atomic, and need no lock. The epoch must exist, or be about to be committed. */
int vv_label_put(const struct vv_lineage *lin, uint64_t epoch, const char *label);
int vv_label_remove(const struct vv_lineage *lin, uint64_t epoch, const char *label);
/* Commits the epoch with the label, if it is not "". There is no committed epoch without its label
 * at any time. */
int vv_label_commit(const struct vv_lineage *lin, const struct vv_commit *c, const char *label);

/* The labels of an epoch are those from the returned one on; *n: their number. */
const struct vv_label_name *vv_label_of(const struct vv_listing *l, uint64_t epoch, size_t *n);
/* The newest committed epoch with the label; VV_ENOENT if there is none. */
int vv_label_find(const struct vv_lineage *lin, const char *label, uint64_t *epoch);
/* Removes the labels of epochs that do not exist. No other process may write the lineage. */
int vv_label_sweep(const struct vv_lineage *lin, const struct vv_listing *l);

#endif
