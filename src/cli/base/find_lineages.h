/* The lineages of a store that a user has named: a folder that is no store is an error, not an
 * empty store. */
#ifndef VV_CLI_BASE_FIND_LINEAGES_H
#define VV_CLI_BASE_FIND_LINEAGES_H

#include "engine/lineage/catalog.h"
#include "store/store.h"

/* Lists at least one lineage, sorted by name. Otherwise VV_ENOENT, with a message that describes
 * the folder. The caller releases `out` by vv_names_fini. */
int vv_find_lineages(struct vv_store *store, struct vv_names *out);
/* Opens a lineage of the store. If the store has no lineage at all, the message describes the
 * folder. */
int vv_find_lineages_open(struct vv_store *store, const char *name, struct vv_lineage *out);

#endif
