/* What `varve run` says: a line for each event, as text or as JSON, and a summary; on the standard error, or at the end of a file. The standard output is the program's. */
#ifndef VV_CLI_RUN_RUN_MESSAGES_H
#define VV_CLI_RUN_RUN_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

struct vv_run_sums {
	uint64_t epochs;         /* that became durable */
	uint64_t measured;       /* of these: the others were dropped before they were looked at */
	uint64_t memory, stored; /* what the measured ones hold, and what their layers take */
	uint64_t failed;         /* checkpoints that did not become an epoch */
	uint64_t restarts;
	double lost_s; /* work that was done again, and time without the program */
	int status;    /* that we end with */
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
/* The same of what went wrong: quiet or not. */
void vv_run_messages_warn(const struct vv_run_messages *t, const char *event, uint64_t epoch, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void vv_run_messages_durable(const struct vv_run_messages *t, uint64_t epoch, uint64_t memory, uint64_t stored);
void vv_run_messages_summary(const struct vv_run_messages *t, const struct vv_run_sums *s);

#endif
