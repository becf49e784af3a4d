/* Write protection of memory: faults, protecting pages, and system calls that write to protected
 * memory. The ranges and their bits are in protected_range.c, and the state of threads in thread.c.
 * The program's system calls in progress are in kernel_writes.c. The kernel is called by
 * page_protection.c, and chain.c installs the signal handlers. */
#include "track/write_protect.h"
#include "base/err.h"
#include "base/block_signals.h"
#include "track/chain.h"
#include "track/page_protection.h"
#include "track/memory.h"
#include "track/address_ranges.h"
#include "track/protected_range.h"
#include "track/registered_memory.h"
#include "track/kernel_writes.h"
#include "track/thread.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct vv_write_protect {
	struct vv_page_protection protection;
	uint64_t birth; /* the process that created it, see birth_of_process */
	void (*ask)(void *arg, uintptr_t page);
	void *arg;
	long room; /* the limit of `borders`; LONG_MAX if borders cost nothing */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for changes of the table of ranges */

/* Counts of protections begun and done, and of removals, of all ranges. A handler needs them to
 * recognize an outdated fault. Any other fault would be repeated for ever. */
static atomic_ulong shuts_begun, n_enabled, removals;

/* Borders between protected and unprotected pages of all mprotect ranges. Each border makes another
 * mapping, and their number is limited per process. Some mappings are left to the program, which
 * needs them to allocate memory. */
static atomic_long borders;
long vv_write_protect_n_pages;

static bool has_room(const struct vv_write_protect *f, struct vv_protected_range *r, uintptr_t lo, uintptr_t hi, bool on)
{
	long more = f->room < LONG_MAX ? vv_protected_range_borders(r, VV_PROTECTED_RANGE_SET, lo, hi, on) : 0;

	return more <= 0 || atomic_load(&borders) + more <= f->room;
}

static void mark_protected(const struct vv_write_protect *f, struct vv_protected_range *r, uintptr_t lo, uintptr_t hi, bool on)
{
	if (f->room < LONG_MAX)
		atomic_fetch_add(&borders, vv_protected_range_borders(r, VV_PROTECTED_RANGE_SET, lo, hi, on));
	__atomic_fetch_add(&vv_write_protect_n_pages, vv_protected_range_set(r, VV_PROTECTED_RANGE_SET, lo, hi, on), __ATOMIC_SEQ_CST);
}

/* A page that fork wipes. So a handler detects a child process without a system call. vfork shares
 * the page, as it should. */
static _Atomic(_Atomic uint64_t *) birth_page;

/* ---- faults */

static bool in_child(const struct vv_write_protect *f)
{
	return f->birth != atomic_load(atomic_load(&birth_page));
}

/* There is no range here, or a range of the other kind. If ranges were removed since this thread
 * last looked, there may have been one at the time of the fault. Then the write is tried again. */
static bool overtaken_by_removal(void)
{
	struct vv_thread *self = vv_thread_self();
	unsigned long now = atomic_load(&removals);

	if (!self || self->removals == now)
		return false;
	self->removals = now;
	return true;
}

/* The page is unprotected. Another thread may have unprotected it after the fault, and then the
 * write is tried again. But if this thread has already tried again, and nothing was protected
 * since, the fault is the program's own. */
static bool overtaken_by_opening(uintptr_t page)
{
	struct vv_thread *self = vv_thread_self();
	unsigned long done = atomic_load(&n_enabled);

	if (!self || (self->page == page && self->n_enabled == atomic_load(&shuts_begun)))
		return false;
	self->page = page;
	self->n_enabled = done;
	return true;
}

/* Unprotects all of the range, unless that would override the program's own rights. */
static bool open_in_child(struct vv_protected_range *r, uintptr_t page)
{
	struct vv_write_protect *f = r->owner;
	bool all = !atomic_load(&r->changed_by_program);

	return vv_page_protection_fault_in_child(&f->protection, all ? r->lo : page, all ? r->hi : page + vv_memory_page(), page);
}

/* blocked: the signals that the thread had blocked before the fault. */
static void ask_owner(struct vv_write_protect *f, uintptr_t page, const sigset_t *blocked)
{
	struct vv_thread *self = vv_thread_self();

	if (self)
		self->blocked = blocked;
	f->ask(f->arg, page);
	if (self)
		self->blocked = NULL;
}

static bool handle_fault(struct vv_protected_range *r, int sig, int code, uintptr_t page, const sigset_t *blocked)
{
	struct vv_write_protect *f = r->owner;

	if (!vv_page_protection_is_fault(&f->protection, sig, code))
		return overtaken_by_removal();
	if (in_child(f))
		return open_in_child(r, page);
	if (vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, page, page + vv_memory_page(), true) != page)
		return overtaken_by_opening(page);
	ask_owner(f, page, blocked);
	return true;
}

static bool on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(vv_memory_page() - 1);
	struct vv_thread *self = vv_thread_self();
	struct vv_protected_range *r;
	bool is_handled;

	if (info->si_code <= 0) /* sent by a process */
		return false;
	r = vv_protected_range_acquire(page, page + 1);
	if (r) {
		is_handled = handle_fault(r, sig, info->si_code, page, &((ucontext_t *)context)->uc_sigmask);
		vv_protected_range_release(r);
	} else {
		is_handled = overtaken_by_removal();
	}
	if (!is_handled && self && self->escape) {
		pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
		siglongjmp(*(sigjmp_buf *)self->escape, 1);
	}
	return is_handled;
}

int vv_write_protect_try_read(void (*fn)(void *arg), void *arg)
{
	struct vv_thread *self = vv_thread_self();
	void *outer = self ? self->escape : NULL;
	static atomic_bool installed;
	sigjmp_buf here;
	int rc = 0;

	if (!self)
		return vv_err_set(VV_ENOMEM, "no memory for what is known of this thread");
	if (!atomic_load(&installed))
		rc = vv_chain_install(on_fault);
	if (rc)
		return rc;
	atomic_store(&installed, true);
	if (sigsetjmp(here, 0) == 0) {
		self->escape = &here;
		atomic_signal_fence(memory_order_seq_cst); /* not before the escape is set */
		fn(arg);
		atomic_signal_fence(memory_order_seq_cst); /* before the escape is reset */
		self->escape = outer;
		return 0;
	}
	self->escape = outer;
	return vv_err_set(VV_EINVAL, "the memory is gone");
}

int vv_write_protect_sigaction(int sig, const struct sigaction *act, struct sigaction *old, bool *handled)
{
	return vv_chain_sigaction(sig, act, old, handled);
}

/* ---- fork */

static sigset_t before_forking; /* of the thread that forks and holds the lock */

/* Blocks signals during fork, since the C library forks with all locks of its allocator taken. A
 * handler that writes to protected memory would wait for a flush that needs the allocator. */
static void before_fork(void)
{
	sigset_t mask;

	vv_block_signals_brief(&mask);
	pthread_mutex_lock(&lock);
	vv_registered_memory_lock();
	before_forking = mask;
}

static void after_fork(void)
{
	sigset_t mask = before_forking;

	vv_registered_memory_unlock();
	pthread_mutex_unlock(&lock);
	vv_block_signals_end(&mask);
}

/* No thread will finish the work of the parent's other threads. */
static void after_fork_in_child(void)
{
	atomic_store(&n_enabled, atomic_load(&shuts_begun));
	vv_protected_range_forked();
	vv_thread_forked();
	vv_chain_forked();
	after_fork();
}

/* Registers at the start. A fork in progress during the registration would miss it, and its child
 * could find the lock taken. But the allocator must register first, since its locks are taken under
 * ours. */
__attribute__((constructor(101))) static void watch_forks(void)
{
	void *volatile p = malloc(1);

	free(p);
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* The number of this process among those that use write protection; 0 if there is no memory. */
static uint64_t birth_of_process(void)
{
	static uint64_t births;
	_Atomic uint64_t *p = atomic_load(&birth_page);

	if (!p) {
		p = mmap(NULL, vv_memory_page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return 0;
		if (madvise(p, vv_memory_page(), MADV_WIPEONFORK) != 0) {
			munmap(p, vv_memory_page());
			return 0;
		}
		atomic_store(&birth_page, p);
	}
	if (atomic_load(p) == 0)
		atomic_store(p, ++births);
	return atomic_load(p);
}

/* ---- ranges */

int vv_write_protect_new(enum vv_write_protect_kind kind, void (*ask)(void *arg, uintptr_t page), void *arg, struct vv_write_protect **out)
{
	struct vv_write_protect *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return vv_err_set(VV_ENOMEM, "no memory to write-protect a range");
	*f = (struct vv_write_protect){ .ask = ask, .arg = arg, .room = LONG_MAX };
	if (kind == VV_WRITE_PROTECT_MPROTECT)
		f->room = (long)vv_memory_map_room() + atomic_load(&borders);
	pthread_mutex_lock(&lock);
	f->birth = birth_of_process();
	pthread_mutex_unlock(&lock);
	rc = f->birth ? vv_page_protection_open(&f->protection, kind == VV_WRITE_PROTECT_SIGBUS)
		      : vv_err_set(VV_ENOTSUP, "no page that fork wipes, which write protection needs (Linux >= 4.14)");
	if (rc == 0) {
		rc = vv_chain_install(on_fault);
		if (rc)
			vv_page_protection_close(&f->protection);
	}
	if (rc) {
		free(f);
		return rc;
	}
	*out = f;
	return 0;
}

int vv_write_protect_add(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi)
{
	size_t page = vv_memory_page();
	struct vv_protected_range *r;
	int rc;

	if (lo >= hi || lo % page || hi % page)
		return vv_err_set(VV_EINVAL, "write protection needs whole pages");
	r = vv_protected_range_new(lo, hi, f);
	if (!r)
		return VV_ENOMEM;
	pthread_mutex_lock(&lock);
	rc = vv_protected_range_is_unused(lo, hi) ? vv_page_protection_add(&f->protection, lo, hi)
				      : vv_err_set(VV_EINVAL, "the memory is write-protected already");
	if (rc == 0) {
		rc = vv_protected_range_insert(r);
		if (rc)
			vv_page_protection_remove(&f->protection, lo, hi);
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		free(r);
	return rc;
}

/* Would kernel calls for this protection act on the memory of the parent process? */
static bool is_parents(const struct vv_write_protect *f)
{
	return in_child(f) && vv_page_protection_is_shared(&f->protection);
}

/* Unprotects the protected pages of a range. Unmapped pages are skipped. */
static void lift(struct vv_write_protect *f, struct vv_protected_range *r)
{
	uintptr_t lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, r->lo, r->hi, true), hi;

	if (is_parents(f) || vv_page_protection_remove(&f->protection, r->lo, r->hi))
		return;
	for (; lo < r->hi; lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, hi, r->hi, true)) {
		hi = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo, r->hi, false);
		vv_page_protection_clear_mapped(&f->protection, lo, hi);
		mark_protected(f, r, lo, hi, false);
	}
}

/* First the pages are unprotected, then `removals` is incremented, and then the range leaves the
 * table. So a thread that faulted in the range and finds no range sees a new value of
 * `removals`. */
static void take_down(struct vv_write_protect *f, struct vv_protected_range *r)
{
	lift(f, r);
	mark_protected(f, r, r->lo, r->hi, false);
	atomic_fetch_add(&removals, 1);
	vv_protected_range_remove(r);
}

void vv_write_protect_remove(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi)
{
	struct vv_protected_range *r;

	pthread_mutex_lock(&lock);
	r = vv_protected_range_acquire(lo, hi);
	if (r) {
		vv_protected_range_release(r); /* the lock keeps it */
		if (r->owner == f && r->lo == lo && r->hi == hi)
			take_down(f, r);
	}
	pthread_mutex_unlock(&lock);
}

void vv_write_protect_free(struct vv_write_protect *f)
{
	struct vv_protected_range *r;
	bool asking = true;

	if (!f)
		return;
	pthread_mutex_lock(&lock);
	while ((r = vv_protected_range_of(f)) != NULL)
		take_down(f, r);
	pthread_mutex_unlock(&lock);
	while (asking) {
		pthread_mutex_lock(&lock);
		asking = vv_protected_range_reap(f);
		pthread_mutex_unlock(&lock);
		if (asking)
			sched_yield();
	}
	vv_page_protection_close(&f->protection);
	free(f);
}

/* If the program has changed rights itself, only protected pages are unprotected. The others keep
 * the program's rights. */
static int clear_protected(struct vv_write_protect *f, struct vv_protected_range *r, uintptr_t lo, uintptr_t hi)
{
	uintptr_t end;
	int rc = 0;

	if (!atomic_load(&r->changed_by_program))
		return vv_page_protection_clear(&f->protection, lo, hi);
	for (lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo, hi, true); rc == 0 && lo < hi; lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, end, hi, true)) {
		end = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo, hi, false);
		rc = vv_page_protection_clear(&f->protection, lo, end);
	}
	return rc;
}

int vv_write_protect_disable(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi)
{
	bool ours = !is_parents(f);
	struct vv_protected_range *r;
	int rc = 0;

	for (uintptr_t at = lo; rc == 0 && at < hi && (r = vv_protected_range_acquire(at, hi)) != NULL;) {
		uintptr_t first = r->lo > at ? r->lo : at, last = r->hi < hi ? r->hi : hi;

		rc = ours && !has_room(f, r, first, last, false) ? VV_ENOMEM : 0;
		if (rc == 0 && ours)
			rc = clear_protected(f, r, first, last);
		if (rc == 0) {
			mark_protected(f, r, first, last, false);
			vv_protected_range_set(r, VV_PROTECTED_RANGE_SKIPPED, first, last, false);
		}
		at = r->hi;
		vv_protected_range_release(r);
	}
	return rc;
}

bool vv_write_protect_is_intact(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi)
{
	return !is_parents(f) && vv_page_protection_is_intact(&f->protection, lo, hi);
}

int vv_write_protect_check(const struct vv_write_protect *f)
{
	return vv_page_protection_check(&f->protection);
}

bool vv_write_protect_are_intact(struct vv_write_protect *f, struct vv_memory_range *r, size_t n)
{
	return !is_parents(f) && vv_page_protection_are_intact(&f->protection, r, n);
}

/* ---- protecting pages, and system calls in progress
 *
 * A call in progress is published in a slot. The call publishes its slot, waits until no protection
 * is in progress, and then reads the marks. The protecting thread counts its protection as begun,
 * and then reads the slots and skips their pages. All accesses are sequentially consistent. So if a
 * call and a protection meet, at least one sees the other. Either the slot is seen, or the call
 * waits for the end of the protection, sees the marks and calls `ask`. A call may end before the
 * protecting thread asks for skipped pages. So skipped pages are marked, too. */

/* Notes the unprotected parts of a range. */
static void note_open(struct vv_address_ranges *p, struct vv_protected_range *r)
{
	uintptr_t lo = r->lo > p->lo ? r->lo : p->lo, hi = r->hi < p->hi ? r->hi : p->hi, end;

	for (lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo, hi, false); lo < hi; lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, end, hi, false)) {
		end = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo, hi, true);
		vv_address_ranges_note(p, lo, end);
	}
}

/* May the program have changed rights in the range? For partly protected ranges, the program's own
 * mprotect reports that (vv_write_protect_note_mprotect). Reading the many mappings of such a range
 * each time would be too expensive. */
static bool is_doubtful(struct vv_protected_range *r)
{
	return atomic_load(&r->changed_by_program) || vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, r->lo, r->hi, true) == r->hi;
}

int vv_write_protect_find_protected(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi), void *arg)
{
	struct vv_address_ranges open = {.lo = lo, .hi = hi};
	struct vv_memory_range *look;
	struct vv_protected_range *r;

	for (uintptr_t at = lo; at < hi && (r = vv_protected_range_acquire(at, hi)) != NULL; vv_protected_range_release(r)) {
		if (r->owner == f && is_doubtful(r))
			note_open(&open, r);
		at = r->hi;
	}
	look = open.n ? calloc(open.n, sizeof(*look)) : NULL;
	for (size_t i = 0; look && i < open.n; i++)
		look[i] = (struct vv_memory_range){open.at[i].lo, open.at[i].hi, false};
	if (look)
		vv_page_protection_may_set(&f->protection, look, open.n);
	for (size_t i = 0; look && i < open.n; i++)
		if (!look[i].ok)
			seen(arg, look[i].lo, look[i].hi);
	open.failed |= open.n && !look;
	free(look);
	free(open.at);
	return open.failed ? vv_err_set(VV_ENOMEM, "no memory to look at protected pages") : 0;
}

void vv_write_protect_note_mprotect(const void *p, size_t n)
{
	uintptr_t lo = (uintptr_t)p, hi = n > UINTPTR_MAX - lo ? UINTPTR_MAX : lo + n;
	struct vv_protected_range *r;

	for (uintptr_t at = lo; vv_protected_range_any() && at < hi && (r = vv_protected_range_acquire(at, hi)) != NULL; vv_protected_range_release(r)) {
		atomic_store(&r->changed_by_program, true);
		at = r->hi;
	}
}

static int protect_between(struct vv_write_protect *f, struct vv_protected_range *r, const struct vv_address_ranges *skipped)
{
	uintptr_t lo = skipped->lo;
	int rc = skipped->failed ? vv_err_set(VV_ENOMEM, "no memory to write-protect pages") : 0;

	for (size_t i = 0; i <= skipped->n && rc == 0; i++) {
		uintptr_t hi = i < skipped->n ? skipped->at[i].lo : skipped->hi;

		if (lo < hi && !has_room(f, r, lo, hi, true)) {
			rc = vv_err_set(VV_ENOMEM, "no more mappings to write-protect memory with (see vm.max_map_count)");
		} else if (lo < hi) {
			mark_protected(f, r, lo, hi, true);
			rc = vv_page_protection_set(&f->protection, lo, hi);
		}
		if (i < skipped->n) {
			lo = skipped->at[i].hi;
			vv_protected_range_set(r, VV_PROTECTED_RANGE_SKIPPED, hi, lo, true);
		}
	}
	if (rc) {
		vv_page_protection_clear_mapped(&f->protection, skipped->lo, skipped->hi);
		mark_protected(f, r, skipped->lo, skipped->hi, false);
		vv_protected_range_set(r, VV_PROTECTED_RANGE_SKIPPED, skipped->lo, skipped->hi, false);
	}
	return rc;
}

int vv_write_protect_enable(struct vv_write_protect *f, uintptr_t lo, uintptr_t hi)
{
	struct vv_protected_range *r = vv_protected_range_acquire(lo, hi);
	struct vv_address_ranges skipped = {.lo = lo, .hi = hi};
	sigset_t mask;
	int rc;

	if (!r || r->owner != f || lo < r->lo || hi > r->hi || is_parents(f)) {
		rc = vv_err_set(VV_EINVAL, "the memory is not in this protected range");
	} else if ((rc = vv_chain_install(on_fault)) == 0) {
		/* Handlers may call vv_write_protect_begin_syscall, and would wait for the thread
		 * that they interrupt. */
		vv_block_signals_brief(&mask);
		atomic_fetch_add(&shuts_begun, 1);
		vv_kernel_writes_each(vv_address_ranges_note, &skipped);
		vv_address_ranges_tidy(&skipped);
		rc = protect_between(f, r, &skipped);
		atomic_fetch_add(&n_enabled, 1);
		vv_block_signals_end(&mask);
		free(skipped.at);
	}
	if (r)
		vv_protected_range_release(r);
	return rc;
}

static void ask_for(struct vv_protected_range *r, uintptr_t lo, uintptr_t hi)
{
	struct vv_write_protect *f = r->owner;
	sigset_t mask;

	while (atomic_load(&n_enabled) != atomic_load(&shuts_begun))
		sched_yield();
	lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo, hi, true);
	if (lo == hi)
		return;
	if (in_child(f)) {
		do
			open_in_child(r, lo);
		while (atomic_load(&r->changed_by_program) && (lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo + vv_memory_page(), hi, true)) < hi);
		return;
	}
	vv_block_signals_brief(&mask); /* as in a handler */
	for (; lo < hi; lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SET, lo + vv_memory_page(), hi, true))
		ask_owner(f, lo, &mask);
	vv_block_signals_end(&mask);
}

static void ask_between(uintptr_t lo, uintptr_t hi)
{
	struct vv_protected_range *r;

	while (vv_protected_range_any() && lo < hi && (r = vv_protected_range_acquire(lo, hi)) != NULL) {
		ask_for(r, r->lo > lo ? r->lo : lo, r->hi < hi ? r->hi : hi);
		lo = r->hi;
		vv_protected_range_release(r);
	}
}

void vv_write_protect_begin_call(const void *p, size_t n, const void *frame, bool drop_left)
{
	uintptr_t mask = vv_memory_page() - 1, lo = (uintptr_t)p & ~mask, hi;

	hi = n > UINTPTR_MAX - mask - (uintptr_t)p ? ~mask : ((uintptr_t)p + n + mask) & ~mask;
	vv_kernel_writes_enter(lo, hi, frame, drop_left);
	ask_between(lo, hi);
}

void vv_write_protect_begin_syscall(const void *p, size_t n)
{
	vv_write_protect_begin_call(p, n, NULL, false);
}

void vv_write_protect_before_free(const void *p, size_t n)
{
	uintptr_t lo, hi;

	if (!vv_memory_pages(p, n, &lo, &hi))
		return;
	ask_between(lo, hi);
	vv_write_protect_note_mprotect(p, n);
}

void vv_write_protect_end_syscall(void)
{
	vv_kernel_writes_leave();
}

void vv_write_protect_each_syscall(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg)
{
	struct vv_protected_range *r;

	vv_kernel_writes_each(fn, arg);
	for (uintptr_t at = 0; (r = vv_protected_range_acquire(at, UINTPTR_MAX)) != NULL; vv_protected_range_release(r)) {
		uintptr_t lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SKIPPED, r->lo, r->hi, true), hi;

		for (; lo < r->hi; lo = vv_protected_range_next(r, VV_PROTECTED_RANGE_SKIPPED, hi, r->hi, true)) {
			hi = vv_protected_range_next(r, VV_PROTECTED_RANGE_SKIPPED, lo, r->hi, false);
			fn(arg, lo, hi);
		}
		at = r->hi;
	}
}
