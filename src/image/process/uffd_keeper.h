/* What a program holds itself as long as pages of it are missing. When the last descriptor of a userfaultfd is closed the kernel gives zeros for all that is not
 * there: so one is among the program's own, and it is gone when the program is, not before. It is a socket that is connected to itself, and what it keeps lies
 * in its queue: the userfaultfds of the program and of children that it has made since. And for each of them one end of a pipe, whose other end those hold who
 * bring the pages: when the last of these has ended, the kernel kills the program. */
#ifndef VV_IMAGE_PROCESS_UFFD_KEEPER_H
#define VV_IMAGE_PROCESS_UFFD_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct vv_uffd_keeper_process {
	int socket; /* our own descriptor of it */
	ino_t inode;
};

struct vv_uffd_keeper_alarm { /* kills a process */
	pid_t pid;
	int fd;
};

struct vv_uffd_keeper { /* of all processes of a tree */
	int alive[2]; /* a pipe. While somebody has the second end, no process is killed */
	struct vv_uffd_keeper_process *process;
	size_t n, cap;
	struct vv_uffd_keeper_alarm *alarm;
	size_t n_alarms, alarms_cap;
};

#define VV_UFFD_KEEPER_NONE { .alive = { -1, -1 } }

int vv_uffd_keeper_open(struct vv_uffd_keeper *a);
/* A process that has been made, and does not run yet. *socket is for vv_uffd_keeper_keep. VV_ENOTSUP: it cannot be done. */
int vv_uffd_keeper_bind(struct vv_uffd_keeper *a, pid_t pid, int uffd, int *socket);
/* From now on the process, and whoever has its descriptors from it, holds that as well. */
int vv_uffd_keeper_keep(int socket, int fd);
/* Children that were made since are killed with it; as far as there are any that are not already. */
void vv_uffd_keeper_follow(struct vv_uffd_keeper *a);
/* All pages are there: nobody is killed, and nothing of this is left in any process below this one. */
void vv_uffd_keeper_release(struct vv_uffd_keeper *a);
/* What is empty is fine. Without a release before: they have ended, or are to. */
void vv_uffd_keeper_close(struct vv_uffd_keeper *a);

/* Does a process hold one still, in which there is something? So pages of it are missing. */
bool vv_uffd_keeper_is_held(pid_t pid);

#endif
