/* The files below a folder, as they are written: inotify says when one was closed after writing, or moved there. */
#ifndef VV_CLI_PACK_WATCH_FILES_H
#define VV_CLI_PACK_WATCH_FILES_H

#include "base/map.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct vv_watch_files_file {
	char *name;  /* below the folder */
	bool busy;   /* somebody writes to it */
	bool done;   /* no news: it was dealt with, and not written since */
	bool known;  /* it was dealt with, if not as it is now */
	bool gone;
	double last; /* on the monotonic clock: the last write that was seen */
	uint64_t len;
	struct timespec mtime;
};

struct vv_watch_files {
	const char *folder;
	const char *store; /* which may lie below it, and is not watched */
	int fd;
	char **watched; /* by watch descriptor: the folder, below `folder`; "" is itself */
	size_t n_watched;
	struct vv_watch_files_file *file;
	size_t n, cap;
	struct vv_map by_name;
};

/* What is there already is found as well; the last write of it was when its time says. */
int vv_watch_files_open(struct vv_watch_files *l, const char *folder, const char *store);
void vv_watch_files_close(struct vv_watch_files *l);
/* Waits for something to happen, at most so long; a signal ends it, too. */
int vv_watch_files_wait(struct vv_watch_files *l, double seconds);

#endif
