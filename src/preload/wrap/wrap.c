/* Common code of the interposed functions: finds the C library's functions behind them, and handles
 * sets of memory ranges. */
#include "preload/wrap/wrap.h"
#include <dlfcn.h>
#include <limits.h>

static const char *const names[VV_WRAP_COUNT] = {
#define NAME(name) [VV_WRAP_##name] = #name,
	VV_WRAP_NAMES(NAME)
#undef NAME
};

_Atomic(void *) vv_wrap_found[VV_WRAP_COUNT];
atomic_bool vv_wrap_ready;

static char *as_it_is(char *theirs, uintptr_t caller)
{
	(void)caller;
	return theirs;
}

char *(*vv_wrap_given)(char *theirs, uintptr_t caller) = as_it_is;

static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

/* Several threads may call this at once and find the same function. A missing function is looked
 * for at each call: its library may be loaded later. */
void *vv_wrap_find(enum vv_wrap_id id)
{
	void *f = dlsym(RTLD_NEXT, names[id]);
	if (!f)
		return (void *)missing;
	atomic_store_explicit(&vv_wrap_found[id], f, memory_order_relaxed);
	return f;
}

const sigset_t *vv_wrap_open(const sigset_t *set, sigset_t *copy)
{
	if (!set || !(sigismember(set, SIGSEGV) || sigismember(set, SIGBUS)))
		return set;
	*copy = *set;
	sigdelset(copy, SIGSEGV);
	sigdelset(copy, SIGBUS);
	return copy;
}

void vv_wrap_open_now(void)
{
	sigset_t two;
	sigemptyset(&two);
	sigaddset(&two, SIGSEGV);
	sigaddset(&two, SIGBUS);
	REAL(pthread_sigmask)(SIG_UNBLOCK, &two, NULL);
}

/* Finds all functions before main: dlsym is not safe in a signal handler, where read and similar
 * functions may be called. Earlier callers find their own function. */
__attribute__((constructor(101))) static void find_all(void)
{
	for (enum vv_wrap_id id = 0; id < VV_WRAP_COUNT; id++)
		vv_wrap_real(id);
	vv_wrap_open_now(); /* a program inherits the signals that its parent has blocked */
	atomic_store(&vv_wrap_ready, true);
}

static uintptr_t gap(const struct vv_wrap_range *a, uintptr_t lo, uintptr_t hi)
{
	return lo > a->hi ? lo - a->hi : a->lo > hi ? a->lo - hi : 0;
}

void vv_wrap_add(struct vv_wrap_ranges *r, const void *p, size_t n)
{
	if (!p || n == 0)
		return;
	uintptr_t lo = (uintptr_t)p, hi = n < UINTPTR_MAX - lo ? lo + n : UINTPTR_MAX;
	struct vv_wrap_range *near = r->at;
	for (size_t i = 1; i < r->n; i++)
		if (gap(&r->at[i], lo, hi) < gap(near, lo, hi))
			near = &r->at[i];
	if (r->n < VV_WRAP_RANGES && (r->n == 0 || gap(near, lo, hi) > 0)) {
		r->at[r->n++] = (struct vv_wrap_range){ lo, hi };
		return;
	}
	near->lo = lo < near->lo ? lo : near->lo;
	near->hi = hi > near->hi ? hi : near->hi;
}

/* A count that the kernel will refuse is not used. */
void vv_wrap_add_iov(struct vv_wrap_ranges *r, const struct iovec *iov, size_t n)
{
	for (size_t i = 0; iov && n <= IOV_MAX && i < n; i++)
		vv_wrap_add(r, iov[i].iov_base, iov[i].iov_len);
}

void vv_wrap_enter_all(struct vv_wrap_ranges *r)
{
	for (size_t i = 0; i < r->n; i++)
		r->entered += vv_wrap_enter(r->at[i].lo, r->at[i].hi - r->at[i].lo);
}

void vv_wrap_leave_all(struct vv_wrap_ranges *r)
{
	for (; r->entered > 0; r->entered--)
		vv_write_protect_end_syscall();
}
