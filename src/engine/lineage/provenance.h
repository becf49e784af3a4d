/* Decides which layers belong together. Each layer contains the eras of its own epoch and of those
 * that it refers to (core/format/era_table.h). A layer that contradicts the layers read with it
 * belongs to another copy of the lineage and is rejected. A writer also keeps the eras of all
 * layers that it has ever read: the layers of its index. */
#ifndef VV_ENGINE_LINEAGE_PROVENANCE_H
#define VV_ENGINE_LINEAGE_PROVENANCE_H

#include "core/format/delta_bases.h"
#include "core/format/era_table.h"
#include "core/format/head.h"

struct vv_provenance;
struct vv_lineage;
struct vv_store;

/* Freed with the store. */
int vv_provenance_new(struct vv_store *store, struct vv_provenance **out);
/* Adds the eras of a layer. Returns VV_EDAMAGED if other layers contradict it. Any thread may call
 * it. */
int vv_provenance_add(const struct vv_lineage *lin, const struct vv_era_table *said);
/* Call it before reading an epoch that need not belong to those read before. */
void vv_provenance_forget(const struct vv_lineage *lin);
/* Increases with each vv_provenance_forget. */
uint64_t vv_provenance_serial(const struct vv_lineage *lin);
/* The token of the epoch's era, by the layers read last; 0: unknown. */
uint64_t vv_provenance_token(const struct vv_lineage *lin, uint64_t epoch);

/* Has a layer replaced another one that was read before? Then knowledge of the old one is
 * useless. */
bool vv_provenance_was_replaced(const struct vv_lineage *lin);
/* Forgets all eras except those read last. */
void vv_provenance_reset(const struct vv_lineage *lin);
/* Is the era of the epoch known, or known to be unavailable? */
bool vv_provenance_is_known(const struct vv_lineage *lin, uint64_t epoch);
/* Copies all known eras. out must start empty. */
int vv_provenance_copy_all(const struct vv_lineage *lin, struct vv_era_table *out);
/* Notes that no layer contains the epoch's era. */
void vv_provenance_mark_unknown(const struct vv_lineage *lin, uint64_t epoch);
/* The eras for a new layer of the era `own` with that head. out must start empty. */
int vv_provenance_list(const struct vv_lineage *lin, const struct vv_era *own, const struct vv_head *head, const struct vv_delta_bases *bases,
		       struct vv_era_table *out);

#endif
