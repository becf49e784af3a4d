/* Processes that outlive this one. A program with missing pages must not continue without its page
 * server: the kernel would give it zeros. A tree of a group must not continue if another tree is
 * not restored. So a watchdog holds the userfaultfds, and kills the program if this process ends
 * without closing it. Two watchdogs watch each other, under a different process name than ours. So
 * the program is also killed if we are killed by name, or one watchdog is killed. */
#ifndef VV_IMAGE_RESTORE_WATCHDOG_H
#define VV_IMAGE_RESTORE_WATCHDOG_H

#include <sys/types.h>

struct vv_watchdog {
	pid_t pid; /* 0: there is none */
	int to;
};

#define VV_WATCHDOG_NONE { .to = -1 }

/* folder: of a criu that is killed with the program; NULL: there is none any more. */
int vv_watchdog_open(struct vv_watchdog *g, const char *folder);
/* Makes the watchdog hold a descriptor as well. */
int vv_watchdog_hold(struct vv_watchdog *g, int fd);
/* Makes the watchdog watch a process, by its pidfd, and its descendants. */
int vv_watchdog_watch(struct vv_watchdog *g, pid_t pid, int pidfd);
/* Ends the watchdog without killing a process. Accepts an empty struct. */
void vv_watchdog_close(struct vv_watchdog *g);

#endif
