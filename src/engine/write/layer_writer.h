/* One epoch in progress: from the call until its commit record is durable, or it is discarded. */
#ifndef VV_ENGINE_WRITE_LAYER_WRITER_H
#define VV_ENGINE_WRITE_LAYER_WRITER_H

#include "core/format/commit.h"
#include "core/format/layer.h"
#include "engine/context.h"
#include "engine/write/block_writer.h"
#include "engine/write/index_cache.h"

#define VV_NO_TAG (UINT32_MAX - 1) /* of bytes that nobody waits for; smaller tags are tiles */

struct vv_layer_writer;

/* The source of a layer's content. */
struct vv_layer_source {
	/* opens the layer, for content that must be placed early */
	int (*open)(struct vv_layer_writer *p);
	/* begins, opens and fills it; NULL: the regions' memory */
	int (*load)(struct vv_layer_writer *p);
	void *arg;                              /* of load */
};

struct vv_layer_writer {
	struct varve *v;
	uint64_t epoch, layer;
	size_t old_entries; /* of the index; entries above are this epoch's */
	bool keyframe;
	bool captured; /* tiles are copied or write-protected for it */
	bool opened;   /* the store may have bytes of it */
	size_t chunks; /* number to examine */
	uint64_t paged; /* dirty bytes in regions with chunks */
	struct vv_region **region; /* as they were at the call */
	size_t n_regions;
	struct vv_put *put;
	struct vv_block_writer *block_writer;
	struct vv_head head;
	struct vv_blocks blocks;
	struct vv_digests digests;
	struct vv_copies_section copies; /* of this rank's content that other ranks store too */
	uint64_t pos; /* end of the payload */
	size_t borrowed;  /* bytes of the buffer, to its tables */
	struct vv_commit_rank record; /* of the layer, once it is stored */
	struct vv_layer_source source;
	/* engine/memory/store_tiles.c, while it is in progress */
	struct vv_store_tiles *storing;
	/* engine/write/rank_dedup.c: content new to this rank, before the exchange; NULL: no dedup
	 * among ranks */
	struct vv_claims *claims;
	struct varve_stats st;
	uint64_t start_ns;
};

/* Sets all data of the layer that are known beforehand. */
int vv_layer_writer_begin(struct vv_layer_writer *p);
/* Opens the layer, in a file of its own unless it has a put already. */
int vv_layer_writer_open(struct vv_layer_writer *p, const struct vv_block_writer_options *opt);

/* Is the chunk unchanged, or its content stored already? Then r->now names it. */
bool vv_layer_writer_known(struct vv_layer_writer *p, struct vv_region *r, size_t i, const struct vv_digest *d);
/* The stability of bytes that are placed. */
enum vv_place_stability {
	VV_PLACE_STABLE,   /* unchanged until they are stored */
	VV_PLACE_VOLATILE, /* unchanged only until they are placed */
	VV_PLACE_CHANGED, /* the same; and they have changed since they were found to be new */
};

/* Adds the next placed content to DIGESTS; `entry` is its entry in the index. VV_INDEX_NONE: it has
 * an earlier one, or others know it by p->digests. */
int vv_layer_writer_add_digest(struct vv_layer_writer *p, const struct vv_digest *d, uint32_t len, uint32_t entry);
/* The chunk's bytes, of this digest, go into the payload, unless equal bytes were placed meanwhile:
 * *added = false. */
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
