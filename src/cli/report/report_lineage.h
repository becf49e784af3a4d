/* The report of one lineage. It is read epoch by epoch, in batches: commit records first, then the
 * heads of their layers. Both use all threads, because a store may have a high latency. */
#ifndef VV_CLI_REPORT_REPORT_LINEAGE_H
#define VV_CLI_REPORT_REPORT_LINEAGE_H

#include "cli/report/report.h"
#include "cli/report/report_heat.h"
#include "cli/report/report_restore.h"
#include "engine/upkeep/last_verify.h"

struct vv_report_problem {
	uint64_t epoch;
	char *text;
};

struct vv_report_lineage {
	struct vv_lineage lin;
	struct vv_listing listing;
	uint64_t n_epochs;  /* in the store */
	uint64_t n_shown;   /* the newest of them, which the rest describes */
	uint64_t on_disk;   /* bytes of all layers that exist now */
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
	uint64_t n_problems; /* including those that are not listed */
	struct vv_last_verify verified;
};

struct vv_report_limits {
	uint64_t newest; /* epochs; 0: as many as `heads` allow */
	uint64_t rows;   /* of epochs */
	uint64_t heads;  /* layers to be read, if newest is 0 */
};

int vv_report_lineage_load(struct vv_report_lineage *r, struct vv_verb_context *job, const char *name,
			   const struct vv_report_limits *limits);
void vv_report_lineage_fini(struct vv_report_lineage *r);

#endif
