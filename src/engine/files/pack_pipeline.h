/* Files' bytes on their way into a layer: read and hashed on all cores, in slabs; what is not stored yet goes to the flush, in order. */
#ifndef VV_ENGINE_FILES_PACK_PIPELINE_H
#define VV_ENGINE_FILES_PACK_PIPELINE_H

#include "engine/files/file_set.h"
#include "engine/files/other_ranks_index.h"
#include "engine/write/layer_writer.h"
#include "engine/files/rank_dedup_rounds.h"

struct vv_pack_pipeline;

struct vv_pack_pipeline_options {
	size_t chunk;  /* of what is not cut by its content */
	bool dedup;
	struct vv_other_ranks_index *others; /* whose content may be referred to, too */
	struct vv_rank_dedup_rounds *rounds; /* with whom new content is shared; NULL: nobody */
	size_t memory; /* for slabs, about */
	size_t block;  /* the flush's largest */
	bool single_buffer;     /* nobody else reads meanwhile: one slab will do */
	bool small_pages;   /* there is too little to fill large pages */
	struct vv_progress progress;
};

/* The pass is open. */
int vv_pack_pipeline_open(struct vv_layer_writer *p, struct vv_file_set *c, const struct vv_pack_pipeline_options *opt, struct vv_pack_pipeline **out);
/* The next stretch of a file, of a kind. */
int vv_pack_pipeline_add(struct vv_pack_pipeline *f, uint32_t kind, uint32_t file, uint64_t at, uint64_t len);
/* Bytes of our own, as the next and only stretch of a region: where they came to lie. */
int vv_pack_pipeline_bytes(struct vv_pack_pipeline *f, const uint8_t *bytes, size_t n, struct vv_runs *out);
/* Everything that was added is placed. */
int vv_pack_pipeline_drain(struct vv_pack_pipeline *f);
/* And where other ranks placed the rest of it is known: after vv_rank_dedup_rounds_finish. */
int vv_pack_pipeline_resolve(struct vv_pack_pipeline *f);
void vv_pack_pipeline_close(struct vv_pack_pipeline *f); /* NULL is fine */

#endif
