/* The lineages of a store that is named by a user: a folder that is no store is an error, not an empty store. */
#ifndef VV_CLI_BASE_FIND_LINEAGES_H
#define VV_CLI_BASE_FIND_LINEAGES_H

#include "store/store.h"

/* At least one, sorted by name. Else VV_ENOENT, and the message says what the folder looks like. The caller ends it by vv_store_names_fini. */
int vv_find_lineages(struct vv_store *store, struct vv_names *out);

#endif
