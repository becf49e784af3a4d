/* Common code of the interposed functions: finds the C library's functions behind them, and handles
 * sets of memory ranges. */
#include "preload/wrap/wrap.h"
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>

static const char *const names[VV_WRAP_COUNT] = {
#define NAME(name) [VV_WRAP_##name] = #name,
	VV_WRAP_NAMES(NAME)
#undef NAME
};

_Atomic(void *) vv_wrap_found[VV_WRAP_COUNT];
static void ignore_range(const void *p, size_t n)
{
	(void)p, (void)n;
}

static void ignore_call(const void *p, size_t n, const void *frame, bool drop_left)
{
	(void)p, (void)n, (void)frame, (void)drop_left;
}

static void ignore(void)
{
}

static int handle_none(int sig, const struct sigaction *act, struct sigaction *old, bool *handled)
{
	(void)sig, (void)act, (void)old;
	*handled = false;
	return 0;
}

static void ignore_mask(int how, const sigset_t *set, sigset_t *before)
{
	(void)how, (void)set, (void)before;
}

static const long none;
static const struct vv_interpose_table idle = {
	.begin_call = ignore_call,
	.end_syscall = ignore,
	.keep_left = ignore,
	.note_mprotect = ignore_range,
	.n_pages = &none,
	.before_free = ignore_range,
	.release_registered = ignore_range,
	.sigaction = handle_none,
	.masked = ignore_mask,
};
_Atomic(const struct vv_interpose_table *) vv_wrap_table = &idle;

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

static bool holds(const struct dl_phdr_info *object, uintptr_t at)
{
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD && at - object->dlpi_addr - object->dlpi_phdr[i].p_vaddr < object->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static int look_for_us(struct dl_phdr_info *object, size_t size, void *arg)
{
	bool *ours = arg;

	(void)size;
	*ours = holds(object, (uintptr_t)names);
	return *ours || holds(object, (uintptr_t)gnu_get_libc_version);
}

/* The program finds the functions of the first object. If only a plugin, or only another library,
 * needs this one, the C library comes first. */
static bool is_before_libc(void)
{
	bool ours = false;

	dl_iterate_phdr(look_for_us, &ours);
	return ours;
}

/* Finds all functions before main: dlsym is not safe in a signal handler, where read and similar
 * functions may be called. Earlier callers find their own function. */
__attribute__((constructor(101))) static void find_all(void)
{
	for (enum vv_wrap_id id = 0; id < VV_WRAP_COUNT; id++)
		vv_wrap_real(id);
	vv_wrap_open_now(); /* a program inherits the signals that its parent has blocked */
	const struct vv_interpose_table *table = varve_interpose_table(VV_INTERPOSE_TABLE_VERSION, REAL(sigaction), is_before_libc());
	if (table)
		atomic_store(&vv_wrap_table, table);
	else
		dprintf(STDERR_FILENO, "varve: warning: libvarve_interpose.so and libvarve.so are of different releases: system calls that "
				       "write into regions may fail during a checkpoint; install both from one release\n");
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
		r->at[r->n++] = (struct vv_wrap_range){ lo, hi, NULL };
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
		r->at[i].entered = vv_wrap_enter(r->at[i].lo, r->at[i].hi - r->at[i].lo, (uintptr_t)r, i == 0);
}

void vv_wrap_leave_all(struct vv_wrap_ranges *r)
{
	for (size_t i = 0; i < r->n; i++)
		vv_wrap_leave(&r->at[i].entered);
}
