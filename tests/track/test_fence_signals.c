// Fences and the program's own handlers of SIGSEGV and SIGBUS, set before ours, after it, or past it; and programs that end by a
// signal as they would without us; and children that are made meanwhile. Each in a process of its own.
#include "support/field.h"
#include <dlfcn.h>
#include <setjmp.h>

enum { PATIENCE = 60 };

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

static void handler_before(enum vv_fence_kind kind)
{
	struct sigaction act = recovering();
	struct field x;

	sigaction(SIGSEGV, &act, NULL);
	field_plant(&x, kind, PAGES);
	for (int i = 1; i <= 3; i++) {
		fault();
		CHECK_EQ(calls, i);
		field_use(&x);
	}
	// a page of the fence that the program itself makes read-only: its own affair
	bad = x.p + 3 * page;
	CHECK_EQ(vv_fence_open(x.fence, field_at(&x, 3), field_at(&x, 4)), 0);
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
	field_plant(&x, kind, PAGES);
	CHECK_EQ(vv_fence_sigaction(SIGUSR1, &act, NULL, &handled), 0);
	CHECK(!handled);
	CHECK_EQ(vv_fence_sigaction(SIGSEGV, &act, &old, &handled), 0);
	CHECK(handled && old.sa_handler == SIG_DFL);
	*bad = 1;
	CHECK_EQ(calls, 1);
	field_use(&x);
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
	field_use(&x);
}

// Somebody goes past the wrapper, and hands on to what he found: us.
static void handler_past(enum vv_fence_kind kind)
{
	int (*raw)(int, const struct sigaction *, struct sigaction *) =
		(int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
	struct sigaction act = recovering(), past = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO};
	struct field x;

	sigaction(SIGSEGV, &act, NULL);
	field_plant(&x, kind, PAGES);
	sigaddset(&past.sa_mask, SIGUSR1);
	raw(SIGSEGV, &past, &found);
	raw(SIGBUS, &past, kind == VV_FENCE_SIGBUS ? &found : NULL);
	field_use(&x);
	CHECK_EQ(chained, 0); // the shut put us first again
	fault();
	CHECK(chained == 1 && calls == 1);
}

static void die_at_default(enum vv_fence_kind kind)
{
	struct field x;

	field_plant(&x, kind, PAGES);
	field_use(&x);
	*bad = 1;
}

static void die_of_kill(enum vv_fence_kind kind)
{
	struct field x;

	field_plant(&x, kind, PAGES);
	field_use(&x);
	kill(getpid(), SIGSEGV);
	pause();
}

static void die_ignoring(enum vv_fence_kind kind)
{
	signal(SIGSEGV, SIG_IGN);
	die_at_default(kind);
}

// A child that waits for a lock may have blocked every signal but one.
static void ends_well(pid_t child)
{
	int status = -1;
	pid_t ended;

	for (int ms = 0; (ended = waitpid(child, &status, WNOHANG)) == 0 && ms < PATIENCE * 1000; ms++)
		usleep(1000);
	if (!ended)
		kill(child, SIGKILL);
	CHECK_EQ(ended, child);
	CHECK_EQ(status, 0);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void *set_again(void *arg)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	bool handled;

	while (!atomic_load((atomic_bool *)arg))
		vv_fence_sigaction(SIGSEGV, &act, NULL, &handled);
	return NULL;
}

// There is no fence, but a handler of ours: children find its lock open, too.
static void children_without_fences(enum vv_fence_kind kind)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	atomic_bool enough = false;
	pthread_t thread;

	(void)kind;
	CHECK_EQ(vv_fence_try(nothing, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, set_again, &enough), 0);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();
		bool handled = false;

		if (child == 0) {
			_exit(vv_fence_sigaction(SIGSEGV, &act, NULL, &handled) != 0 || !handled);
		}
		ends_well(child);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
}

static struct {
	enum vv_fence_kind kind;
	pthread_t thread;
	atomic_bool planted, enough;
} first;

static void *plant(void *arg)
{
	struct field x;

	(void)arg;
	field_plant(&x, first.kind, 1);
	atomic_store(&first.planted, true);
	while (!atomic_load(&first.enough)) {
		vv_fence_remove(x.fence, field_at(&x, 0), field_at(&x, 1));
		CHECK_EQ(vv_fence_add(x.fence, field_at(&x, 0), field_at(&x, 1)), 0);
	}
	field_clear(&x);
	return NULL;
}

static void plant_meanwhile(void)
{
	if (atomic_load(&first.planted))
		return;
	CHECK_EQ(pthread_create(&first.thread, NULL, plant, NULL), 0);
	while (!atomic_load(&first.planted))
		usleep(100);
}

static void *wait_for_enough(void *arg)
{
	(void)arg;
	while (!atomic_load(&first.enough))
		usleep(1000);
	return NULL;
}

// The first fence comes while a child is being made: it can have children, too. The program has a thread already, or the C library would leave
// the locks of its malloc as the new one has them.
static void child_beside_first_fence(enum vv_fence_kind kind)
{
	pthread_t other;
	pid_t child;
	int status;

	CHECK_EQ(pthread_create(&other, NULL, wait_for_enough, NULL), 0);
	first.kind = kind;
	pthread_atfork(plant_meanwhile, NULL, NULL);
	child = fork();
	if (child == 0) {
		child = fork();
		_exit(child != 0 && (waitpid(child, &status, 0) != child || status != 0));
	}
	ends_well(child);
	atomic_store(&first.enough, true);
	pthread_join(first.thread, NULL);
	pthread_join(other, NULL);
}

// Memory that nobody may touch.
static void lay_bad(void)
{
	bad = (volatile char *)field_map(3);
	bad += page;
	mprotect((void *)(uintptr_t)bad, page, PROT_NONE);
}

int main(void)
{
	enum vv_fence_kind last;

	page = (size_t)sysconf(_SC_PAGESIZE);
	lay_bad();
	last = field_last_kind();
	field_run(children_without_fences, last, 0, 0);
	for (int i = 0; i < 10; i++)
		field_run(child_beside_first_fence, last, 0, 0);
	for (enum vv_fence_kind kind = VV_FENCE_MPROTECT; kind <= last; kind++) {
		field_run(handler_before, kind, 0, 0);
		field_run(handler_after, kind, 0, 0);
		field_run(handler_past, kind, 0, 0);
		field_run(die_at_default, kind, SIGSEGV, SIGSEGV);
		field_run(die_of_kill, kind, SIGSEGV, SIGSEGV);
		field_run(die_ignoring, kind, SIGSEGV, SIGSEGV);
	}
	return 0;
}
