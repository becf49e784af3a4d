/* The heap of a program that runs under libvarve_preload.so: jemalloc with memory from a range
 * at a fixed address. So the range holds only the program's state, at the same addresses after a
 * restart.
 *
 * Objects of the start-up (until the first checkpoint) are in lanes of the range, one for each
 * thread. Their order depends on the program alone: after a restart every object has its old
 * address. Later objects are in further lanes, one for each of a few groups of threads. A
 * restart restores these without allocating them. Then jemalloc learns about them
 * (heap_rebuild.h) and serves new objects from the free memory between them.
 *
 * One byte for each 16 bytes of the range, the *mark*, shows the beginning and the size of an
 * object. The marks are part of the state, too. */
#ifndef VV_PRELOAD_HEAP_H
#define VV_PRELOAD_HEAP_H

#include "preload/jemalloc.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VV_HEAP_LATER = 64,    /* lanes of the start-up; those from here on are for later objects */
	VV_HEAP_LANES = VV_HEAP_LATER + 16,
	VV_HEAP_GRAIN = 16,    /* no two objects begin in one grain */
};

enum vv_heap_phase {
	VV_HEAP_UNKNOWN, /* the initial value in a new thread */
	VV_HEAP_NONE,    /* there is no heap: the C library serves everything */
	VV_HEAP_STARTUP,
	VV_HEAP_RUNNING, /* after the first checkpoint, or the restart */
};

/* The fields that every malloc and free reads, side by side. */
struct vv_heap {
	/* Address of the mark of address 0; that of p is p / VV_HEAP_GRAIN further. */
	uintptr_t mark;
	/* Jemalloc knows all objects in the n_plain bytes from here: the complete heap, or only the
	 * lanes of the start-up. */
	uintptr_t plain;
	size_t n_plain;
	uintptr_t lo;
	size_t size;
	_Atomic(int) phase;
	uintptr_t records; /* for jemalloc's records, which are not part of the state */
	size_t records_size;
};
extern struct vv_heap vv_heap __attribute__((visibility("hidden")));
/* The phase for which this thread is prepared; only phases with a heap. */
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

/* The size as a mark, from 1 on: up to VV_HEAP_SMALL the number of grains, then four steps per
 * doubling. Jemalloc's sizes are not finer, so a mark gives the room of an object. */
enum { VV_HEAP_SMALL = 2048 };
uint8_t vv_heap_large_mark(size_t n);

static inline uint8_t vv_heap_mark_of(size_t n)
{
	return n > VV_HEAP_SMALL ? vv_heap_large_mark(n) : n ? (uint8_t)((n + VV_HEAP_GRAIN - 1) / VV_HEAP_GRAIN) : 1;
}

size_t vv_heap_mark_room(uint8_t mark);

/* Prepares this thread to allocate. Returns false, with ENOMEM, if that fails or there is no
 * heap. */
bool vv_heap_prepare_thread(void);

static inline bool vv_heap_is_thread_ready(void)
{
	return __builtin_expect(vv_heap_thread_phase == (uintptr_t)atomic_load_explicit(&vv_heap.phase, memory_order_relaxed), 1);
}

/* Like malloc and its family, for a prepared thread. */
void *vv_heap_alloc(size_t n);
void *vv_heap_alloc_zeroed(size_t n);
void *vv_heap_alloc_aligned(size_t align, size_t n);
void *vv_heap_resize(void *p, size_t n); /* p is in the heap, n > 0 */
void vv_heap_free(void *p);              /* p is in the heap */
size_t vv_heap_room(const void *p);

/* Reserves the range at the address in VV_RUN_PROTOCOL_ARENA. The first malloc calls it once;
 * vv_heap_error has the reason of a failure. */
void vv_heap_begin(void);
const char *vv_heap_error(void); /* "" if there is a heap */
/* Disables the heap, with this reason. To be called before vv_heap_begin. */
void vv_heap_disable(const char *reason);

/* Threads are numbered in the order of their creation: the first function creates a number, the
 * second sets it in the new thread. */
unsigned vv_heap_next_thread(void);
void vv_heap_name_thread(unsigned number);

/* ---- for checkpoints ------------------------------------------------------------------------- */

/* Pieces of a lane, each a region, with their marks. *lo becomes the address of piece `i`; returns
 * its length. They grow with the lane, so that there are never many. */
size_t vv_heap_piece(unsigned lane, size_t i, uintptr_t *lo);
/* The bytes of a lane that jemalloc has got. */
size_t vv_heap_used(unsigned lane);
/* Makes the first n bytes of a lane and their marks writable; n counts as used. */
int vv_heap_extend(unsigned lane, size_t n);
size_t vv_heap_lane_size(unsigned lane);

/* After the start-up: calls fn for each of its objects, in the order of addresses. */
void vv_heap_walk(void (*fn)(void *arg, uintptr_t at, uint8_t mark), void *arg);
/* From now on memory comes from the later lanes. restored: their objects were restored, not
 * allocated. */
int vv_heap_run(bool restored);
/* Returns the first object from `at` on, or `end`. */
uintptr_t vv_heap_next(uintptr_t at, uintptr_t end);
/* true: freed memory is not returned to the kernel any more; false: it is again. */
void vv_heap_keep_freed(bool hold);
/* Frees an object of the start-up that the restored state does not have. */
void vv_heap_free_startup(uintptr_t at);

#endif
