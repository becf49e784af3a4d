/* Ranks that feed new content into one epoch, and what several of them hold is stored by one: engine/files/pack_pipeline.c asks here before it places what is new
 * to its rank. Content comes once and in stretches, from files or from streams, so the ranks talk in rounds: each tells the home ranks (core/ranks/owner_stream.h) the
 * digests of its next slabs, hears which to store and which lie where, and tells with the next round where it put its own. What it heard the rank
 * that has it confirms, by digest and position. Nothing is read twice, and memory is that of one round and of the home rank's table.
 *
 * All ranks come to as many rounds as the one that has the most, and to vv_rank_dedup_rounds_finish whatever became of their part: what failed on one
 * fails there, or in the next round, on all. Given the same content on the same ranks, the same rank stores the same, however many threads there
 * are. Readers need to know nothing of it: a run names the layer that has the bytes. */
#ifndef VV_ENGINE_FILES_RANK_DEDUP_ROUNDS_H
#define VV_ENGINE_FILES_RANK_DEDUP_ROUNDS_H

#include "core/ranks/owner_stream.h"
#include "engine/write/layer_writer.h"

struct vv_rank_dedup_rounds;

/* All ranks, before anything else of the epoch can fail on one of them. apart: also where ranks have stores of their own. *out is NULL where there is nobody to share with:
 * a session alone, without dedup, with collective=none or copies > 1; that is so on all ranks or on none. */
int vv_rank_dedup_rounds_open(struct vv_layer_writer *p, bool apart, struct vv_rank_dedup_rounds **out);
void vv_rank_dedup_rounds_close(struct vv_rank_dedup_rounds *s); /* NULL is fine */

/* Into the next round; *claim is its number there. segment: what belongs together has the same, and goes to one rank if it can. */
int vv_rank_dedup_rounds_claim(struct vv_rank_dedup_rounds *s, const struct vv_digest *d, uint32_t segment, uint32_t *claim);
/* All ranks: the claims are decided, and what was awaited has come. Every claim of the round before that was to be STOREd is placed by now. */
int vv_rank_dedup_rounds_run(struct vv_rank_dedup_rounds *s);
/* Until the next round. STORED: where it lies. PENDING: in which layer; *pos is what to await. */
enum vv_owner_stream_kind vv_rank_dedup_rounds_decision(const struct vv_rank_dedup_rounds *s, uint32_t claim, uint64_t *layer, uint64_t *pos);
/* STORE: it will lie there, in this rank's layer, unless that has it already. */
void vv_rank_dedup_rounds_placed(struct vv_rank_dedup_rounds *s, uint32_t claim, uint64_t pos);

/* A run of this file has its bytes in content that comes PENDING, run.pos bytes from its beginning on. */
int vv_rank_dedup_rounds_await(struct vv_rank_dedup_rounds *s, uint64_t soon, uint32_t file, struct vv_run run);
/* The next of those that have come with the last round: where it lies is known. false: that was all. */
bool vv_rank_dedup_rounds_next_resolved(struct vv_rank_dedup_rounds *s, uint32_t *file, struct vv_run *run);

/* No more claims: goes on answering until nobody has any. All ranks, each with what became of its part; vv_rank_dedup_rounds_next_resolved has the rest then.
 * NULL is fine: returns rc. */
int vv_rank_dedup_rounds_finish(struct vv_rank_dedup_rounds *s, int rc);

#endif
