// ctest: TIMEOUT 60
// Fences of both kinds against the kernel: threads that write while pages are shut and opened, system calls that write into
// them, handlers of the program before and after ours, fork, memory that vanishes.
#include "track/fence.h"
#include "base/clock.h"
#include "base/err.h"
#include "support/place.h"
#include "vv_test.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 96, MANY = 4096, THREADS = 8 };

static size_t page;

// A user of a fence: pages are shut under a lock, and opened by the first who asks.
struct field {
	struct vv_fence *fence;
	char *p;
	size_t n;
	pthread_mutex_t lock;
	bool shut[MANY];
	atomic_ulong asked;
};

static uintptr_t at(const struct field *x, size_t i)
{
	return (uintptr_t)x->p + i * page;
}

static void ask(void *arg, uintptr_t address)
{
	struct field *x = arg;
	size_t i = (address - (uintptr_t)x->p) / page;

	pthread_mutex_lock(&x->lock);
	errno = EIO;
	CHECK(i < x->n && address % page == 0);
	atomic_fetch_add(&x->asked, 1);
	if (x->shut[i]) {
		CHECK_EQ(vv_fence_open(x->fence, address, address + page), 0);
		x->shut[i] = false;
	}
	pthread_mutex_unlock(&x->lock);
}

static char *map(size_t n)
{
	char *p = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

// Between two pages that are not part of it.
static void plant(struct field *x, enum vv_fence_kind kind, size_t n)
{
	memset(x, 0, sizeof(*x));
	pthread_mutex_init(&x->lock, NULL);
	x->p = map(n + 2) + page;
	x->n = n;
	CHECK_EQ(vv_fence_new(kind, ask, x, &x->fence), 0);
	CHECK_EQ(vv_fence_add(x->fence, at(x, 0), at(x, n)), 0);
}

static void clear(struct field *x)
{
	vv_fence_free(x->fence);
	munmap(x->p - page, (x->n + 2) * page);
	pthread_mutex_destroy(&x->lock);
}

static void shut_all(struct field *x)
{
	pthread_mutex_lock(&x->lock);
	for (size_t i = 0; i < x->n; i++)
		x->shut[i] = true;
	CHECK_EQ(vv_fence_shut(x->fence, at(x, 0), at(x, x->n)), 0);
	pthread_mutex_unlock(&x->lock);
}

// ---- every write is asked for, none is lost

struct writer {
	struct field *x;
	unsigned seed, id;
	atomic_bool *stop;
	unsigned long count[PAGES];
};

static _Atomic unsigned long *counter(const struct field *x, size_t i, unsigned id)
{
	return (_Atomic unsigned long *)(void *)(x->p + i * page) + id;
}

static void *write_pages(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load(w->stop)) {
		size_t i = (size_t)rand_r(&w->seed) % w->x->n;

		atomic_fetch_add_explicit(counter(w->x, i, w->id), 1, memory_order_relaxed);
		w->count[i]++;
	}
	return NULL;
}

static unsigned long sum(const struct field *x, size_t i)
{
	unsigned long n = 0;

	for (unsigned id = 0; id < THREADS; id++)
		n += atomic_load_explicit(counter(x, i, id), memory_order_relaxed);
	return n;
}

// Pages that are shut and not asked for do not change.
static void check_still(struct field *x)
{
	unsigned long before[PAGES];

	pthread_mutex_lock(&x->lock);
	for (size_t i = 0; i < x->n; i++)
		before[i] = sum(x, i);
	vv_clock_sleep(0.0005);
	for (size_t i = 0; i < x->n; i++)
		CHECK(!x->shut[i] || sum(x, i) == before[i]);
	pthread_mutex_unlock(&x->lock);
}

static void pull_down(struct field *x)
{
	vv_fence_remove(x->fence, at(x, 0), at(x, x->n));
	vv_clock_sleep(0.0001); // for faults that were on their way
	pthread_mutex_lock(&x->lock);
	memset(x->shut, 0, sizeof(x->shut));
	pthread_mutex_unlock(&x->lock);
	CHECK_EQ(vv_fence_add(x->fence, at(x, 0), at(x, x->n)), 0);
}

static void test_threads(enum vv_fence_kind kind)
{
	static struct writer w[THREADS];
	pthread_t thread[THREADS];
	atomic_bool stop = false;
	struct field x;

	plant(&x, kind, PAGES);
	for (unsigned t = 0; t < THREADS; t++) {
		w[t] = (struct writer){.x = &x, .seed = t, .id = t, .stop = &stop};
		CHECK_EQ(pthread_create(&thread[t], NULL, write_pages, &w[t]), 0);
	}
	for (int round = 0; round < 15; round++) {
		shut_all(&x);
		check_still(&x);
		for (size_t i = round % 3; i < x.n; i += 3)
			ask(&x, at(&x, i));
		check_still(&x);
		for (int k = 0; k < 20; k++) { // with writers at the fence
			shut_all(&x);
			pull_down(&x);
		}
	}
	vv_clock_sleep(0.01);
	atomic_store(&stop, true);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	for (size_t i = 0; i < x.n; i++)
		for (unsigned t = 0; t < THREADS; t++)
			CHECK_EQ(atomic_load(counter(&x, i, t)), w[t].count[i]);
	CHECK(atomic_load(&x.asked) > 15 * PAGES / 3);
	clear(&x);
}

static void test_pages(enum vv_fence_kind kind)
{
	struct field x;
	char *big = map(2048);

	plant(&x, kind, PAGES);
	shut_all(&x); // never touched before
	CHECK_EQ(x.p[5 * page], 0);
	CHECK_EQ(x.asked, 0);
	errno = 4711;
	x.p[5 * page + 7] = 1;
	CHECK_EQ(errno, 4711);
	CHECK_EQ(x.asked, 1);
	x.p[5 * page + 8] = 2;
	CHECK_EQ(x.asked, 1);
	x.p[-1] = x.p[PAGES * page] = 3; // beside the fence
	CHECK_EQ(x.asked, 1);
	CHECK(vv_fence_intact(x.fence, at(&x, 6), at(&x, PAGES)));
	CHECK_EQ(vv_fence_add(x.fence, at(&x, 3), at(&x, 4)), VV_EINVAL);
	CHECK_EQ(vv_fence_add(x.fence, at(&x, 0) - page, at(&x, 1)), VV_EINVAL);
	CHECK_EQ(vv_fence_add(x.fence, at(&x, 0) - page, at(&x, 0) - 1), VV_EINVAL);
	CHECK_EQ(vv_fence_shut(x.fence, at(&x, 0), at(&x, PAGES) + page), VV_EINVAL);
	CHECK_EQ(madvise(x.p, 4 * page, MADV_DONTNEED), 0);
	CHECK_EQ(x.p[page], 0);
	x.p[page] = 9; // asked for or not, it goes through
	CHECK_EQ(x.p[page], 9);
	shut_all(&x);
	x.p[2 * page] = 9;
	CHECK(!x.shut[2] && x.shut[3]);

	// the huge pages of a range of its own
	madvise(big, 2048 * page, MADV_HUGEPAGE);
	memset(big, 1, 2048 * page);
	CHECK_EQ(vv_fence_add(x.fence, (uintptr_t)big, (uintptr_t)big + 2048 * page), 0);
	CHECK_EQ(vv_fence_shut(x.fence, (uintptr_t)big, (uintptr_t)big + 2048 * page), 0);
	CHECK(vv_fence_intact(x.fence, (uintptr_t)big, (uintptr_t)big + 2048 * page));
	CHECK_EQ(vv_fence_open(x.fence, (uintptr_t)big + page, (uintptr_t)big + 3 * page), 0);
	big[page] = big[2 * page] = 2;
	CHECK(vv_fence_intact(x.fence, (uintptr_t)big + 3 * page, (uintptr_t)big + 2048 * page));
	vv_fence_remove(x.fence, (uintptr_t)big, (uintptr_t)big + 2048 * page);
	memset(big, 3, 2048 * page);
	munmap(big, 2048 * page);
	clear(&x);
}

static void test_gone(enum vv_fence_kind kind)
{
	struct field x;

	plant(&x, kind, PAGES);
	shut_all(&x);
	syscall(SYS_munmap, x.p + 10 * page, 2 * page); // not by the wrapped name, which asks
	CHECK(!vv_fence_intact(x.fence, at(&x, 0), at(&x, PAGES)));
	CHECK(!vv_fence_intact(x.fence, at(&x, 11), at(&x, 12)));
	CHECK(vv_fence_intact(x.fence, at(&x, 12), at(&x, PAGES)));
	CHECK(syscall(SYS_mmap, x.p + 10 * page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) >= 0);
	CHECK(!vv_fence_intact(x.fence, at(&x, 10), at(&x, 11)));
	if (kind == VV_FENCE_SIGBUS) {
		syscall(SYS_madvise, x.p + 20 * page, page, MADV_DONTNEED);
		CHECK(!vv_fence_intact(x.fence, at(&x, 19), at(&x, 22)));
	}
	CHECK_EQ(vv_fence_shut(x.fence, at(&x, 0), at(&x, PAGES)) < 0, 1);
	x.p[0] = x.p[30 * page] = 1; // a shut that failed is open
	CHECK_EQ(x.asked, 0);
	CHECK_EQ(vv_fence_shut(x.fence, at(&x, 30), at(&x, PAGES)), 0);
	vv_fence_remove(x.fence, at(&x, 0), at(&x, PAGES));
	x.p[(PAGES - 1) * page] = 1;
	CHECK_EQ(x.asked, 0);
	CHECK_EQ(vv_fence_add(x.fence, at(&x, 0), at(&x, PAGES)), VV_ENOTSUP); // there is a hole
	clear(&x);
}

// ---- system calls

struct pump {
	struct field *x;
	int fd[2];
	atomic_bool stop;
	unsigned long in, out;
};

static void *pump_in(void *arg)
{
	struct pump *u = arg;
	char block[512];

	memset(block, 'x', sizeof(block));
	for (; !atomic_load(&u->stop); u->in += sizeof(block))
		CHECK_EQ(write(u->fd[1], block, sizeof(block)), sizeof(block));
	close(u->fd[1]);
	return NULL;
}

static void *pump_out(void *arg)
{
	struct pump *u = arg;
	unsigned seed = 1;

	for (;;) {
		char *to = u->x->p + u->x->n * page - 1000 - (size_t)rand_r(&seed) % (15 * page);
		ssize_t n;

		vv_fence_enter(to, 1000);
		n = syscall(SYS_read, u->fd[0], to, 1000);
		vv_fence_leave();
		CHECK(n >= 0);
		u->out += (unsigned long)n;
		if (n == 0)
			return NULL;
	}
}

static void let_go(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct field *x = arg;

	for (uintptr_t a = lo; a < hi; a += page)
		if (a >= at(x, 0) && a < at(x, x->n)) {
			CHECK_EQ(vv_fence_open(x->fence, a, a + page), 0);
			x->shut[(a - at(x, 0)) / page] = false;
		}
}

static void test_calls(enum vv_fence_kind kind)
{
	struct field x;
	struct pump u = {.x = &x};
	pthread_t in, out;

	plant(&x, kind, MANY); // to shut so many takes a while, and the calls go to the last
	memset(x.p, 1, MANY * page);
	CHECK_EQ(pipe(u.fd), 0);
	CHECK_EQ(pthread_create(&out, NULL, pump_out, &u), 0);
	CHECK_EQ(pthread_create(&in, NULL, pump_in, &u), 0);
	for (int round = 0; round < 100; round++) {
		pthread_mutex_lock(&x.lock);
		for (size_t i = 0; i < x.n; i++)
			x.shut[i] = true;
		CHECK_EQ(vv_fence_shut(x.fence, at(&x, 0), at(&x, x.n)), 0);
		vv_clock_sleep(0.0003); // for calls to begin, or go on, at what is shut
		vv_fence_entered(let_go, &x);
		for (size_t i = x.n - 16; i < x.n; i++) { // what is not told of is really shut
			int zero = open("/dev/zero", O_RDONLY);

			CHECK(!x.shut[i] || (syscall(SYS_read, zero, x.p + i * page, 1) == -1 && errno == EFAULT));
			close(zero);
		}
		pthread_mutex_unlock(&x.lock);
		sched_yield(); // the lock is not a fair one
	}
	atomic_store(&u.stop, true);
	pthread_join(in, NULL);
	pthread_join(out, NULL);
	CHECK_EQ(u.in, u.out);
	CHECK(atomic_load(&x.asked) > 0);
	close(u.fd[0]);
	clear(&x);
}

static void count_ranges(void *arg, uintptr_t lo, uintptr_t hi)
{
	CHECK(lo % page == 0 && hi % page == 0);
	*(size_t *)arg += (hi - lo) / page;
}

static void test_enter(enum vv_fence_kind kind)
{
	size_t n = (size_t)1 << 18, pages = 0;
	char *p = map(n);
	struct field x;
	double start;

	plant(&x, kind, PAGES);
	CHECK_EQ(vv_fence_add(x.fence, (uintptr_t)p, (uintptr_t)p + n * page), 0);
	start = vv_clock_s();
	vv_fence_enter(p, n * page);
	vv_fence_leave();
	CHECK(vv_clock_s() - start < 0.05);
	vv_fence_remove(x.fence, (uintptr_t)p, (uintptr_t)p + n * page);
	shut_all(&x);
	vv_fence_enter(x.p - 10, page + 20); // three pages, one of them outside
	CHECK_EQ(x.asked, 2);
	for (int i = 0; i < 20; i++) // deeper than is kept
		vv_fence_enter(x.p + 3 * page, 0);
	vv_fence_entered(count_ranges, &pages);
	CHECK_EQ(pages, 3);
	shut_all(&x);
	for (int i = 0; i < 21; i++)
		vv_fence_leave();
	pages = 0;
	vv_fence_entered(count_ranges, &pages); // left, but it was not shut
	CHECK_EQ(pages, 2);
	x.p[0] = x.p[page] = 1;
	CHECK_EQ(x.asked, 2);
	CHECK_EQ(vv_fence_open(x.fence, at(&x, 0), at(&x, 2)), 0);
	pages = 0;
	vv_fence_entered(count_ranges, &pages);
	CHECK_EQ(pages, 0);
	vv_fence_leave(); // one too many
	munmap(p, n * page);
	clear(&x);
}

// ---- memory that vanishes

static void peek(void *arg)
{
	(void)*(volatile char *)arg;
}

static void test_try(void)
{
	char *p = map(2), name[PLACE_MAX];
	int fd = open(place_path(name, "gone"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	sigset_t before, after;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)page) == 0);
	unlink(name);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	CHECK_EQ(vv_fence_try(peek, p), 0);
	munmap(p + page, page);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(vv_fence_try(peek, p + page), VV_EINVAL);
		CHECK_EQ(vv_fence_try(peek, p), 0);
	}
	munmap(p, page);
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(vv_fence_try(peek, p), 0);
	CHECK_EQ(ftruncate(fd, 0), 0);
	CHECK_EQ(vv_fence_try(peek, p), VV_EINVAL); // by SIGBUS
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		CHECK_EQ(sigismember(&before, sig), sigismember(&after, sig));
	munmap(p, page);
	close(fd);
}

static void test_fork(enum vv_fence_kind kind)
{
	struct field x;
	int status;
	pid_t child;

	plant(&x, kind, PAGES);
	memset(x.p, 1, PAGES * page);
	shut_all(&x);
	child = fork();
	if (child == 0) {
		int zero = open("/dev/zero", O_RDONLY);
		struct field own;

		vv_fence_enter(x.p, 1);
		CHECK_EQ(read(zero, x.p, 1), 1);
		vv_fence_leave();
		for (size_t i = 0; i < PAGES; i++)
			x.p[i * page] = 2;
		CHECK_EQ(x.asked, 0);
		plant(&own, kind, 4); // it may have fences of its own
		shut_all(&own);
		own.p[page] = 1;
		CHECK_EQ(own.asked, 1);
		clear(&own);
		vv_fence_free(x.fence);
		memset(x.p, 3, PAGES * page);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(vv_fence_intact(x.fence, at(&x, 0), at(&x, PAGES)));
	for (size_t i = 0; i < PAGES; i++)
		CHECK_EQ(x.p[i * page], 1);
	x.p[0] = 4;
	CHECK_EQ(x.asked, 1);
	clear(&x);
}

// ---- the program's own handlers, each in a process of its own

static sigjmp_buf back;
static volatile char *volatile bad;
static volatile int calls, chained;
static struct sigaction found;

static void recover(int sig, siginfo_t *info, void *context)
{
	sigset_t now;

	(void)context;
	CHECK_EQ(sig, SIGSEGV);
	CHECK(info->si_addr == bad);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, SIGSEGV) && sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
	calls++;
	siglongjmp(back, 1);
}

static void repair(int sig)
{
	(void)sig;
	calls++;
	mprotect((void *)(uintptr_t)bad, page, PROT_READ | PROT_WRITE);
}

static void hand_on(int sig, siginfo_t *info, void *context)
{
	chained++;
	found.sa_sigaction(sig, info, context);
}

static void fault(void)
{
	if (sigsetjmp(back, 1) == 0)
		*bad = 1;
}

static struct sigaction recovering(void)
{
	struct sigaction act = {.sa_sigaction = recover, .sa_flags = SA_SIGINFO};

	sigaddset(&act.sa_mask, SIGUSR1);
	return act;
}

static void use(struct field *x)
{
	unsigned long asked = x->asked;

	shut_all(x);
	x->p[page] = 1;
	CHECK_EQ(x->asked, asked + 1);
}

static void handler_before(enum vv_fence_kind kind)
{
	struct sigaction act = recovering();
	struct field x;

	sigaction(SIGSEGV, &act, NULL);
	plant(&x, kind, PAGES);
	for (int i = 1; i <= 3; i++) {
		fault();
		CHECK_EQ(calls, i);
		use(&x);
	}
	// a page of the fence that the program itself makes read-only: its own affair
	bad = x.p + 3 * page;
	CHECK_EQ(vv_fence_open(x.fence, at(&x, 3), at(&x, 4)), 0);
	mprotect((void *)(uintptr_t)bad, page, PROT_READ);
	fault();
	CHECK_EQ(calls, 4);
	vv_fence_free(x.fence);
	fault();
	CHECK_EQ(calls, 5);
}

static void handler_after(enum vv_fence_kind kind)
{
	struct sigaction act = {.sa_handler = repair, .sa_flags = SA_RESETHAND}, old, none = {.sa_handler = SIG_DFL};
	struct field x;
	bool handled = true;

	CHECK_EQ(vv_fence_sigaction(SIGSEGV, &act, NULL, &handled), 0);
	CHECK(!handled); // no fence yet
	plant(&x, kind, PAGES);
	CHECK_EQ(vv_fence_sigaction(SIGUSR1, &act, NULL, &handled), 0);
	CHECK(!handled);
	CHECK_EQ(vv_fence_sigaction(SIGSEGV, &act, &old, &handled), 0);
	CHECK(handled && old.sa_handler == SIG_DFL);
	*bad = 1;
	CHECK_EQ(calls, 1);
	use(&x);
	CHECK_EQ(vv_fence_sigaction(SIGSEGV, NULL, &old, &handled), 0);
	CHECK(handled && old.sa_handler == SIG_DFL); // it was good for once
	act = recovering();
	CHECK_EQ(vv_fence_sigaction(SIGSEGV, &act, &old, &handled), 0);
	mprotect((void *)(uintptr_t)bad, page, PROT_NONE);
	fault();
	CHECK_EQ(calls, 2);
	none.sa_handler = SIG_IGN;
	CHECK_EQ(vv_fence_sigaction(SIGSEGV, &none, &old, &handled), 0);
	CHECK(handled && old.sa_sigaction == recover);
	kill(getpid(), SIGSEGV); // one that is sent can be ignored
	use(&x);
}

// Somebody goes past the wrapper, and hands on to what he found: us.
static void handler_past(enum vv_fence_kind kind)
{
	int (*raw)(int, const struct sigaction *, struct sigaction *) =
		(int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
	struct sigaction act = recovering(), past = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO};
	struct field x;

	sigaction(SIGSEGV, &act, NULL);
	plant(&x, kind, PAGES);
	sigaddset(&past.sa_mask, SIGUSR1);
	raw(SIGSEGV, &past, &found);
	raw(SIGBUS, &past, kind == VV_FENCE_SIGBUS ? &found : NULL);
	use(&x);
	CHECK_EQ(chained, 0); // the shut put us first again
	fault();
	CHECK(chained == 1 && calls == 1);
}

static void die_at_default(enum vv_fence_kind kind)
{
	struct field x;

	plant(&x, kind, PAGES);
	use(&x);
	*bad = 1;
}

static void die_of_kill(enum vv_fence_kind kind)
{
	struct field x;

	plant(&x, kind, PAGES);
	use(&x);
	kill(getpid(), SIGSEGV);
	pause();
}

static void die_ignoring(enum vv_fence_kind kind)
{
	signal(SIGSEGV, SIG_IGN);
	die_at_default(kind);
}

// The signal that ended it, one of two, 0 being none.
static int run(void (*fn)(enum vv_fence_kind), enum vv_fence_kind kind, int one, int other)
{
	int status, sig;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL); // sanitizers have theirs
		signal(SIGBUS, SIG_DFL);
		bad = (volatile char *)map(3);
		bad += page;
		mprotect((void *)(uintptr_t)bad, page, PROT_NONE);
		alarm(20);
		fn(kind);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if ((sig == 0 && WEXITSTATUS(status) != 0) || (sig != one && sig != other)) {
		fprintf(stderr, "kind %d: ended with status 0x%x, signal %d was expected\n", (int)kind, (unsigned)status, one);
		exit(1);
	}
	return sig;
}

static void test_kind(enum vv_fence_kind kind)
{
	test_pages(kind);
	test_gone(kind);
	test_enter(kind);
	test_fork(kind);
	test_threads(kind);
	test_calls(kind);
}

static void probe(enum vv_fence_kind kind)
{
	struct vv_fence *f;

	if (vv_fence_new(kind, ask, NULL, &f) == 0)
		_exit(0);
	fprintf(stderr, "fences by userfaultfd are left out: %s\n", vv_err_last());
	kill(getpid(), SIGUSR1);
}

int main(void)
{
	struct field both[2];
	enum vv_fence_kind last;

	page = (size_t)sysconf(_SC_PAGESIZE);
	last = run(probe, VV_FENCE_SIGBUS, 0, SIGUSR1) == 0 ? VV_FENCE_SIGBUS : VV_FENCE_MPROTECT;
	for (enum vv_fence_kind kind = VV_FENCE_MPROTECT; kind <= last; kind++) {
		run(handler_before, kind, 0, 0); // while there is no fence in this process
		run(handler_after, kind, 0, 0);
		run(handler_past, kind, 0, 0);
		run(die_at_default, kind, SIGSEGV, SIGSEGV);
		run(die_of_kill, kind, SIGSEGV, SIGSEGV);
		run(die_ignoring, kind, SIGSEGV, SIGSEGV);
	}
	test_try();
	for (enum vv_fence_kind kind = VV_FENCE_MPROTECT; kind <= last; kind++)
		test_kind(kind);
	plant(&both[0], VV_FENCE_MPROTECT, PAGES);
	plant(&both[1], last, PAGES);
	for (int i = 0; i < 4; i++)
		use(&both[i % 2]);
	clear(&both[0]);
	use(&both[1]);
	clear(&both[1]);
	return 0;
}
