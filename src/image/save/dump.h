/* Saves process trees as an epoch. */
#ifndef VV_IMAGE_SAVE_DUMP_H
#define VV_IMAGE_SAVE_DUMP_H

#include "engine/files/pack.h"
#include <sys/types.h>

struct vv_dump_options {
	const pid_t *pid;
	size_t n_pids;
	bool leave_running; /* otherwise it ends once the epoch is durable */
	bool precopy;       /* most memory is copied before it is frozen */
	bool shell_job;     /* it belongs to a shell's session, or uses its terminal */
	uint64_t memory; /* bytes for its pages while it is frozen; 0: half of the free memory */
	const char *segments; /* engine/files/segment_policy.h */
	const char *const *extra; /* additional arguments for criu */
	size_t n_extra;
	struct vv_progress progress;
};

struct vv_dump_report {
	struct vv_pack_report pack;
	double frozen_s; /* duration of the freeze; 0: unknown */
	uint64_t precopied;  /* bytes that were copied before the freeze and had not changed */
	uint64_t late;   /* other bytes of the same processes */
	char why[200]; /* reason why memory was not copied before; empty: all suitable memory was */
};

/* Checks that need no store: criu and the processes exist, and the options are valid. */
int vv_dump_check(const struct vv_dump_options *opt);
/* Does everything except storing, to test whether a dump is possible. The process is frozen during
 * the test and continues afterwards. */
int vv_dump_try(const struct vv_dump_options *opt);
/* After a failure the process continues, and the store is unchanged. */
int vv_dump_run(struct varve *v, const struct vv_dump_options *opt, struct vv_dump_report *out);
void vv_dump_report_fini(struct vv_dump_report *r);

#endif
