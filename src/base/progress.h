/* Reports the progress of a long job, and may end it early. Both may be called from any thread. */
#ifndef VV_BASE_PROGRESS_H
#define VV_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct vv_progress {
	void (*step)(void *arg, uint64_t done, uint64_t total);
	void *arg;
	/* Should the job leave out what can be done later? NULL: never. */
	bool (*gives_way)(void *arg);
};

static inline bool vv_progress_gives_way(const struct vv_progress *p)
{
	return p && p->gives_way && p->gives_way(p->arg);
}

static inline void vv_progress_report(const struct vv_progress *p, uint64_t done, uint64_t total)
{
	if (p && p->step)
		p->step(p->arg, done, total);
}

#endif
