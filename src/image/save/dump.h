/* A process and all below it become an epoch. */
#ifndef VV_IMAGE_SAVE_DUMP_H
#define VV_IMAGE_SAVE_DUMP_H

#include "engine/files/pack.h"
#include <sys/types.h>

struct vv_dump_options {
	const pid_t *pid;
	size_t n_pids;
	bool leave_running; /* else it ends, once the epoch is durable */
	bool precopy;       /* most is copied before it is frozen */
	bool shell_job;     /* it belongs to a shell's session, or has its terminal */
	uint64_t memory;      /* for its pages, while it stands still; 0: half of what is free */
	const char *segments; /* engine/files/segment_policy.h */
	const char *const *extra; /* words for criu's command line */
	size_t n_extra;
	struct vv_progress progress;
};

struct vv_dump_report {
	struct vv_pack_report pack;
	double frozen_s; /* how long it stood still; 0: not known */
	uint64_t precopied;  /* bytes that were copied before that, and had not changed */
	uint64_t late;   /* bytes of the same processes that were not, or had */
	char why[200];   /* some were not copied before, or none; empty: all that are worth while were */
};

/* What can be said before there is a store: criu and the process are there, the options make sense. */
int vv_dump_check(const struct vv_dump_options *opt);
/* All but storing it: can it be done? It stands still for as long as that takes, and runs on. */
int vv_dump_try(const struct vv_dump_options *opt);
/* If it fails the process runs on, and the store is as it was. */
int vv_dump_run(struct varve *v, const struct vv_dump_options *opt, struct vv_dump_report *out);
void vv_dump_report_fini(struct vv_dump_report *r);

#endif
