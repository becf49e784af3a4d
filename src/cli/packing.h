/* Files into the store of the first operand, as one epoch, with words on what came of it. */
#ifndef VV_CLI_PACKING_H
#define VV_CLI_PACKING_H

#include "cli/filelist.h"
#include "cli/job.h"

/* The settings of the command line must have been handed on. delete: what is safely packed. */
int vv_packing_run(struct vv_job *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete);
/* What came of it, in a table or in JSON. */
int vv_packing_tell(struct vv_job *job, const struct vv_pack_report *r, double seconds);

#endif
