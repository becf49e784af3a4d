/* An event: threads sleep until it is signalled. A sleeper holds no lock, so a handler of the
 * program that interrupts it can wait for other threads, and these may signal the event. */
#ifndef VV_BASE_EVENT_H
#define VV_BASE_EVENT_H

#include <stdint.h>

struct vv_event {
	_Atomic uint32_t count; /* number of signals; initially zero */
};

/* Read the count, then test the condition, then wait. The wait returns at once if the event was
 * signalled since the count was read, and after so many seconds (INFINITY is allowed). It may also
 * return early. */
uint32_t vv_event_count(const struct vv_event *b);
void vv_event_wait_for(struct vv_event *b, uint32_t looked, double seconds);
/* To be called after the condition has changed. */
void vv_event_signal(struct vv_event *b);

#endif
