/* Processes that outlive this one. A program whose pages are still to come must not run on without whoever brings them: the kernel would give it zeros.
 * Nor must one of a group, if another of it does not come back. So a watchdog holds what the faults are told by; and if this process ends without a
 * word, it kills the program. There are two watchdogs, who watch each other, under another name than ours: who kills us by name, or one of them, has
 * the program killed. */
#ifndef VV_IMAGE_RESTORE_WATCHDOG_H
#define VV_IMAGE_RESTORE_WATCHDOG_H

#include <sys/types.h>

struct vv_watchdog {
	pid_t pid; /* 0: there is none */
	int to;
};

#define VV_WATCHDOG_NONE { .to = -1 }

/* folder: that of a criu, which ends with the program; NULL: there is none any more. */
int vv_watchdog_open(struct vv_watchdog *g, const char *folder);
/* It holds a descriptor as well, from now on. */
int vv_watchdog_hold(struct vv_watchdog *g, int fd);
/* It looks after a process, by its pidfd, and after all that is below it. */
int vv_watchdog_watch(struct vv_watchdog *g, pid_t pid, int pidfd);
/* All is well: it ends. What is empty is fine. */
void vv_watchdog_close(struct vv_watchdog *g);

#endif
