/* Packs files into the store of the first operand, as one epoch or as several, and reports the
 * result. */
#ifndef VV_CLI_PACK_PACK_COMMAND_H
#define VV_CLI_PACK_PACK_COMMAND_H

#include "cli/pack/filelist.h"
#include "cli/base/verb_context.h"
#include "cli/pack/purge.h"

struct vv_pack_command_known { /* files that the lineage had already */
	size_t sets;                 /* these are not packed */
	struct vv_purge_count count; /* of their files, if packed files are to be deleted */
};

/* The settings of the command line must have been handed on. delete: deletes the safely packed
 * files. */
int vv_pack_command_run(struct vv_verb_context *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete);
/* Packs each set of the list as an epoch, one after the other, in one session. A failed set ends
 * it: the epochs before it stay. The failure is reported, and determines the exit status. */
int vv_pack_command_series(struct vv_verb_context *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete,
		      struct vv_pack_command_known *known);
/* Reports the result, in a table or in JSON. */
int vv_pack_command_report(struct vv_verb_context *job, const struct vv_pack_report *r, double seconds);

#endif
