/* The process and the machine: children, limits, usage, devices. */
#include "preload/wrap/wrap.h"
#include <net/if.h>
#include <stdarg.h>
#include <termios.h>

pid_t wait(int *status)
{
	WRITES_OBJECT(status);
	return REAL(wait)(status);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	WRITES_OBJECT(status);
	return REAL(waitpid)(pid, status, options);
}

pid_t wait3(int *status, int options, struct rusage *usage)
{
	RANGES(r);
	vv_wrap_add(&r, status, sizeof(*status));
	vv_wrap_add(&r, usage, sizeof(*usage));
	vv_wrap_enter_all(&r);
	return REAL(wait3)(status, options, usage);
}

pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	RANGES(r);
	vv_wrap_add(&r, status, sizeof(*status));
	vv_wrap_add(&r, usage, sizeof(*usage));
	vv_wrap_enter_all(&r);
	return REAL(wait4)(pid, status, options, usage);
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	WRITES_OBJECT(info);
	return REAL(waitid)(type, id, info, options);
}

int uname(struct utsname *name)
{
	WRITES_OBJECT(name);
	return REAL(uname)(name);
}

int sysinfo(struct sysinfo *info)
{
	WRITES_OBJECT(info);
	return REAL(sysinfo)(info);
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
	WRITES_OBJECT(usage);
	return REAL(getrusage)(who, usage);
}

clock_t times(struct tms *usage)
{
	WRITES_OBJECT(usage);
	return REAL(times)(usage);
}

int getrlimit(__rlimit_resource_t what, struct rlimit *limit)
{
	WRITES_OBJECT(limit);
	return REAL(getrlimit)(what, limit);
}

int getrlimit64(__rlimit_resource_t what, struct rlimit64 *limit)
{
	WRITES_OBJECT(limit);
	return REAL(getrlimit64)(what, limit);
}

int prlimit(pid_t pid, enum __rlimit_resource what, const struct rlimit *limit, struct rlimit *old)
{
	WRITES_OBJECT(old);
	return REAL(prlimit)(pid, what, limit, old);
}

int prlimit64(pid_t pid, enum __rlimit_resource what, const struct rlimit64 *limit, struct rlimit64 *old)
{
	WRITES_OBJECT(old);
	return REAL(prlimit64)(pid, what, limit, old);
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	WRITES(set, size);
	return REAL(sched_getaffinity)(pid, size, set);
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
	WRITES(set, size);
	return REAL(pthread_getaffinity_np)(thread, size, set);
}

static size_t groups_size(int n)
{
	return n > 0 ? (size_t)n * sizeof(gid_t) : 0;
}

int getgroups(int n, gid_t *list)
{
	WRITES(list, groups_size(n));
	return REAL(getgroups)(n, list);
}

int __getgroups_chk(int n, gid_t *list, size_t room)
{
	WRITES(list, groups_size(n));
	return REAL(__getgroups_chk)(n, list, room);
}

#if __GLIBC_PREREQ(2, 30)
int getcpu(unsigned *cpu, unsigned *node)
{
	RANGES(r);
	vv_wrap_add(&r, cpu, sizeof(*cpu));
	vv_wrap_add(&r, node, sizeof(*node));
	vv_wrap_enter_all(&r);
	return REAL(getcpu)(cpu, node);
}
#endif

int sched_getparam(pid_t pid, struct sched_param *param)
{
	WRITES_OBJECT(param);
	return REAL(sched_getparam)(pid, param);
}

int sched_rr_get_interval(pid_t pid, struct timespec *interval)
{
	WRITES_OBJECT(interval);
	return REAL(sched_rr_get_interval)(pid, interval);
}

int getresuid(uid_t *real, uid_t *effective, uid_t *saved)
{
	RANGES(r);
	vv_wrap_add(&r, real, sizeof(*real));
	vv_wrap_add(&r, effective, sizeof(*effective));
	vv_wrap_add(&r, saved, sizeof(*saved));
	vv_wrap_enter_all(&r);
	return REAL(getresuid)(real, effective, saved);
}

int getresgid(gid_t *real, gid_t *effective, gid_t *saved)
{
	RANGES(r);
	vv_wrap_add(&r, real, sizeof(*real));
	vv_wrap_add(&r, effective, sizeof(*effective));
	vv_wrap_add(&r, saved, sizeof(*saved));
	vv_wrap_enter_all(&r);
	return REAL(getresgid)(real, effective, saved);
}

/* The head has a version and a process, the data two words for each of three sets. */
int capget(void *head, void *data)
{
	RANGES(r);
	vv_wrap_add(&r, head, 2 * sizeof(uint32_t));
	vv_wrap_add(&r, data, 6 * sizeof(uint32_t));
	vv_wrap_enter_all(&r);
	return REAL(capget)(head, data);
}

int pthread_getname_np(pthread_t thread, char *name, size_t n)
{
	WRITES(name, n);
	return REAL(pthread_getname_np)(thread, name, n);
}

static size_t control_size(int option)
{
	switch (option) {
	case PR_GET_NAME:
		return 16;
	case PR_GET_TID_ADDRESS:
		return sizeof(void *);
	case PR_GET_PDEATHSIG:
	case PR_GET_CHILD_SUBREAPER:
	case PR_GET_TSC:
	case PR_GET_UNALIGN:
	case PR_GET_ENDIAN:
	case PR_GET_FPEMU:
	case PR_GET_FPEXC:
		return sizeof(int);
	default:
		return 0;
	}
}

int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;
	va_start(ap, option);
	for (size_t i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	WRITES(arg[0], control_size(option));
	return REAL(prctl)(option, arg[0], arg[1], arg[2], arg[3]);
}

/* Returns the number of bytes that a request writes to its argument: most requests encode it. Older
 * requests write little. Announcing too much is harmless, also if the argument is a number. */
enum { OLD_REQUEST = 128 };

static size_t request_size(unsigned long request)
{
	switch (request) {
	case FIONREAD:
	case TIOCOUTQ:
		return sizeof(int);
	case TIOCGWINSZ:
		return sizeof(struct winsize);
	case TCGETS:
		return sizeof(struct termios);
	default:
		return _IOC_DIR(request) == _IOC_NONE ? OLD_REQUEST : _IOC_DIR(request) & _IOC_READ ? _IOC_SIZE(request) : 0;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	va_start(ap, request);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	const struct ifconf *list = request == SIOCGIFCONF ? arg : NULL;
	RANGES(r);
	vv_wrap_add(&r, arg, request_size(request));
	vv_wrap_add(&r, list ? list->ifc_buf : NULL, list && list->ifc_len > 0 ? (size_t)list->ifc_len : 0);
	vv_wrap_enter_all(&r);
	return REAL(ioctl)(fd, request, arg);
}
