/* What criu can do here, and what of a process it could not save: told in advance, in plain words, and what to do about it. Or afterwards, where criu's
 * own words do not tell. */
#ifndef VV_IMAGE_CHECK_CHECK_H
#define VV_IMAGE_CHECK_CHECK_H

#include "image/criu/criu.h"

struct vv_check {
	void *arg;
	/* grave: it will be refused. Else: there is something to be known. */
	void (*report)(void *arg, bool grave, const char *text);
	const char *const *arg_list; /* that criu's command line would have */
	size_t n_args;
	bool shell_job;
	unsigned grave; /* how many there were */
};

/* Errors: criu is not there, is too old, or could not be run. */
int vv_check_criu(struct vv_check *c);
int vv_check_process(struct vv_check *c, pid_t pid);
/* After a dump that has failed with rc: the message has the first grave finding behind it, if there is one. */
int vv_check_explain(const struct vv_criu *criu, pid_t pid, int rc);

/* For those that look. */
void vv_check_report(struct vv_check *c, bool grave, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The value of one of criu's words ("" if none follows); NULL: it is not given. */
const char *vv_check_given(const struct vv_check *c, const char *word);

#endif
