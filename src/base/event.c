#include "base/event.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t vv_event_count(const struct vv_event *b)
{
	return atomic_load(&b->count);
}

void vv_event_wait_for(struct vv_event *b, uint32_t looked, double seconds)
{
	enum { DAY = 86400 };
	int saved = errno; /* it was signalled, or a handler has run */
	double most = seconds < DAY ? seconds : DAY;
	struct timespec t = { .tv_sec = (time_t)most, .tv_nsec = (long)((most - (double)(time_t)most) * 1e9) };

	if (seconds > 0)
		syscall(SYS_futex, &b->count, FUTEX_WAIT_PRIVATE, looked, isinf(seconds) ? NULL : &t, NULL, 0);
	errno = saved;
}

void vv_event_signal(struct vv_event *b)
{
	atomic_fetch_add(&b->count, 1);
	syscall(SYS_futex, &b->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
