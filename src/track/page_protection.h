/* How pages are write-protected: mprotect, or userfaultfd. What a fence does in the kernel. */
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
/* 0; or VV_EIO: the program has closed the descriptor that it needs. */
int vv_page_protection_check(const struct vv_page_protection *g);
void vv_page_protection_close(struct vv_page_protection *g);

int vv_page_protection_add(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
/* Whatever of it is still there. True if it is open now; otherwise lift what is shut. */
bool vv_page_protection_remove(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
int vv_page_protection_set(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
/* In handlers too: words no error. VV_ENOMEM, or VV_EINVAL if memory is gone. */
int vv_page_protection_clear(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
void vv_page_protection_clear_mapped(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi); /* whatever of it is still there */
struct vv_memory_range;
bool vv_page_protection_are_intact(struct vv_page_protection *g, struct vv_memory_range *r, size_t n); /* ascending */
bool vv_page_protection_is_intact(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);

/* Which of these, ascending and all open, can be shut and opened again with the rights that the program gave them? */
void vv_page_protection_may_set(const struct vv_page_protection *g, struct vv_memory_range *r, size_t n);

/* Is that the signal by which a write is stopped? */
bool vv_page_protection_is_fault(const struct vv_page_protection *g, int sig, int code);
/* A child of fork faulted at a page of [lo, hi): is it helped? */
bool vv_page_protection_fault_in_child(const struct vv_page_protection *g, uintptr_t lo, uintptr_t hi, uintptr_t page);
/* Is the child's guard the parent's, and acts on the parent's memory? */
bool vv_page_protection_is_shared(const struct vv_page_protection *g);

#endif
