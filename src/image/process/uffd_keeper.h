/* A descriptor that keeps the userfaultfds of a program open while pages are missing. When the last
 * descriptor of a userfaultfd is closed, the kernel fills missing pages with zeros. So the program
 * itself holds one, which disappears only with the program. This descriptor is a socket that is
 * connected to itself. Its queue holds the userfaultfds of the program and of its later children.
 * For each of them it also holds one end of a pipe, whose other end the processes hold that load
 * the pages. When the last of these has ended, the kernel kills the program. */
#ifndef VV_IMAGE_PROCESS_UFFD_KEEPER_H
#define VV_IMAGE_PROCESS_UFFD_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct vv_uffd_keeper_process {
	int socket; /* our own descriptor of the socket */
	ino_t inode;
};

struct vv_uffd_keeper_alarm { /* kills a process */
	pid_t pid;
	int fd;
};

struct vv_uffd_keeper { /* for all processes of a tree */
	int alive[2]; /* a pipe; no process is killed while its second end is open */
	struct vv_uffd_keeper_process *process;
	size_t n, cap;
	struct vv_uffd_keeper_alarm *alarm;
	size_t n_alarms, alarms_cap;
};

#define VV_UFFD_KEEPER_NONE { .alive = { -1, -1 } }

int vv_uffd_keeper_open(struct vv_uffd_keeper *a);
/* Binds a process that has been created and does not run yet. *socket is for vv_uffd_keeper_keep.
 * VV_ENOTSUP: it is not possible. */
int vv_uffd_keeper_bind(struct vv_uffd_keeper *a, pid_t pid, int uffd, int *socket);
/* Also keeps fd open in the process and in all processes that inherit its descriptors. */
int vv_uffd_keeper_keep(int socket, int fd);
/* Arranges that children created since then are killed as well. */
void vv_uffd_keeper_follow(struct vv_uffd_keeper *a);
/* To be called when all pages are loaded. No process is killed any more, and the descriptors are
 * removed from all descendants of this process. */
void vv_uffd_keeper_release(struct vv_uffd_keeper *a);
/* Accepts an empty keeper. Without a release before, the processes must have ended or be about to
 * be killed. */
void vv_uffd_keeper_close(struct vv_uffd_keeper *a);

/* Returns whether a process holds such a socket that is not empty: then pages of the process are
 * missing. */
bool vv_uffd_keeper_is_held(pid_t pid);

#endif
