/* The full run tables of one rank in one epoch: its layer laid over its parents, down to the keyframe. */
#ifndef VV_ENGINE_LINEAGE_RUN_TABLE_H
#define VV_ENGINE_LINEAGE_RUN_TABLE_H

#include "base/map.h"
#include "base/pool.h"
#include "core/format/head.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/shared_runs.h"
#include <stdbool.h>

struct vv_layer_file;

struct vv_run_table_unmerged { /* what each layer says of a region, newest first; the last says all of it */
	size_t n;
	const struct vv_runs **runs;
	struct vv_run_table_source { /* where that is */
		struct vv_layer_file *file;
		size_t region;
	} source[];
};

struct vv_run_table_region {
	char *name;
	struct vv_shape shape;
	struct vv_runs runs; /* cover it exactly */
	struct vv_shared_runs *shared_runs; /* that they are of, where others have them too; else NULL */
	struct vv_run_table_unmerged *unmerged; /* that the runs are still to be made of; NULL: they are there */
};

struct vv_run_table_chain;

struct vv_run_table {
	uint64_t epoch;
	uint32_t rank;
	uint32_t ranks;
	uint8_t digest_kind;
	uint8_t depth;
	struct vv_run_table_region *region; /* in the order of the layer */
	size_t n;
	struct vv_map by_name;
	size_t layers; /* how many heads were read: */
	uint64_t *layer; /* of these, newest first */
	struct vv_run_table_chain *chain; /* the unmerged layers' heads; NULL: there are none */
};

enum vv_run_table_runs {
	VV_RUN_TABLE_WHOLE,
	VV_RUN_TABLE_LATE,  /* regions of which several layers say something may be left as they say it, until settle */
	VV_RUN_TABLE_BEGUN, /* the same, and the layers need not be read yet: until finish or settle they are looked at */
};

struct vv_run_table_how {
	struct vv_pool *pool;           /* reads the heads on all its threads; NULL: one thread does */
	const struct vv_commit *commit; /* the epoch's record, if it has been read and has the rank; else NULL */
	enum vv_run_table_runs runs;
};

/* The epoch must be committed; a layer that is not what was committed is VV_EDAMAGED. how: NULL is one of zeros. */
int vv_run_table_load(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, const struct vv_run_table_how *how, struct vv_run_table *out);
/* By any thread: what layer i says of at..end, and of some more. False: something is wrong with that, and finish will say what. */
bool vv_run_table_layer_runs(const struct vv_run_table_unmerged *s, size_t i, uint64_t at, uint64_t end, struct vv_runs *out);
/* The layers that layer i names, and not only for that region; returns how many. */
size_t vv_run_table_sources(const struct vv_run_table_unmerged *s, size_t i, const uint64_t **out);
/* What the layers say is all there, and right. After an error it may be tried again. */
int vv_run_table_load_rest(struct vv_run_table *t, struct vv_pool *pool);
/* Makes the runs that are not there yet, and puts them on the shared runs that were shared without them. After an error it may be tried again. */
int vv_run_table_merge(struct vv_run_table *t, struct vv_pool *pool);
void vv_run_table_fini(struct vv_run_table *t);
/* The region's runs, for the caller to hold as well; NULL: no memory. */
struct vv_shared_runs *vv_run_table_share(struct vv_run_table_region *r);
/* Index of the region, or t->n. */
size_t vv_run_table_find(const struct vv_run_table *t, const char *name);
/* The same with an error that lists what there is. */
int vv_run_table_region(const struct vv_lineage *lin, const struct vv_run_table *t, const char *name,
		    const struct vv_run_table_region **out);

#endif
