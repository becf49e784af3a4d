/* Fences: what happens at a fault, at a shut, and at a system call that writes into fenced memory. The ranges and their bits
 * are in range.c, the system calls of the program that are under way in kernel_writes.c, what is known of its threads in thread.c, the
 * kernel's protection in guard.c, the signal handlers in chain.c. */
#include "track/fence.h"
#include "base/err.h"
#include "base/block_signals.h"
#include "track/chain.h"
#include "track/guard.h"
#include "track/memory.h"
#include "track/address_ranges.h"
#include "track/range.h"
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

struct vv_fence {
	struct vv_guard guard;
	uint64_t birth; /* the process that made it, see births */
	void (*ask)(void *arg, uintptr_t page);
	void *arg;
	long room; /* for borders, see there; LONG_MAX if they cost nothing */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* who changes the table of ranges */

/* Shuts begun and done, removals done, of all fences: how a handler tells a fault that has been overtaken by events from one
 * that would come again for ever. */
static atomic_ulong shuts_begun, shuts_done, removals;

/* Between what is shut and what is open, of all fences that are made by mprotect: each makes another mapping, of which a process may have only so many. Some are left to the
 * program, which needs them, too, when it asks for memory. */
static atomic_long borders;
long vv_fence_pages_shut;

static bool has_room(const struct vv_fence *f, struct vv_range *r, uintptr_t lo, uintptr_t hi, bool shut)
{
	long more = f->room < LONG_MAX ? vv_range_borders(r, VV_RANGE_SHUT, lo, hi, shut) : 0;

	return more <= 0 || atomic_load(&borders) + more <= f->room;
}

static void mark_shut(const struct vv_fence *f, struct vv_range *r, uintptr_t lo, uintptr_t hi, bool shut)
{
	if (f->room < LONG_MAX)
		atomic_fetch_add(&borders, vv_range_borders(r, VV_RANGE_SHUT, lo, hi, shut));
	__atomic_fetch_add(&vv_fence_pages_shut, vv_range_set(r, VV_RANGE_SHUT, lo, hi, shut), __ATOMIC_SEQ_CST);
}

/* A page that fork wipes, so that a handler knows whose child it is in without a system call; vfork shares it, as it should. */
static _Atomic(_Atomic uint64_t *) birth_page;

/* ---- faults */

static bool in_child(const struct vv_fence *f)
{
	return f->birth != atomic_load(atomic_load(&birth_page));
}

/* No fence here, or of another kind than stops such writes: there may have been one when the fault happened, if ranges were removed since this thread last looked. Then
 * the write is tried once more. */
static bool overtaken_by_removal(void)
{
	struct vv_thread *self = vv_thread_self();
	unsigned long now = atomic_load(&removals);

	if (!self || self->removals == now)
		return false;
	self->removals = now;
	return true;
}

/* The page is open: somebody opened it after the fault, and the write is to be tried again; but if this thread was told so
 * before, and nothing was shut since, then the fault is of the program's making. */
static bool overtaken_by_opening(uintptr_t page)
{
	struct vv_thread *self = vv_thread_self();
	unsigned long done = atomic_load(&shuts_done);

	if (!self || (self->page == page && self->shuts_done == atomic_load(&shuts_begun)))
		return false;
	self->page = page;
	self->shuts_done = done;
	return true;
}

/* All of the range, unless that would undo what the program has done. */
static bool open_in_child(struct vv_range *r, uintptr_t page)
{
	struct vv_fence *f = r->owner;
	bool all = !atomic_load(&r->meddled);

	return vv_guard_child(&f->guard, all ? r->lo : page, all ? r->hi : page + vv_memory_page(), page);
}

/* The thread had blocked these when it came to the page. */
static void ask_owner(struct vv_fence *f, uintptr_t page, const sigset_t *blocked)
{
	struct vv_thread *self = vv_thread_self();

	if (self)
		self->blocked = blocked;
	f->ask(f->arg, page);
	if (self)
		self->blocked = NULL;
}

static bool settle(struct vv_range *r, int sig, int code, uintptr_t page, const sigset_t *blocked)
{
	struct vv_fence *f = r->owner;

	if (!vv_guard_stops(&f->guard, sig, code))
		return overtaken_by_removal();
	if (in_child(f))
		return open_in_child(r, page);
	if (vv_range_next(r, VV_RANGE_SHUT, page, page + vv_memory_page(), true) != page)
		return overtaken_by_opening(page);
	ask_owner(f, page, blocked);
	return true;
}

static bool on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(vv_memory_page() - 1);
	struct vv_thread *self = vv_thread_self();
	struct vv_range *r;
	bool settled;

	if (info->si_code <= 0) /* sent by somebody */
		return false;
	r = vv_range_hold(page, page + 1);
	if (r) {
		settled = settle(r, sig, info->si_code, page, &((ucontext_t *)context)->uc_sigmask);
		vv_range_release(r);
	} else {
		settled = overtaken_by_removal();
	}
	if (!settled && self && self->escape) {
		pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
		siglongjmp(*(sigjmp_buf *)self->escape, 1);
	}
	return settled;
}

int vv_fence_try(void (*fn)(void *arg), void *arg)
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
		atomic_signal_fence(memory_order_seq_cst); /* not before, */
		fn(arg);
		atomic_signal_fence(memory_order_seq_cst); /* and all of it */
		self->escape = outer;
		return 0;
	}
	self->escape = outer;
	return vv_err_set(VV_EINVAL, "the memory is gone");
}

int vv_fence_sigaction(int sig, const struct sigaction *act, struct sigaction *old, bool *handled)
{
	return vv_chain_sigaction(sig, act, old, handled);
}

/* ---- fork */

static sigset_t before_forking; /* of the thread that forks, which has the lock */

/* No handlers in between: the C library forks with all locks of its allocator taken. One that writes memory which is fenced would wait for a flush that needs memory. */
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

/* What the parent's other threads had begun nobody will end. */
static void after_fork_in_child(void)
{
	atomic_store(&shuts_done, atomic_load(&shuts_begun));
	vv_range_forked();
	vv_thread_forked();
	vv_chain_forked();
	after_fork();
}

/* At the start: a fork that is under way when it is said would not know of it, and its child could find the lock taken. But after the allocator has done
 * the same: its locks are taken under ours. */
__attribute__((constructor(101))) static void watch_forks(void)
{
	void *volatile p = malloc(1);

	free(p);
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* The number of this process among those that made fences; 0 if there is no memory. */
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

/* ---- fences */

int vv_fence_new(enum vv_fence_kind kind, void (*ask)(void *arg, uintptr_t page), void *arg, struct vv_fence **out)
{
	struct vv_fence *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return vv_err_set(VV_ENOMEM, "no memory for a fence");
	*f = (struct vv_fence){ .ask = ask, .arg = arg, .room = LONG_MAX };
	if (kind == VV_FENCE_MPROTECT)
		f->room = (long)vv_memory_map_room() + atomic_load(&borders);
	pthread_mutex_lock(&lock);
	f->birth = birth_of_process();
	pthread_mutex_unlock(&lock);
	rc = f->birth ? vv_guard_open(&f->guard, kind == VV_FENCE_SIGBUS)
		      : vv_err_set(VV_ENOTSUP, "no page that fork wipes, which fences need (Linux >= 4.14)");
	if (rc == 0) {
		rc = vv_chain_install(on_fault);
		if (rc)
			vv_guard_close(&f->guard);
	}
	if (rc) {
		free(f);
		return rc;
	}
	*out = f;
	return 0;
}

int vv_fence_add(struct vv_fence *f, uintptr_t lo, uintptr_t hi)
{
	size_t page = vv_memory_page();
	struct vv_range *r;
	int rc;

	if (lo >= hi || lo % page || hi % page)
		return vv_err_set(VV_EINVAL, "a fence stands around whole pages");
	r = vv_range_new(lo, hi, f);
	if (!r)
		return VV_ENOMEM;
	pthread_mutex_lock(&lock);
	rc = vv_range_is_free(lo, hi) ? vv_guard_add(&f->guard, lo, hi)
				      : vv_err_set(VV_EINVAL, "the memory is inside another fence");
	if (rc == 0) {
		rc = vv_range_insert(r);
		if (rc)
			vv_guard_remove(&f->guard, lo, hi);
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		free(r);
	return rc;
}

/* Do calls to the kernel through this fence go to another process's memory, the parent's? */
static bool is_parents(const struct vv_fence *f)
{
	return in_child(f) && vv_guard_is_shared(&f->guard);
}

/* Opens what is shut of a range; pages that are gone are skipped. */
static void lift(struct vv_fence *f, struct vv_range *r)
{
	uintptr_t lo = vv_range_next(r, VV_RANGE_SHUT, r->lo, r->hi, true), hi;

	if (is_parents(f) || vv_guard_remove(&f->guard, r->lo, r->hi))
		return;
	for (; lo < r->hi; lo = vv_range_next(r, VV_RANGE_SHUT, hi, r->hi, true)) {
		hi = vv_range_next(r, VV_RANGE_SHUT, lo, r->hi, false);
		vv_guard_lift_rest(&f->guard, lo, hi);
		mark_shut(f, r, lo, hi, false);
	}
}

/* Its pages are open before `removals` counts them, and that is before they are out of the table: so a fault that was at
 * the fence and finds none sees `removals` risen. */
static void take_down(struct vv_fence *f, struct vv_range *r)
{
	lift(f, r);
	mark_shut(f, r, r->lo, r->hi, false);
	atomic_fetch_add(&removals, 1);
	vv_range_take_out(r);
}

void vv_fence_remove(struct vv_fence *f, uintptr_t lo, uintptr_t hi)
{
	struct vv_range *r;

	pthread_mutex_lock(&lock);
	r = vv_range_hold(lo, hi);
	if (r) {
		vv_range_release(r); /* the lock keeps it */
		if (r->owner == f && r->lo == lo && r->hi == hi)
			take_down(f, r);
	}
	pthread_mutex_unlock(&lock);
}

void vv_fence_free(struct vv_fence *f)
{
	struct vv_range *r;
	bool asking = true;

	if (!f)
		return;
	pthread_mutex_lock(&lock);
	while ((r = vv_range_of(f)) != NULL)
		take_down(f, r);
	pthread_mutex_unlock(&lock);
	while (asking) {
		pthread_mutex_lock(&lock);
		asking = vv_range_reap(f);
		pthread_mutex_unlock(&lock);
		if (asking)
			sched_yield();
	}
	vv_guard_close(&f->guard);
	free(f);
}

/* Where the program has changed rights itself only what is shut is opened: the rest is as it wants it. */
static int lift_shut(struct vv_fence *f, struct vv_range *r, uintptr_t lo, uintptr_t hi)
{
	uintptr_t end;
	int rc = 0;

	if (!atomic_load(&r->meddled))
		return vv_guard_lift(&f->guard, lo, hi);
	for (lo = vv_range_next(r, VV_RANGE_SHUT, lo, hi, true); rc == 0 && lo < hi; lo = vv_range_next(r, VV_RANGE_SHUT, end, hi, true)) {
		end = vv_range_next(r, VV_RANGE_SHUT, lo, hi, false);
		rc = vv_guard_lift(&f->guard, lo, end);
	}
	return rc;
}

int vv_fence_open(struct vv_fence *f, uintptr_t lo, uintptr_t hi)
{
	bool ours = !is_parents(f);
	struct vv_range *r;
	int rc = 0;

	for (uintptr_t at = lo; rc == 0 && at < hi && (r = vv_range_hold(at, hi)) != NULL;) {
		uintptr_t first = r->lo > at ? r->lo : at, last = r->hi < hi ? r->hi : hi;

		rc = ours && !has_room(f, r, first, last, false) ? VV_ENOMEM : 0;
		if (rc == 0 && ours)
			rc = lift_shut(f, r, first, last);
		if (rc == 0) {
			mark_shut(f, r, first, last, false);
			vv_range_set(r, VV_RANGE_SPARED, first, last, false);
		}
		at = r->hi;
		vv_range_release(r);
	}
	return rc;
}

bool vv_fence_intact(struct vv_fence *f, uintptr_t lo, uintptr_t hi)
{
	return !is_parents(f) && vv_guard_is_intact(&f->guard, lo, hi);
}

int vv_fence_check(const struct vv_fence *f)
{
	return vv_guard_check(&f->guard);
}

bool vv_fence_are_intact(struct vv_fence *f, struct vv_memory_range *r, size_t n)
{
	return !is_parents(f) && vv_guard_are_intact(&f->guard, r, n);
}

/* ---- shutting, and the system calls under way
 *
 * A call that is under way is in a slot. Enter: publish the slot; then, once no shut is under way, look at the marks. Shut:
 * count it as begun; then look at the slots, and spare their pages. All of it sequentially consistent, so of a call and a
 * shut that meet at least one sees the other: either the slot is seen, or the call waits until the shut is done, sees the marks
 * and asks. A call may have left before the caller of shut gets to ask who was spared, so that is marked too. */

/* The stretches of a range that are open. */
static void note_open(struct vv_address_ranges *p, struct vv_range *r)
{
	uintptr_t lo = r->lo > p->lo ? r->lo : p->lo, hi = r->hi < p->hi ? r->hi : p->hi, end;

	for (lo = vv_range_next(r, VV_RANGE_SHUT, lo, hi, false); lo < hi; lo = vv_range_next(r, VV_RANGE_SHUT, end, hi, false)) {
		end = vv_range_next(r, VV_RANGE_SHUT, lo, hi, true);
		vv_address_ranges_note(p, lo, end);
	}
}

/* Of what is shut in part the program's own mprotect tells (vv_fence_meddle): to look at its many mappings each time would cost more than it brings. */
static bool is_doubtful(struct vv_range *r)
{
	return atomic_load(&r->meddled) || vv_range_next(r, VV_RANGE_SHUT, r->lo, r->hi, true) == r->hi;
}

int vv_fence_find_protected(struct vv_fence *f, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi), void *arg)
{
	struct vv_address_ranges open = {.lo = lo, .hi = hi};
	struct vv_memory_range *look;
	struct vv_range *r;

	for (uintptr_t at = lo; at < hi && (r = vv_range_hold(at, hi)) != NULL; vv_range_release(r)) {
		if (r->owner == f && is_doubtful(r))
			note_open(&open, r);
		at = r->hi;
	}
	look = open.n ? calloc(open.n, sizeof(*look)) : NULL;
	for (size_t i = 0; look && i < open.n; i++)
		look[i] = (struct vv_memory_range){open.at[i].lo, open.at[i].hi, false};
	if (look)
		vv_guard_may_shut(&f->guard, look, open.n);
	for (size_t i = 0; look && i < open.n; i++)
		if (!look[i].ok)
			seen(arg, look[i].lo, look[i].hi);
	open.failed |= open.n && !look;
	free(look);
	free(open.at);
	return open.failed ? vv_err_set(VV_ENOMEM, "no memory to look at what is fenced") : 0;
}

void vv_fence_meddle(const void *p, size_t n)
{
	uintptr_t lo = (uintptr_t)p, hi = n > UINTPTR_MAX - lo ? UINTPTR_MAX : lo + n;
	struct vv_range *r;

	for (uintptr_t at = lo; vv_range_any() && at < hi && (r = vv_range_hold(at, hi)) != NULL; vv_range_release(r)) {
		atomic_store(&r->meddled, true);
		at = r->hi;
	}
}

static int shut_between(struct vv_fence *f, struct vv_range *r, const struct vv_address_ranges *spared)
{
	uintptr_t lo = spared->lo;
	int rc = spared->failed ? vv_err_set(VV_ENOMEM, "no memory to shut a fence") : 0;

	for (size_t i = 0; i <= spared->n && rc == 0; i++) {
		uintptr_t hi = i < spared->n ? spared->at[i].lo : spared->hi;

		if (lo < hi && !has_room(f, r, lo, hi, true)) {
			rc = vv_err_set(VV_ENOMEM, "no more mappings to fence memory with (see vm.max_map_count)");
		} else if (lo < hi) {
			mark_shut(f, r, lo, hi, true);
			rc = vv_guard_shut(&f->guard, lo, hi);
		}
		if (i < spared->n) {
			lo = spared->at[i].hi;
			vv_range_set(r, VV_RANGE_SPARED, hi, lo, true);
		}
	}
	if (rc) {
		vv_guard_lift_rest(&f->guard, spared->lo, spared->hi);
		mark_shut(f, r, spared->lo, spared->hi, false);
		vv_range_set(r, VV_RANGE_SPARED, spared->lo, spared->hi, false);
	}
	return rc;
}

int vv_fence_shut(struct vv_fence *f, uintptr_t lo, uintptr_t hi)
{
	struct vv_range *r = vv_range_hold(lo, hi);
	struct vv_address_ranges spared = {.lo = lo, .hi = hi};
	sigset_t mask;
	int rc;

	if (!r || r->owner != f || lo < r->lo || hi > r->hi || is_parents(f)) {
		rc = vv_err_set(VV_EINVAL, "the memory is not inside this fence");
	} else if ((rc = vv_chain_install(on_fault)) == 0) {
		vv_block_signals_brief(&mask); /* their handlers may enter, and would wait for the thread that they interrupt */
		atomic_fetch_add(&shuts_begun, 1);
		vv_kernel_writes_each(vv_address_ranges_note, &spared);
		vv_address_ranges_tidy(&spared);
		rc = shut_between(f, r, &spared);
		atomic_fetch_add(&shuts_done, 1);
		vv_block_signals_end(&mask);
		free(spared.at);
	}
	if (r)
		vv_range_release(r);
	return rc;
}

static void ask_for(struct vv_range *r, uintptr_t lo, uintptr_t hi)
{
	struct vv_fence *f = r->owner;
	sigset_t mask;

	while (atomic_load(&shuts_done) != atomic_load(&shuts_begun))
		sched_yield();
	lo = vv_range_next(r, VV_RANGE_SHUT, lo, hi, true);
	if (lo == hi)
		return;
	if (in_child(f)) {
		do
			open_in_child(r, lo);
		while (atomic_load(&r->meddled) && (lo = vv_range_next(r, VV_RANGE_SHUT, lo + vv_memory_page(), hi, true)) < hi);
		return;
	}
	vv_block_signals_brief(&mask); /* as in a handler */
	for (; lo < hi; lo = vv_range_next(r, VV_RANGE_SHUT, lo + vv_memory_page(), hi, true))
		ask_owner(f, lo, &mask);
	vv_block_signals_end(&mask);
}

static void ask_between(uintptr_t lo, uintptr_t hi)
{
	struct vv_range *r;

	while (vv_range_any() && lo < hi && (r = vv_range_hold(lo, hi)) != NULL) {
		ask_for(r, r->lo > lo ? r->lo : lo, r->hi < hi ? r->hi : hi);
		lo = r->hi;
		vv_range_release(r);
	}
}

void vv_fence_enter(const void *p, size_t n)
{
	uintptr_t mask = vv_memory_page() - 1, lo = (uintptr_t)p & ~mask, hi;

	hi = n > UINTPTR_MAX - mask - (uintptr_t)p ? ~mask : ((uintptr_t)p + n + mask) & ~mask;
	vv_kernel_writes_enter(lo, hi);
	ask_between(lo, hi);
}

void vv_fence_vacate(const void *p, size_t n)
{
	uintptr_t lo, hi;

	if (!vv_memory_pages(p, n, &lo, &hi))
		return;
	ask_between(lo, hi);
	vv_fence_meddle(p, n);
}

void vv_fence_leave(void)
{
	vv_kernel_writes_leave();
}

void vv_fence_entered(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg)
{
	struct vv_range *r;

	vv_kernel_writes_each(fn, arg);
	for (uintptr_t at = 0; (r = vv_range_hold(at, UINTPTR_MAX)) != NULL; vv_range_release(r)) {
		uintptr_t lo = vv_range_next(r, VV_RANGE_SPARED, r->lo, r->hi, true), hi;

		for (; lo < r->hi; lo = vv_range_next(r, VV_RANGE_SPARED, hi, r->hi, true)) {
			hi = vv_range_next(r, VV_RANGE_SPARED, lo, r->hi, false);
			fn(arg, lo, hi);
		}
		at = r->hi;
	}
}
