/* Which memory the kernel is writing into on behalf of which thread, right now. Each thread publishes its own, without
 * locks; anyone may look. Safe in signal handlers. */
#ifndef VV_TRACK_KERNEL_WRITES_H
#define VV_TRACK_KERNEL_WRITES_H

#include <stdint.h>

/* Nests; beyond VV_THREAD_SLOTS nothing is published. */
void vv_kernel_writes_enter(uintptr_t lo, uintptr_t hi);
void vv_kernel_writes_leave(void);
void vv_kernel_writes_each(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);

#endif
