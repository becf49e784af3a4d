/* When things that failed are to be tried again, each by its name. The wait doubles with each
 * failure of the same thing. */
#ifndef VV_CLI_PACK_RETRY_TIMES_H
#define VV_CLI_PACK_RETRY_TIMES_H

#include "base/map.h"

struct vv_retry_time {
	char *name;
	double at;       /* on the monotonic clock: not before this time */
	double wait; /* seconds to wait after the next failure */
};

struct vv_retry_times { /* all zero: nothing has failed */
	struct vv_retry_time *v;
	size_t n, cap;
	struct vv_map by_name;
};

void vv_retry_times_fini(struct vv_retry_times *r);
/* 0 if it has not failed, or has succeeded since. */
double vv_retry_times_get(const struct vv_retry_times *r, const char *name);
/* It is tried again after so many seconds; this is no failure. */
int vv_retry_times_wait(struct vv_retry_times *r, const char *name, double seconds);
int vv_retry_times_failed(struct vv_retry_times *r, const char *name);
void vv_retry_times_succeeded(struct vv_retry_times *r, const char *name);

#endif
