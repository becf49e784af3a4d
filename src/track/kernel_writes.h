/* Which memory the kernel is writing into on behalf of which thread, right now. Each thread publishes its own, without
 * locks; anyone may look. Safe in signal handlers. */
#ifndef VV_TRACK_SLOT_H
#define VV_TRACK_SLOT_H

#include <stdint.h>

/* Nests; beyond VV_THREAD_SLOTS nothing is published. */
void vv_slot_enter(uintptr_t lo, uintptr_t hi);
void vv_slot_leave(void);
void vv_slot_each(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);

#endif
