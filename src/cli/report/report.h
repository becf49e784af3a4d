/* What 'varve report' tells of a lineage, gathered from commit records, heads of layers and run tables. Everything is
 * bounded, whatever there is in the store: neighbouring epochs or ranks are put together in rows, and of regions and layers
 * the largest are told apart. */
#ifndef VV_CLI_REPORT_REPORT_H
#define VV_CLI_REPORT_REPORT_H

#include "base/map.h"
#include "cli/base/verb_context.h"
#include "cli/pack/show_files.h"
#include "engine/upkeep/gc.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/run_table.h"

enum {
	VV_REPORT_EPOCHS = 1000,  /* rows of epochs */
	VV_REPORT_RANKS = 256,    /* rows of ranks */
	VV_REPORT_LISTED = 200,   /* regions, variables, files, layers */
	VV_REPORT_WARM = 64,      /* rows of the heat map */
	VV_REPORT_PROBLEMS = 20,
	VV_REPORT_LINEAGES = 100,
	VV_REPORT_HEADS = 1 << 16, /* layers that are looked into, of all lineages, unless the epochs are asked for */
};

/* Figures of an epoch. Bytes are summed up over the ranks, of times the longest counts. */
enum vv_report_figure {
	VV_REPORT_MEMORY,
	VV_REPORT_DIRTY,
	VV_REPORT_UNCHANGED,
	VV_REPORT_ZERO,
	VV_REPORT_DUP_TIME,
	VV_REPORT_DUP_SPACE,
	VV_REPORT_DUP_RANKS,
	VV_REPORT_NEW,
	VV_REPORT_STORED,
	VV_REPORT_LAYER,
	VV_REPORT_COPIED,
	VV_REPORT_WAITED,
	VV_REPORT_COW,
	VV_REPORT_AVOIDED,
	VV_REPORT_LENT,
	VV_REPORT_BLOCKED, /* times from here on, in ns */
	VV_REPORT_FLUSH,
	VV_REPORT_WAITS,
	VV_REPORT_FAULTS,
	VV_REPORT_ASKING,
	VV_REPORT_FIGURES
};

struct vv_report_row { /* of epochs first..last, or of ranks first..last of one epoch */
	uint64_t first, last, n;
	uint64_t time_ns; /* of the last */
	uint64_t ranks;   /* of the last */
	uint64_t layers, told; /* layers there should be, and those whose statistics were read */
	uint64_t damaged; /* commit records that cannot be read */
	uint64_t total;   /* of ranks: stored in all epochs */
	uint64_t v[VV_REPORT_FIGURES];
};

/* ---- how much of each region changed in each epoch: report_heat.c ------------------------------------------------- */

enum {
	VV_REPORT_BANDS = 16,       /* parts of a region, from its first byte to its last */
	VV_REPORT_BANDED = 16,      /* regions of which parts are known: the first that are met */
	VV_REPORT_BAND_LEN = 1 << 12 /* the least that a part has */
};

struct vv_report_heat_row {
	char *name;
	bool variable; /* of packed files; else a region */
	uint64_t *changed, *size; /* bytes, by row of epochs */
	uint64_t *band; /* of a region: changed bytes of each part, those of one row of epochs side by side; or NULL */
	uint64_t total; /* changed */
};

struct vv_report_heat { /* starts empty, but for the number of columns */
	struct vv_report_heat_row *v; /* what has no row of its own is in the first, after settling in the last */
	size_t n, cap, columns;
	struct vv_map by_name;
	bool others; /* is there any? */
};

void vv_report_heat_fini(struct vv_report_heat *h);
/* What a layer changed, in the column of its epoch. */
int vv_report_heat_add(struct vv_report_heat *h, struct vv_verb_context *job, const struct vv_lineage *lin,
		       const struct vv_commit *c, const struct vv_head *head, size_t column);
/* The rows that changed most, at most VV_REPORT_WARM; all others are put together in the last. */
void vv_report_heat_settle(struct vv_report_heat *h);
/* Takes a column out. */
void vv_report_heat_drop(struct vv_report_heat *h, size_t column);

/* ---- what a restart reads: report_restore.c ------------------------------------------------------------------------ */

enum { VV_REPORT_CODECS = 16 };

struct vv_report_codec {
	uint32_t codec;
	uint64_t blocks, raw, stored;
};

struct vv_report_source { /* the layers of one epoch */
	uint64_t epoch, layers;
	uint64_t bytes;        /* of the regions */
	uint64_t blocks, read; /* that hold them, and their stored bytes */
};

struct vv_report_region { /* of all ranks */
	char *name;
	struct vv_shape shape; /* of the first */
	bool differs;          /* on other ranks */
	uint64_t ranks, bytes, runs;
	uint64_t from[VV_REPORT_CODECS]; /* bytes, by number in `codec` below */
	uint64_t zero;
};

struct vv_report_restore {
	uint64_t epoch, ranks, heads, zero;
	uint64_t elsewhere;   /* ranks that could not be looked at */
	bool partial;         /* there are too many layers: blocks were not counted in all */
	struct vv_report_source *source; /* ascending */
	size_t n_sources, sources_cap;
	struct vv_report_region *region;
	size_t n_regions, regions_cap;
	struct vv_map by_name;
	struct vv_report_codec codec[VV_REPORT_CODECS];
	size_t n_codecs;
	struct vv_show_files files;
	uint64_t opened;
};

void vv_report_restore_fini(struct vv_report_restore *r);
/* One rank of the epoch. */
int vv_report_restore_add(struct vv_report_restore *r, struct vv_verb_context *job, const struct vv_lineage *lin,
			  const struct vv_commit *c, uint32_t rank);
/* Sorts: regions by size, the largest first. */
void vv_report_restore_settle(struct vv_report_restore *r);

/* ---- all of it: report_lineage.c ------------------------------------------------------------------------------------ */

struct vv_report_problem {
	uint64_t epoch;
	char *text;
};

struct vv_report_lineage {
	struct vv_lineage lin;
	uint64_t n_epochs;  /* in the store */
	uint64_t n_shown;   /* the newest of them, of which the rest tells */
	uint64_t on_disk;   /* bytes of all layers that are there now */
	uint64_t n_layers;
	struct vv_report_row *epoch;
	size_t n_rows;
	struct vv_report_row all; /* times: the sum over the epochs */
	uint64_t blocked_most_ns;
	struct vv_report_row *rank; /* of the newest epoch */
	size_t n_ranks;
	struct vv_report_heat heat;
	struct vv_report_restore restore;
	int gc_rc;
	char *gc_error;
	struct vv_gc_report gc;
	struct vv_report_problem problem[VV_REPORT_PROBLEMS];
	uint64_t n_problems; /* also those that are not listed */
};

struct vv_report_limits {
	uint64_t newest; /* epochs; 0: as many as `heads` allow */
	uint64_t rows;   /* of epochs */
	uint64_t heads;  /* layers to be looked into, if newest is 0 */
};

int vv_report_lineage_load(struct vv_report_lineage *r, struct vv_verb_context *job, const char *name,
			   const struct vv_report_limits *limits);
void vv_report_lineage_fini(struct vv_report_lineage *r);

/* ---- as JSON: report_json.c ------------------------------------------------------------------------------------------ */

void vv_report_json_put(const struct vv_report_lineage *r, struct vv_json *j);

/* ---- as a page: report_page.c, report_png.c --------------------------------------------------------------------------- */

/* VV_ENOTSUP where the page was not built in. */
int vv_report_page_check(void);
/* The page with the data in it. */
int vv_report_page_make(const struct vv_buf *json, struct vv_buf *out);

/* Each chart as a picture in a folder, drawn by a browser that is installed; *n: how many. VV_ENOTSUP if there is none. */
int vv_report_png_write(const struct vv_buf *page, const char *folder, size_t *n);

#endif
