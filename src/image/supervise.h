/* A program that is looked after: started, checkpointed from time to time, and brought back from its last epoch when it dies. */
#ifndef VV_IMAGE_SUPERVISE_H
#define VV_IMAGE_SUPERVISE_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "image/save/dump.h"

struct vv_supervise_options {
	char *const *command;
	const char *output;   /* its standard output and error go to the end of this file; the input is empty */
	double every_s;       /* 0: only on SIGUSR1 */
	uint64_t max_restarts;
	uint64_t resume;      /* the epoch to begin with; 0: the program from its start */
	mode_t mask;          /* its umask */
	uint64_t memory;      /* image/save/dump.h, image/restore/restore_one.h */
	const char *segments;
	bool precopy;
	void *arg;
	void (*report)(void *arg, const char *text); /* each event, in a sentence */
	void (*saved)(void *arg, const struct vv_dump_report *r);
};

/* To be called before there are threads: signals are taken by vv_supervise_run alone. */
void vv_supervise_prepare(void);
/* Until the program ends well, or has died too often. *status is that of wait(2); *epoch the last one that it was, or should have been, brought back from,
 * or was saved as. */
int vv_supervise_run(struct varve *v, const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_supervise_options *opt, int *status,
		uint64_t *epoch);

#endif
