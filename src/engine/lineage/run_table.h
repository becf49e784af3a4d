/* The full run tables of one rank in one epoch: its layer merged with its parents, down to the
 * keyframe. */
#ifndef VV_ENGINE_LINEAGE_RUN_TABLE_H
#define VV_ENGINE_LINEAGE_RUN_TABLE_H

#include "base/map.h"
#include "base/pool.h"
#include "core/format/head.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/shared_runs.h"
#include <stdbool.h>

struct vv_layer_file;

/* The runs of each layer for a region, newest first; the last covers it completely. */
struct vv_run_table_unmerged {
	size_t n;
	const struct vv_runs **runs;
	struct vv_run_table_source { /* their origin */
		struct vv_layer_file *file;
		size_t region;
	} source[];
};

struct vv_run_table_region {
	char *name;
	struct vv_shape shape;
	struct vv_runs runs; /* cover it exactly */
	struct vv_shared_runs *shared_runs; /* the shared owner of `runs`, or NULL */
	struct vv_run_table_unmerged *unmerged; /* the input for the missing runs; NULL: complete */
	struct vv_distribution *part; /* core/format/distribution.h; NULL: a plain region */
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
	size_t layers; /* the number of heads that were read */
	uint64_t *layer; /* their layers, newest first */
	struct vv_run_table_chain *chain; /* the heads of unmerged layers; NULL: none */
};

enum vv_run_table_runs {
	VV_RUN_TABLE_WHOLE,
	/* Regions with runs in several layers may stay unmerged until vv_run_table_merge. */
	VV_RUN_TABLE_LATE,
	/* The same, and layers need not be read completely before vv_run_table_load_rest or
	 * vv_run_table_merge. */
	VV_RUN_TABLE_BEGUN,
};

struct vv_run_table_how {
	struct vv_pool *pool;           /* reads the heads in parallel; NULL: one thread does */
	/* The epoch's record, if it was read and contains the rank; else NULL. */
	const struct vv_commit *commit;
	enum vv_run_table_runs runs;
};

/* Loads the tables of a committed epoch. Returns VV_EDAMAGED if a layer differs from the committed
 * one. how may be NULL for the defaults. */
int vv_run_table_load(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, const struct vv_run_table_how *how, struct vv_run_table *out);
/* The runs of layer i for at..end, and perhaps some more. Any thread may call it. Returns false if
 * they are damaged. vv_run_table_load_rest then reports the error. */
bool vv_run_table_layer_runs(const struct vv_run_table_unmerged *s, size_t i, uint64_t at, uint64_t end, struct vv_runs *out);
/* The layers that layer i refers to, for all its regions. Returns their number. */
size_t vv_run_table_sources(const struct vv_run_table_unmerged *s, size_t i, const uint64_t **out);
/* Reads and checks the remaining runs of the layers. After an error it may be called again. */
int vv_run_table_load_rest(struct vv_run_table *t, struct vv_pool *pool);
/* Builds the missing runs. Also sets them in shared runs that were shared before. After an error it
 * may be called again. */
int vv_run_table_merge(struct vv_run_table *t, struct vv_pool *pool);
void vv_run_table_fini(struct vv_run_table *t);
/* Returns a reference to the region's runs, or NULL if there is no memory. */
struct vv_shared_runs *vv_run_table_share(struct vv_run_table_region *r);
/* Index of the region, or t->n. */
size_t vv_run_table_find(const struct vv_run_table *t, const char *name);
/* The same, but the error lists the existing regions. */
int vv_run_table_region(const struct vv_lineage *lin, const struct vv_run_table *t, const char *name,
		    const struct vv_run_table_region **out);

#endif
