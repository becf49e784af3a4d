/* The messages of `varve run`: a line for each event, as text or as JSON, and a summary. They go to
 * the standard error, or to the end of a file. The standard output belongs to the program. */
#ifndef VV_CLI_RUN_RUN_MESSAGES_H
#define VV_CLI_RUN_RUN_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

struct vv_run_sums {
	uint64_t epochs;         /* that became durable */
	uint64_t measured;       /* of these: the others were dropped before they were measured */
	/* the memory that the measured ones hold, and the bytes of their layers */
	uint64_t memory, stored;
	uint64_t failed;         /* checkpoints that did not become an epoch */
	uint64_t restarts;
	double lost_s; /* work that was done again, and time without the program */
	int status;    /* the exit status of the command */
};

struct vv_run_messages {
	int fd;
	bool quiet, json;
};

/* path: NULL is the standard error. */
int vv_run_messages_open(struct vv_run_messages *t, const char *path, bool quiet, bool json);
void vv_run_messages_close(struct vv_run_messages *t);
/* event: its name in JSON; epoch: 0 is none. */
void vv_run_messages_line(const struct vv_run_messages *t, const char *event, uint64_t epoch, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same for failures: printed also if quiet. */
void vv_run_messages_warn(const struct vv_run_messages *t, const char *event, uint64_t epoch, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void vv_run_messages_durable(const struct vv_run_messages *t, uint64_t epoch, uint64_t memory, uint64_t stored);
void vv_run_messages_summary(const struct vv_run_messages *t, const struct vv_run_sums *s);

#endif
