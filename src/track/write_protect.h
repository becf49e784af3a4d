/* A fence: pages whose next write must be asked for first. Two mechanisms: mprotect with SIGSEGV, and userfaultfd write
 * protection with SIGBUS. The handlers pass on every fault that is not at a fence to what the program had installed.
 * A child of fork that writes into a fence just gets the pages. A thread that blocks SIGSEGV or SIGBUS cannot be asked: the
 * kernel ends the process. */
#ifndef VV_TRACK_WRITE_PROTECT_H
#define VV_TRACK_WRITE_PROTECT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vv_write_protect_kind { VV_WRITE_PROTECT_MPROTECT, VV_WRITE_PROTECT_SIGBUS };

struct vv_write_protect;

/* ask(arg, page) is called on the writing thread, in a signal handler with all signals blocked (the fault is synchronous,
 * so locks are fine that no code holds while it writes into a fence), with the address of the page. It returns once
 * the page is open. VV_ENOTSUP, with the reason, where the mechanism is not to be had. */
int vv_write_protect_new(enum vv_write_protect_kind kind, void (*ask)(void *arg, uintptr_t page), void *arg, struct vv_write_protect **out);
/* NULL is fine; opens everything, and waits for calls of `ask` under way: hold no lock that they want. */
void vv_write_protect_free(struct vv_write_protect *f);

/* The pages [lo, hi) belong to the fence; open until shut. Ranges of all fences of a process are disjoint: VV_EINVAL if not.
 * VV_ENOTSUP if this kind of memory cannot be write-protected. */
int vv_write_protect_add(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* Opens them, and they belong to it no more; memory that is gone already is fine. A range as it was added. */
void vv_write_protect_remove(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);

/* Writes to [lo, hi), inside one range that was added, wait at the fence from now on; but pages inside a vv_write_protect_begin_syscall stay
 * open: ask vv_write_protect_each_syscall for them afterwards. If it fails, all of [lo, hi) is open. */
int vv_write_protect_enable(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* Writes go through again. Safe in `ask`, so it words no error. Fails only if the kernel refuses (out of mappings: VV_ENOMEM;
 * memory gone: VV_EINVAL). */
int vv_write_protect_disable(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* Is [lo, hi), as far as it was shut and not opened since, still shut memory, not unmapped or mapped anew? For VV_WRITE_PROTECT_MPROTECT
 * it looks at /proc/self/maps. The caller passes a stretch that is wholly shut. */
bool vv_write_protect_is_intact(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi);
/* The same of many stretches, ascending. */
struct vv_memory_range;
bool vv_write_protect_are_intact(struct vv_write_protect *f, struct vv_memory_range *r, size_t n);
/* 0; or VV_EIO: the program has closed the descriptor that the fence needs. */
int vv_write_protect_check(const struct vv_write_protect *f);

/* Calls seen(arg, lo, hi) for every open stretch of the fence in [lo, hi) that must not be shut: the program has taken rights of some of its pages away, and opening
 * it would undo that. One look at /proc/self/maps, at ranges that are all open or were meddled with. VV_ENOMEM. */
int vv_write_protect_find_protected(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);
/* For wrappers of mprotect, munmap and their like, inside a vv_write_protect_begin_syscall: from now on what is open here is not touched. */
void vv_write_protect_note_mprotect(const void *p, size_t n);

/* ---- system calls that write into memory: the kernel does not wait at a fence, it fails with EFAULT (src/preload/wrap/wrap.c) */

/* About to let the kernel write [p, p+n): asks for every shut page of it as a write would, and until leave the pages are
 * not shut under the call. Nests; costs a few stores when nothing is write-protected. Safe in signal handlers. */
void vv_write_protect_begin_syscall(const void *p, size_t n);
void vv_write_protect_end_syscall(void);
/* Calls fn(arg, lo, hi) for every range inside a vv_write_protect_begin_syscall right now, in pages, and for every page that was inside one
 * when it was to be shut and so stayed open, until vv_write_protect_disable is called for it (fn may): what a checkpoint, having shut the
 * rest, must copy before it returns. Ranges may overlap, and may lie outside the caller's fence. */
void vv_write_protect_each_syscall(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);

/* ---- memory that goes away (src/preload/wrap/wrap_free.c, wrap_memory.c) */

/* How many pages are shut. While none is, freed memory needs no look. (C++ programs of the tests read this header: no C atomics.) */
extern long vv_write_protect_n_pages;

static inline bool vv_write_protect_is_active(void)
{
	return __builtin_expect(__atomic_load_n(&vv_write_protect_n_pages, __ATOMIC_RELAXED) != 0, 0);
}

/* The program frees [p, p+n): asks for every shut page of it as a write would. Later opening leaves its open pages alone: they may be somebody else's by then. */
void vv_write_protect_before_free(const void *p, size_t n);

/* Runs fn(arg), which reads memory that may have vanished; 0, or VV_EINVAL if it had. For threads that do not block SIGSEGV
 * and SIGBUS. Plain code only: fn is left by a jump. */
int vv_write_protect_try_read(void (*fn)(void *arg), void *arg);

/* For wrappers of sigaction and signal. While our handler is in force for sig, *handled = true: the action is the one to pass
 * on to from now on, *old the one before. Otherwise *handled = false, and the real call is to be made. */
int vv_write_protect_sigaction(int sig, const struct sigaction *act, struct sigaction *old, bool *handled);

#endif
