// ctest: COST 4
// Fences of both kinds against the kernel: threads that write while pages are shut and opened, system calls that write into
// them, fork, memory that vanishes.
#include "base/clock.h"
#include "base/err.h"
#include "support/field.h"
#include "support/place.h"
#include "track/memory.h"
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>

enum { THREADS = 8 };

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
	vv_write_protect_remove(x->write_protect, field_at(x, 0), field_at(x, x->n));
	vv_clock_sleep(0.0001); // for faults that were on their way
	pthread_mutex_lock(&x->lock);
	memset(x->shut, 0, sizeof(x->shut));
	pthread_mutex_unlock(&x->lock);
	CHECK_EQ(vv_write_protect_add(x->write_protect, field_at(x, 0), field_at(x, x->n)), 0);
}

static void test_threads(enum vv_write_protect_kind kind)
{
	static struct writer w[THREADS];
	pthread_t thread[THREADS];
	atomic_bool stop = false;
	struct field x;

	field_plant(&x, kind, PAGES);
	for (unsigned t = 0; t < THREADS; t++) {
		w[t] = (struct writer){.x = &x, .seed = t, .id = t, .stop = &stop};
		CHECK_EQ(pthread_create(&thread[t], NULL, write_pages, &w[t]), 0);
	}
	for (int round = 0; round < 15; round++) {
		field_shut_all(&x);
		check_still(&x);
		for (size_t i = round % 3; i < x.n; i += 3)
			field_ask(&x, field_at(&x, i));
		check_still(&x);
		for (int k = 0; k < 20; k++) { // with writers at the fence
			field_shut_all(&x);
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
	field_clear(&x);
}

static void test_pages(enum vv_write_protect_kind kind)
{
	struct field x;
	char *big = field_map(2048);

	field_plant(&x, kind, PAGES);
	field_shut_all(&x); // never touched before
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
	CHECK(vv_write_protect_is_intact(x.write_protect, field_at(&x, 6), field_at(&x, PAGES)));
	CHECK_EQ(vv_write_protect_add(x.write_protect, field_at(&x, 3), field_at(&x, 4)), VV_EINVAL);
	CHECK_EQ(vv_write_protect_add(x.write_protect, field_at(&x, 0) - page, field_at(&x, 1)), VV_EINVAL);
	CHECK_EQ(vv_write_protect_add(x.write_protect, field_at(&x, 0) - page, field_at(&x, 0) - 1), VV_EINVAL);
	CHECK_EQ(vv_write_protect_enable(x.write_protect, field_at(&x, 0), field_at(&x, PAGES) + page), VV_EINVAL);
	CHECK_EQ(madvise(x.p, 4 * page, MADV_DONTNEED), 0);
	CHECK_EQ(x.p[page], 0);
	x.p[page] = 9; // asked for or not, it goes through
	CHECK_EQ(x.p[page], 9);
	field_shut_all(&x);
	x.p[2 * page] = 9;
	CHECK(!x.shut[2] && x.shut[3]);

	// the huge pages of a range of its own
	madvise(big, 2048 * page, MADV_HUGEPAGE);
	memset(big, 1, 2048 * page);
	CHECK_EQ(vv_write_protect_add(x.write_protect, (uintptr_t)big, (uintptr_t)big + 2048 * page), 0);
	CHECK_EQ(vv_write_protect_enable(x.write_protect, (uintptr_t)big, (uintptr_t)big + 2048 * page), 0);
	CHECK(vv_write_protect_is_intact(x.write_protect, (uintptr_t)big, (uintptr_t)big + 2048 * page));
	CHECK_EQ(vv_write_protect_disable(x.write_protect, (uintptr_t)big + page, (uintptr_t)big + 3 * page), 0);
	big[page] = big[2 * page] = 2;
	CHECK(vv_write_protect_is_intact(x.write_protect, (uintptr_t)big + 3 * page, (uintptr_t)big + 2048 * page));
	vv_write_protect_remove(x.write_protect, (uintptr_t)big, (uintptr_t)big + 2048 * page);
	memset(big, 3, 2048 * page);
	munmap(big, 2048 * page);
	field_clear(&x);
}

static void test_gone(enum vv_write_protect_kind kind)
{
	struct field x;

	field_plant(&x, kind, PAGES);
	field_shut_all(&x);
	syscall(SYS_munmap, x.p + 10 * page, 2 * page); // not by the wrapped name, which asks
	CHECK(!vv_write_protect_is_intact(x.write_protect, field_at(&x, 0), field_at(&x, PAGES)));
	CHECK(!vv_write_protect_is_intact(x.write_protect, field_at(&x, 11), field_at(&x, 12)));
	CHECK(vv_write_protect_is_intact(x.write_protect, field_at(&x, 12), field_at(&x, PAGES)));
	CHECK(syscall(SYS_mmap, x.p + 10 * page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) >= 0);
	CHECK(!vv_write_protect_is_intact(x.write_protect, field_at(&x, 10), field_at(&x, 11)));
	if (kind == VV_WRITE_PROTECT_SIGBUS) {
		syscall(SYS_madvise, x.p + 20 * page, page, MADV_DONTNEED);
		CHECK(!vv_write_protect_is_intact(x.write_protect, field_at(&x, 19), field_at(&x, 22)));
	}
	CHECK_EQ(vv_write_protect_enable(x.write_protect, field_at(&x, 0), field_at(&x, PAGES)) < 0, 1);
	x.p[0] = x.p[30 * page] = 1; // a shut that failed is open
	CHECK_EQ(x.asked, 0);
	CHECK_EQ(vv_write_protect_enable(x.write_protect, field_at(&x, 30), field_at(&x, PAGES)), 0);
	vv_write_protect_remove(x.write_protect, field_at(&x, 0), field_at(&x, PAGES));
	x.p[(PAGES - 1) * page] = 1;
	CHECK_EQ(x.asked, 0);
	CHECK_EQ(vv_write_protect_add(x.write_protect, field_at(&x, 0), field_at(&x, PAGES)), VV_ENOTSUP); // there is a hole
	field_clear(&x);
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

		vv_write_protect_begin_syscall(to, 1000);
		n = syscall(SYS_read, u->fd[0], to, 1000);
		vv_write_protect_end_syscall();
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
		if (a >= field_at(x, 0) && a < field_at(x, x->n)) {
			CHECK_EQ(vv_write_protect_disable(x->write_protect, a, a + page), 0);
			x->shut[(a - field_at(x, 0)) / page] = false;
		}
}

static void test_calls(enum vv_write_protect_kind kind)
{
	struct field x;
	struct pump u = {.x = &x};
	pthread_t in, out;

	field_plant(&x, kind, MANY); // to shut so many takes a while, and the calls go to the last
	memset(x.p, 1, MANY * page);
	CHECK_EQ(pipe(u.fd), 0);
	CHECK_EQ(pthread_create(&out, NULL, pump_out, &u), 0);
	CHECK_EQ(pthread_create(&in, NULL, pump_in, &u), 0);
	for (int round = 0; round < 100; round++) {
		pthread_mutex_lock(&x.lock);
		for (size_t i = 0; i < x.n; i++)
			x.shut[i] = true;
		CHECK_EQ(vv_write_protect_enable(x.write_protect, field_at(&x, 0), field_at(&x, x.n)), 0);
		vv_clock_sleep(0.0003); // for calls to begin, or go on, at what is shut
		vv_write_protect_each_syscall(let_go, &x);
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
	field_clear(&x);
}

static void count_ranges(void *arg, uintptr_t lo, uintptr_t hi)
{
	CHECK(lo % page == 0 && hi % page == 0);
	*(size_t *)arg += (hi - lo) / page;
}

static void test_enter(enum vv_write_protect_kind kind)
{
	size_t n = (size_t)1 << 18, pages = 0;
	char *p = field_map(n);
	struct field x;
	clock_t start;

	field_plant(&x, kind, PAGES);
	CHECK_EQ(vv_write_protect_add(x.write_protect, (uintptr_t)p, (uintptr_t)p + n * page), 0);
	start = clock(); // of processors: others may use them, too
	vv_write_protect_begin_syscall(p, n * page);
	vv_write_protect_end_syscall();
	CHECK(clock() - start < CLOCKS_PER_SEC / 20);
	vv_write_protect_remove(x.write_protect, (uintptr_t)p, (uintptr_t)p + n * page);
	field_shut_all(&x);
	vv_write_protect_begin_syscall(x.p - 10, page + 20); // three pages, one of them outside
	CHECK_EQ(x.asked, 2);
	for (int i = 0; i < 20; i++) // deeper than is kept
		vv_write_protect_begin_syscall(x.p + 3 * page, 0);
	vv_write_protect_each_syscall(count_ranges, &pages);
	CHECK_EQ(pages, 3);
	field_shut_all(&x);
	for (int i = 0; i < 21; i++)
		vv_write_protect_end_syscall();
	pages = 0;
	vv_write_protect_each_syscall(count_ranges, &pages); // left, but it was not shut
	CHECK_EQ(pages, 2);
	x.p[0] = x.p[page] = 1;
	CHECK_EQ(x.asked, 2);
	CHECK_EQ(vv_write_protect_disable(x.write_protect, field_at(&x, 0), field_at(&x, 2)), 0);
	pages = 0;
	vv_write_protect_each_syscall(count_ranges, &pages);
	CHECK_EQ(pages, 0);
	vv_write_protect_end_syscall(); // one too many
	munmap(p, n * page);
	field_clear(&x);
}

// ---- memory that vanishes

static void peek(void *arg)
{
	(void)*(volatile char *)arg;
}

static void test_try(void)
{
	char *p = field_map(2), name[PLACE_MAX];
	int fd = open(place_path(name, "gone"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	sigset_t before, after;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)page) == 0);
	unlink(name);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	CHECK_EQ(vv_write_protect_try_read(peek, p), 0);
	munmap(p + page, page);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(vv_write_protect_try_read(peek, p + page), VV_EINVAL);
		CHECK_EQ(vv_write_protect_try_read(peek, p), 0);
	}
	munmap(p, page);
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(vv_write_protect_try_read(peek, p), 0);
	CHECK_EQ(ftruncate(fd, 0), 0);
	CHECK_EQ(vv_write_protect_try_read(peek, p), VV_EINVAL); // by SIGBUS
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		CHECK_EQ(sigismember(&before, sig), sigismember(&after, sig));
	munmap(p, page);
	close(fd);
}

static void test_fork(enum vv_write_protect_kind kind)
{
	struct field x;
	int status;
	pid_t child;

	field_plant(&x, kind, PAGES);
	memset(x.p, 1, PAGES * page);
	field_shut_all(&x);
	child = fork();
	if (child == 0) {
		int zero = open("/dev/zero", O_RDONLY);
		struct field own;

		vv_write_protect_begin_syscall(x.p, 1);
		CHECK_EQ(read(zero, x.p, 1), 1);
		vv_write_protect_end_syscall();
		for (size_t i = 0; i < PAGES; i++)
			x.p[i * page] = 2;
		CHECK_EQ(x.asked, 0);
		field_plant(&own, kind, 4); // it may have fences of its own
		field_shut_all(&own);
		own.p[page] = 1;
		CHECK_EQ(own.asked, 1);
		field_clear(&own);
		vv_write_protect_free(x.write_protect);
		memset(x.p, 3, PAGES * page);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(vv_write_protect_is_intact(x.write_protect, field_at(&x, 0), field_at(&x, PAGES)));
	for (size_t i = 0; i < PAGES; i++)
		CHECK_EQ(x.p[i * page], 1);
	x.p[0] = 4;
	CHECK_EQ(x.asked, 1);
	field_clear(&x);
}

// ---- what the program has done to its pages stays

static bool is_readonly(struct field *x, size_t from, size_t to)
{
	struct vv_memory_range r = {field_at(x, from), field_at(x, to), false};

	return vv_memory_are_readonly(&r, 1);
}

static void keep_lo(void *arg, uintptr_t lo, uintptr_t hi)
{
	CHECK(lo < hi && *(uintptr_t *)arg == 0);
	*(uintptr_t *)arg = lo;
}

static void test_rights(enum vv_write_protect_kind kind)
{
	uintptr_t found = 0;
	struct field x;
	int status;
	pid_t child;

	field_plant(&x, kind, PAGES);
	memset(x.p, 1, PAGES * page);
	CHECK_EQ(vv_write_protect_find_protected(x.write_protect, 0, UINTPTR_MAX, keep_lo, &found), 0);
	CHECK_EQ(found, 0);
	CHECK_EQ(syscall(SYS_mprotect, x.p + 8 * page, 2 * page, PROT_READ), 0);
	CHECK_EQ(vv_write_protect_find_protected(x.write_protect, 0, UINTPTR_MAX, keep_lo, &found), 0);
	CHECK_EQ(found, kind == VV_WRITE_PROTECT_MPROTECT ? field_at(&x, 0) : 0);
	found = 0;
	CHECK_EQ(syscall(SYS_mprotect, x.p + 8 * page, 2 * page, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(vv_write_protect_enable(x.write_protect, field_at(&x, 0), field_at(&x, 4)), 0);
	memset(x.shut, true, 4 * sizeof(x.shut[0]));
	CHECK_EQ(vv_write_protect_find_protected(x.write_protect, 0, UINTPTR_MAX, keep_lo, &found), 0);
	CHECK_EQ(found, 0); // what is shut is not the program's doing
	vv_write_protect_note_mprotect(x.p + 8 * page, 2 * page);
	CHECK_EQ(syscall(SYS_mprotect, x.p + 8 * page, 2 * page, PROT_READ), 0);
	CHECK_EQ(vv_write_protect_find_protected(x.write_protect, 0, UINTPTR_MAX, keep_lo, &found), 0);
	CHECK_EQ(found, kind == VV_WRITE_PROTECT_MPROTECT ? field_at(&x, 4) : 0);
	found = 0;
	CHECK_EQ(vv_write_protect_find_protected(x.write_protect, field_at(&x, 0), field_at(&x, 6), keep_lo, &found), 0);
	CHECK_EQ(found, 0);
	child = fork();
	if (child == 0) {
		if (kind == VV_WRITE_PROTECT_MPROTECT) {
			vv_write_protect_begin_syscall(x.p, 3 * page);
			vv_write_protect_end_syscall();
			CHECK(!is_readonly(&x, 0, 1) && !is_readonly(&x, 2, 3));
		}
		memset(x.p, 2, 4 * page);
		CHECK(is_readonly(&x, 8, 10));
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	x.p[page] = 3;
	CHECK_EQ(x.asked, 1);
	CHECK_EQ(vv_write_protect_disable(x.write_protect, field_at(&x, 0), field_at(&x, PAGES)), 0);
	memset(x.p, 4, 4 * page);
	CHECK_EQ(x.asked, 1);
	CHECK(is_readonly(&x, 8, 10) && !is_readonly(&x, 10, 11));
	vv_write_protect_remove(x.write_protect, field_at(&x, 0), field_at(&x, PAGES));
	CHECK(is_readonly(&x, 8, 10));
	CHECK_EQ(syscall(SYS_mprotect, x.p, PAGES * page, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(vv_write_protect_add(x.write_protect, field_at(&x, 0), field_at(&x, PAGES)), 0);
	field_clear(&x);
}

// ---- memory goes from a fence of one kind behind one of the other

struct moving {
	pthread_mutex_t lock;
	struct vv_write_protect *stands;
};

static void open_at(void *arg, uintptr_t at)
{
	struct moving *m = arg;

	pthread_mutex_lock(&m->lock);
	CHECK_EQ(vv_write_protect_disable(m->stands, at, at + page), 0);
	pthread_mutex_unlock(&m->lock);
}

// A write that met the one and is looked at when the other stands there is tried again; it is not the program's fault.
static void test_moved(enum vv_write_protect_kind other)
{
	enum { TURNS = 600 };
	static struct writer w[THREADS];
	struct moving m = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct vv_write_protect *write_protect[2];
	pthread_t thread[THREADS];
	atomic_bool stop = false;
	struct field x = { .n = PAGES };
	unsigned long all = 0;

	x.p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(x.p != MAP_FAILED);
	memset(x.p, 0, PAGES * page);
	memset(w, 0, sizeof(w));
	CHECK_EQ(vv_write_protect_new(VV_WRITE_PROTECT_MPROTECT, open_at, &m, &write_protect[0]), 0);
	CHECK_EQ(vv_write_protect_new(other, open_at, &m, &write_protect[1]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct writer){ .x = &x, .seed = i + 1, .id = i, .stop = &stop };
		CHECK_EQ(pthread_create(&thread[i], NULL, write_pages, &w[i]), 0);
	}
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&m.lock);
		if (m.stands)
			vv_write_protect_remove(m.stands, field_at(&x, 0), field_at(&x, PAGES));
		m.stands = write_protect[i % 2];
		CHECK_EQ(vv_write_protect_add(m.stands, field_at(&x, 0), field_at(&x, PAGES)), 0);
		CHECK_EQ(vv_write_protect_enable(m.stands, field_at(&x, 0), field_at(&x, PAGES)), 0);
		pthread_mutex_unlock(&m.lock);
		vv_clock_sleep(0.0002);
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		for (size_t k = 0; k < PAGES; k++) {
			CHECK_EQ(atomic_load(counter(&x, k, i)), w[i].count[k]);
			all += w[i].count[k];
		}
	CHECK(all > 0);
	vv_write_protect_free(write_protect[0]);
	vv_write_protect_free(write_protect[1]);
	munmap(x.p, PAGES * page);
}

static void test_kind(enum vv_write_protect_kind kind)
{
	test_rights(kind);
	test_pages(kind);
	test_gone(kind);
	test_enter(kind);
	test_fork(kind);
	test_threads(kind);
	test_calls(kind);
}

int main(void)
{
	struct field both[2];
	enum vv_write_protect_kind last;

	page = (size_t)sysconf(_SC_PAGESIZE);
	last = field_last_kind();
	test_try();
	for (enum vv_write_protect_kind kind = VV_WRITE_PROTECT_MPROTECT; kind <= last; kind++)
		test_kind(kind);
	test_moved(last);
	field_plant(&both[0], VV_WRITE_PROTECT_MPROTECT, PAGES);
	field_plant(&both[1], last, PAGES);
	for (int i = 0; i < 4; i++)
		field_use(&both[i % 2]);
	field_clear(&both[0]);
	field_use(&both[1]);
	field_clear(&both[1]);
	return 0;
}
