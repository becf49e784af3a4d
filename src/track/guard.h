/* How pages are write-protected: mprotect, or userfaultfd. What a fence does in the kernel. */
#ifndef VV_TRACK_GUARD_H
#define VV_TRACK_GUARD_H

#include "base/fd_identity.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_guard {
	const struct vv_guard_ops *ops;
	int fd;
	struct vv_fd_identity stamp; /* of fd */
	bool populate; /* the kernel protects only pages that exist */
};

int vv_guard_open(struct vv_guard *g, bool userfault);
/* 0; or VV_EIO: the program has closed the descriptor that it needs. */
int vv_guard_check(const struct vv_guard *g);
void vv_guard_close(struct vv_guard *g);

int vv_guard_add(struct vv_guard *g, uintptr_t lo, uintptr_t hi);
/* Whatever of it is still there. True if it is open now; otherwise lift what is shut. */
bool vv_guard_remove(struct vv_guard *g, uintptr_t lo, uintptr_t hi);
int vv_guard_shut(struct vv_guard *g, uintptr_t lo, uintptr_t hi);
/* In handlers too: words no error. VV_ENOMEM, or VV_EINVAL if memory is gone. */
int vv_guard_lift(struct vv_guard *g, uintptr_t lo, uintptr_t hi);
void vv_guard_lift_rest(struct vv_guard *g, uintptr_t lo, uintptr_t hi); /* whatever of it is still there */
struct vv_memory_range;
bool vv_guard_are_intact(struct vv_guard *g, struct vv_memory_range *r, size_t n); /* ascending */
bool vv_guard_is_intact(struct vv_guard *g, uintptr_t lo, uintptr_t hi);

/* Which of these, ascending and all open, can be shut and opened again with the rights that the program gave them? */
void vv_guard_may_shut(const struct vv_guard *g, struct vv_memory_range *r, size_t n);

/* Is that the signal by which a write is stopped? */
bool vv_guard_stops(const struct vv_guard *g, int sig, int code);
/* A child of fork faulted at a page of [lo, hi): is it helped? */
bool vv_guard_child(const struct vv_guard *g, uintptr_t lo, uintptr_t hi, uintptr_t page);
/* Is the child's guard the parent's, and acts on the parent's memory? */
bool vv_guard_is_shared(const struct vv_guard *g);

#endif
