// ctest: COST 2
// Fences and the program's own handlers of SIGSEGV and SIGBUS, set before ours, after it, or past it; and programs that end by a
// signal as they would without us; and children that are made meanwhile. Each in a process of its own.
#include "support/field.h"
#include <dlfcn.h>
#include <setjmp.h>

enum { PATIENCE = 60, CROWD = 64 };

static void die_at_default(enum vv_write_protect_kind kind);

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
	CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
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

static void handler_before(enum vv_write_protect_kind kind)
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
	CHECK_EQ(vv_write_protect_disable(x.write_protect, field_at(&x, 3), field_at(&x, 4)), 0);
	mprotect((void *)(uintptr_t)bad, page, PROT_READ);
	fault();
	CHECK_EQ(calls, 4);
	vv_write_protect_free(x.write_protect);
	fault();
	CHECK_EQ(calls, 5);
}

static void handler_after(enum vv_write_protect_kind kind)
{
	struct sigaction act = {.sa_handler = repair, .sa_flags = SA_RESETHAND}, old, none = {.sa_handler = SIG_DFL};
	struct field x;
	bool handled = true;

	CHECK_EQ(vv_write_protect_sigaction(SIGSEGV, &act, NULL, &handled), 0);
	CHECK(!handled); // no fence yet
	field_plant(&x, kind, PAGES);
	CHECK_EQ(vv_write_protect_sigaction(SIGUSR1, &act, NULL, &handled), 0);
	CHECK(!handled);
	CHECK_EQ(vv_write_protect_sigaction(SIGSEGV, &act, &old, &handled), 0);
	CHECK(handled && old.sa_handler == SIG_DFL);
	*bad = 1;
	CHECK_EQ(calls, 1);
	field_use(&x);
	CHECK_EQ(vv_write_protect_sigaction(SIGSEGV, NULL, &old, &handled), 0);
	CHECK(handled && old.sa_handler == SIG_DFL); // it was good for once
	act = recovering();
	CHECK_EQ(vv_write_protect_sigaction(SIGSEGV, &act, &old, &handled), 0);
	mprotect((void *)(uintptr_t)bad, page, PROT_NONE);
	fault();
	CHECK_EQ(calls, 2);
	none.sa_handler = SIG_IGN;
	CHECK_EQ(vv_write_protect_sigaction(SIGSEGV, &none, &old, &handled), 0);
	CHECK(handled && old.sa_sigaction == recover);
	kill(getpid(), SIGSEGV); // one that is sent can be ignored
	field_use(&x);
}

// Somebody goes past the wrapper, and hands on to what he found: us.
static void handler_past(enum vv_write_protect_kind kind)
{
	int (*raw)(int, const struct sigaction *, struct sigaction *) =
		(int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
	struct sigaction act = recovering(), past = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO};
	struct field x;

	sigaction(SIGSEGV, &act, NULL);
	field_plant(&x, kind, PAGES);
	sigaddset(&past.sa_mask, SIGUSR1);
	raw(SIGSEGV, &past, &found);
	raw(SIGBUS, &past, kind == VV_WRITE_PROTECT_SIGBUS ? &found : NULL);
	field_use(&x);
	CHECK_EQ(chained, 0); // the shut put us first again
	fault();
	CHECK(chained == 1 && calls == 1);
}

// ---- what handlers of the program may do

static struct field *used;
static volatile int depth, deepest;

static void write_and_repair(int sig)
{
	CHECK_EQ(++depth, 1);
	field_use(used);
	if (sig == SIGSEGV)
		repair(sig);
	else
		CHECK(mmap((void *)(uintptr_t)bad, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == bad);
	field_use(used);
	depth--;
}

static void handler_writes(enum vv_write_protect_kind kind)
{
	struct sigaction act = {.sa_handler = write_and_repair};
	struct field x;
	int fd = memfd_create("empty", 0);

	used = &x;
	sigfillset(&act.sa_mask);
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	field_plant(&x, kind, PAGES);
	*bad = 1;
	CHECK_EQ(calls, 1);
	kill(getpid(), SIGSEGV);
	CHECK_EQ(calls, 2);
	CHECK(fd >= 0);
	bad = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*bad = 1; // past the end of the file
	field_use(&x);
}

static void fault_once(int sig)
{
	(void)sig;
	if (calls++)
		_exit(7);
	*bad = 1;
}

// As without us: it dies at once, and the handler is not called again.
static void die_in_handler(enum vv_write_protect_kind kind)
{
	signal(SIGSEGV, fault_once);
	die_at_default(kind);
}

static void dive(int sig)
{
	depth++;
	deepest = depth > deepest ? depth : deepest;
	if (calls++ == 0)
		kill(getpid(), sig);
	repair(sig);
	calls--; // repair counts, too
	depth--;
}

// One that is sent meanwhile waits until the handler is over; not so if it is to be interrupted by itself.
static void sent_to_handler(enum vv_write_protect_kind kind)
{
	struct sigaction act = {.sa_handler = dive};
	struct field x;

	sigaction(SIGSEGV, &act, NULL);
	field_plant(&x, kind, PAGES);
	*bad = 1;
	CHECK(calls == 2 && deepest == 1);
	field_use(&x);
	vv_write_protect_free(x.write_protect);
}

static void handler_interrupts_itself(enum vv_write_protect_kind kind)
{
	struct sigaction act = {.sa_handler = dive, .sa_flags = SA_NODEFER};
	struct field x;

	sigaction(SIGSEGV, &act, NULL);
	field_plant(&x, kind, PAGES);
	*bad = 1;
	CHECK(calls == 2 && deepest == 2);
	field_use(&x);
}

// ---- threads that may be cancelled at any instruction

static struct {
	struct vv_write_protect *write_protect;
	char *p;
	pthread_mutex_t lock;
	pthread_cond_t change;
	atomic_int asking, ended;
	bool go;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

// As the engine does it.
static void ask_at_gate(void *arg, uintptr_t address)
{
	int cancel;

	(void)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&gate.lock);
	atomic_fetch_add(&gate.asking, 1);
	while (!gate.go)
		pthread_cond_wait(&gate.change, &gate.lock);
	CHECK_EQ(vv_write_protect_disable(gate.write_protect, address, address + page), 0);
	pthread_mutex_unlock(&gate.lock);
	pthread_setcancelstate(cancel, NULL);
}

static void write_at_end(void *arg)
{
	(void)arg;
	gate.p[page] = 1; // in shut memory: no signals are blocked here
	atomic_fetch_add(&gate.ended, 1);
}

static void *write_for_ever(void *arg)
{
	int type;

	(void)arg;
	pthread_cleanup_push(write_at_end, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	for (;;)
		atomic_store_explicit((atomic_char *)gate.p, 1, memory_order_relaxed);
	pthread_cleanup_pop(0);
	return NULL;
}

static void open_gate(bool go)
{
	pthread_mutex_lock(&gate.lock);
	gate.go = go;
	pthread_cond_broadcast(&gate.change);
	pthread_mutex_unlock(&gate.lock);
}

// The thread is cancelled on its way into the handler, in it, or on its way out.
static void cancel_at_gate(int i)
{
	int asking = atomic_load(&gate.asking);
	pthread_t thread;
	void *result;

	open_gate(false);
	CHECK_EQ(vv_write_protect_enable(gate.write_protect, (uintptr_t)gate.p, (uintptr_t)gate.p + 2 * page), 0);
	CHECK_EQ(pthread_create(&thread, NULL, write_for_ever, NULL), 0);
	if (i % 4)
		while (atomic_load(&gate.asking) == asking)
			usleep(10);
	else
		usleep((unsigned)i);
	if (i % 4 == 1)
		open_gate(true);
	CHECK_EQ(pthread_cancel(thread), 0);
	open_gate(true);
	CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static void cancelled_anywhere(enum vv_write_protect_kind kind)
{
	gate.p = field_map(2);
	CHECK_EQ(vv_write_protect_new(kind, ask_at_gate, NULL, &gate.write_protect), 0);
	CHECK_EQ(vv_write_protect_add(gate.write_protect, (uintptr_t)gate.p, (uintptr_t)gate.p + 2 * page), 0);
	for (int i = 0; i < 200; i++)
		cancel_at_gate(i);
	CHECK_EQ(atomic_load(&gate.ended), 200);
	vv_write_protect_free(gate.write_protect);
}

static void *write_everywhere(void *arg)
{
	uintptr_t x = (uintptr_t)arg;
	int type;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	for (;;) {
		x = x * 25214903917U + 11;
		atomic_store_explicit((atomic_char *)gate.p + (x >> 20) % CROWD * page, 1, memory_order_relaxed);
	}
	return NULL;
}

static void *shut_and_open(void *enough)
{
	while (!atomic_load((atomic_bool *)enough)) {
		pthread_mutex_lock(&gate.lock);
		gate.go = false;
		CHECK_EQ(vv_write_protect_enable(gate.write_protect, (uintptr_t)gate.p, (uintptr_t)gate.p + CROWD * page), 0);
		pthread_mutex_unlock(&gate.lock);
		usleep(100);
		open_gate(true);
		usleep(10);
	}
	open_gate(true);
	return NULL;
}

// The signal that cancels may be on its way when the handler begins, and come when it waits.
static void cancelled_in_crowd(enum vv_write_protect_kind kind)
{
	atomic_bool enough = false;
	pthread_t thread[4], shutter;

	gate.p = field_map(CROWD);
	CHECK_EQ(vv_write_protect_new(kind, ask_at_gate, NULL, &gate.write_protect), 0);
	CHECK_EQ(vv_write_protect_add(gate.write_protect, (uintptr_t)gate.p, (uintptr_t)gate.p + CROWD * page), 0);
	CHECK_EQ(pthread_create(&shutter, NULL, shut_and_open, &enough), 0);
	for (int round = 0; round < 100; round++) {
		for (uintptr_t i = 0; i < 4; i++)
			CHECK_EQ(pthread_create(&thread[i], NULL, write_everywhere, (void *)(i + 1)), 0);
		usleep(2000);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(pthread_cancel(thread[i]), 0);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(pthread_join(thread[i], NULL), 0);
	}
	atomic_store(&enough, true);
	CHECK_EQ(pthread_join(shutter, NULL), 0);
	vv_write_protect_free(gate.write_protect);
}

// ---- how the program ends

static void die_at_default(enum vv_write_protect_kind kind)
{
	struct field x;

	field_plant(&x, kind, PAGES);
	field_use(&x);
	*bad = 1;
}

static void die_of_kill(enum vv_write_protect_kind kind)
{
	struct field x;

	field_plant(&x, kind, PAGES);
	field_use(&x);
	kill(getpid(), SIGSEGV);
	pause();
}

static void die_ignoring(enum vv_write_protect_kind kind)
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
		vv_write_protect_sigaction(SIGSEGV, &act, NULL, &handled);
	return NULL;
}

// There is no fence, but a handler of ours: children find its lock open, too.
static void children_without_fences(enum vv_write_protect_kind kind)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	atomic_bool enough = false;
	pthread_t thread;

	(void)kind;
	CHECK_EQ(vv_write_protect_try_read(nothing, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, set_again, &enough), 0);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();
		bool handled = false;

		if (child == 0) {
			_exit(vv_write_protect_sigaction(SIGSEGV, &act, NULL, &handled) != 0 || !handled);
		}
		ends_well(child);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
}

static struct {
	enum vv_write_protect_kind kind;
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
		vv_write_protect_remove(x.write_protect, field_at(&x, 0), field_at(&x, 1));
		CHECK_EQ(vv_write_protect_add(x.write_protect, field_at(&x, 0), field_at(&x, 1)), 0);
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
static void child_beside_first_fence(enum vv_write_protect_kind kind)
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
	enum vv_write_protect_kind last;

	page = (size_t)sysconf(_SC_PAGESIZE);
	lay_bad();
	last = field_last_kind();
	field_run(children_without_fences, last, 0, 0);
	for (int i = 0; i < 10; i++)
		field_run(child_beside_first_fence, last, 0, 0);
	for (enum vv_write_protect_kind kind = VV_WRITE_PROTECT_MPROTECT; kind <= last; kind++) {
		field_run(handler_before, kind, 0, 0);
		field_run(handler_after, kind, 0, 0);
		field_run(handler_past, kind, 0, 0);
		field_run(handler_writes, kind, 0, 0);
		field_run(sent_to_handler, kind, 0, 0);
		field_run(handler_interrupts_itself, kind, 0, 0);
		field_run(die_in_handler, kind, SIGSEGV, SIGSEGV);
#ifndef __SANITIZE_ADDRESS__ // which does not learn that a stack is unwound by a signal
		field_run(cancelled_anywhere, kind, 0, 0);
		field_run(cancelled_in_crowd, kind, 0, 0);
#else
		(void)cancelled_anywhere, (void)cancelled_in_crowd;
#endif
		field_run(die_at_default, kind, SIGSEGV, SIGSEGV);
		field_run(die_of_kill, kind, SIGSEGV, SIGSEGV);
		field_run(die_ignoring, kind, SIGSEGV, SIGSEGV);
	}
	return 0;
}
