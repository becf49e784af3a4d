/* Supervises a program: starts it, checkpoints it periodically, and restores it from its last epoch
 * when it dies. */
#ifndef VV_IMAGE_SUPERVISE_H
#define VV_IMAGE_SUPERVISE_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "image/save/dump.h"

struct vv_supervise_options {
	char *const *command;
	/* Standard output and error are appended to this file; the input is empty. */
	const char *output;
	double every_s;       /* interval; 0: only on SIGUSR1 */
	uint64_t max_restarts;
	uint64_t resume;      /* the first epoch to restore; 0: start the program */
	mode_t mask;          /* its umask */
	uint64_t memory;      /* image/save/dump.h, image/restore/restore_one.h */
	const char *segments;
	bool precopy;
	void *arg;
	void (*report)(void *arg, const char *text); /* each event, in a sentence */
	void (*saved)(void *arg, const struct vv_dump_report *r);
};

/* To be called before any thread starts: only vv_supervise_run receives the signals. */
int vv_supervise_prepare(void);
/* Returns when the program has ended well, or has died too often. *status is the status of wait(2).
 * The last epoch goes to *epoch: one that was saved, restored, or tried for a restore. */
int vv_supervise_run(struct varve *v, const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_supervise_options *opt, int *status,
		uint64_t *epoch);

#endif
