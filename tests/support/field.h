/* Pages behind a fence, for tests of it: shut under a lock, and opened by the first who asks; and a process of its own for what may end it. */
#ifndef VV_TEST_FIELD_H
#define VV_TEST_FIELD_H

#include "base/err.h"
#include "track/write_protect.h"
#include "vv_test.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 96, MANY = 4096 };

static size_t page; // by main

struct field {
	struct vv_write_protect *write_protect;
	char *p;
	size_t n;
	pthread_mutex_t lock;
	bool shut[MANY];
	atomic_ulong asked;
};

static inline uintptr_t field_at(const struct field *x, size_t i)
{
	return (uintptr_t)x->p + i * page;
}

static inline void field_ask(void *arg, uintptr_t address)
{
	struct field *x = arg;
	size_t i = (address - (uintptr_t)x->p) / page;

	pthread_mutex_lock(&x->lock);
	errno = EIO;
	CHECK(i < x->n && address % page == 0);
	atomic_fetch_add(&x->asked, 1);
	if (x->shut[i]) {
		CHECK_EQ(vv_write_protect_disable(x->write_protect, address, address + page), 0);
		x->shut[i] = false;
	}
	pthread_mutex_unlock(&x->lock);
}

static inline char *field_map(size_t n)
{
	char *p = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

// Between two pages that are not part of it.
static inline void field_plant(struct field *x, enum vv_write_protect_kind kind, size_t n)
{
	memset(x, 0, sizeof(*x));
	pthread_mutex_init(&x->lock, NULL);
	x->p = field_map(n + 2) + page;
	x->n = n;
	CHECK_EQ(vv_write_protect_new(kind, field_ask, x, &x->write_protect), 0);
	CHECK_EQ(vv_write_protect_add(x->write_protect, field_at(x, 0), field_at(x, n)), 0);
}

static inline void field_clear(struct field *x)
{
	vv_write_protect_free(x->write_protect);
	munmap(x->p - page, (x->n + 2) * page);
	pthread_mutex_destroy(&x->lock);
}

static inline void field_shut_all(struct field *x)
{
	pthread_mutex_lock(&x->lock);
	for (size_t i = 0; i < x->n; i++)
		x->shut[i] = true;
	CHECK_EQ(vv_write_protect_enable(x->write_protect, field_at(x, 0), field_at(x, x->n)), 0);
	pthread_mutex_unlock(&x->lock);
}

static inline void field_use(struct field *x)
{
	unsigned long asked = x->asked;

	field_shut_all(x);
	x->p[page] = 1;
	CHECK_EQ(x->asked, asked + 1);
}

// The signal that ended it, one of two, 0 being none.
static inline int field_run(void (*fn)(enum vv_write_protect_kind), enum vv_write_protect_kind kind, int one, int other)
{
	int status, sig;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL); // sanitizers have theirs
		signal(SIGBUS, SIG_DFL);
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

static inline void field_probe(enum vv_write_protect_kind kind)
{
	struct vv_write_protect *f;

	if (vv_write_protect_new(kind, field_ask, NULL, &f) == 0)
		_exit(0);
	fprintf(stderr, "fences by userfaultfd are left out: %s\n", vv_err_last());
	kill(getpid(), SIGUSR1);
}

// The last kind that this kernel has. While there is no fence in this process.
static inline enum vv_write_protect_kind field_last_kind(void)
{
	return field_run(field_probe, VV_WRITE_PROTECT_SIGBUS, 0, SIGUSR1) == 0 ? VV_WRITE_PROTECT_SIGBUS : VV_WRITE_PROTECT_MPROTECT;
}

#endif
