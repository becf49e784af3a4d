/* The data of 'varve report' about a lineage, gathered from commit records, heads of layers and run
 * tables. Everything is bounded, whatever the size of the store. Neighbouring epochs or ranks are
 * merged in rows; only the largest regions and layers are listed individually. */
#ifndef VV_CLI_REPORT_REPORT_H
#define VV_CLI_REPORT_REPORT_H

#include "base/map.h"
#include "cli/base/verb_context.h"
#include "cli/base/show_files.h"
#include "engine/upkeep/gc.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/run_table.h"

enum {
	VV_REPORT_EPOCHS = 1000,  /* rows of epochs */
	VV_REPORT_RANKS = 256,    /* rows of ranks */
	VV_REPORT_LISTED = 200,   /* regions, variables, files, layers */
	VV_REPORT_WARM = 64,      /* rows of the heat map */
	VV_REPORT_PROBLEMS = 20,
	VV_REPORT_LABELS = 8,     /* of a row of epochs */
	VV_REPORT_LINEAGES = 100,
	/* layers that are read, of all lineages, unless the epochs are requested */
	VV_REPORT_HEADS = 1 << 16,
};

/* Figures of an epoch. Bytes are summed up over the ranks; of times the longest is taken. */
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
	uint64_t layers, has_stats; /* expected layers, and those whose statistics were read */
	uint64_t damaged; /* commit records that cannot be read */
	uint64_t restarts; /* epochs that begin another session than the epoch before them */
	uint64_t total;   /* of ranks: stored in all epochs */
	uint64_t v[VV_REPORT_FIGURES];
};

#endif
