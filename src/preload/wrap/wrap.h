/* Common code of the interposed functions. Pages may be write-protected during a checkpoint. A
 * plain write waits there, but a write by the kernel on the program's behalf fails with EFAULT. So
 * each function announces the kernel's write and then calls the C library:
 *
 *    ssize_t read(int fd, void *buf, size_t n) { WRITES(buf, n); return REAL(read)(fd, buf, n); }
 *
 * They work for programs that link or preload libvarve_interpose.so, not for a later dlopen.
 * docs/interposition.md lists the writes that are not covered. */
#ifndef VV_PRELOAD_WRAP_WRAP_H
#define VV_PRELOAD_WRAP_WRAP_H

/* Both pread and pread64 are defined here: the headers must neither rename nor inline them. */
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#undef _FORTIFY_SOURCE

/* exports the functions of these headers */
#pragma GCC visibility push(default)
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/wrap/libc_prototypes.h"
#pragma GCC visibility pop
#undef fread_unlocked /* a macro in older headers */

#include "preload/wrap/wrap_names.h"
#include "track/interpose_table.h"
#include <stdatomic.h>

enum vv_wrap_id {
#define VV_WRAP_ID(name) VV_WRAP_##name,
	VV_WRAP_NAMES(VV_WRAP_ID)
#undef VV_WRAP_ID
	VV_WRAP_COUNT
};

extern _Atomic(void *) vv_wrap_found[VV_WRAP_COUNT];
/* The calls into libvarve. They do nothing until the constructors have run. Until then no page is
 * write-protected, and sanitizers' runtimes call us before they are ready. */
extern _Atomic(const struct vv_interpose_table *) vv_wrap_table;
#define ENGINE atomic_load_explicit(&vv_wrap_table, memory_order_relaxed)
void *vv_wrap_find(enum vv_wrap_id id);

/* Returns the next function after ours, never NULL: one that the C library lacks fails with
 * ENOSYS. */
static inline void *vv_wrap_real(enum vv_wrap_id id)
{
	void *f = atomic_load_explicit(&vv_wrap_found[id], memory_order_relaxed);
	return __builtin_expect(f != NULL, 1) ? f : vv_wrap_find(id);
}

/* Converts a string that the C library has allocated for our caller at this address. */
extern char *(*vv_wrap_given)(char *theirs, uintptr_t caller);

#define REAL(name) ((__typeof__(name) *)vv_wrap_real(VV_WRAP_##name))

/* The range [p, p+n), cut at the end of the address space. frame, drop_left: see kernel_writes.h */
static inline const struct vv_interpose_table *vv_wrap_enter(uintptr_t p, size_t n, uintptr_t frame, bool drop_left)
{
	const struct vv_interpose_table *engine = ENGINE;
	if (p == 0 || n == 0)
		return NULL;
	/* Hides both from the compiler: it would warn that begin_call reads unset memory. */
	__asm__("" : "+r"(p), "+r"(frame));
	int saved = errno;
	engine->begin_call((const void *)p, n < UINTPTR_MAX - p ? n : UINTPTR_MAX - p, (const void *)frame, drop_left);
	errno = saved;
	return engine;
}

static inline void vv_wrap_leave(const struct vv_interpose_table **entered)
{
	if (*entered)
		(*entered)->end_syscall();
}

/* No thread may block SIGSEGV and SIGBUS: a write to a write-protected page would end the program
 * instead of waiting. A blocked fault is fatal anyway, so the program loses nothing. Returns `set`,
 * or *copy, which is `set` without the two; NULL stays NULL. */
const sigset_t *vv_wrap_open(const sigset_t *set, sigset_t *copy);
/* Unblocks the two in this thread. */
void vv_wrap_open_now(void);

#define VV_WRAP_JOIN_(a, b) a##b
#define VV_WRAP_JOIN(a, b) VV_WRAP_JOIN_(a, b)

/* Until the end of the block the kernel may write [p, p+n), a call's only range. A cleanup also
 * runs when the thread is cancelled in the call: so these files are compiled with -fexceptions. */
#define WRITES(p, n)                                                                                                   \
	__attribute__((cleanup(vv_wrap_leave), unused)) const struct vv_interpose_table *VV_WRAP_JOIN(                 \
		entered_, __LINE__) = vv_wrap_enter((uintptr_t)(p), n, (uintptr_t)&VV_WRAP_JOIN(entered_, __LINE__), true)
#define WRITES_OBJECT(p) WRITES(p, sizeof(*(p)))

/* Several ranges at once. A thread can announce only a few, so further ones are joined with the
 * nearest. */
enum { VV_WRAP_RANGES = 4 };

struct vv_wrap_ranges {
	size_t n;
	struct vv_wrap_range {
		uintptr_t lo, hi;
		const struct vv_interpose_table *entered;
	} at[VV_WRAP_RANGES];
};

void vv_wrap_add(struct vv_wrap_ranges *r, const void *p, size_t n);
void vv_wrap_add_iov(struct vv_wrap_ranges *r, const struct iovec *iov, size_t n);
void vv_wrap_enter_all(struct vv_wrap_ranges *r);
void vv_wrap_leave_all(struct vv_wrap_ranges *r);

#define RANGES(r) __attribute__((cleanup(vv_wrap_leave_all))) struct vv_wrap_ranges r = { .n = 0 }

#endif
