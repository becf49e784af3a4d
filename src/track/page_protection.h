/* Write protection of pages in the kernel, by mprotect or userfaultfd. */
#ifndef VV_TRACK_PAGE_PROTECTION_H
#define VV_TRACK_PAGE_PROTECTION_H

#include "base/fd_identity.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_page_protection {
	const struct vv_page_protection_ops *ops;
	int fd;
	struct vv_fd_identity stamp; /* of fd */
	bool populate; /* the kernel protects only pages that exist */
};

int vv_page_protection_open(struct vv_page_protection *g, bool userfault);
/* Returns 0, or VV_EIO if the program has closed the descriptor. */
int vv_page_protection_check(const struct vv_page_protection *g);
void vv_page_protection_close(struct vv_page_protection *g);

int vv_page_protection_add(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
/* Parts that are unmapped already are skipped. Returns true if the range is unprotected now.
 * Otherwise the caller must unprotect its protected pages. */
bool vv_page_protection_remove(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
int vv_page_protection_set(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
/* Safe in handlers, so it sets no error text. Returns VV_ENOMEM, or VV_EINVAL if memory is gone. */
int vv_page_protection_clear(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
/* Skips parts that are unmapped already. */
void vv_page_protection_clear_mapped(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
struct vv_memory_range;
/* The ranges are ascending. */
bool vv_page_protection_are_intact(struct vv_page_protection *g, struct vv_memory_range *r, size_t n);
bool vv_page_protection_is_intact(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);

/* Which of these ascending, unprotected ranges can be protected, and later unprotected with the
 * rights that the program gave them? */
void vv_page_protection_may_set(const struct vv_page_protection *g, struct vv_memory_range *r, size_t n);

/* Is that the signal of a stopped write? */
bool vv_page_protection_is_fault(const struct vv_page_protection *g, int sig, int code);
/* A child of fork faulted at a page of [lo, hi). Returns true if the write can be repeated. */
bool vv_page_protection_fault_in_child(const struct vv_page_protection *g, uintptr_t lo, uintptr_t hi, uintptr_t page);
/* Does the child share the parent's descriptor, which acts on the parent's memory? */
bool vv_page_protection_is_shared(const struct vv_page_protection *g);

#endif
