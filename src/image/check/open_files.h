/* What a process has open or mapped that criu could not save. */
#ifndef VV_IMAGE_CHECK_OPEN_FILES_H
#define VV_IMAGE_CHECK_OPEN_FILES_H

#include "image/check/check.h"
#include <stdint.h>

struct vv_open_files {
	struct vv_check *check;
	pid_t pid;
	bool first;            /* of its tree */
	bool sockets_lost;     /* no network socket can be saved by this criu on this kernel */
	bool terminal, master; /* it was seen to have one; master: the other end of one, as tmux has */
	uint64_t ghost;        /* the last deleted file that was told of */
	bool locks, sysv;      /* were told of */
};

/* Findings are told by the check; what is true of a tree as a whole is noted here. */
void vv_open_files_check(struct vv_open_files *b);

#endif
