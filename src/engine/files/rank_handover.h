/* Memory that is alike on several ranks, and not the same: pages of programs that were started apart differ in every pointer. Digests do not find that; a
 * trail does (codec/word_history.c), if one rank codes all of it. So before anything is placed the ranks of a host hand over what is new to them: memory is
 * cut into stretches, and the same stretch of all ranks goes to one of them, another stretch to another one, so that all code equally much. What a rank was
 * handed it places next to its own, as if it were of files of its own, and tells in the end where it came to lie. A run names the layer that has the
 * bytes, so readers need to know nothing of it. */
#ifndef VV_ENGINE_FILES_RANK_HANDOVER_H
#define VV_ENGINE_FILES_RANK_HANDOVER_H

#include "engine/files/file_set.h"
#include "engine/files/other_ranks_index.h"
#include "engine/write/layer_writer.h"

enum { VV_RANK_HANDOVER_RANKS = 8 }; /* that hand over to each other, at most: who restores one of them reads blocks of all */

struct vv_rank_handover;

struct vv_rank_handover_options {
	const struct vv_pack_options *pack;
	struct vv_other_ranks_index *others;
	size_t chunk;
	bool excluded; /* this rank cannot take part: then no rank hands anything over */
};

/* All ranks, each with what became of its part, when kinds are decided (engine/files/recipes.h) and nothing is placed. The file set's spans are those that this rank
 * is to place afterwards; files of the others are behind its own. *out is NULL where nobody hands anything over. */
int vv_rank_handover_open(struct vv_layer_writer *p, struct vv_file_set *c, const struct vv_rank_handover_options *opt, int rc, struct vv_rank_handover **out);
/* All ranks, when everything is placed: who owns the bytes learns where they are, and the file set has its own files again. NULL is fine: returns rc. */
int vv_rank_handover_return(struct vv_rank_handover *g, int rc);
void vv_rank_handover_close(struct vv_rank_handover *g); /* NULL is fine; the file set is not read any more */

#endif
