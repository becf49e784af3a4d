/* The parity of an epoch in the output of the verbs. */
#ifndef VV_CLI_BASE_SHOW_PARITY_H
#define VV_CLI_BASE_SHOW_PARITY_H

#include "base/json.h"
#include "cli/base/out.h"
#include "engine/lineage/catalog.h"

/* The parity of the epoch in this store, as a line of text, or as members of a JSON object.
 * Nothing, if there is none. */
int vv_show_parity_print(struct vv_out *o, const struct vv_lineage *lin, const struct vv_listing *l, uint64_t epoch);
int vv_show_parity_put(struct vv_json *j, const struct vv_lineage *lin, const struct vv_listing *l, uint64_t epoch);

#endif
