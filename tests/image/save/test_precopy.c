// ctest: TIMEOUT 120 COST 5
/* A process that is copied while it runs, without criu: what holds of the copy is what it has, and none of its threads notices. They wait in the kernel in
 * every way that is known, two write as fast as they can, one grows, shrinks and moves memory. */
#include "base/err.h"
#include "base/mem.h"
#include "image/save/precopy.h"
#include "support/dice.h"
#include "vv_test.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, QUIET = 24 << 20, PAGES = 512, WRITERS = 2, ROUNDS = 12, ROOM = 128 << 20, LONG = 1000 };

enum call { NANOSLEEP, CLOCK, UNTIL, POLL, SELECT, SEMAPHORE, READ, PAUSE, EPOLL, SIGWAIT, CALLS };
static const char *const names[CALLS] = { "nanosleep", "clock_nanosleep", "clock_nanosleep, absolute", "poll", "select", "sem_timedwait", "read", "sigsuspend",
					  "epoll_wait", "sigtimedwait" };
/* The kernel ends these with EINTR when their thread was stopped. They are made again, unless the thread was stopped twice in a moment. */
static const enum call gives_up = EPOLL;

static struct shared { /* between the test and the process */
	atomic_int waiting, returned[CALLS], hold, held, broken, failed;
	atomic_long moves;
	uint8_t *quiet;
} *shared;

/* ---- the process ------------------------------------------------------------------------------------------------------------------ */

static struct timespec after(clockid_t clock, time_t seconds)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += seconds;
	return t;
}

static void call(enum call which)
{
	struct timespec t = { LONG, 0 }, until = after(which == SEMAPHORE ? CLOCK_REALTIME : CLOCK_MONOTONIC, LONG);
	struct timeval v = { LONG, 0 };
	struct epoll_event event;
	sigset_t none, some;
	sem_t sem;
	int end[2];
	char c;

	sigemptyset(&none);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	switch (which) {
	case NANOSLEEP: nanosleep(&t, NULL); break;
	case CLOCK: clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL); break;
	case UNTIL: clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL); break;
	case POLL: poll(NULL, 0, LONG * 1000); break;
	case SELECT: select(0, NULL, NULL, NULL, &v); break;
	case SEMAPHORE:
		sem_init(&sem, 0, 0);
		sem_timedwait(&sem, &until);
		break;
	case READ:
		CHECK(pipe(end) == 0);
		(void)!read(end[0], &c, 1);
		break;
	case PAUSE: sigsuspend(&none); break;
	case EPOLL: epoll_wait(epoll_create1(0), &event, 1, LONG * 1000); break;
	default: sigtimedwait(&some, NULL, &t);
	}
}

static void *keep_calling(void *arg)
{
	enum call which = (enum call)(intptr_t)arg;

	for (;;) {
		atomic_fetch_add(&shared->waiting, 1);
		call(which);
		atomic_fetch_sub(&shared->waiting, 1);
		atomic_fetch_add(&shared->returned[which], 1);
	}
	return NULL;
}

static void hold_on(void)
{
	if (!atomic_load(&shared->hold))
		return;
	atomic_fetch_add(&shared->held, 1);
	while (atomic_load(&shared->hold))
		sched_yield();
	atomic_fetch_sub(&shared->held, 1);
}

/* Each page counts its writes at both ends. */
static void *keep_writing(void *arg)
{
	uint64_t *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	seed += (uint64_t)(intptr_t)arg;
	for (;;) {
		volatile uint64_t *page = p + rng() % PAGES * (PAGE / 8);

		if (page[0] != page[PAGE / 8 - 1])
			atomic_store(&shared->broken, 1);
		page[0]++;
		page[PAGE / 8 - 1]++;
		hold_on();
	}
	return NULL;
}

static void *keep_moving(void *arg)
{
	size_t n = 16 * PAGE;
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	memset(p, 1, n);
	for (;;) {
		size_t next = (1 + rng() % 64) * PAGE;
		uint8_t *to = mremap(p, n, next, MREMAP_MAYMOVE);

		if (to == MAP_FAILED) {
			atomic_store(&shared->failed, errno);
			return NULL;
		}
		if (to[0] != 1)
			atomic_store(&shared->broken, 1);
		p = to;
		n = next;
		p[n - 1] = 1;
		atomic_fetch_add(&shared->moves, 1);
		hold_on();
	}
	return NULL;
}

static void begin(void *(*run)(void *), intptr_t arg)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, run, (void *)arg) == 0);
}

static void process(void)
{
	uint8_t *quiet = mmap(NULL, QUIET, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t usr2;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	for (size_t i = 0; i < QUIET; i += 8)
		*(uint64_t *)(quiet + i) = rng();
	shared->quiet = quiet;
	for (intptr_t i = 1; i < CALLS; i++)
		begin(keep_calling, i);
	for (intptr_t i = 0; i < WRITERS; i++)
		begin(keep_writing, i);
	begin(keep_moving, 0);
	keep_calling((void *)(intptr_t)NANOSLEEP); /* the first thread, too */
}

/* ---- the test --------------------------------------------------------------------------------------------------------------------- */

static void wait_until(const atomic_int *count, int n)
{
	for (int i = 0; atomic_load(count) < n; i++) {
		CHECK(i < 30000);
		usleep(1000);
	}
}

/* Bytes that hold; of those, how many of the quiet memory. */
static size_t compare(pid_t pid, const struct vv_precopy_process *one, const uint8_t *room, size_t *quiet)
{
	uint64_t lo = (uintptr_t)shared->quiet, hi = lo + QUIET;
	size_t held = 0;

	*quiet = 0;
	for (size_t i = 0; i < one->n; i++) {
		const struct vv_precopy_span *s = &one->span[i];
		size_t n = (size_t)(s->hi - s->lo);
		uint8_t *now = malloc(n);
		struct iovec here = { now, n }, there = { (void *)(uintptr_t)s->lo, n };

		if (s->is_unchanged) {
			CHECK_EQ(process_vm_readv(pid, &here, 1, &there, 1, 0), n);
			CHECK(memcmp(now, room + s->from, n) == 0);
			held += n;
			*quiet += s->hi <= lo || s->lo >= hi ? 0 : (size_t)((s->hi < hi ? s->hi : hi) - (s->lo > lo ? s->lo : lo));
		}
		free(now);
	}
	return held;
}

static void copy_once(pid_t pid, struct vv_pool *pool, uint8_t *room)
{
	const struct vv_precopy_process *one;
	struct vv_precopy p;
	size_t used, from, len, quiet = 0;

	vv_precopy_run(&p, pid, pool, room, ROOM, &used);
	if (!p.n)
		fprintf(stderr, "not copied: %s\n", p.why);
	CHECK_EQ(p.n, 1);
	atomic_store(&shared->hold, 1);
	wait_until(&shared->held, WRITERS + 1);
	one = vv_precopy_check(&p, pid, &from, &len);
	CHECK(one);
	CHECK(compare(pid, one, room, &quiet) >= quiet);
	CHECK_EQ(quiet, QUIET);
	vv_precopy_close(&p);
	atomic_store(&shared->hold, 0);
	while (atomic_load(&shared->held))
		usleep(1000);
}

static bool can(pid_t pid, struct vv_pool *pool, uint8_t *room, char *why, size_t n)
{
	struct vv_precopy p;
	size_t used;
	bool ok;

	vv_precopy_run(&p, pid, pool, room, ROOM, &used);
	ok = p.n == 1;
	snprintf(why, n, "%s", p.why);
	vv_precopy_close(&p);
	return ok;
}

int main(void)
{
	struct vv_pool *pool = NULL;
	uint8_t *room = vv_mem_map(ROOM);
	char why[200];
	long moves;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(room && shared != MAP_FAILED);
	pid = fork();
	if (pid == 0)
		process();
	CHECK(pid > 0);
	wait_until(&shared->waiting, CALLS);
	CHECK_EQ(vv_pool_new(1, &pool), 0);
	usleep(20000);
	if (!can(pid, pool, room, why, sizeof(why))) {
		kill(pid, SIGKILL);
		SKIP(why);
	}
	for (int i = 0; i < ROUNDS; i++) {
		moves = atomic_load(&shared->moves);
		copy_once(pid, pool, room);
		for (int k = 0; atomic_load(&shared->moves) < moves + 100; k++) {
			CHECK(k < 30000 && atomic_load(&shared->failed) == 0);
			usleep(1000);
		}
	}
	for (enum call c = 0; c < CALLS; c++) {
		if (atomic_load(&shared->returned[c]))
			fprintf(stderr, "%s has returned %d times\n", names[c], atomic_load(&shared->returned[c]));
		CHECK(atomic_load(&shared->returned[c]) <= (c < gives_up ? 0 : 2 * ROUNDS));
	}
	CHECK_EQ(atomic_load(&shared->broken), 0);
	CHECK_EQ(atomic_load(&shared->failed), 0);
	CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	vv_pool_free(pool);
	vv_mem_unmap(room, ROOM);
	return 0;
}
