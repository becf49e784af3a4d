// ctest: TIMEOUT 60
// Every function by which a thread may come to block SIGSEGV and SIGBUS, or by which the program takes them over: a write into a shut page waits
// there all the same, and a fault of the program's own goes to its handler. A name in VV_WRAP_BOTH or VV_WRAP_MASKS without a case here does
// not compile. Each case is a process of its own.
#include "preload/wrap/wrap.h"
#include "write_protect_kinds.h"
#include "vv_test.h"

#include "base/err.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/syscall.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { PAGES = 8, FOREIGN = 99 };

static size_t page;
static char *region;
static char *volatile bad; // a page that is not the fence's, and may not be written
static struct vv_write_protect *write_protect;
static atomic_int asks, writes, faults;
static sigset_t all, all_but_usr2;
static sigjmp_buf back;
static const struct timespec ten_seconds = { .tv_sec = 10 };

static void ask(void *arg, uintptr_t at)
{
	(void)arg;
	atomic_fetch_add(&asks, 1);
	CHECK_EQ(vv_write_protect_disable(write_protect, at, at + page), 0);
}

static void shut(void)
{
	CHECK_EQ(vv_write_protect_enable(write_protect, (uintptr_t)region, (uintptr_t)region + PAGES * page), 0);
}

static void write_region(void)
{
	int before = atomic_load(&asks);
	shut();
	((volatile char *)region)[page] = 1;
	CHECK_EQ(atomic_load(&asks), before + 1);
	atomic_fetch_add(&writes, 1);
}

static void write_at_signal(int sig)
{
	(void)sig;
	write_region();
}

// The program's handler of a fault mends what was wrong, and writes.
static void mend(int sig)
{
	(void)sig;
	atomic_fetch_add(&faults, 1);
	write_region();
	CHECK_EQ(mprotect(bad, page, PROT_READ | PROT_WRITE), 0);
}

static void fault(void)
{
	CHECK_EQ(mprotect(bad, page, PROT_NONE), 0);
	*bad = 1;
}

// SIGUSR2 waits, and comes in the call that opens it.
static void have_usr2(void)
{
	sigset_t usr2;
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	CHECK(signal(SIGUSR2, write_at_signal) != SIG_ERR);
	CHECK(sigprocmask(SIG_BLOCK, &usr2, NULL) == 0 && raise(SIGUSR2) == 0);
}

static void *write_in_thread(void *arg)
{
	(void)arg;
	write_region();
	return NULL;
}

// ---- the cases: each writes once or more with the two, so it has seen to that, blocked

static void case_ppoll(void)
{
	have_usr2();
	CHECK(ppoll(NULL, 0, &ten_seconds, &all_but_usr2) == -1 && errno == EINTR);
}

static void case___ppoll_chk(void)
{
	have_usr2();
	CHECK(__ppoll_chk(NULL, 0, &ten_seconds, &all_but_usr2, 0) == -1 && errno == EINTR);
}

static void case_pselect(void)
{
	have_usr2();
	CHECK(pselect(0, NULL, NULL, NULL, &ten_seconds, &all_but_usr2) == -1 && errno == EINTR);
}

static void case_epoll_pwait(void)
{
	struct epoll_event event;
	have_usr2();
	CHECK(epoll_pwait(epoll_create1(0), &event, 1, 10000, &all_but_usr2) == -1 && errno == EINTR);
}

#if __GLIBC_PREREQ(2, 35)
static void case_epoll_pwait2(void)
{
	struct epoll_event event;
	have_usr2();
	int rc = epoll_pwait2(epoll_create1(0), &event, 1, &ten_seconds, &all_but_usr2);
	CHECK(rc == -1 && (errno == EINTR || errno == ENOSYS));
	if (errno == ENOSYS)
		write_region(); // Linux < 5.11
}
#endif

static void case_sigsuspend(void)
{
	have_usr2();
	CHECK(sigsuspend(&all_but_usr2) == -1 && errno == EINTR);
}

static void case_sigaction(void)
{
	CHECK_EQ(sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = write_at_signal, .sa_mask = all }, NULL), 0);
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK_EQ(sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = mend, .sa_mask = all }, NULL), 0);
	fault();
	CHECK_EQ(atomic_load(&faults), 1);
}

static void case_sigprocmask(void)
{
	CHECK_EQ(sigprocmask(SIG_BLOCK, &all, NULL), 0);
	write_region();
	CHECK_EQ(sigprocmask(SIG_SETMASK, &all, NULL), 0);
	write_region();
}

// In the handler of a fault the mask is as the program expects it, whatever it does to it.
static void look_and_mend(int sig)
{
	sigset_t before, now, usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
	CHECK(sigismember(&before, sig) && !sigismember(&before, SIGUSR1));
	write_region();
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, &now), 0);
	CHECK(sigismember(&now, sig) && sigismember(&now, SIGUSR1));
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	CHECK(sigismember(&now, sig) && !sigismember(&now, SIGUSR1));
	mend(sig);
}

static void case_pthread_sigmask(void)
{
	sigset_t now;
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	write_region();
	CHECK(pthread_sigmask(SIG_UNBLOCK, &all, NULL) == 0 && signal(SIGSEGV, look_and_mend) != SIG_ERR);
	fault();
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && !sigismember(&now, SIGSEGV) && !sigismember(&now, SIGUSR1));
}

static void keep_ours(sighandler_t (*set)(int sig, sighandler_t handler))
{
	CHECK(set(SIGSEGV, mend) != SIG_ERR && set(SIGBUS, mend) != SIG_ERR);
	write_region();
	fault();
	CHECK_EQ(atomic_load(&faults), 1);
}

static void case_signal(void)
{
	keep_ours(signal);
}

static void case___sysv_signal(void)
{
	keep_ours(__sysv_signal);
}

static void case_sysv_signal(void)
{
	keep_ours(sysv_signal);
}

static void case_bsd_signal(void)
{
	keep_ours(bsd_signal);
}

static void case_ssignal(void)
{
	keep_ours(ssignal);
}

static void case_sigset(void)
{
	keep_ours(sigset);
	CHECK(sigset(SIGSEGV, SIG_HOLD) == mend && sigset(SIGBUS, SIG_HOLD) == mend);
	write_region();
	CHECK(sigset(SIGUSR2, SIG_HOLD) == SIG_DFL && raise(SIGUSR2) == 0);
}

static void case_sigignore(void)
{
	CHECK(sigignore(SIGSEGV) == 0 && sigignore(SIGBUS) == 0 && sigignore(SIGUSR2) == 0);
	CHECK(raise(SIGSEGV) == 0 && raise(SIGUSR2) == 0);
	write_region();
}

static void case_sighold(void)
{
	CHECK(sighold(SIGSEGV) == 0 && sighold(SIGBUS) == 0 && sighold(SIGUSR2) == 0 && raise(SIGUSR2) == 0);
	write_region();
}

static void release_and_leave(int sig)
{
	atomic_fetch_add(&faults, 1);
	CHECK_EQ(sigrelse(sig), 0);
	siglongjmp(back, 1);
}

// A handler that opens the signal itself, and leaves with no mask to put back, is called again.
static void case_sigrelse(void)
{
	CHECK(signal(SIGSEGV, release_and_leave) != SIG_ERR);
	for (int i = 1; i <= 3; i++) {
		if (sigsetjmp(back, 0) == 0)
			fault();
		CHECK_EQ(atomic_load(&faults), i);
		write_region();
	}
}

static void case_sigblock(void)
{
	sigblock(-1);
	write_region();
}

static void case_sigsetmask(void)
{
	sigsetmask(-1);
	write_region();
	CHECK_EQ(raise(SIGUSR2), 0);
}

#if __GLIBC_PREREQ(2, 32)
static void case_pthread_attr_setsigmask_np(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setsigmask_np(&attr, &all) == 0);
	CHECK(pthread_create(&thread, &attr, write_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
}
#endif

static void notified(union sigval value)
{
	write_region();
	atomic_fetch_add((atomic_int *)value.sival_ptr, 1);
}

static void wait_until(atomic_int *n, int enough)
{
	for (int ms = 0; atomic_load(n) < enough && ms < 30000; ms++)
		usleep(1000);
	CHECK_EQ(atomic_load(n), enough);
}

static void case_timer_create(void)
{
	static atomic_int told[2];
	timer_t timer;
	for (int i = 0; i < 4; i++) {
		struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = notified, .sigev_value.sival_ptr = &told[i % 2] };
		CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
		CHECK_EQ(timer_settime(timer, 0, &(struct itimerspec){ .it_value.tv_nsec = 1000 }, NULL), 0);
		wait_until(&told[i % 2], i / 2 + 1);
		CHECK_EQ(timer_delete(timer), 0);
	}
	have_usr2();
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 }, &timer), 0);
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 && timer_create(9999, NULL, &timer) == -1);
}

static void case_mq_notify(void)
{
	static atomic_int told;
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 100 };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = notified, .sigev_value.sival_ptr = &told };
	char name[32];
	snprintf(name, sizeof(name), "/varve-masks-%d", (int)getpid());
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (queue < 0)
		_exit(FOREIGN);
	CHECK(mq_unlink(name) == 0 && mq_notify(queue, NULL) == 0 && mq_notify(queue, &event) == 0 && mq_send(queue, "hello", 6, 7) == 0);
	wait_until(&told, 1);
}

static ucontext_t outside, inside;
static char stack[1 << 17];

static void write_inside(void)
{
	write_region();
	CHECK_EQ(setcontext(&outside), 0);
}

static void make_inside(void)
{
	CHECK_EQ(getcontext(&inside), 0);
	inside.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) };
	inside.uc_link = NULL;
	inside.uc_sigmask = all;
	makecontext(&inside, write_inside, 0);
}

static void case_setcontext(void)
{
	volatile bool again = false;
	make_inside();
	CHECK_EQ(getcontext(&outside), 0);
	if (again)
		return;
	again = true;
	setcontext(&inside);
	CHECK(false);
}

static ucontext_t *leave_through, *borderline;

static void come_back(void)
{
	CHECK_EQ(setcontext(leave_through), 0);
}

// Its own mask, and that of the place that it leaves, which the kernel writes: on a page where nothing else is written.
static void case_swapcontext(void)
{
	make_inside();
	CHECK_EQ(swapcontext(&outside, &inside), 0);
	borderline = (ucontext_t *)(region + 4 * page - offsetof(ucontext_t, uc_sigmask));
	leave_through = borderline;
	makecontext(&inside, come_back, 0);
	shut();
	CHECK_EQ(swapcontext(borderline, &inside), 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define ROW(name) { #name, case_##name },
	VV_WRAP_BOTH(ROW)
	VV_WRAP_MASKS(ROW)
#undef ROW
};

static bool run(size_t i, enum vv_write_protect_kind kind)
{
	pid_t child = fork();
	int status;
	if (child == 0) {
		alarm(50);
		CHECK_EQ(vv_write_protect_new(kind, ask, NULL, &write_protect), 0);
		CHECK_EQ(vv_write_protect_add(write_protect, (uintptr_t)region, (uintptr_t)region + PAGES * page), 0);
		cases[i].run();
		CHECK(atomic_load(&writes) > 0);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	bool foreign = WIFEXITED(status) && WEXITSTATUS(status) == FOREIGN;
	if (foreign)
		printf("not to be had here: %s\n", cases[i].name);
	else if (status != 0)
		fprintf(stderr, "%s, fences of kind %d: %s %d\n", cases[i].name, kind, WIFSIGNALED(status) ? "signal" : "exit",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return foreign || status == 0;
}

// What the parent has blocked a program starts with: it is this one, once more, which writes.
static void test_inherited(const char *self)
{
	pid_t child = fork();
	int status;
	if (child == 0) {
		unsigned long most = ~0UL;
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &most, NULL, 8);
		execl(self, self, "write", (char *)NULL);
		_exit(1);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	if (dlsym(RTLD_DEFAULT, "read") == dlsym(RTLD_NEXT, "read"))
		SKIP("this build does not stand in front of the C library");
	page = (size_t)sysconf(_SC_PAGESIZE);
	sigfillset(&all);
	all_but_usr2 = all;
	sigdelset(&all_but_usr2, SIGUSR2);
	region = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bad = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(region != MAP_FAILED && bad != MAP_FAILED);
	if (argc > 1) {
		CHECK_EQ(vv_write_protect_new(VV_WRITE_PROTECT_MPROTECT, ask, NULL, &write_protect), 0);
		CHECK_EQ(vv_write_protect_add(write_protect, (uintptr_t)region, (uintptr_t)region + PAGES * page), 0);
		write_region();
		return 0;
	}
	test_inherited(argv[0]);
	bool ok = true;
	for (enum vv_write_protect_kind kind = VV_WRITE_PROTECT_MPROTECT; kind <= VV_WRITE_PROTECT_SIGBUS; kind++)
		for (size_t i = 0; have_fences(kind, ask) && i < sizeof(cases) / sizeof(*cases); i++)
			ok &= run(i, kind);
	CHECK(ok);
	return 0;
}
