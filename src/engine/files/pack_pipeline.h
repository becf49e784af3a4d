/* Moves the bytes of files into a layer. Slabs are read and hashed on all cores; new content goes
 * to the flush in order. */
#ifndef VV_ENGINE_FILES_PACK_PIPELINE_H
#define VV_ENGINE_FILES_PACK_PIPELINE_H

#include "engine/files/file_set.h"
#include "engine/files/other_ranks_index.h"
#include "engine/write/layer_writer.h"
#include "engine/files/rank_dedup_rounds.h"

struct vv_pack_pipeline;

struct vv_pack_pipeline_options {
	size_t chunk;  /* length of chunks that are not cut by content */
	bool dedup;
	struct vv_other_ranks_index *others; /* content of other ranks that may be referred to */
	struct vv_rank_dedup_rounds *rounds; /* ranks that share new content; NULL: none */
	size_t memory; /* for slabs, approximately */
	size_t block;  /* the largest block of the flush */
	struct vv_parent_files *parent; /* NULL: nothing is stored as a difference */
	bool single_buffer;     /* no other thread reads meanwhile: one slab suffices */
	bool small_pages;   /* there are too few bytes to fill large pages */
	struct vv_progress progress;
};

/* The layer writer's pass must be open. */
int vv_pack_pipeline_open(struct vv_layer_writer *p, struct vv_file_set *c, const struct vv_pack_pipeline_options *opt, struct vv_pack_pipeline **out);
/* Adds the next stretch of a file, of one kind. */
int vv_pack_pipeline_add(struct vv_pack_pipeline *f, uint32_t kind, uint32_t file, uint64_t at, uint64_t len);
/* Stores bytes of varve itself, as the next and only stretch of a region; *out: their positions. */
int vv_pack_pipeline_bytes(struct vv_pack_pipeline *f, const uint8_t *bytes, size_t n, struct vv_runs *out);
/* Places all added bytes. */
int vv_pack_pipeline_drain(struct vv_pack_pipeline *f);
/* Resolves the positions of content that other ranks placed, after vv_rank_dedup_rounds_finish. */
int vv_pack_pipeline_resolve(struct vv_pack_pipeline *f);
void vv_pack_pipeline_close(struct vv_pack_pipeline *f); /* NULL is allowed */

#endif
