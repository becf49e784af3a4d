/* What criu can do here, and what of a process it could not save: told in advance, in plain words. */
#ifndef VV_IMAGE_CHECK_H
#define VV_IMAGE_CHECK_H

#include <stdbool.h>
#include <sys/types.h>

struct vv_check {
	void *arg;
	/* grave: it will be refused. Else: there is something to be known or to be added to the command line. */
	void (*tell)(void *arg, bool grave, const char *text);
	unsigned grave; /* how many there were */
};

/* Errors: criu is not there, is too old, or could not be run. */
int vv_check_criu(struct vv_check *c);
int vv_check_process(struct vv_check *c, pid_t pid);

#endif
