#include "image/process/restart_syscall.h"
#include "image/process/process_tree.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { /* continuation of a call that no signal handler interrupted */
	AT_REST = 1 << 0, /* it holds no pages */
	SLEEPS = 1 << 1,  /* by restart_syscall, if the call has a time limit */
	GIVES_UP = 1 << 2, /* it does not continue: EINTR */
};

static const struct {
	long number;
	int how;
} known[] = {
	{ SYS_nanosleep, AT_REST | SLEEPS },
	{ SYS_clock_nanosleep, AT_REST | SLEEPS },
	{ SYS_futex, AT_REST | SLEEPS },
	{ SYS_ppoll, AT_REST },
	{ SYS_pselect6, AT_REST },
	{ SYS_rt_sigsuspend, AT_REST },
	{ SYS_rt_sigtimedwait, AT_REST | GIVES_UP },
	{ SYS_epoll_pwait, AT_REST | GIVES_UP },
	{ 441 /* epoll_pwait2 */, AT_REST | GIVES_UP },
	{ SYS_semtimedop, AT_REST | GIVES_UP },
	{ SYS_semop, AT_REST | GIVES_UP },
	{ 449 /* futex_waitv */, AT_REST },
	{ SYS_wait4, AT_REST },
	{ SYS_waitid, AT_REST },
	{ SYS_accept, AT_REST },
	{ SYS_accept4, AT_REST },
	{ SYS_restart_syscall, AT_REST },
#ifdef SYS_poll
	{ SYS_poll, AT_REST | SLEEPS },
#endif
#ifdef SYS_select
	{ SYS_select, AT_REST },
#endif
#ifdef SYS_pause
	{ SYS_pause, AT_REST },
#endif
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, AT_REST | GIVES_UP },
#endif
};

static bool does(long number, int what)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].number == number)
			return known[i].how & what;
	return false;
}

static uint64_t waits_of(pid_t tid)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	char text[4096];
	const char *at = vv_process_tree_read(tid, "status", text, sizeof(text)) > 0 ? strstr(text, name) : NULL;

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Parses "NUMBER ARGUMENT... STACK PLACE". "running" or -1 (the thread waits for something else)
 * gives -1. */
static void look(pid_t tid, struct vv_restart_syscall_seen *out)
{
	unsigned long long arg, place;
	char text[256];
	long number;

	out->number = -1;
	if (vv_process_tree_read(tid, "syscall", text, sizeof(text)) > 0 &&
	    sscanf(text, "%ld %llx %*x %*x %*x %*x %*x %*x %llx", &number, &arg, &place) == 3) {
		out->number = number;
		out->arg = arg;
		out->place = place;
	}
}

/* The waits are counted before the second look at the call. So the recorded wait is the last
 * counted one, or a later one. */
void vv_restart_syscall_record(pid_t tid, struct vv_restart_syscall_seen *out)
{
	*out = (struct vv_restart_syscall_seen){ 0 };
	look(tid, out);
	if (!does(out->number, GIVES_UP))
		return;
	out->waits = waits_of(tid);
	look(tid, out);
}

bool vv_restart_syscall_is_at_rest(const struct vv_restart_syscall_seen *seen)
{
	return does(seen->number, AT_REST);
}

#if defined(__aarch64__)

enum { GATE = 4, SET_CALL = 0x404 /* NT_ARM_SYSTEM_CALL */ };

static bool is_gate(pid_t tid, uint64_t place)
{
	uint8_t code[GATE];

	return vv_registers_peek(tid, place, code, sizeof(code)) && vv_registers_find_syscall(code, sizeof(code)) == 0;
}

/* Returns whether the thread was taken out of the recorded wait: since then it has waited once
 * more, for us. (Its registers were read before, so it waits.) */
static bool is_same(pid_t tid, const struct vv_restart_syscall_seen *seen, const struct vv_registers_regs *r)
{
	return seen->number == (long)r->user.regs[8] && seen->place == r->user.pc && waits_of(tid) == seen->waits + 1;
}

/* The kernel shows a continued call as a call that is about to be made. It chooses restart_syscall
 * only when the thread continues, which is visible once the thread is in the call. At the same
 * point it decides about signals. So a redirected thread must not receive a signal before it is in
 * its call. The first argument of a call that has returned EINTR is lost. */
void vv_restart_syscall_rewind(pid_t tid, const struct vv_restart_syscall_seen *seen, bool was_led, struct vv_registers_regs *r, struct vv_restart_syscall_way *way)
{
	long number = (long)r->user.regs[8];
	bool followed;

	if ((long)r->user.regs[0] == -EINTR && does(number, GIVES_UP) && is_gate(tid, r->user.pc - GATE) && is_same(tid, seen, r)) {
		r->user.regs[0] = seen->arg;
		r->user.pc -= GATE;
		followed = true;
	} else {
		followed = (was_led || does(number, SLEEPS)) && is_gate(tid, r->user.pc);
	}
	*way = (struct vv_restart_syscall_way){ followed, number, r->user.pc };
}

void vv_restart_syscall_finish(pid_t tid, const struct vv_restart_syscall_way *way)
{
	struct vv_registers_regs r;
	int number = (int)way->number;
	struct iovec call = { &number, sizeof(number) };

	if (!vv_registers_get(tid, &r) || r.user.regs[8] != SYS_restart_syscall || r.user.pc != way->gate + GATE)
		return;
	r.user.regs[8] = (uint64_t)way->number;
	if (vv_registers_call(PTRACE_SETREGSET, tid, SET_CALL, (uintptr_t)&call) == 0)
		vv_registers_put(tid, &r);
}

#elif defined(__x86_64__)

enum { GOES_ON = -514 /* ERESTARTNOHAND */, SLEPT = -516 /* ERESTART_RESTARTBLOCK */ };

/* All arguments are still there. The result makes the kernel repeat the call, or return EINTR if a
 * handler runs first. */
void vv_restart_syscall_rewind(pid_t tid, const struct vv_restart_syscall_seen *seen, bool was_led, struct vv_registers_regs *r, struct vv_restart_syscall_way *way)
{
	long number = (long)r->user.orig_rax, result = (long)r->user.rax;

	(void)tid, (void)seen, (void)was_led;
	*way = (struct vv_restart_syscall_way){ .number = number };
	if ((result == SLEPT && does(number, SLEEPS)) || (result == -EINTR && does(number, GIVES_UP)))
		r->user.rax = (unsigned long)(long)GOES_ON;
}

void vv_restart_syscall_finish(pid_t tid, const struct vv_restart_syscall_way *way)
{
	(void)tid, (void)way;
}

#else

void vv_restart_syscall_rewind(pid_t tid, const struct vv_restart_syscall_seen *seen, bool was_led, struct vv_registers_regs *r, struct vv_restart_syscall_way *way)
{
	(void)tid, (void)seen, (void)was_led, (void)r;
	*way = (struct vv_restart_syscall_way){ .number = -1 };
}

void vv_restart_syscall_finish(pid_t tid, const struct vv_restart_syscall_way *way)
{
	(void)tid, (void)way;
}

#endif
