/* Joint compression of memory that is similar, but not equal, on several ranks. Pages of programs
 * that were started separately differ in every pointer. Digests do not find this similarity; a word
 * history does (codec/word_history.c), if one rank compresses all of the memory.
 *
 * So the ranks of a host hand over new content before anything is placed. Memory is cut into
 * stretches. The same stretch of all ranks goes to one rank and the next stretch to another, so
 * that all ranks compress about equal amounts. A rank places the received memory beside its own, as
 * if it came from its own files, and finally reports the positions. Readers do not depend on this:
 * a run names the layer that has the bytes. */
#ifndef VV_ENGINE_FILES_RANK_HANDOVER_H
#define VV_ENGINE_FILES_RANK_HANDOVER_H

#include "engine/files/file_set.h"
#include "engine/files/other_ranks_index.h"
#include "engine/write/layer_writer.h"

/* ranks that hand over to each other, at most: a restore of one rank reads blocks of all */
enum { VV_RANK_HANDOVER_RANKS = 8 };

struct vv_rank_handover;

struct vv_rank_handover_options {
	const struct vv_pack_options *pack;
	struct vv_other_ranks_index *others;
	size_t chunk;
	bool excluded; /* this rank cannot take part: then no rank hands over memory */
};

/* Called by all ranks, each with the result of its part, after kinds are decided
 * (engine/files/recipes.h) and before anything is placed. Afterwards the spans of the file set are
 * those that this rank places; files of other ranks follow its own. The result is NULL if no rank
 * hands over memory. */
int vv_rank_handover_open(struct vv_layer_writer *p, struct vv_file_set *c, const struct vv_rank_handover_options *opt, int rc, struct vv_rank_handover **out);
/* Called by all ranks when everything is placed. The owner of the bytes receives their positions,
 * and the file set has its own files again. If g is NULL, it returns rc. */
int vv_rank_handover_return(struct vv_rank_handover *g, int rc);
/* NULL is allowed; does not access the file set */
void vv_rank_handover_close(struct vv_rank_handover *g);

#endif
