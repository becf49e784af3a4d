// ctest: TIMEOUT 60
// Calls that a signal handler leaves by siglongjmp: their memory is no longer announced when the next call is made, and those that
// are in progress below a handler stay announced.
#include "preload/wrap/wrap.h"
#include "track/write_protect.h"
#include "vv_test.h"

#include <dlfcn.h>
#include <setjmp.h>

enum { ROUNDS = 20, PAGES = 4, STACK = 256 << 10 };

static sigjmp_buf out;
static int empty[2], full[2], stack_flags;
static char *memory;
static size_t page, inside;
static unsigned pages; // a bit for each page of memory

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

static void add_page(void *arg, uintptr_t lo, uintptr_t hi)
{
	for (size_t i = 0; i < PAGES; i++)
		*(unsigned *)arg |= (unsigned)(lo <= (uintptr_t)memory + i * page && (uintptr_t)memory + i * page < hi) << i;
}

static void note_pages(int sig)
{
	(void)sig;
	vv_write_protect_each_syscall(add_page, &pages);
}

static void alarm_soon(int again_us)
{
	CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 3000, .it_interval.tv_usec = again_us }, NULL), 0);
}

static void alarm_off(void)
{
	CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL), 0);
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
		some[0] = 1; // it is read after the call, so this is no tail call
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

static void note_from_now(void)
{
	pages = 0;
	CHECK_EQ(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = note_pages }, NULL), 0);
	alarm_soon(50000); // the first may come before the call
}

// Calls of several ranges, in the place of the stack where a call of one range was left.
static void receive_after_read(int socket)
{
	socklen_t *len = (void *)(memory + 2 * page);

	if (!sigsetjmp(out, 1)) {
		alarm_soon(0);
		(void)!read(empty[0], memory + 3 * page, 1);
	}
	note_from_now();
	*len = sizeof(struct sockaddr_storage);
	CHECK(recvfrom(socket, memory, page, 0, (struct sockaddr *)(memory + page), len) == -1 && errno == EINTR);
	CHECK_EQ(pages & 7, 7);
}

static void select_after_poll(void)
{
	fd_set *in = (void *)memory, *out_of = (void *)(memory + page);
	struct timeval *most = (void *)(memory + 2 * page);
	struct pollfd *none = (void *)(memory + 3 * page);

	none->fd = -1;
	if (!sigsetjmp(out, 1)) {
		alarm_soon(0);
		(void)!poll(none, 1, -1);
	}
	note_from_now();
	FD_ZERO(in);
	FD_ZERO(out_of);
	*most = (struct timeval){ .tv_sec = 60 };
	CHECK(select(1, in, out_of, NULL, most) == -1 && errno == EINTR);
	CHECK_EQ(pages & 7, 7);
}

static void test_several_ranges(void)
{
	int ends[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	CHECK_EQ(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = jump_out }, NULL), 0);
	receive_after_read(ends[0]);
	CHECK_EQ(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = jump_out }, NULL), 0);
	select_after_poll();
	alarm_off();
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
	leave_read(false);
	CHECK_EQ(announced(), 0);
}

// The stack of the handler lies above that of the thread.
static void *interrupted(void *arg)
{
	stack_t stack = { .ss_sp = arg, .ss_size = STACK, .ss_flags = stack_flags };
	sigset_t set;

	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	alarm_soon(50000); // the first may come before it reads
	CHECK(read(empty[0], memory, 1) == -1 && errno == EINTR);
	alarm_off();
	return NULL;
}

static void test_other_stack(int flags)
{
	char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t set;

	CHECK(stacks != MAP_FAILED);
	stack_flags = flags;
	inside = 0;
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
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED && pipe(empty) == 0 && pipe(full) == 0);
	test_left();
	test_several_ranges();
	test_other_stack(0);
	test_other_stack((int)(1U << 31)); // SS_AUTODISARM: the kernel forgets the stack while a handler runs there
	return 0;
}
