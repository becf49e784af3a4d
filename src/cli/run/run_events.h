/* The reports of the program's side (engine/run_protocol.h): lines at the end of a file, which is
 * read from time to time. The file may be on a file system shared by several hosts, which does not
 * notify of its growth. */
#ifndef VV_CLI_RUN_RUN_EVENTS_H
#define VV_CLI_RUN_RUN_EVENTS_H

#include "base/buf.h"
#include <limits.h>

enum vv_run_event_kind {
	VV_RUN_EVENT_RESTORED,
	VV_RUN_EVENT_FRESH,
	VV_RUN_EVENT_TAKEN,
	VV_RUN_EVENT_DURABLE,
	VV_RUN_EVENT_FAILED,
	VV_RUN_EVENT_DAMAGED,
	VV_RUN_EVENT_REFUSED,
	VV_RUN_EVENT_UNREAD,
	VV_RUN_EVENT_UNABLE,
	VV_RUN_EVENT_KINDS,
};

struct vv_run_event {
	enum vv_run_event_kind kind;
	const char *word; /* its name */
	uint64_t epoch;
	char text[1024]; /* the sentence, or "" */
};

struct vv_run_events {
	char path[PATH_MAX];
	int fd;
	uint64_t at;        /* read up to here */
	struct vv_buf rest; /* an incomplete line */
	bool skip;          /* the line is too long, and its rest is ignored */
};

/* Creates a file: in the folder for temporary files, or, for ranks that may be on other hosts, in
 * the current folder. */
int vv_run_events_open(struct vv_run_events *e, bool shared);
void vv_run_events_close(struct vv_run_events *e);
/* The next event; false: there is none now. Unreadable lines are skipped. */
bool vv_run_events_next(struct vv_run_events *e, struct vv_run_event *out);

#endif
