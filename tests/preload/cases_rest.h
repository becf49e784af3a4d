// More cases of test_wrap.c, and what they use: calls that few programs make, each of which would fail at a fence all the same.
static void have_attribute(void)
{
	unavailable = fsetxattr(data_fd, "user.varve", "value", 5, 0) != 0;
}

static bool is_attribute(ssize_t n, const char *out)
{
	return n == 5 && memcmp(out, "value", 5) == 0;
}

static bool is_listed(ssize_t n, const char *out)
{
	bool found = false;
	for (ssize_t at = 0; at < n && !found; at += (ssize_t)strlen(out + at) + 1)
		found = strcmp(out + at, "user.varve") == 0;
	return found;
}

static bool is_handle(int rc, int mount)
{
	unavailable = rc < 0 && errno == EOPNOTSUPP;
	return unavailable || (rc == 0 && mount >= 0);
}

struct handle {
	struct file_handle head;
	char id[MAX_HANDLE_SZ];
};

static void open_slave(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	char name[64];
	unavailable = master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 || ptsname_r(master, name, sizeof(name)) != 0 ||
		      (other = open(name, O_RDWR | O_NOCTTY)) < 0;
	ends[0] = master;
	ends[1] = other;
}

static bool is_slave(int rc, const char *out)
{
	return close_ends(rc == 0 && strncmp(out, "/dev/", 5) == 0);
}

static bool is_unlocked(int rc, const char *out)
{
	return rc == 0 && ((const struct flock *)out)->l_type == F_UNLCK;
}

static void open_two_files(char *out)
{
	ends[0] = open(data_path, O_RDONLY);
	ends[1] = open(".", O_RDWR | O_TMPFILE, 0600);
	if (ends[1] < 0)
		ends[1] = memfd_create("two", 0);
	CHECK(ends[0] >= 0 && ends[1] >= 0);
	*(off_t *)out = 7;
}

static bool is_copied(ssize_t n, const char *out)
{
	char copy[20];
	bool ok = n == 20 && *(const off_t *)out == 27 && pread(ends[1], copy, 20, 0) == 20;
	for (size_t i = 0; ok && i < 20; i++)
		ok = (unsigned char)copy[i] == data_at(i + 7);
	return close_ends(ok);
}

static void open_pipe_and_file(char *out)
{
	CHECK(pipe(ends) == 0);
	*(off64_t *)out = 7;
}

static bool is_piped(ssize_t n, const char *out)
{
	return close_ends(n == 20 && *(const off64_t *)out == 27);
}

static bool is_spliced(ssize_t n, const char *out)
{
	return close_ends(n == 5 && is_data(out, 5));
}

static void open_event(void)
{
	other = eventfd(42, 0);
	CHECK(other >= 0);
}

static bool is_now(const char *out)
{
	return ((const struct timespec *)out)->tv_sec > 1000000000;
}

// where the clock is nobody's to look at (containers), it is not to be had
static bool is_clock(int rc, const char *out)
{
	unavailable = rc < 0 && errno != EFAULT;
	return unavailable || (rc >= 0 && ((const struct timex *)out)->time.tv_sec > 1000000000);
}

static void have_memory(void)
{
	other = shmget(IPC_PRIVATE, 4000, IPC_CREAT | 0600);
	unavailable = other < 0;
}

static void have_semaphores(void)
{
	other = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
	unavailable = other < 0;
	CHECK(unavailable || semctl(other, 2, SETVAL, 9) == 0);
}

static bool drop_semaphores(bool ok)
{
	return semctl(other, 0, IPC_RMID) == 0 && ok;
}

static bool is_limit(int rc, const char *out)
{
	return mq_close(other) == 0 && rc == 0 && ((const struct mq_attr *)out)->mq_maxmsg == 2;
}

static void name_thread(void)
{
	CHECK(pthread_setname_np(pthread_self(), "a name") == 0);
}

static bool are_capabilities(char *out)
{
	*(uint32_t *)out = 0x20080522; // version 3
	((int *)out)[1] = 0;
	return capget(out, out + 8) == 0;
}

static char *const true_argv[] = { (char[]){ "true" }, NULL };

static bool is_spawned(int rc, const char *out)
{
	int status = -1;
	return rc == 0 && waitpid(*(const pid_t *)out, &status, 0) == *(const pid_t *)out && status == 0;
}

CASE(posix_spawn, sizeof(pid_t), , is_spawned(posix_spawn((pid_t *)out, "/bin/true", NULL, NULL, true_argv, environ), out))
CASE(posix_spawnp, sizeof(pid_t), , is_spawned(posix_spawnp((pid_t *)out, "true", NULL, NULL, true_argv, environ), out))
#if __GLIBC_PREREQ(2, 39)
static bool is_spawned_as(int rc, const char *out)
{
	int fd = *(const int *)(const void *)out;
	return rc == 0 && waitid(P_PIDFD, (id_t)fd, &(siginfo_t){ 0 }, WEXITED) == 0 && close(fd) == 0;
}

CASE(pidfd_spawn, sizeof(int), , is_spawned_as(pidfd_spawn((int *)out, "/bin/true", NULL, NULL, true_argv, environ), out))
CASE(pidfd_spawnp, sizeof(int), , is_spawned_as(pidfd_spawnp((int *)out, "true", NULL, NULL, true_argv, environ), out))
#endif
CASE(eventfd_read, sizeof(eventfd_t), open_event(), eventfd_read(other, (eventfd_t *)out) == 0 && *(eventfd_t *)out == 42 && close(other) == 0)
CASE(sendfile, sizeof(off_t), open_two_files(out), is_copied(sendfile(ends[1], ends[0], (off_t *)out, 20), out))
CASE(sendfile64, sizeof(off_t), open_two_files(out), is_copied(sendfile64(ends[1], ends[0], (off64_t *)out, 20), out))
CASE(copy_file_range, sizeof(off_t), open_two_files(out), is_copied(copy_file_range(ends[0], (off64_t *)out, ends[1], NULL, 20, 0), out))
CASE(splice, sizeof(off64_t), open_pipe_and_file(out), is_piped(splice(data_fd, (off64_t *)out, ends[1], NULL, 20, 0), out))
CASE(vmsplice, 5, open_full_pipe(), is_spliced(vmsplice(ends[0], &(struct iovec){ out, 5 }, 1, 0), out))
#if __GLIBC_PREREQ(2, 36)
CASE(arc4random_buf, 200, , (arc4random_buf(out, 200), any_set(out, 100) && any_set(out + 100, 100)))
#endif

CASE(getdirentries, 400, other = open(folder, O_RDONLY | O_DIRECTORY),
     getdirentries(other, out, 400, &(off_t){ 0 }) > 0 && ((struct dirent *)out)->d_reclen > 0 && close(other) == 0)
CASE(getdirentries64, 400, other = open(folder, O_RDONLY | O_DIRECTORY),
     getdirentries64(other, out, 400, &(off64_t){ 0 }) > 0 && ((struct dirent64 *)out)->d_reclen > 0 && close(other) == 0)
CASE(name_to_handle_at, sizeof(struct handle), ((struct handle *)out)->head.handle_bytes = MAX_HANDLE_SZ,
     is_handle(name_to_handle_at(AT_FDCWD, "data", (struct file_handle *)out, &other, 0), other))
CASE(ttyname_r, 64, open_slave(), is_slave(ttyname_r(other, out, 64), out))
CASE(__ttyname_r_chk, 64, open_slave(), is_slave(__ttyname_r_chk(other, out, 64, 64), out))
CASE(fcntl, sizeof(struct flock), ((struct flock *)out)->l_type = F_WRLCK, is_unlocked(fcntl(data_fd, F_GETLK, out), out))
CASE(fcntl64, sizeof(struct flock), ((struct flock *)out)->l_type = F_WRLCK, is_unlocked(fcntl64(data_fd, F_OFD_GETLK, out), out))
CASE(fcntl_owner, sizeof(struct f_owner_ex), , fcntl(data_fd, F_GETOWN_EX, out) == 0)
CASE(fcntl_number, 0, , fcntl(data_fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(data_fd, F_GETFD) == FD_CLOEXEC)
CASE(getxattr, 100, have_attribute(), is_attribute(getxattr(data_path, "user.varve", out, 100), out))
CASE(lgetxattr, 100, have_attribute(), is_attribute(lgetxattr(data_path, "user.varve", out, 100), out))
CASE(fgetxattr, 100, have_attribute(), is_attribute(fgetxattr(data_fd, "user.varve", out, 100), out))
CASE(listxattr, 100, have_attribute(), is_listed(listxattr(data_path, out, 100), out))
CASE(llistxattr, 100, have_attribute(), is_listed(llistxattr(data_path, out, 100), out))
CASE(flistxattr, 100, have_attribute(), is_listed(flistxattr(data_fd, out, 100), out))

CASE(timespec_get, sizeof(struct timespec), , timespec_get((struct timespec *)out, TIME_UTC) == TIME_UTC && is_now(out))
#if __GLIBC_PREREQ(2, 34)
CASE(timespec_getres, sizeof(struct timespec), ,
     timespec_getres((struct timespec *)out, TIME_UTC) == TIME_UTC && ((struct timespec *)out)->tv_nsec > 0)
#endif
CASE(adjtimex, sizeof(struct timex), , is_clock(adjtimex((struct timex *)out), out))
CASE(ntp_adjtime, sizeof(struct timex), , is_clock(ntp_adjtime((struct timex *)out), out))
CASE(clock_adjtime, sizeof(struct timex), , is_clock(clock_adjtime(CLOCK_REALTIME, (struct timex *)out), out))

#if __GLIBC_PREREQ(2, 30)
CASE(getcpu, 2 * sizeof(unsigned), memset(out, 0xff, 8), getcpu((unsigned *)out, (unsigned *)out + 1) == 0 && *(int *)out >= 0)
#endif
CASE(getresuid, 3 * sizeof(uid_t), memset(out, 0xff, 12),
     getresuid((uid_t *)out, (uid_t *)out + 1, (uid_t *)out + 2) == 0 && ((uid_t *)out)[1] == geteuid())
CASE(getresgid, 3 * sizeof(gid_t), memset(out, 0xff, 12),
     getresgid((gid_t *)out, (gid_t *)out + 1, (gid_t *)out + 2) == 0 && ((gid_t *)out)[1] == getegid())
CASE(sched_getparam, sizeof(struct sched_param), memset(out, 0xff, 4), sched_getparam(0, (struct sched_param *)out) == 0 && *(int *)out >= 0)
CASE(sched_rr_get_interval, sizeof(struct timespec), , sched_rr_get_interval(0, (struct timespec *)out) == 0)
CASE(prctl, 16, name_thread(), prctl(PR_GET_NAME, out) == 0 && strcmp(out, "a name") == 0)
CASE(prctl_number, sizeof(int), memset(out, 0xff, 4), prctl(PR_GET_PDEATHSIG, out) == 0 && *(int *)out == 0)
CASE(pthread_getname_np, 16, name_thread(), pthread_getname_np(pthread_self(), out, 16) == 0 && strcmp(out, "a name") == 0)
CASE(capget, 8 + 24, , are_capabilities(out))
CASE(ioctl_old, 128, CHECK((other = socket(AF_INET, SOCK_DGRAM, 0)) >= 0 && strcpy(((struct ifreq *)out)->ifr_name, "lo")),
     ioctl(other, SIOCGIFFLAGS, out) == 0 && (((struct ifreq *)out)->ifr_flags & IFF_LOOPBACK) && close(other) == 0)
CASE(ioctl_list, 4 * sizeof(struct ifreq), CHECK((other = socket(AF_INET, SOCK_DGRAM, 0)) >= 0),
     ioctl(other, SIOCGIFCONF, &(struct ifconf){ .ifc_len = 4 * (int)sizeof(struct ifreq), .ifc_buf = out }) == 0 && close(other) == 0)

CASE(shmctl, sizeof(struct shmid_ds), have_memory(),
     shmctl(other, IPC_STAT, (struct shmid_ds *)out) == 0 && ((struct shmid_ds *)out)->shm_segsz == 4000 && shmctl(other, IPC_RMID, NULL) == 0)
CASE(msgctl, sizeof(struct msqid_ds), have_message(),
     msgctl(other, IPC_STAT, (struct msqid_ds *)out) == 0 && ((struct msqid_ds *)out)->msg_qnum == 1 && msgctl(other, IPC_RMID, NULL) == 0)
CASE(semctl, sizeof(struct semid_ds), have_semaphores(),
     drop_semaphores(semctl(other, 0, IPC_STAT, out) == 0 && ((struct semid_ds *)out)->sem_nsems == 3))
CASE(semctl_all, 3 * sizeof(short), have_semaphores(),
     drop_semaphores(semctl(other, 0, GETALL, out) == 0 && ((short *)out)[2] == 9 && semctl(other, 2, GETVAL) == 9))
CASE(mq_getattr, sizeof(struct mq_attr), have_queue(), is_limit(mq_getattr(other, (struct mq_attr *)out), out))
CASE(mq_setattr, sizeof(struct mq_attr), have_queue(), is_limit(mq_setattr(other, &(struct mq_attr){ .mq_flags = 0 }, (struct mq_attr *)out), out))

CASE(sigaltstack, sizeof(stack_t), memset(out, 0xff, sizeof(stack_t)), sigaltstack(NULL, (stack_t *)out) == 0 && ((stack_t *)out)->ss_flags >= 0)
CASE(mincore, 2, memset(out, 0xff, 2), mincore(data_copy - (uintptr_t)data_copy % page, page + 1, (unsigned char *)out) == 0 && (out[0] & 1) == 1)
