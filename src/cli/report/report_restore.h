/* The cost of restoring the newest epoch: the layers that its runs refer to, and the blocks that
 * contain the runs, with their codecs. */
#ifndef VV_CLI_REPORT_REPORT_RESTORE_H
#define VV_CLI_REPORT_REPORT_RESTORE_H

#include "cli/report/report.h"

enum { VV_REPORT_CODECS = 16 };

struct vv_report_codec {
	uint32_t codec;
	uint64_t blocks, raw, stored;
};

struct vv_report_source { /* the layers of one epoch */
	uint64_t epoch, layers;
	uint64_t bytes;        /* of the regions */
	uint64_t blocks, read; /* that contain them, and their stored bytes */
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
	uint64_t elsewhere;   /* ranks that could not be read */
	bool partial;         /* there are too many layers: not all blocks were counted */
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
/* Adds one rank of the epoch. */
int vv_report_restore_add(struct vv_report_restore *r, struct vv_verb_context *job, const struct vv_lineage *lin,
			  const struct vv_commit *c, uint32_t rank);
/* Sorts the regions by size, the largest first. */
void vv_report_restore_finish(struct vv_report_restore *r);

#endif
