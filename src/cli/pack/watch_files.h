/* The files below a folder, as they are written: inotify reports when one was closed after writing,
 * or moved there. */
#ifndef VV_CLI_PACK_WATCH_FILES_H
#define VV_CLI_PACK_WATCH_FILES_H

#include "base/map.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct vv_watch_files_file {
	char *name;  /* below the folder */
	bool busy;   /* a process writes to it */
	bool done;   /* no change: it was processed, and not written since */
	bool known;  /* it was processed, though perhaps in another state */
	bool gone;
	double last; /* on the monotonic clock: the last observed write */
	uint64_t len;
	struct timespec mtime;
};

struct vv_watch_files {
	const char *folder;
	const char *store; /* which may lie below the folder, and is not watched */
	int fd;
	/* by watch descriptor: the folder, relative to `folder`; "" is `folder` itself */
	char **watched;
	size_t n_watched;
	/* folders that were found and are to be watched and read */
	char **found;
	size_t n_found, found_cap;
	struct vv_watch_files_file *file;
	size_t n, cap;
	struct vv_map by_name;
};

/* Existing files are found as well; their last write is their time of modification. */
int vv_watch_files_open(struct vv_watch_files *l, const char *folder, const char *store);
void vv_watch_files_close(struct vv_watch_files *l);
/* Waits for an event, at most so many seconds; a signal also ends the wait. */
int vv_watch_files_wait(struct vv_watch_files *l, double seconds);

#endif
