/* Which layers belong together: what those that were opened say of the eras of epochs, their own and those they refer to (core/format/era_table.h). One that says something else than
 * those read with it is of another copy of the lineage, and is not read as theirs. A writer knows besides what all said that it ever met: the layers that its index knows of. */
#ifndef VV_ENGINE_LINEAGE_PROVENANCE_H
#define VV_ENGINE_LINEAGE_PROVENANCE_H

#include "core/format/era_table.h"
#include "core/format/head.h"

struct vv_provenance;
struct vv_lineage;
struct vv_store;

/* Lives as long as the store. */
int vv_provenance_new(struct vv_store *store, struct vv_provenance **out);
/* What a layer says. VV_EDAMAGED: others have said something else. By any thread. */
int vv_provenance_add(const struct vv_lineage *lin, const struct vv_era_table *said);
/* Before an epoch is read that need not belong to those read before. */
void vv_provenance_forget(const struct vv_lineage *lin);
/* Of the era that the epoch belongs to, as those say that were read last; 0: not known. */
uint64_t vv_provenance_token(const struct vv_lineage *lin, uint64_t epoch);

/* Is a layer in the place of another one that was met before? Then what is known of that one is worth nothing. */
bool vv_provenance_was_replaced(const struct vv_lineage *lin);
/* It is known no more. */
void vv_provenance_reset(const struct vv_lineage *lin);
/* Is the era of the epoch known, or not to be learned? */
bool vv_provenance_is_known(const struct vv_lineage *lin, uint64_t epoch);
/* All that is known; out must start empty. */
int vv_provenance_copy_all(const struct vv_lineage *lin, struct vv_era_table *out);
/* No layer tells it. */
void vv_provenance_mark_unknown(const struct vv_lineage *lin, uint64_t epoch);
/* What a layer of the era `own` with that head has to say; out must start empty. */
int vv_provenance_list(const struct vv_lineage *lin, const struct vv_era *own, const struct vv_head *head, struct vv_era_table *out);

#endif
