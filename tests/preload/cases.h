// The cases of test_wrap.c: name, bytes of output, what happens before the pages are shut, the call and what must be true of
// it, with `out` being where the output goes.
#define CASE(name, bytes, before, call)                                                                                \
	static size_t size_##name(void)                                                                                \
	{                                                                                                              \
		return bytes;                                                                                          \
	}                                                                                                              \
	static void before_##name(char *out)                                                                           \
	{                                                                                                              \
		(void)out;                                                                                             \
		before;                                                                                                \
	}                                                                                                              \
	__attribute__((no_sanitize("undefined"))) /* its checks make the compiler think that out may be NULL */        \
	static bool call_##name(char *out)                                                                             \
	{                                                                                                              \
		(void)out;                                                                                             \
		return call;                                                                                           \
	}

// reading
CASE(read, 300, rewind_data(), read(data_fd, out, 300) == 300 && is_data(out, 300))
CASE(__read_chk, 300, rewind_data(), __read_chk(data_fd, out, 300, 300) == 300 && is_data(out, 300))
CASE(pread, 300, , pread(data_fd, out, 300, 0) == 300 && is_data(out, 300))
CASE(pread64, 300, , pread64(data_fd, out, 300, 0) == 300 && is_data(out, 300))
CASE(__pread_chk, 300, , __pread_chk(data_fd, out, 300, 0, 300) == 300 && is_data(out, 300))
CASE(__pread64_chk, 300, , __pread64_chk(data_fd, out, 300, 0, 300) == 300 && is_data(out, 300))
CASE(readv, 300, rewind_data(), readv(data_fd, iov(out), 3) == 300 && is_data(out, 300))
CASE(preadv, 300, , preadv(data_fd, iov(out), 3, 0) == 300 && is_data(out, 300))
CASE(preadv64, 300, , preadv64(data_fd, iov(out), 3, 0) == 300 && is_data(out, 300))
CASE(preadv2, 300, , preadv2(data_fd, iov(out), 3, 0, 0) == 300 && is_data(out, 300))
CASE(preadv64v2, 300, , preadv64v2(data_fd, iov(out), 3, 0, 0) == 300 && is_data(out, 300))
CASE(process_vm_readv, 300, ,
     process_vm_readv(getpid(), iov(out), 3, &(struct iovec){ data_copy, 300 }, 1, 0) == 300 && is_data(out, 300))
CASE(process_vm_writev, 300, ,
     process_vm_writev(getpid(), &(struct iovec){ data_copy, 300 }, 1, iov(out), 3, 0) == 300 && is_data(out, 300))
CASE(fread, 2 * page + 64, open_stream(),
     close_stream(fread(out, 1, 2 * page + 64, stream) == 2 * page + 64 && is_data(out, 2 * page + 64)))
CASE(fread_unlocked, 2 * page + 64, open_stream(),
     close_stream((fread_unlocked)(out, 2 * page + 64, 1, stream) == 1 && is_data(out, 2 * page + 64)))
CASE(__fread_chk, 2 * page + 64, open_stream(),
     close_stream(__fread_chk(out, 2 * page + 64, 2 * page + 64, 1, stream) == 1 && is_data(out, 2 * page + 64)))
CASE(__fread_unlocked_chk, 2 * page + 64, open_stream(),
     close_stream(__fread_unlocked_chk(out, 2 * page + 64, 2 * page + 64, 1, stream) == 1 && is_data(out, 2 * page + 64)))
CASE(getrandom, 200, , getrandom(out, 200, 0) == 200 && any_set(out, 100) && any_set(out + 100, 100))
CASE(getentropy, 200, , getentropy(out, 200) == 0 && any_set(out, 100) && any_set(out + 100, 100))
CASE(msgrcv, sizeof(long) + 20, have_message(), is_msg(msgrcv(other, out, 20, 5, 0), out))
CASE(mq_receive, 104, have_queue(), is_queued(mq_receive(other, out, 100, (unsigned *)(out + 100)), out))
CASE(mq_timedreceive, 104, have_queue(),
     is_queued(mq_timedreceive(other, out, 100, (unsigned *)(out + 100), &ten_seconds), out))
CASE(pipe, 2 * sizeof(int), , pipe((int *)out) == 0 && close(((int *)out)[0]) == 0 && close(((int *)out)[1]) == 0)
CASE(pipe2, 2 * sizeof(int), ,
     pipe2((int *)out, O_CLOEXEC) == 0 && close(((int *)out)[0]) == 0 && close(((int *)out)[1]) == 0)

// sockets
CASE(recv, 100, (open_pair(SOCK_STREAM), send_data(ends[1], 100)),
     close_ends(recv(ends[0], out, 100, 0) == 100 && is_data(out, 100)))
CASE(__recv_chk, 100, (open_pair(SOCK_STREAM), send_data(ends[1], 100)),
     close_ends(__recv_chk(ends[0], out, 100, 100, 0) == 100 && is_data(out, 100)))
CASE(recvfrom, sizeof(struct named), (send_datagram(), offer_name(out)),
     close_ends(recvfrom(ends[1], NAMED->data, 100, 0, (struct sockaddr *)&NAMED->addr, &NAMED->len) == 100 &&
		is_data(NAMED->data, 100) && is_peer(&NAMED->addr, NAMED->len)))
CASE(__recvfrom_chk, sizeof(struct named), (send_datagram(), offer_name(out)),
     close_ends(__recvfrom_chk(ends[1], NAMED->data, 100, 100, 0, (struct sockaddr *)&NAMED->addr, &NAMED->len) == 100 &&
		is_data(NAMED->data, 100) && is_peer(&NAMED->addr, NAMED->len)))
CASE(recvmsg, sizeof(struct message), (send_datagram(), offer_message(MESSAGE)),
     close_ends(recvmsg(ends[1], &MESSAGE->msg.msg_hdr, 0) == 100 && is_message(MESSAGE)))
CASE(recvmmsg, 3 * sizeof(struct message), (send_datagram(), send_data(ends[0], 100), offer_messages(out)),
     close_ends(recvmmsg(ends[1], (struct mmsghdr *)(MESSAGE + 2), 2, 0, NULL) == 2 && are_messages(out)))
CASE(sendmmsg, 2 * sizeof(struct mmsghdr), (open_pair(SOCK_DGRAM), offer_parcels(out)),
     close_ends(sendmmsg(ends[0], PARCELS, 2, 0) == 2 && PARCELS[0].msg_len == 100 && PARCELS[1].msg_len == 100))
CASE(accept, sizeof(struct named), (connect_peer(), offer_name(out)),
     accepted(accept(ends[0], (struct sockaddr *)&NAMED->addr, &NAMED->len), out))
CASE(accept4, sizeof(struct named), (connect_peer(), offer_name(out)),
     accepted(accept4(ends[0], (struct sockaddr *)&NAMED->addr, &NAMED->len, SOCK_CLOEXEC), out))
CASE(getsockname, sizeof(struct named), (connect_peer(), offer_name(out)),
     close_ends(getsockname(ends[0], (struct sockaddr *)&NAMED->addr, &NAMED->len) == 0 && is_peer(&NAMED->addr, NAMED->len)))
CASE(getpeername, sizeof(struct named), (connect_peer(), offer_name(out)),
     close_ends(getpeername(ends[1], (struct sockaddr *)&NAMED->addr, &NAMED->len) == 0 && is_peer(&NAMED->addr, NAMED->len)))
CASE(getsockopt, 2 * sizeof(int), (open_pair(SOCK_DGRAM), ((socklen_t *)out)[1] = sizeof(int)),
     close_ends(getsockopt(ends[0], SOL_SOCKET, SO_TYPE, out, (socklen_t *)out + 1) == 0 && *(int *)out == SOCK_DGRAM))
CASE(socketpair, 2 * sizeof(int), ,
     socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)out) == 0 && close(((int *)out)[0]) == 0 && close(((int *)out)[1]) == 0)

// waiting for descriptors
CASE(poll, sizeof(struct pollfd), offer_pollfd(out), is_polled(poll((struct pollfd *)out, 1, 1000), out))
CASE(__poll_chk, sizeof(struct pollfd), offer_pollfd(out),
     is_polled(__poll_chk((struct pollfd *)out, 1, 1000, sizeof(struct pollfd)), out))
CASE(ppoll, sizeof(struct pollfd), offer_pollfd(out), is_polled(ppoll((struct pollfd *)out, 1, &ten_seconds, NULL), out))
CASE(__ppoll_chk, sizeof(struct pollfd), offer_pollfd(out),
     is_polled(__ppoll_chk((struct pollfd *)out, 1, &ten_seconds, NULL, sizeof(struct pollfd)), out))
CASE(select, sizeof(struct selected), offer_sets(out),
     are_selected(select(FD_SETSIZE, &SELECTED->in, &SELECTED->out, &SELECTED->except, &SELECTED->timeout), out))
CASE(pselect, sizeof(struct selected), offer_sets(out),
     are_selected(pselect(FD_SETSIZE, &SELECTED->in, &SELECTED->out, &SELECTED->except, &ten_seconds, NULL), out))
CASE(epoll_wait, 5 * sizeof(struct epoll_event), open_epoll(), is_event(epoll_wait(other, EVENTS, 5, 1000), out))
CASE(epoll_pwait, 5 * sizeof(struct epoll_event), open_epoll(), is_event(epoll_pwait(other, EVENTS, 5, 1000, NULL), out))
#if __GLIBC_PREREQ(2, 35)
CASE(epoll_pwait2, 5 * sizeof(struct epoll_event), open_epoll(),
     is_event(epoll_pwait2(other, EVENTS, 5, &ten_seconds, NULL), out))
#endif

// files
#if __GLIBC_PREREQ(2, 33)
CASE(stat, sizeof(struct stat), , IS_STAT(stat(data_path, (struct stat *)out), struct stat))
CASE(stat64, sizeof(struct stat64), , IS_STAT(stat64(data_path, (struct stat64 *)out), struct stat64))
CASE(fstat, sizeof(struct stat), , IS_STAT(fstat(data_fd, (struct stat *)out), struct stat))
CASE(fstat64, sizeof(struct stat64), , IS_STAT(fstat64(data_fd, (struct stat64 *)out), struct stat64))
CASE(lstat, sizeof(struct stat), , IS_LINK(lstat(link_path, (struct stat *)out), struct stat))
CASE(lstat64, sizeof(struct stat64), , IS_LINK(lstat64(link_path, (struct stat64 *)out), struct stat64))
CASE(fstatat, sizeof(struct stat), , IS_STAT(fstatat(AT_FDCWD, "data", (struct stat *)out, 0), struct stat))
CASE(fstatat64, sizeof(struct stat64), , IS_STAT(fstatat64(AT_FDCWD, "data", (struct stat64 *)out, 0), struct stat64))
#endif
CASE(__xstat, sizeof(struct stat), , IS_STAT(__xstat(XSTAT, data_path, (struct stat *)out), struct stat))
CASE(__xstat64, sizeof(struct stat64), , IS_STAT(__xstat64(XSTAT, data_path, (struct stat64 *)out), struct stat64))
CASE(__fxstat, sizeof(struct stat), , IS_STAT(__fxstat(XSTAT, data_fd, (struct stat *)out), struct stat))
CASE(__fxstat64, sizeof(struct stat64), , IS_STAT(__fxstat64(XSTAT, data_fd, (struct stat64 *)out), struct stat64))
CASE(__lxstat, sizeof(struct stat), , IS_LINK(__lxstat(XSTAT, link_path, (struct stat *)out), struct stat))
CASE(__lxstat64, sizeof(struct stat64), , IS_LINK(__lxstat64(XSTAT, link_path, (struct stat64 *)out), struct stat64))
CASE(__fxstatat, sizeof(struct stat), , IS_STAT(__fxstatat(XSTAT, AT_FDCWD, "data", (struct stat *)out, 0), struct stat))
CASE(__fxstatat64, sizeof(struct stat64), ,
     IS_STAT(__fxstatat64(XSTAT, AT_FDCWD, "data", (struct stat64 *)out, 0), struct stat64))
CASE(statx, sizeof(struct statx), ,
     statx(AT_FDCWD, "data", 0, STATX_SIZE, (struct statx *)out) == 0 && ((struct statx *)out)->stx_size == 4 * page)
CASE(statfs, sizeof(struct statfs), , IS_FS(statfs(folder, (struct statfs *)out), struct statfs))
CASE(statfs64, sizeof(struct statfs64), , IS_FS(statfs64(folder, (struct statfs64 *)out), struct statfs64))
CASE(fstatfs, sizeof(struct statfs), , IS_FS(fstatfs(data_fd, (struct statfs *)out), struct statfs))
CASE(fstatfs64, sizeof(struct statfs64), , IS_FS(fstatfs64(data_fd, (struct statfs64 *)out), struct statfs64))
CASE(statvfs, sizeof(struct statvfs), , IS_FS(statvfs(folder, (struct statvfs *)out), struct statvfs))
CASE(statvfs64, sizeof(struct statvfs64), , IS_FS(statvfs64(folder, (struct statvfs64 *)out), struct statvfs64))
CASE(fstatvfs, sizeof(struct statvfs), , IS_FS(fstatvfs(data_fd, (struct statvfs *)out), struct statvfs))
CASE(fstatvfs64, sizeof(struct statvfs64), , IS_FS(fstatvfs64(data_fd, (struct statvfs64 *)out), struct statvfs64))
CASE(readlink, 64, , readlink(link_path, out, 64) == 4 && memcmp(out, "data", 4) == 0)
CASE(__readlink_chk, 64, , __readlink_chk(link_path, out, 64, 64) == 4 && memcmp(out, "data", 4) == 0)
CASE(readlinkat, 64, , readlinkat(AT_FDCWD, "link", out, 64) == 4 && memcmp(out, "data", 4) == 0)
CASE(__readlinkat_chk, 64, , __readlinkat_chk(AT_FDCWD, "link", out, 64, 64) == 4 && memcmp(out, "data", 4) == 0)
CASE(getcwd, 400, , getcwd(out, 400) == out && strcmp(out, folder) == 0)
CASE(__getcwd_chk, 400, , __getcwd_chk(out, 400, 400) == out && strcmp(out, folder) == 0)
#if __GLIBC_PREREQ(2, 30)
CASE(getdents64, 400, other = open(folder, O_RDONLY | O_DIRECTORY),
     getdents64(other, out, 400) > 0 && ((struct dirent64 *)out)->d_reclen > 0 && close(other) == 0)
#endif

// clocks and timers
CASE(clock_gettime, sizeof(struct timespec), ,
     clock_gettime(CLOCK_PROCESS_CPUTIME_ID, (struct timespec *)out) == 0 && ((struct timespec *)out)->tv_nsec > 0)
CASE(clock_getres, sizeof(struct timespec), ,
     clock_getres(CLOCK_PROCESS_CPUTIME_ID, (struct timespec *)out) == 0 && ((struct timespec *)out)->tv_nsec > 0)
CASE(gettimeofday, sizeof(struct timeval), ,
     gettimeofday((struct timeval *)out, NULL) == 0 && ((struct timeval *)out)->tv_sec > 1000000000)
CASE(nanosleep, sizeof(struct timespec), wake_soon(),
     nanosleep(&ten_seconds, (struct timespec *)out) == -1 && errno == EINTR && woke_early(out))
CASE(clock_nanosleep, sizeof(struct timespec), wake_soon(),
     clock_nanosleep(CLOCK_MONOTONIC, 0, &ten_seconds, (struct timespec *)out) == EINTR && woke_early(out))
#if __GLIBC_PREREQ(2, 28)
CASE(thrd_sleep, sizeof(struct timespec), wake_soon(),
     thrd_sleep(&ten_seconds, (struct timespec *)out) == -1 && woke_early(out))
#endif
CASE(getitimer, sizeof(struct itimerval), ,
     setitimer(ITIMER_VIRTUAL, &(struct itimerval){ .it_value.tv_sec = 77 }, NULL) == 0 &&
	     getitimer(ITIMER_VIRTUAL, (struct itimerval *)out) == 0 && ((struct itimerval *)out)->it_value.tv_sec >= 70)
CASE(setitimer, sizeof(struct itimerval), setitimer(ITIMER_VIRTUAL, &(struct itimerval){ .it_value.tv_sec = 77 }, NULL),
     setitimer(ITIMER_VIRTUAL, &(struct itimerval){ .it_value.tv_sec = 0 }, (struct itimerval *)out) == 0 &&
	     ((struct itimerval *)out)->it_value.tv_sec >= 70)
CASE(timer_gettime, sizeof(struct itimerspec), have_timer(),
     is_hour(timer_gettime(timer, (struct itimerspec *)out), out) && timer_delete(timer) == 0)
CASE(timer_settime, sizeof(struct itimerspec), have_timer(),
     is_hour(timer_settime(timer, 0, &an_hour, (struct itimerspec *)out), out) && timer_delete(timer) == 0)
CASE(timerfd_gettime, sizeof(struct itimerspec), have_timerfd(),
     is_hour(timerfd_gettime(other, (struct itimerspec *)out), out) && close(other) == 0)
CASE(timerfd_settime, sizeof(struct itimerspec), have_timerfd(),
     is_hour(timerfd_settime(other, 0, &an_hour, (struct itimerspec *)out), out) && close(other) == 0)

// the process and the machine
CASE(wait, sizeof(int), have_child(), is_child(wait((int *)out), out))
CASE(waitpid, sizeof(int), have_child(), is_child(waitpid(other, (int *)out, 0), out))
CASE(wait3, sizeof(struct child), have_child(), is_child_usage(wait3((int *)out, 0, &CHILD->usage), out))
CASE(wait4, sizeof(struct child), have_child(), is_child_usage(wait4(other, (int *)out, 0, &CHILD->usage), out))
CASE(waitid, sizeof(siginfo_t), have_child(),
     waitid(P_PID, (id_t)other, (siginfo_t *)out, WEXITED) == 0 && ((siginfo_t *)out)->si_status == 3)
CASE(uname, sizeof(struct utsname), , uname((struct utsname *)out) == 0 && strcmp(out, "Linux") == 0)
CASE(sysinfo, sizeof(struct sysinfo), , sysinfo((struct sysinfo *)out) == 0 && ((struct sysinfo *)out)->totalram > 0)
CASE(getrusage, sizeof(struct rusage), ,
     getrusage(RUSAGE_SELF, (struct rusage *)out) == 0 && ((struct rusage *)out)->ru_maxrss > 0)
CASE(times, sizeof(struct tms), memset(out, 0xff, sizeof(struct tms)),
     times((struct tms *)out) != (clock_t)-1 && ((struct tms *)out)->tms_utime >= 0)
CASE(getrlimit, sizeof(struct rlimit), ,
     getrlimit(RLIMIT_NOFILE, (struct rlimit *)out) == 0 && ((struct rlimit *)out)->rlim_cur > 0)
CASE(getrlimit64, sizeof(struct rlimit64), ,
     getrlimit64(RLIMIT_NOFILE, (struct rlimit64 *)out) == 0 && ((struct rlimit64 *)out)->rlim_cur > 0)
CASE(prlimit, sizeof(struct rlimit), ,
     prlimit(0, RLIMIT_NOFILE, NULL, (struct rlimit *)out) == 0 && ((struct rlimit *)out)->rlim_cur > 0)
CASE(prlimit64, sizeof(struct rlimit64), ,
     prlimit64(0, RLIMIT_NOFILE, NULL, (struct rlimit64 *)out) == 0 && ((struct rlimit64 *)out)->rlim_cur > 0)
CASE(sched_getaffinity, sizeof(cpu_set_t), ,
     sched_getaffinity(0, sizeof(cpu_set_t), (cpu_set_t *)out) == 0 && CPU_COUNT((cpu_set_t *)out) > 0)
CASE(pthread_getaffinity_np, sizeof(cpu_set_t), ,
     pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), (cpu_set_t *)out) == 0 && CPU_COUNT((cpu_set_t *)out) > 0)
CASE(getgroups, 100 * sizeof(gid_t), , getgroups(100, (gid_t *)out) >= 0)
CASE(__getgroups_chk, 100 * sizeof(gid_t), , __getgroups_chk(100, (gid_t *)out, 100 * sizeof(gid_t)) >= 0)
CASE(ioctl, sizeof(int), open_full_pipe(), close_ends(ioctl(ends[0], FIONREAD, out) == 0 && *(int *)out == 5))

// signals
CASE(sigaction, sizeof(struct sigaction), ,
     sigaction(SIGUSR2, NULL, (struct sigaction *)out) == 0 && ((struct sigaction *)out)->sa_handler == SIG_DFL)
CASE(sigprocmask, sizeof(sigset_t), , old_mask_was(sigprocmask(SIG_BLOCK, usr1(), (sigset_t *)out), out))
CASE(pthread_sigmask, sizeof(sigset_t), , old_mask_was(pthread_sigmask(SIG_BLOCK, usr1(), (sigset_t *)out), out))
CASE(sigpending, sizeof(sigset_t), have_pending(),
     sigpending((sigset_t *)out) == 0 && sigismember((sigset_t *)out, SIGUSR1) == 1 && take_usr1())
CASE(sigwaitinfo, sizeof(siginfo_t), have_pending(),
     sigwaitinfo(usr1(), (siginfo_t *)out) == SIGUSR1 && ((siginfo_t *)out)->si_signo == SIGUSR1 && unblock())
CASE(sigtimedwait, sizeof(siginfo_t), have_pending(),
     sigtimedwait(usr1(), (siginfo_t *)out, &ten_seconds) == SIGUSR1 && ((siginfo_t *)out)->si_signo == SIGUSR1 && unblock())

// memory that goes away
CASE(mmap, 2 * page, fill(out), mmap(out, 2 * page, PROT_READ, FIXED, -1, 0) == out && !any_set(out, 2 * page))
CASE(mmap64, 2 * page, fill(out), mmap64(out, 2 * page, PROT_READ, FIXED, -1, 0) == out && !any_set(out, 2 * page))
CASE(mprotect, 2 * page, fill(out), mprotect(out, 2 * page, PROT_READ) == 0 && any_set(out, 2 * page))
CASE(munmap, 2 * page, , munmap(out, 2 * page) == 0)
CASE(mremap, 2 * page, fill(out), is_moved(mremap(out, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere())))
CASE(madvise, 2 * page, fill(out), madvise(out, 2 * page, MADV_DONTNEED) == 0 && !any_set(out, 2 * page))

#include "cases_rest.h"

// more requests of ioctl, of the kinds that tell their size and that do not
CASE(ioctl_tiocgwinsz, sizeof(struct winsize), open_terminal(),
     ioctl(other, TIOCGWINSZ, out) == 0 && ((struct winsize *)out)->ws_col == 99 && close(other) == 0)
CASE(ioctl_tcgets, sizeof(struct termios), open_terminal(),
     ioctl(other, TCGETS, out) == 0 && any_set(out, 16) && close(other) == 0)
CASE(ioctl_tiocgptn, sizeof(unsigned), open_terminal(), ioctl(other, TIOCGPTN, out) == 0 && close(other) == 0)
CASE(madvise_free, 2 * page, fill(out), madvise(out, 2 * page, MADV_FREE) == 0)
// advice that discards nothing asks for nothing
CASE(madvise_willneed, 0, , madvise(region, 2 * page, MADV_WILLNEED) == 0)
CASE(mmap_hint, 0, , is_elsewhere(mmap(region, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
// what is not wrapped, because the C library writes to the caller's memory itself
CASE(fgets, 4, open_lines(), close_stream(fgets(out, 400, stream) == out && strcmp(out, "12\n") == 0))
CASE(fscanf, sizeof(int), open_lines(), close_stream(fscanf(stream, "%d", (int *)out) == 1 && *(int *)out == 12))
CASE(time, sizeof(time_t), , time((time_t *)out) == *(time_t *)out)

static const struct test_case {
	const char *name;
	size_t (*size)(void);
	void (*before)(char *out);
	bool (*call)(char *out);
} cases[] = {
#define ROW(name) { #name, size_##name, before_##name, call_##name },
	VV_WRAP_WRITES(ROW)
	VV_WRAP_BOTH(ROW)
	ROW(ioctl_tiocgwinsz) ROW(ioctl_tcgets) ROW(ioctl_tiocgptn) ROW(madvise_free) ROW(madvise_willneed)
	ROW(mmap_hint) ROW(fgets) ROW(fscanf) ROW(time)
	ROW(fcntl_owner) ROW(fcntl_number) ROW(prctl_number) ROW(ioctl_old) ROW(ioctl_list) ROW(semctl_all)
#undef ROW
	{ .name = NULL },
};
