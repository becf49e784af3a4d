/* Reports the progress of a long job. May be called from any thread. */
#ifndef VV_BASE_PROGRESS_H
#define VV_BASE_PROGRESS_H

#include <stdint.h>

struct vv_progress {
	void (*step)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

static inline void vv_progress_report(const struct vv_progress *p, uint64_t done, uint64_t total)
{
	if (p && p->step)
		p->step(p->arg, done, total);
}

#endif
