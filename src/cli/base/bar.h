/* A progress bar on stderr, with bytes, rate and time left. It appears only on a terminal, and only
 * once a job has taken more than a second. */
#ifndef VV_CLI_BASE_BAR_H
#define VV_CLI_BASE_BAR_H

#include "base/progress.h"
#include <pthread.h>
#include <stdbool.h>

struct vv_bar {
	struct vv_progress progress; /* to be given to the job */
	const char *what;
	pthread_mutex_t lock;
	double start, drawn;
	bool on, visible;
};

void vv_bar_init(struct vv_bar *b, const char *what, bool quiet);
void vv_bar_fini(struct vv_bar *b);
/* Removes the bar from the line, so that another message can be printed there. */
void vv_bar_clear(struct vv_bar *b);

#endif
