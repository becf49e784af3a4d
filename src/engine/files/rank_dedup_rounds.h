/* Deduplication between ranks that add new content to one epoch: one rank stores content that
 * several hold. The pipeline (engine/files/pack_pipeline.c) asks here before it places content that
 * is new to its rank.
 *
 * Content comes once and in stretches, from files or streams, so the ranks exchange messages in
 * rounds. Each rank sends the digests of its next slabs to the home ranks
 * (core/ranks/owner_stream.h). They answer which content to store and where the rest lies. With the
 * next round the rank reports the positions of the content it stored. The rank that holds content
 * confirms a position by digest. Nothing is read twice; the memory is that of one round and of the
 * home rank's table.
 *
 * All ranks take part in as many rounds as the rank with the most, and in
 * vv_rank_dedup_rounds_finish even after an error. An error on one rank is an error on all, there
 * or in the next round. The same content on the same ranks is stored by the same ranks, for any
 * number of threads. Readers do not depend on this: a run names the layer that has the bytes. */
#ifndef VV_ENGINE_FILES_RANK_DEDUP_ROUNDS_H
#define VV_ENGINE_FILES_RANK_DEDUP_ROUNDS_H

#include "core/ranks/owner_stream.h"
#include "engine/write/layer_writer.h"

struct vv_rank_dedup_rounds;

/* Called by all ranks before any other step of the epoch can fail on one of them. If `apart` is
 * true, ranks with their own stores share too. The result is NULL on all ranks if there is no rank
 * to share with: a single rank, no dedup, collective=none, or copies > 1. */
int vv_rank_dedup_rounds_open(struct vv_layer_writer *p, bool apart, struct vv_rank_dedup_rounds **out);
void vv_rank_dedup_rounds_close(struct vv_rank_dedup_rounds *s); /* NULL is allowed */

/* Adds a claim to the next round; *claim is its number there. segment: content with the same number
 * goes to one rank if possible. */
int vv_rank_dedup_rounds_claim(struct vv_rank_dedup_rounds *s, const struct vv_digest *d, uint32_t segment, uint32_t *claim);
/* Called by all ranks. Decides the claims, and resolves awaited content. Every STORE claim of the
 * previous round must be placed by now. */
int vv_rank_dedup_rounds_run(struct vv_rank_dedup_rounds *s);
/* Valid until the next round. STORED: layer and position. PENDING: the layer; *pos is the number to
 * await. */
enum vv_owner_stream_kind vv_rank_dedup_rounds_decision(const struct vv_rank_dedup_rounds *s, uint32_t claim, uint64_t *layer, uint64_t *pos);
/* For STORE: the content will lie at pos in this rank's layer, unless the layer has it already. */
void vv_rank_dedup_rounds_placed(struct vv_rank_dedup_rounds *s, uint32_t claim, uint64_t pos);

/* A run of this file refers to PENDING content, from byte run.pos of it on. */
int vv_rank_dedup_rounds_await(struct vv_rank_dedup_rounds *s, uint64_t soon, uint32_t file, struct vv_run run);
/* The next run that the last round resolved; false: there is none. */
bool vv_rank_dedup_rounds_next_resolved(struct vv_rank_dedup_rounds *s, uint32_t *file, struct vv_run *run);

/* Ends the claims of this rank, and answers until no rank has any. Called by all ranks, each with
 * the result of its part. vv_rank_dedup_rounds_next_resolved returns the rest afterwards. If s is
 * NULL, it returns rc. */
int vv_rank_dedup_rounds_finish(struct vv_rank_dedup_rounds *s, int rc);

#endif
