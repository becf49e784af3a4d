/* Heap memory whose failure is an ordinary error and can be provoked by a test. */
#ifndef VV_BASE_MEM_H
#define VV_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory for n things of the given size; NULL, with the error set, on overflow or lack of
 * memory. If n is 0, it returns a pointer that can be freed. */
void *vv_mem_new(size_t n, size_t size);
/* Grows p to n things; the old block stays valid on failure. New bytes are not initialised. */
void *vv_mem_grow(void *p, size_t n, size_t size);
/* Makes room for one more thing in a vector of n things at *v (a pointer to things) with capacity
 * *cap. 0 or VV_ENOMEM. */
int vv_mem_room(void *v, size_t n, size_t *cap, size_t size);
char *vv_mem_strdup(const char *s);
/* printf into new memory, which the caller frees. */
char *vv_mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void vv_mem_free(void *p);
/* The same for libraries with a configurable allocator: sets no error, and tests provoke no
 * failure. */
void *vv_mem_lend(void *unused, size_t n);
void vv_mem_take_back(void *unused, void *p);
/* Is a thread in the allocator through one of these calls? *outs: the number of returns from it. If
 * that stays the same, the thread waits for a lock of the allocator. */
bool vv_mem_is_inside(unsigned *outs);
/* Zeroed pages from the kernel, returned to it when they are freed. An allocator would keep large
 * blocks in a heap of each thread. */
void *vv_mem_map(size_t n);
enum { VV_MEM_WIDE = 2 << 20 }; /* bytes of a large page */
/* The same for memory with scattered accesses: in large pages, if available. */
void *vv_mem_map_wide(size_t n);
/* Uses large pages for a large, untouched block from vv_mem_new or vv_mem_grow. */
void vv_mem_widen(void *p, size_t n);
/* Makes pages present before their first access, if the kernel can. */
void vv_mem_populate(void *p, size_t n);
void vv_mem_unmap(void *p, size_t n); /* NULL is allowed */
/* Zeroes memory without writing to pages that are zero already, so that untouched pages stay
 * unallocated. */
void vv_mem_zero(void *p, size_t n);
/* Discards the content: the kernel gets the complete pages of the range back. */
void vv_mem_discard(void *p, size_t n);
/* Bytes that this process could get without swapping, of the machine and of its control groups. 0:
 * unknown. */
uint64_t vv_mem_available(void);
/* The memory that a control group leaves: its limit, less the used memory that cannot be reclaimed.
 * At least 1; UINT64_MAX: no limit is known. group: its folder. */
uint64_t vv_mem_left_in_group(const char *group);
enum { VV_MEM_SMALL = 64 << 20 }; /* so many bytes are always taken to be available */
/* VV_ENOMEM, with the error set, if n bytes are not small and more than *available. At first
 * *available is 0; it is measured when it is needed. */
int vv_mem_check_available(uint64_t n, uint64_t *available);

/* Tests: the n-th allocation from now on (1 = the next) fails, once. 0 switches it off. */
void vv_mem_fail_at(long n);
/* Tests: vv_mem_available returns n. 0 switches it off. */
void vv_mem_pretend_available(uint64_t n);
/* Allocations requested since the last vv_mem_fail_at. */
long vv_mem_asked(void);

#endif
