/* The heap of a program that runs under libvarve_preload.so: jemalloc, whose memory comes from a range at a fixed address, so that
 * it is the program's state and nothing else, and lies where it lay when the program is started again.
 *
 * What the program allocates until its first checkpoint (its start-up) goes into lanes of the range, one for each thread, in an order
 * that depends on the program alone: started again, it finds every object where it was. What it allocates later goes into more
 * lanes, one for each of a few groups of threads. At a restart these come back without having been allocated: jemalloc is made to know them
 * (heap_rebuild.h), and serves new objects from the free memory between them.
 *
 * A byte for each 16 bytes of the range tells where an object begins, and how large it is: the *marks*. They are state, too. */
#ifndef VV_PRELOAD_HEAP_H
#define VV_PRELOAD_HEAP_H

#include "preload/jemalloc.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VV_HEAP_LATER = 64,    /* lanes of start-up; those from here on are for later objects */
	VV_HEAP_LANES = VV_HEAP_LATER + 16,
	VV_HEAP_GRAIN = 16,    /* no two objects begin in one */
};

enum vv_heap_phase {
	VV_HEAP_UNKNOWN, /* what a new thread knows */
	VV_HEAP_NONE,    /* there is none: everything goes to the C library */
	VV_HEAP_STARTUP,
	VV_HEAP_RUNNING, /* after the first checkpoint, or the restart */
};

/* What every malloc and free looks at, side by side. */
struct vv_heap {
	uintptr_t mark;  /* what the mark of address 0 would be at: that of p is p / VV_HEAP_GRAIN further */
	uintptr_t plain; /* jemalloc knows all objects in the bytes from here, so many: in the whole heap, or in the lanes of start-up alone */
	size_t n_plain;
	uintptr_t lo;
	size_t size;
	_Atomic(int) phase;
	uintptr_t records; /* so many bytes for what jemalloc notes down, which is no state */
	size_t records_size;
};
extern struct vv_heap vv_heap __attribute__((visibility("hidden")));
/* The phase that this thread allocates for; only one in which there is a heap. */
extern __thread uintptr_t vv_heap_thread_phase __attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline bool vv_heap_owns(const void *p)
{
	return (uintptr_t)p - vv_heap.lo < vv_heap.size;
}

static inline bool vv_heap_is_plain(const void *p)
{
	return (uintptr_t)p - vv_heap.plain < vv_heap.n_plain;
}

static inline uint8_t *vv_heap_mark(const void *p)
{
	return (uint8_t *)(vv_heap.mark + (uintptr_t)p / VV_HEAP_GRAIN);
}

/* The size as a mark, 1..: up to VV_HEAP_SMALL its grains, then four steps to a doubling. jemalloc's sizes are no finer: a mark tells how much room
 * there is. */
enum { VV_HEAP_SMALL = 2048 };
uint8_t vv_heap_large_mark(size_t n);

static inline uint8_t vv_heap_mark_of(size_t n)
{
	return n > VV_HEAP_SMALL ? vv_heap_large_mark(n) : n ? (uint8_t)((n + VV_HEAP_GRAIN - 1) / VV_HEAP_GRAIN) : 1;
}

size_t vv_heap_mark_room(uint8_t mark);

/* Makes this thread ready to allocate; false, with ENOMEM, if it cannot be, or there is no heap. */
bool vv_heap_prepare_thread(void);

static inline bool vv_heap_is_thread_ready(void)
{
	return __builtin_expect(vv_heap_thread_phase == (uintptr_t)atomic_load_explicit(&vv_heap.phase, memory_order_relaxed), 1);
}

/* As malloc and its like, by a thread that is settled. */
void *vv_heap_alloc(size_t n);
void *vv_heap_alloc_zeroed(size_t n);
void *vv_heap_alloc_aligned(size_t align, size_t n);
void *vv_heap_resize(void *p, size_t n); /* p is the heap's, n > 0 */
void vv_heap_free(void *p);              /* it is the heap's */
size_t vv_heap_room(const void *p);

/* Where it lies is told by VV_RUN_PROTOCOL_ARENA. Called once, by the first malloc; what it fails with is in vv_heap_error. */
void vv_heap_begin(void);
const char *vv_heap_error(void); /* "" if there is a heap */
/* There will be none, for this reason. Called before vv_heap_begin. */
void vv_heap_disable(const char *reason);

/* Threads have numbers in the order in which they were made: this makes one for a new thread, and this tells it. */
unsigned vv_heap_next_thread(void);
void vv_heap_name_thread(unsigned number);

/* ---- for checkpoints ---------------------------------------------------------------------------------------------------- */

/* Pieces of a lane, each a region, with their marks: piece `i` begins at *at, from the lane's beginning; returns its length. They grow with
 * the lane, so that there are never many. */
size_t vv_heap_piece(unsigned lane, size_t i, uintptr_t *lo);
/* The bytes of a lane that were handed to jemalloc. */
size_t vv_heap_used(unsigned lane);
/* Makes the first n bytes of a lane writable memory, and their marks; n counts as used. */
int vv_heap_extend(unsigned lane, size_t n);
size_t vv_heap_lane_size(unsigned lane);

/* Start-up is over: calls fn for every object of it, in the order of addresses. */
void vv_heap_walk(void (*fn)(void *arg, uintptr_t at, uint8_t mark), void *arg);
/* From now on memory comes from the later lanes. `restored`: their objects were put there, and not allocated. */
int vv_heap_run(bool restored);
/* The first object from `at` on, or `end`. */
uintptr_t vv_heap_next(uintptr_t at, uintptr_t end);
/* Freed memory does not go back to the kernel from now on, or does again. */
void vv_heap_keep_freed(bool hold);
/* Gives back an object of start-up that the restored state does not have. */
void vv_heap_free_startup(uintptr_t at);

#endif
