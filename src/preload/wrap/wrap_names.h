/* The only list of the C library's functions that libvarve_interpose.so interposes. The exports,
 * the lookups at start and the required cases of tests/preload come from this list. There are four
 * kinds. VV_WRAP_WRITES fill memory of the caller (test_wrap.c). VV_WRAP_MASKS set a thread's
 * blocked signals or the action of a signal (test_wrap_masks.c). VV_WRAP_BOTH do both.
 * VV_WRAP_FREES release memory (test_wrap_free.c).
 *
 * Functions are left out if the C library fills the caller's memory by plain writes, which wait
 * at a write-protected page. Examples are fgets, getline, scanf, time and tcgetattr. */
#ifndef VV_PRELOAD_WRAP_WRAP_NAMES_H
#define VV_PRELOAD_WRAP_WRAP_NAMES_H

#include <features.h>

/* functions since glibc 2.33; older headers turn them into __xstat and similar ones */
#if __GLIBC_PREREQ(2, 33)
#define VV_WRAP_NAMES_STAT(X) X(stat) X(stat64) X(fstat) X(fstat64) X(lstat) X(lstat64) X(fstatat) X(fstatat64)
#else
#define VV_WRAP_NAMES_STAT(X)
#endif
#if __GLIBC_PREREQ(2, 28)
#define VV_WRAP_NAMES_2_28(X) X(thrd_sleep)
#else
#define VV_WRAP_NAMES_2_28(X)
#endif
#if __GLIBC_PREREQ(2, 30)
#define VV_WRAP_NAMES_2_30(X) X(getdents64) X(getcpu)
#else
#define VV_WRAP_NAMES_2_30(X)
#endif
#if __GLIBC_PREREQ(2, 32)
#define VV_WRAP_NAMES_2_32(X) X(pthread_attr_setsigmask_np)
#else
#define VV_WRAP_NAMES_2_32(X)
#endif
#if __GLIBC_PREREQ(2, 34)
#define VV_WRAP_NAMES_2_34(X) X(timespec_getres)
#else
#define VV_WRAP_NAMES_2_34(X)
#endif
#if __GLIBC_PREREQ(2, 35)
#define VV_WRAP_NAMES_2_35(X) X(epoll_pwait2)
#else
#define VV_WRAP_NAMES_2_35(X)
#endif
#if __GLIBC_PREREQ(2, 36)
#define VV_WRAP_NAMES_2_36(X) X(arc4random_buf)
#else
#define VV_WRAP_NAMES_2_36(X)
#endif
#if __GLIBC_PREREQ(2, 39)
#define VV_WRAP_NAMES_2_39(X) X(pidfd_spawn) X(pidfd_spawnp)
#else
#define VV_WRAP_NAMES_2_39(X)
#endif

/* Programs that are built with -D_FORTIFY_SOURCE call the names with _chk. Those built with
 * -D_FILE_OFFSET_BITS=64 call the names with 64. Those built against a glibc before 2.33 call the
 * names with xstat. */
#define VV_WRAP_WRITES(X)                                                                                              \
	/* wrap_io.c */                                                                                                \
	X(read) X(pread) X(pread64) X(__read_chk) X(__pread_chk) X(__pread64_chk)                                      \
	X(readv) X(preadv) X(preadv64) X(preadv2) X(preadv64v2) X(process_vm_readv) X(process_vm_writev)               \
	X(fread) X(fread_unlocked) X(__fread_chk) X(__fread_unlocked_chk)                                              \
	X(getrandom) X(getentropy) X(msgrcv) X(mq_receive) X(mq_timedreceive) X(pipe) X(pipe2) X(eventfd_read)         \
	X(sendfile) X(sendfile64) X(splice) X(vmsplice) X(copy_file_range)                                             \
	VV_WRAP_NAMES_2_36(X)                                                                                          \
	/* wrap_socket.c */                                                                                            \
	X(recv) X(recvfrom) X(__recv_chk) X(__recvfrom_chk) X(recvmsg) X(recvmmsg) X(sendmmsg)                         \
	X(accept) X(accept4) X(getsockname) X(getpeername) X(getsockopt) X(socketpair)                                 \
	/* wrap_poll.c */                                                                                              \
	X(poll) X(__poll_chk) X(select) X(epoll_wait)                                                                  \
	/* wrap_file.c */                                                                                              \
	VV_WRAP_NAMES_STAT(X)                                                                                          \
	X(__xstat) X(__xstat64) X(__fxstat) X(__fxstat64) X(__lxstat) X(__lxstat64) X(__fxstatat) X(__fxstatat64)      \
	X(statx) X(statfs) X(statfs64) X(fstatfs) X(fstatfs64) X(statvfs) X(statvfs64) X(fstatvfs) X(fstatvfs64)       \
	X(readlink) X(readlinkat) X(__readlink_chk) X(__readlinkat_chk) X(getcwd) X(__getcwd_chk)                      \
	VV_WRAP_NAMES_2_30(X)                                                                                          \
	X(getdirentries) X(getdirentries64) X(name_to_handle_at) X(fcntl) X(fcntl64) X(ttyname_r) X(__ttyname_r_chk)   \
	X(getxattr) X(lgetxattr) X(fgetxattr) X(listxattr) X(llistxattr) X(flistxattr)                                 \
	/* wrap_time.c */                                                                                              \
	X(clock_gettime) X(clock_getres) X(gettimeofday) X(nanosleep) X(clock_nanosleep)                               \
	VV_WRAP_NAMES_2_28(X)                                                                                          \
	X(timespec_get) X(adjtimex) X(ntp_adjtime) X(clock_adjtime)                                                    \
	VV_WRAP_NAMES_2_34(X)                                                                                          \
	X(getitimer) X(setitimer) X(timer_gettime) X(timer_settime) X(timerfd_gettime) X(timerfd_settime)              \
	/* wrap_process.c */                                                                                           \
	X(wait) X(waitpid) X(wait3) X(wait4) X(waitid)                                                                 \
	X(uname) X(sysinfo) X(getrusage) X(times) X(getrlimit) X(getrlimit64) X(prlimit) X(prlimit64)                  \
	X(sched_getaffinity) X(pthread_getaffinity_np) X(getgroups) X(__getgroups_chk) X(ioctl)                        \
	X(getresuid) X(getresgid) X(sched_getparam) X(sched_rr_get_interval) X(prctl) X(pthread_getname_np) X(capget)  \
	/* wrap_ipc.c */                                                                                               \
	X(shmctl) X(semctl) X(msgctl) X(mq_getattr) X(mq_setattr)                                                      \
	/* wrap_signal.c */                                                                                            \
	X(sigpending) X(sigwaitinfo) X(sigtimedwait) X(sigaltstack)                                                    \
	/* wrap_memory.c */                                                                                            \
	X(mmap) X(mmap64) X(mprotect) X(munmap) X(mremap) X(madvise) X(mincore)                                        \
	/* wrap_spawn.c */                                                                                             \
	X(posix_spawn) X(posix_spawnp)                                                                                 \
	VV_WRAP_NAMES_2_39(X)

#define VV_WRAP_BOTH(X)                                                                                                \
	/* wrap_poll.c */                                                                                              \
	X(ppoll) X(__ppoll_chk) X(pselect) X(epoll_pwait)                                                              \
	VV_WRAP_NAMES_2_35(X)                                                                                          \
	/* wrap_signal.c */                                                                                            \
	X(sigaction) X(sigprocmask) X(pthread_sigmask)

#define VV_WRAP_MASKS(X)                                                                                               \
	/* wrap_signal.c */                                                                                            \
	X(signal) X(__sysv_signal) X(sysv_signal) X(bsd_signal) X(ssignal) X(sigset) X(sigignore)                      \
	X(sighold) X(sigrelse) X(sigblock) X(sigsetmask) X(sigsuspend)                                                 \
	VV_WRAP_NAMES_2_32(X)                                                                                          \
	/* wrap_notify.c */                                                                                            \
	X(timer_create) X(mq_notify)                                                                                   \
	/* wrap_context.c */                                                                                           \
	X(setcontext) X(swapcontext)

#define VV_WRAP_FREES(X)                                                                                               \
	/* wrap_free.c */                                                                                              \
	X(free) X(realloc)

#define VV_WRAP_NAMES(X)                                                                                               \
	VV_WRAP_FREES(X)                                                                                               \
	VV_WRAP_WRITES(X)                                                                                              \
	VV_WRAP_BOTH(X)                                                                                                \
	VV_WRAP_MASKS(X)

#endif
