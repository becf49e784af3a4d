/* Checks in advance whether criu works here and which parts of a process it could not save, and
 * gives advice. It also explains a failed dump for which criu gives no reason. */
#ifndef VV_IMAGE_CHECK_CHECK_H
#define VV_IMAGE_CHECK_CHECK_H

#include "image/criu/criu.h"

struct vv_check {
	void *arg;
	/* grave: the dump will be refused. Otherwise the text is only information. */
	void (*report)(void *arg, bool grave, const char *text);
	const char *const *arg_list; /* arguments of criu's command line */
	size_t n_args;
	bool shell_job;
	unsigned grave; /* number of grave findings */
};

/* Errors: criu is not installed, is too old, or could not be run. */
int vv_check_criu(struct vv_check *c);
int vv_check_process(struct vv_check *c, pid_t pid);
/* After a dump that has failed with rc: appends the first grave finding, if there is one, to the
 * message. Returns the error. */
int vv_check_explain(const struct vv_criu *criu, pid_t pid, int rc);

/* For the units that check. */
void vv_check_report(struct vv_check *c, bool grave, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns the value of a criu option ("" if none follows); NULL: the option is not given. */
const char *vv_check_given(const struct vv_check *c, const char *word);

#endif
