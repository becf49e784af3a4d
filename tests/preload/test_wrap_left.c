// ctest: TIMEOUT 60
// Calls that a signal handler leaves by siglongjmp: their memory is no longer announced when the next call is made, and those that
// are in progress below a handler stay announced.
#include "preload/wrap/wrap.h"
#include "track/write_protect.h"
#include "vv_test.h"

#include <dlfcn.h>
#include <setjmp.h>

enum { ROUNDS = 20, STACK = 256 << 10 };

static sigjmp_buf out;
static int empty[2], full[2];
static char *memory;
static size_t page, inside;

static void count(void *arg, uintptr_t lo, uintptr_t hi)
{
	*(size_t *)arg += (hi - lo) / page;
}

static size_t announced(void)
{
	size_t n = 0;

	vv_write_protect_each_syscall(count, &n);
	return n;
}

static void jump_out(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static void read_and_count(int sig)
{
	char byte;
	size_t n;

	(void)sig;
	CHECK(write(full[1], "x", 1) == 1 && read(full[0], &byte, 1) == 1);
	n = announced();
	inside = n > inside ? n : inside;
}

static void alarm_soon(int again_us)
{
	CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 3000, .it_interval.tv_usec = again_us }, NULL), 0);
}

// Both calls are in the same place of the stack.
static void leave_read(bool jump)
{
	if (sigsetjmp(out, 1))
		return;
	if (!jump) {
		CHECK_EQ(write(full[1], "x", 1), 1);
		CHECK_EQ(read(full[0], memory, 1), 1);
		return;
	}
	alarm_soon(0);
	(void)!read(empty[0], memory, 1);
	CHECK(!"read returned");
}

static void leave_deeper(int levels)
{
	struct iovec v[] = { { memory, 1 }, { memory + 2 * page, 1 } };
	volatile char some[512];

	if (levels > 0) {
		some[0] = 1; // it is read behind the call, which so is none at the end
		leave_deeper(levels - some[0]);
		CHECK_EQ(some[0], 1);
		return;
	}
	if (sigsetjmp(out, 1))
		return;
	alarm_soon(0);
	(void)!readv(empty[0], v, 2);
	CHECK(!"readv returned");
}

static void test_left(void)
{
	CHECK_EQ(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = jump_out }, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		leave_read(true);
		CHECK(announced() <= 3);
	}
	for (int i = 0; i < ROUNDS; i++)
		leave_deeper(3 + i % 5);
	leave_read(false);
	CHECK_EQ(announced(), 0);
}

// The stack of the handler lies above that of the thread.
static void *interrupted(void *arg)
{
	stack_t stack = { .ss_sp = arg, .ss_size = STACK };
	sigset_t set;

	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	alarm_soon(50000); // the first may come before it reads
	CHECK(read(empty[0], memory, 1) == -1 && errno == EINTR);
	CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL), 0);
	return NULL;
}

static void test_other_stack(void)
{
	char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t set;

	CHECK(stacks != MAP_FAILED);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = read_and_count, .sa_flags = SA_ONSTACK }, NULL), 0);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, stacks, STACK), 0);
	CHECK_EQ(pthread_create(&thread, &attr, interrupted, stacks + STACK), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(inside, 1);
	CHECK_EQ(announced(), 0);
	pthread_attr_destroy(&attr);
	munmap(stacks, 2 * STACK);
}

int main(void)
{
	if (dlsym(RTLD_DEFAULT, "read") == dlsym(RTLD_NEXT, "read"))
		SKIP("this build does not stand in front of the C library");
	page = (size_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED && pipe(empty) == 0 && pipe(full) == 0);
	test_left();
	test_other_stack();
	return 0;
}
