// ctest: TIMEOUT 60
// Calls that block while fences are shut around them, threads that are cancelled in such calls, and threads that block signals.
#include "preload/wrap/wrap.h"
#include "track/write_protect.h"
#include "vv_test.h"

#include "base/err.h"
#include <dlfcn.h>

enum { PAGES = 16, THREADS = 4, ROUNDS = 300 };

static size_t page;
static char *region;
static struct vv_write_protect *write_protect;
static atomic_int asks;
static int ends[THREADS][2];

// A page is opened or shut by one thread at a time: the fence wants that.
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void ask(void *arg, uintptr_t at)
{
	(void)arg;
	atomic_fetch_add(&asks, 1);
	CHECK_EQ(pthread_mutex_lock(&gate), 0);
	CHECK_EQ(vv_write_protect_disable(write_protect, at, at + page), 0);
	CHECK_EQ(pthread_mutex_unlock(&gate), 0);
}

static void count(void *arg, uintptr_t lo, uintptr_t hi)
{
	*(size_t *)arg += (hi - lo) / page;
}

static size_t entered_pages(void)
{
	size_t n = 0;
	vv_write_protect_each_syscall(count, &n);
	return n;
}

// ---- cancellation

static void *block_in_read(void *buf)
{
	return (void *)read(ends[0][0], buf, 100);
}

static void *block_in_readv(void *buf)
{
	struct iovec iov[] = { { buf, 10 }, { (char *)buf + page, 10 } };
	return (void *)readv(ends[0][0], iov, 2);
}

static void *block_in_recvmsg(void *buf)
{
	struct iovec iov = { buf, 10 };
	return (void *)recvmsg(ends[0][0], &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, 0);
}

static void *block_in_wait4(void *buf)
{
	return (void *)(intptr_t)wait4(-1, buf, 0, NULL);
}

static void *block_in_poll(void *buf)
{
	*(struct pollfd *)buf = (struct pollfd){ .fd = ends[0][0], .events = POLLIN };
	return (void *)(intptr_t)poll(buf, 1, -1);
}

static void *block_in_nanosleep(void *buf)
{
	return (void *)(intptr_t)nanosleep(&(struct timespec){ .tv_sec = 1000 }, buf);
}

static atomic_size_t still_entered;

static void look(void *arg)
{
	(void)arg;
	atomic_store(&still_entered, entered_pages());
}

struct blocker {
	void *(*call)(void *buf);
	char *buf;
};

// Looks while the thread still lives: at its end the slots are emptied anyway.
static void *be_cancelled(void *arg)
{
	struct blocker *b = arg;
	pthread_cleanup_push(look, NULL);
	b->call(b->buf);
	pthread_cleanup_pop(0);
	return NULL;
}

static void test_cancel(void *(*call)(void *buf))
{
	struct blocker b = { call, region };
	pthread_t thread;
	void *result;
	atomic_store(&still_entered, 99);
	CHECK_EQ(pthread_create(&thread, NULL, be_cancelled, &b), 0);
	while (entered_pages() == 0)
		sched_yield();
	usleep(2000);
	CHECK(entered_pages() > 0);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(atomic_load(&still_entered), 0);
}

// wait4 needs a child that does not end by itself
static void test_cancel_wait(void)
{
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	test_cancel(block_in_wait4);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

// ---- blocked receivers, and somebody who shuts fences around them

static atomic_int received;

static void *receive(void *arg)
{
	int i = (int)(intptr_t)arg;
	char *buf = region + (size_t)i * 4 * page + page - 50; // across a border
	for (int round = 0; round < ROUNDS; round++) {
		if (round % 16 == 0)
			usleep(500); // time for a shut that finds no call under way
		if (round % 2 == 0)
			memset(buf, 0, 100); // plain writes ask too
		CHECK_EQ(recv(ends[i][0], buf, 100, MSG_WAITALL), 100);
		for (int k = 0; k < 100; k++)
			CHECK_EQ(buf[k], (char)(round + k));
		atomic_fetch_add(&received, 1);
	}
	return NULL;
}

static void *send_all(void *arg)
{
	(void)arg;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < THREADS; i++) {
			char bytes[100];
			for (int k = 0; k < 100; k++)
				bytes[k] = (char)(round + k);
			CHECK_EQ(write(ends[i][1], bytes, 50), 50);
			CHECK_EQ(write(ends[i][1], bytes + 50, 50), 50);
			if (i == 0)
				usleep(100);
		}
	return NULL;
}

static void test_receivers(void)
{
	pthread_t threads[THREADS], sender;
	size_t held = 0, shuts = 0;
	uintptr_t lo = (uintptr_t)region, hi = lo + PAGES * page;
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
		CHECK_EQ(pthread_create(&threads[i], NULL, receive, (void *)(intptr_t)i), 0);
	}
	CHECK_EQ(pthread_create(&sender, NULL, send_all, NULL), 0);
	atomic_store(&asks, 0);
	for (; atomic_load(&received) < THREADS * ROUNDS; shuts++) {
		CHECK_EQ(pthread_mutex_lock(&gate), 0);
		CHECK_EQ(vv_write_protect_enable(write_protect, lo, hi), 0);
		CHECK_EQ(pthread_mutex_unlock(&gate), 0);
		held += entered_pages();
		usleep(20);
		CHECK_EQ(pthread_mutex_lock(&gate), 0);
		CHECK_EQ(vv_write_protect_disable(write_protect, lo, hi), 0);
		CHECK_EQ(pthread_mutex_unlock(&gate), 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(pthread_join(sender, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(close(ends[i][0]) == 0 && close(ends[i][1]) == 0);
	printf("%zu shuts, %zu pages under calls then, %d asked for\n", shuts, held, atomic_load(&asks));
	CHECK(held > 0 && atomic_load(&asks) > 0);
	CHECK_EQ(entered_pages(), 0);
	atomic_store(&received, 0);
}

// ---- a thread that blocks all signals can still write into a fence

static void *write_with_all_blocked(void *arg)
{
	sigset_t all;
	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &all, NULL), 0);
	*(volatile char *)arg = 1;
	return NULL;
}

static void write_in_handler(int sig)
{
	(void)sig;
	*(volatile char *)region = 2;
}

static void test_blocked_signals(void)
{
	pthread_t thread;
	struct sigaction act = { .sa_handler = write_in_handler };
	atomic_store(&asks, 0);
	CHECK_EQ(vv_write_protect_enable(write_protect, (uintptr_t)region, (uintptr_t)region + page), 0);
	CHECK_EQ(pthread_create(&thread, NULL, write_with_all_blocked, region), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(vv_write_protect_enable(write_protect, (uintptr_t)region, (uintptr_t)region + page), 0);
	sigfillset(&act.sa_mask);
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(region[0], 2);
	CHECK_EQ(atomic_load(&asks), 2);
}

static void test_all(enum vv_write_protect_kind kind)
{
	int rc = vv_write_protect_new(kind, ask, NULL, &write_protect);
	CHECK(rc == 0 || rc == VV_ENOTSUP);
	if (rc != 0) {
		printf("skipped: fences of kind %d are not to be had here: %s\n", kind, vv_err_last());
		return;
	}
	region = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(region != MAP_FAILED);
	CHECK_EQ(vv_write_protect_add(write_protect, (uintptr_t)region, (uintptr_t)region + PAGES * page), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[0]), 0);
	test_cancel(block_in_read);
	test_cancel(block_in_readv);
	test_cancel(block_in_recvmsg);
	test_cancel(block_in_poll);
	test_cancel(block_in_nanosleep);
	test_cancel_wait();
	CHECK(close(ends[0][0]) == 0 && close(ends[0][1]) == 0);
	test_receivers();
	test_blocked_signals();
	vv_write_protect_free(write_protect);
	CHECK_EQ(munmap(region, PAGES * page), 0);
}

int main(void)
{
	if (dlsym(RTLD_DEFAULT, "read") == dlsym(RTLD_NEXT, "read"))
		SKIP("this build does not stand in front of the C library");
	page = (size_t)sysconf(_SC_PAGESIZE);
	test_all(VV_WRITE_PROTECT_MPROTECT);
	test_all(VV_WRITE_PROTECT_SIGBUS);
	return 0;
}
