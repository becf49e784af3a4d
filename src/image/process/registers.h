/* ptrace(2), and the registers of a thread that it has stopped. The machine-dependent parts of
 * tracing are in this unit and in image/process/restart_syscall.c. */
#ifndef VV_IMAGE_PROCESS_REGISTERS_H
#define VV_IMAGE_PROCESS_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#if defined(__aarch64__) || defined(__x86_64__)
struct vv_registers_regs {
	struct user_regs_struct user;
};
#else
struct vv_registers_regs {
	long user;
};
#endif

enum {
	VV_REGISTERS_MORE = 16 << 10,
	VV_REGISTERS_SIGNALS = 8, /* bytes of the kernel's signal set */
	VV_REGISTERS_ARGS = 6,
};

struct vv_registers_state { /* all registers that a system call may change */
	struct vv_registers_regs regs;
	size_t n_more; /* bytes of further registers; 0: the machine has none */
	uint8_t more[VV_REGISTERS_MORE] __attribute__((aligned(16)));
};

struct vv_registers_signals { /* the blocked ones */
	uint8_t bit[VV_REGISTERS_SIGNALS];
};

/* Returns whether varve knows the registers of this machine. Otherwise there is no gate, and the
 * registers cannot be read. */
bool vv_registers_is_known(void);
/* ptrace(2) with the kernel's arguments and result. */
int vv_registers_call(int request, pid_t tid, uintptr_t addr, uintptr_t data);
bool vv_registers_get(pid_t tid, struct vv_registers_regs *r);
bool vv_registers_put(pid_t tid, const struct vv_registers_regs *r);
/* Reads memory of the thread's process. */
bool vv_registers_peek(pid_t tid, uint64_t from, void *to, size_t n);

/* VV_ENOTSUP, with the reason: the thread must not be redirected at this point. */
int vv_registers_save(pid_t tid, struct vv_registers_state *s);
void vv_registers_restore(pid_t tid, const struct vv_registers_state *s);
/* Blocks all signals and stores the previous mask; false: that failed. */
bool vv_registers_block(pid_t tid, struct vv_registers_signals *before);
void vv_registers_unblock(pid_t tid, const struct vv_registers_signals *before);

/* Returns the offset of the first system call instruction in this code; n: there is none. */
size_t vv_registers_find_syscall(const uint8_t *code, size_t n);
/* Sets the registers for a system call by the instruction at `gate`. */
void vv_registers_set_syscall(struct vv_registers_regs *r, uint64_t gate, long number, const uint64_t arg[VV_REGISTERS_ARGS]);
long vv_registers_result(const struct vv_registers_regs *r);

#endif
