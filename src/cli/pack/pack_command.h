/* Files into the store of the first operand, as an epoch or as several, with words on what came of it. */
#ifndef VV_CLI_PACK_PACK_COMMAND_H
#define VV_CLI_PACK_PACK_COMMAND_H

#include "cli/pack/filelist.h"
#include "cli/base/verb_context.h"
#include "cli/pack/purge.h"

struct vv_pack_command_known { /* what the lineage had of it: */
	size_t sets;                 /* these are not packed; */
	struct vv_purge_count count; /* of their files, if those that are packed are deleted */
};

/* The settings of the command line must have been handed on. delete: what is safely packed. */
int vv_pack_command_run(struct vv_verb_context *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete);
/* Each set of the list as an epoch, one after the other, by one session. One that fails ends it: those before it stand, and what failed is told, with the
 * exit status. */
int vv_pack_command_series(struct vv_verb_context *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete,
		      struct vv_pack_command_known *known);
/* What came of it, in a table or in JSON. */
int vv_pack_command_report(struct vv_verb_context *job, const struct vv_pack_report *r, double seconds);

#endif
