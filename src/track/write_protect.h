/* Write protection: the next write to a protected page first calls `ask`. There are two mechanisms:
 * mprotect with SIGSEGV, and userfaultfd write protection with SIGBUS. The handlers pass every
 * other fault on to the program's handlers. In a child of fork, a write just unprotects the pages.
 * A thread must not block SIGSEGV or SIGBUS: the kernel would end the process at the fault. */
#ifndef VV_TRACK_WRITE_PROTECT_H
#define VV_TRACK_WRITE_PROTECT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vv_write_protect_kind { VV_WRITE_PROTECT_MPROTECT, VV_WRITE_PROTECT_SIGBUS };

struct vv_write_protect;

/* ask(arg, page) is called on the writing thread, in a signal handler with all signals blocked.
 * page: its address. The fault is synchronous. So `ask` may take locks that no code holds while it
 * writes to protected memory. `ask` returns once the page is unprotected. VV_ENOTSUP, with the
 * reason, if the mechanism is not available. */
int vv_write_protect_new(enum vv_write_protect_kind kind, void (*ask)(void *arg, uintptr_t page), void *arg, struct vv_write_protect **out);
/* Accepts NULL. Unprotects everything and waits for calls of `ask` in progress. The caller must not
 * hold a lock that they need. */
void vv_write_protect_free(struct vv_write_protect *f);

/* Adds the pages [lo, hi), which are unprotected at first. The ranges of a process must be
 * disjoint: VV_EINVAL if not. VV_ENOTSUP if this kind of memory cannot be write-protected. */
int vv_write_protect_add(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* Unprotects a range and removes it. The range must be one that was added. Unmapped memory is
 * allowed. */
void vv_write_protect_remove(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);

/* Protects [lo, hi), which must lie inside one added range. Pages inside a
 * vv_write_protect_begin_syscall stay unprotected. vv_write_protect_each_syscall reports them
 * afterwards. On failure, all of [lo, hi) is unprotected. */
int vv_write_protect_enable(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* Unprotects [lo, hi). Safe in `ask`, so it sets no error text. Fails only if the kernel refuses
 * (out of mappings: VV_ENOMEM; memory gone: VV_EINVAL). */
int vv_write_protect_disable(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* Is [lo, hi) still protected, and neither unmapped nor remapped? The caller passes a range in
 * which all pages were protected. VV_WRITE_PROTECT_MPROTECT reads /proc/thread-self/maps. */
bool vv_write_protect_is_intact(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* The same for many ascending ranges. */
struct vv_memory_range;
bool vv_write_protect_are_intact(struct vv_write_protect *f, struct vv_memory_range *r, size_t n);
/* Returns 0, or VV_EIO if the program has closed the descriptor. */
int vv_write_protect_check(const struct vv_write_protect *f);

/* Calls seen(arg, lo, hi) for every unprotected part of [lo, hi) that must not be protected. The
 * program has restricted the rights of its pages there, and unprotecting them would undo that.
 * Reads /proc/thread-self/maps once, for ranges that are entirely unprotected or were changed by
 * the program. May return VV_ENOMEM. */
int vv_write_protect_find_protected(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);
/* For wrappers of mprotect, munmap and the like, inside a vv_write_protect_begin_syscall. From now
 * on unprotected pages of these ranges are not touched. */
void vv_write_protect_note_mprotect(const void *p, size_t n);

/* ---- system calls that write to memory: at a protected page they fail with EFAULT
 * (src/preload/wrap/wrap.c) */

/* Call it before the kernel writes [p, p+n). Calls `ask` for every protected page, as a write
 * would. The pages are not protected again until vv_write_protect_end_syscall. Calls nest, and cost
 * a few stores if nothing is write-protected. Safe in signal handlers. */
void vv_write_protect_begin_syscall(const void *p, size_t n);
/* The same for a call that a signal handler may leave by siglongjmp. frame, drop_left: as in
 * kernel_writes.h */
void vv_write_protect_begin_call(const void *p, size_t n, const void *frame, bool drop_left);
void vv_write_protect_end_syscall(void);
/* Calls fn(arg, lo, hi), in pages, for every range inside a vv_write_protect_begin_syscall at this
 * moment. It also reports pages that stayed unprotected for that reason, until
 * vv_write_protect_disable is called for them (fn may). A checkpoint must copy all these pages
 * before it returns. Ranges may overlap, and may belong to other owners or to none. */
void vv_write_protect_each_syscall(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);

/* ---- memory that is freed (src/preload/wrap/wrap_free.c, wrap_memory.c) */

/* The number of protected pages. While it is 0, freed memory need not be checked. (C++ programs of
 * the tests include this header: no C atomics.) */
extern long vv_write_protect_n_pages;

static inline bool vv_write_protect_is_active(void)
{
	return __builtin_expect(__atomic_load_n(&vv_write_protect_n_pages, __ATOMIC_RELAXED) != 0, 0);
}

/* The program frees [p, p+n). Calls `ask` for every protected page, as a write would. Unprotected
 * pages are not touched later, since they may have another owner by then. */
void vv_write_protect_before_free(const void *p, size_t n);

/* Runs fn(arg), which reads memory that may be unmapped. Returns 0, or VV_EINVAL if it was. The
 * thread must not block SIGSEGV and SIGBUS. fn must be plain code, since it may be left by a
 * jump. */
int vv_write_protect_try_read(void (*fn)(void *arg), void *arg);

/* For wrappers of sigaction and signal. If our handler is installed for sig, *handled = true. Then
 * the function sets the program's action, and *old is the previous one. Otherwise *handled = false,
 * and the caller must call the real function. */
int vv_write_protect_sigaction(int sig, const struct sigaction *act, struct sigaction *old, bool *handled);

#endif
