/* Threads sleep until it has rung since they last looked. Nobody holds a lock meanwhile: what a handler of the program's waits for while it interrupts a sleeper
 * goes on, and may ring. */
#ifndef VV_BASE_EVENT_H
#define VV_BASE_EVENT_H

#include <stdint.h>

struct vv_event {
	_Atomic uint32_t count; /* how often; zero to begin with */
};

/* Look, then see whether what you wait for has happened, then sleep: not at all, if it has rung since you looked; and perhaps not until it has. */
uint32_t vv_event_count(const struct vv_event *b);
void vv_event_wait(struct vv_event *b, uint32_t looked);
/* After what has happened. */
void vv_event_signal(struct vv_event *b);

#endif
