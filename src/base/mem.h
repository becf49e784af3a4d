/* Heap memory whose failure is an ordinary error, and can be provoked by a test. */
#ifndef VV_BASE_MEM_H
#define VV_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory for n things of the given size; NULL (with the error set) on overflow or want of memory. n = 0 is
 * allowed and gives a pointer that can be freed. */
void *vv_mem_new(size_t n, size_t size);
/* Grows p to n things; the old block stays valid on failure. New bytes are not initialised. */
void *vv_mem_grow(void *p, size_t n, size_t size);
/* Room for one more thing in a vector of n things at *v (a pointer to things), which has room for *cap: 0 or VV_ENOMEM. */
int vv_mem_room(void *v, size_t n, size_t *cap, size_t size);
char *vv_mem_strdup(const char *s);
/* printf into new memory. */
char *vv_mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void vv_mem_free(void *p);
/* The same for libraries that let their allocator be chosen: no error is set, and no failure provoked. */
void *vv_mem_lend(void *unused, size_t n);
void vv_mem_take_back(void *unused, void *p);
/* Is some thread in the allocator, by one of these? *outs: how often one has come out of it. If that stays the same, it waits for a lock of the allocator. */
bool vv_mem_is_inside(unsigned *outs);
/* Zeroed pages from the kernel, which has them back when they are freed. An allocator keeps large blocks, in a heap for each thread. */
void *vv_mem_map(size_t n);
enum { VV_MEM_WIDE = 2 << 20 }; /* bytes of a large page */
/* The same for what is accessed all over: in large pages, where there are some. */
void *vv_mem_map_wide(size_t n);
/* A large block from vv_mem_new or vv_mem_grow, not touched yet: in large pages, as well. */
void vv_mem_widen(void *p, size_t n);
/* Pages are there before they are first touched, where the kernel can do that. */
void vv_mem_populate(void *p, size_t n);
void vv_mem_unmap(void *p, size_t n); /* NULL is fine */
/* Zeroes; pages that are zero already are not touched: those that the kernel has not given yet it need not give. */
void vv_mem_zero(void *p, size_t n);
/* What is in there is not needed any more: the kernel has the whole pages of it back. */
void vv_mem_discard(void *p, size_t n);
/* Bytes that this process could get without anybody swapping: of the machine, and of the control groups that it is in. 0: nobody says. */
uint64_t vv_mem_available(void);

/* Tests: the n-th allocation from now on (1 = the next) fails, once. 0 switches it off. */
void vv_mem_fail_at(long n);
/* Allocations asked for since the last vv_mem_fail_at. */
long vv_mem_asked(void);

#endif
