/* One epoch in the making: from the call until its commit record is durable, or nothing of it is left. */
#ifndef VV_ENGINE_WRITE_LAYER_WRITER_H
#define VV_ENGINE_WRITE_LAYER_WRITER_H

#include "core/format/commit.h"
#include "core/format/layer.h"
#include "engine/context.h"
#include "engine/write/block_writer.h"
#include "engine/write/index_cache.h"

struct vv_layer_writer;

/* Where the content of a layer comes from. */
struct vv_layer_source {
	int (*open)(struct vv_layer_writer *p); /* opens the layer, for content that must be placed early */
	int (*load)(struct vv_layer_writer *p); /* begins, opens and fills it; NULL: the regions' memory */
	void *arg;                              /* of load */
};

struct vv_layer_writer {
	struct varve *v;
	uint64_t epoch, layer;
	size_t old_entries; /* of the index; above it is this epoch's */
	bool keyframe;
	bool captured; /* tiles are copied or write-protected for it */
	bool opened;   /* the store may hold something of it */
	size_t chunks; /* to be looked at */
	uint64_t paged; /* bytes that are dirty in regions that have chunks */
	struct vv_region **region; /* as they were at the call */
	size_t n_regions;
	struct vv_put *put;
	struct vv_block_writer *block_writer;
	struct vv_head head;
	struct vv_blocks blocks;
	struct vv_digests digests;
	struct vv_copies_section copies; /* of this rank's content that others store too */
	uint64_t pos; /* end of the payload */
	size_t borrowed;  /* bytes of the buffer, to its tables */
	struct vv_commit_rank record; /* of the layer, once it is stored */
	struct vv_layer_source source;
	struct vv_store_tiles *storing;     /* engine/memory/store_tiles.c, while it is under way */
	struct vv_claims *claims; /* engine/write/rank_dedup.c: what is new to this rank, before the others are asked; NULL if they are not */
	struct varve_stats st;
	uint64_t start_ns;
};

/* Everything that is known of the layer beforehand. */
int vv_layer_writer_begin(struct vv_layer_writer *p);
/* Opens the layer, in a file of its own unless it has a put already. */
int vv_layer_writer_open(struct vv_layer_writer *p, const struct vv_block_writer_options *opt);

/* Does the chunk hold what it held, or something that is stored already (then r->now says where)? */
bool vv_layer_writer_known(struct vv_layer_writer *p, struct vv_region *r, size_t i, const struct vv_digest *d);
/* What is known of bytes that are placed. */
enum vv_place_stability {
	VV_PLACE_STABLE,   /* they stay as they are until they are stored */
	VV_PLACE_VOLATILE, /* only until they are placed */
	VV_PLACE_CHANGED, /* the same; and when it was found out that they are new, they were others */
};

/* DIGESTS will name what is placed next, of which this is the index's entry; VV_INDEX_NONE: it has one from before, or others know it by p->digests. */
int vv_layer_writer_add_digest(struct vv_layer_writer *p, const struct vv_digest *d, uint32_t len, uint32_t entry);
/* The chunk's bytes, of this digest, go into the payload, unless the same were placed meanwhile: *added = false. */
int vv_layer_writer_place(struct vv_layer_writer *p, struct vv_region *r, size_t i, const struct vv_digest *d, const void *bytes,
		  enum vv_place_stability how, uint32_t tag, bool *added);
/* A chunk's state as a run. */
struct vv_run vv_layer_writer_run(const struct vv_index *x, const struct vv_region *r, size_t i, uint32_t state);

/* The digests of this epoch's new content, in the order of its positions: the tail of the index. */
static inline struct vv_digest *vv_layer_writer_new_digests(const struct vv_layer_writer *p)
{
	return p->v->index_cache->index.digest + p->old_entries;
}

#endif
