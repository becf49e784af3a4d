/* Is an object that a store holds the one of a parity set? A job that died may have left another of
 * the same name. */
#ifndef VV_ENGINE_RANKS_PARITY_MATCH_H
#define VV_ENGINE_RANKS_PARITY_MATCH_H

#include "engine/lineage_handle.h"
#include "engine/ranks/parity_job.h"

enum vv_parity_match { /* the higher the better */
	VV_PARITY_UNSEEN,
	VV_PARITY_STALE,   /* of another set, or of another length */
	VV_PARITY_DAMAGED, /* its head cannot be read; parts of it may be intact */
	VV_PARITY_MATCHES,    /* its head and length are right */
};

/* Reads the head of a member's layer, or of its parity. */
int vv_parity_match_object(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, bool parity, enum vv_parity_match *out);

#endif
