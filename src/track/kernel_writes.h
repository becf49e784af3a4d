/* The memory that the kernel is writing on behalf of each thread at this moment. Each thread
 * publishes its own ranges without locks, and any thread may read them. Safe in signal handlers. */
#ifndef VV_TRACK_KERNEL_WRITES_H
#define VV_TRACK_KERNEL_WRITES_H

#include <stdbool.h>
#include <stdint.h>

/* Calls nest. Ranges beyond VV_THREAD_SLOTS are not published. frame: a variable in the frame of
 * the call; NULL: the call is never left by siglongjmp. drop_left: calls that were left are ended
 * first. Only for the first range of a call: further ones have its frame, too. */
void vv_kernel_writes_enter(uintptr_t lo, uintptr_t hi, const void *frame, bool drop_left);
void vv_kernel_writes_leave(void);
/* A thread has a signal stack with SS_AUTODISARM: the kernel does not tell that a handler runs
 * there. From now on no call is taken for one that was left. */
void vv_kernel_writes_keep_left(void);
void vv_kernel_writes_each(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);

#endif
