/* Files' bytes on their way into a layer: read and hashed on all cores, in slabs; what is not stored yet goes to the flush, in order. */
#ifndef VV_ENGINE_FEED_H
#define VV_ENGINE_FEED_H

#include "engine/files/file_set.h"
#include "engine/files/other_ranks_index.h"
#include "engine/write/layer_writer.h"
#include "engine/files/rank_dedup_rounds.h"

struct vv_feed;

struct vv_feed_options {
	size_t chunk;  /* of what is not cut by its content */
	bool dedup;
	struct vv_others *others; /* whose content may be referred to, too */
	struct vv_shares *shares; /* with whom new content is shared; NULL: nobody */
	size_t memory; /* for slabs, about */
	size_t block;  /* the flush's largest */
	bool here;     /* nobody else reads meanwhile: one slab will do */
	bool narrow;   /* there is too little to fill large pages */
	struct vv_progress progress;
};

/* The pass is open. */
int vv_feed_open(struct vv_pass *p, struct vv_cargo *c, const struct vv_feed_options *opt, struct vv_feed **out);
/* The next stretch of a file, of a kind. */
int vv_feed_add(struct vv_feed *f, uint32_t kind, uint32_t file, uint64_t at, uint64_t len);
/* Bytes of our own, as the next and only stretch of a region: where they came to lie. */
int vv_feed_bytes(struct vv_feed *f, const uint8_t *bytes, size_t n, struct vv_runs *out);
/* Everything that was added is placed. */
int vv_feed_drain(struct vv_feed *f);
/* And where other ranks placed the rest of it is known: after vv_shares_finish. */
int vv_feed_settle(struct vv_feed *f);
void vv_feed_close(struct vv_feed *f); /* NULL is fine */

#endif
