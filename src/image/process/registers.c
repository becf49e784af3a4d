#include "image/process/registers.h"
#include "base/err.h"
#include <elf.h>
#include <linux/rseq.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- machine-dependent part ------------------------------------------------------------------ */

#if defined(__aarch64__)

/* A system call preserves only the vector registers that all machines have; the others must be
 * restored. A thread in streaming mode would lose that mode. */
enum { KNOWN = 1, MORE = 0x405 /* NT_ARM_SVE */, STREAMING = 0x40b /* NT_ARM_SSVE */, GATE_STEP = 4 };
/* Of pstate. The thread does not reach the gate by a branch that needs a landing pad there
 * (BTI). */
enum { KIND_OF_BRANCH = 3 << 10 };
static const uint8_t gate_code[] = { 0x01, 0x00, 0x00, 0xd4 }; /* svc #0 */

void vv_registers_set_syscall(struct vv_registers_regs *r, uint64_t gate, long number, const uint64_t arg[VV_REGISTERS_ARGS])
{
	r->user.pc = gate;
	r->user.pstate &= ~(uint64_t)KIND_OF_BRANCH;
	r->user.regs[8] = (uint64_t)number;
	memcpy(r->user.regs, arg, VV_REGISTERS_ARGS * sizeof(*arg));
}

long vv_registers_result(const struct vv_registers_regs *r)
{
	return (long)r->user.regs[0];
}

static uint64_t program_counter(const struct vv_registers_regs *r)
{
	return r->user.pc;
}

#elif defined(__x86_64__)

enum { KNOWN = 1, MORE = 0, STREAMING = 0, GATE_STEP = 1 };
static const uint8_t gate_code[] = { 0x0f, 0x05 }; /* syscall */

/* orig_rax = -1: the thread does not come from a system call, so the kernel restarts none. */
void vv_registers_set_syscall(struct vv_registers_regs *r, uint64_t gate, long number, const uint64_t arg[VV_REGISTERS_ARGS])
{
	r->user.rip = gate;
	r->user.rax = (unsigned long)number;
	r->user.orig_rax = (unsigned long)-1;
	r->user.rdi = arg[0];
	r->user.rsi = arg[1];
	r->user.rdx = arg[2];
	r->user.r10 = arg[3];
	r->user.r8 = arg[4];
	r->user.r9 = arg[5];
}

long vv_registers_result(const struct vv_registers_regs *r)
{
	return (long)r->user.rax;
}

static uint64_t program_counter(const struct vv_registers_regs *r)
{
	return r->user.rip;
}

#else

enum { KNOWN = 0, MORE = 0, STREAMING = 0, GATE_STEP = 1 };
static const uint8_t gate_code[] = { 0 };

void vv_registers_set_syscall(struct vv_registers_regs *r, uint64_t gate, long number, const uint64_t arg[VV_REGISTERS_ARGS])
{
	(void)r, (void)gate, (void)number, (void)arg;
}

long vv_registers_result(const struct vv_registers_regs *r)
{
	return r->user;
}

static uint64_t program_counter(const struct vv_registers_regs *r)
{
	return (uint64_t)r->user;
}

#endif

bool vv_registers_is_known(void)
{
	return KNOWN;
}

size_t vv_registers_find_syscall(const uint8_t *code, size_t n)
{
	if (KNOWN)
		for (size_t i = 0; i + sizeof(gate_code) <= n; i += GATE_STEP)
			if (memcmp(code + i, gate_code, sizeof(gate_code)) == 0)
				return i;
	return n;
}

/* ---- registers ------------------------------------------------------------------------------- */

int vv_registers_call(int request, pid_t tid, uintptr_t addr, uintptr_t data)
{
	return (int)syscall(SYS_ptrace, (long)request, (long)tid, addr, data);
}

static ssize_t get_set(pid_t tid, int type, void *to, size_t n)
{
	struct iovec v = { to, n };

	return vv_registers_call(PTRACE_GETREGSET, tid, (uintptr_t)type, (uintptr_t)&v) < 0 ? -1 : (ssize_t)v.iov_len;
}

static bool put_set(pid_t tid, int type, const void *from, size_t n)
{
	struct iovec v = { (void *)(uintptr_t)from, n };

	return vv_registers_call(PTRACE_SETREGSET, tid, (uintptr_t)type, (uintptr_t)&v) == 0;
}

bool vv_registers_get(pid_t tid, struct vv_registers_regs *r)
{
	return KNOWN && get_set(tid, NT_PRSTATUS, r, sizeof(*r)) == sizeof(*r);
}

bool vv_registers_put(pid_t tid, const struct vv_registers_regs *r)
{
	return put_set(tid, NT_PRSTATUS, r, sizeof(*r));
}

bool vv_registers_peek(pid_t tid, uint64_t from, void *to, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)(uintptr_t)from, n };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* A thread in a restartable sequence must not be redirected: the kernel would forget the
 * sequence. */
static bool is_in_sequence(pid_t tid, uint64_t place)
{
	struct __ptrace_rseq_configuration c = { 0 };
	struct rseq_cs cs;
	uint64_t at = 0;

	if (vv_registers_call(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(c), (uintptr_t)&c) < 0 || !c.rseq_abi_pointer)
		return false;
	if (!vv_registers_peek(tid, c.rseq_abi_pointer + offsetof(struct rseq, rseq_cs), &at, sizeof(at)))
		return true;
	return at && (!vv_registers_peek(tid, at, &cs, sizeof(cs)) || place - cs.start_ip < cs.post_commit_offset);
}

/* The process dispatches its system calls to itself; it would receive ours, too. */
static bool is_dispatched(pid_t tid)
{
	enum { GET_DISPATCH = 0x4211 }; /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */
	struct {
		uint64_t mode, selector, offset, len;
	} c = { 0 };

	return vv_registers_call(GET_DISPATCH, tid, sizeof(c), (uintptr_t)&c) == 0 && c.mode;
}

static bool is_streaming(pid_t tid)
{
	struct {
		uint32_t size, max_size;
		uint16_t vl, max_vl, flags, reserved;
	} head = { 0 };

	return STREAMING != 0 && get_set(tid, STREAMING, &head, sizeof(head)) == sizeof(head) && head.flags & 1;
}

int vv_registers_save(pid_t tid, struct vv_registers_state *s)
{
	ssize_t more;

	if (is_streaming(tid))
		return vv_err_set(VV_ENOTSUP, "it is in a mode of its registers that a system call would end");
	if (!vv_registers_get(tid, &s->regs))
		return vv_err_set(VV_ENOTSUP, "it has other registers than this program");
	more = MORE ? get_set(tid, MORE, s->more, sizeof(s->more)) : 0;
	s->n_more = more > 0 ? (size_t)more : 0;
	if (s->n_more == sizeof(s->more))
		return vv_err_set(VV_ENOTSUP, "it has more registers than varve knows of");
	if (is_dispatched(tid))
		return vv_err_set(VV_ENOTSUP, "its system calls are dispatched to itself");
	if (is_in_sequence(tid, program_counter(&s->regs)))
		return vv_err_set(VV_ENOTSUP, "it was just in a restartable sequence (rseq)");
	return 0;
}

void vv_registers_restore(pid_t tid, const struct vv_registers_state *s)
{
	vv_registers_put(tid, &s->regs);
	if (s->n_more)
		put_set(tid, MORE, s->more, s->n_more);
}

bool vv_registers_block(pid_t tid, struct vv_registers_signals *before)
{
	struct vv_registers_signals all;

	memset(&all, 0xff, sizeof(all));
	return vv_registers_call(PTRACE_GETSIGMASK, tid, sizeof(*before), (uintptr_t)before) == 0 &&
	       vv_registers_call(PTRACE_SETSIGMASK, tid, sizeof(all), (uintptr_t)&all) == 0;
}

void vv_registers_unblock(pid_t tid, const struct vv_registers_signals *before)
{
	vv_registers_call(PTRACE_SETSIGMASK, tid, sizeof(*before), (uintptr_t)before);
}
