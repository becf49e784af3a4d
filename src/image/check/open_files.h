/* Checks a process for open files and mappings that criu could not save. */
#ifndef VV_IMAGE_CHECK_OPEN_FILES_H
#define VV_IMAGE_CHECK_OPEN_FILES_H

#include "image/check/check.h"
#include <stdint.h>

struct vv_open_files {
	struct vv_check *check;
	pid_t pid;
	bool first;            /* the first process of its tree */
	bool sockets_lost;     /* this criu cannot save network sockets on this kernel */
	/* The process has a terminal; master: the other end of one, as tmux has. */
	bool terminal, master;
	uint64_t ghost;        /* the last reported deleted file */
	bool locks, sysv;      /* already reported */
};

/* Reports findings by the check; stores here the facts that concern the whole tree. */
void vv_open_files_check(struct vv_open_files *b);

#endif
