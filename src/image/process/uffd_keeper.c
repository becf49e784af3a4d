#include "image/process/uffd_keeper.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "image/process/inject_syscall.h"
#include "image/process/fd_passing.h"
#include "image/process/process_tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	HIGHEST = 1024,  /* highest descriptor number, to keep the program's table small */
	LOWER = 16,      /* step down if the number is taken */
	ROOM = 2,        /* temporary descriptors above the program's limit */
	QUEUE = 1 << 28, /* bytes: about 1000 per created child */
	PASSES = 50,     /* over all processes, until none holds the socket */
	PAUSE_NS = 10000000,
};

static const char name[] = "varve-late-pages-";
/* Prefix of the links in /proc/PID/fd; the inode number follows. */
static const char socket_link[] = "socket:[";

/* ---- in the program -------------------------------------------------------------------------- */

struct binding {
	long number; /* wanted number of its descriptor */
	int socket;
};

/* Moves a descriptor to a high number, away from the program's own. */
static int lift(struct vv_inject_syscall *j, long fd, long number)
{
	long got = -1, closed;
	int rc = 0;

	for (long at = number; rc == 0 && got < 0 && at > fd; at -= LOWER)
		rc = vv_inject_syscall_call(j, SYS_fcntl, (const uint64_t[VV_REGISTERS_ARGS]){ (uint64_t)fd, F_DUPFD_CLOEXEC, (uint64_t)at }, &got);
	return rc || got < 0 ? rc : vv_inject_syscall_call(j, SYS_close, (const uint64_t[VV_REGISTERS_ARGS]){ (uint64_t)fd }, &closed);
}

static int make_socket(struct vv_inject_syscall *j, void *arg)
{
	static const uint64_t kind[VV_REGISTERS_ARGS] = { AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK };
	struct binding *b = arg;
	long fd = -1;
	int rc = vv_inject_syscall_call(j, SYS_socket, kind, &fd);

	if (rc == 0 && fd < 0)
		rc = vv_err_set(VV_ENOTSUP, "socket: %s", strerror((int)-fd));
	if (rc == 0)
		rc = vv_inject_syscall_take(j, (int)fd, &b->socket);
	return rc ? rc : lift(j, fd, b->number);
}

/* If the program has a low limit of descriptors, ours gets a number above all that the program can
 * use. */
static int bind_it(pid_t pid, struct binding *b)
{
	struct rlimit had = { HIGHEST, HIGHEST }, more;
	bool few = prlimit(pid, RLIMIT_NOFILE, NULL, &had) == 0 && had.rlim_cur <= HIGHEST;
	int rc;

	more = (struct rlimit){ had.rlim_cur + ROOM, had.rlim_max > had.rlim_cur + ROOM ? had.rlim_max : had.rlim_cur + ROOM };
	if (few && prlimit(pid, RLIMIT_NOFILE, &more, NULL) < 0)
		few = false;
	b->number = few ? (long)had.rlim_cur : (long)(had.rlim_cur < HIGHEST ? had.rlim_cur : HIGHEST) - 1;
	rc = vv_inject_syscall_run(pid, make_socket, b);
	if (few)
		prlimit(pid, RLIMIT_NOFILE, &had, NULL);
	return rc;
}

static int close_it(struct vv_inject_syscall *j, void *arg)
{
	long closed;

	return vv_inject_syscall_call(j, SYS_close, (const uint64_t[VV_REGISTERS_ARGS]){ (uint64_t)*(const int *)arg }, &closed);
}

/* ---- contents of the socket ------------------------------------------------------------------ */

int vv_uffd_keeper_keep(int socket, int fd)
{
	return vv_fd_passing_send(socket, "", 1, fd) == 1 ? 0 : vv_err_sys(errno, "a program cannot be given what its pages come by");
}

/* Connects the socket to itself, by a unique name. */
static int connect_it(int socket, ino_t inode)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s%llu", name, (unsigned long long)inode), most = QUEUE;
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);

	if (bind(socket, (const struct sockaddr *)&a, len) < 0 || connect(socket, (const struct sockaddr *)&a, len) < 0)
		return vv_err_sys(errno, "cannot connect a socket to itself");
	setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &most, sizeof(most));
	return 0;
}

/* Opens a new descriptor of the pipe for the process. By it the kernel sends SIGKILL when the last
 * holder closes the other end. */
static int arm(struct vv_uffd_keeper *a, pid_t pid, int socket)
{
	char path[64];
	int fd, rc = vv_mem_room(&a->alarm, a->n_alarms, &a->alarms_cap, sizeof(*a->alarm));

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", a->alive[0]);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_SETSIG, SIGKILL) < 0 || fcntl(fd, F_SETOWN, pid) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) < 0)
		rc = vv_err_sys(errno, "process %d cannot be made to end with us", (int)pid);
	else
		rc = vv_uffd_keeper_keep(socket, fd);
	if (rc == 0)
		a->alarm[a->n_alarms++] = (struct vv_uffd_keeper_alarm){ pid, fd };
	else if (fd >= 0)
		close(fd);
	return rc;
}

static void disarm(const struct vv_uffd_keeper *a)
{
	for (size_t i = 0; i < a->n_alarms; i++)
		fcntl(a->alarm[i].fd, F_SETFL, O_NONBLOCK);
}

static void empty(int socket)
{
	char byte;
	int fd;

	while (vv_fd_passing_receive(socket, &byte, 1, &fd) > 0)
		if (fd >= 0)
			close(fd);
}

int vv_uffd_keeper_open(struct vv_uffd_keeper *a)
{
	*a = (struct vv_uffd_keeper)VV_UFFD_KEEPER_NONE;
	return pipe2(a->alive, O_CLOEXEC) < 0 ? vv_err_sys(errno, "cannot make a pipe") : 0;
}

int vv_uffd_keeper_bind(struct vv_uffd_keeper *a, pid_t pid, int uffd, int *socket)
{
	struct binding b = { .socket = -1 };
	struct stat st = { 0 };
	int rc = vv_mem_room(&a->process, a->n, &a->cap, sizeof(*a->process));

	if (rc == 0)
		rc = bind_it(pid, &b);
	if (rc == 0)
		rc = fstat(b.socket, &st) < 0 ? vv_err_sys(errno, "cannot look at a socket") : connect_it(b.socket, st.st_ino);
	if (rc == 0)
		rc = vv_uffd_keeper_keep(b.socket, uffd);
	if (rc == 0)
		rc = arm(a, pid, b.socket);
	if (rc) {
		if (b.socket >= 0)
			close(b.socket);
		return vv_err_context(rc, "process %d cannot hold what its pages come by", (int)pid);
	}
	a->process[a->n++] = (struct vv_uffd_keeper_process){ b.socket, st.st_ino };
	*socket = b.socket;
	return 0;
}

/* ---- holders of the socket ------------------------------------------------------------------- */

static const struct vv_uffd_keeper_process *find(const struct vv_uffd_keeper *a, const char *link)
{
	ino_t inode;
	size_t i = 0;

	if (strncmp(link, socket_link, strlen(socket_link)) != 0)
		return NULL;
	inode = (ino_t)strtoull(link + strlen(socket_link), NULL, 10);
	while (i < a->n && a->process[i].inode != inode)
		i++;
	return i < a->n ? &a->process[i] : NULL;
}

/* Returns the first descriptor of a process that is one of our sockets; -1: there is none. */
static int look_at(const struct vv_uffd_keeper *a, pid_t pid, const struct vv_uffd_keeper_process **one)
{
	char path[64], link[64];
	const struct dirent *e;
	int fd = -1;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (fd < 0 && d && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		*one = find(a, link);
		fd = *one ? atoi(e->d_name) : -1;
	}
	if (d)
		closedir(d);
	return fd;
}

static bool is_armed(const struct vv_uffd_keeper *a, pid_t pid)
{
	size_t i = 0;

	while (i < a->n_alarms && a->alarm[i].pid != pid)
		i++;
	return i < a->n_alarms;
}

/* Forgets the alarms of ended processes: their numbers may be reused. */
static void forget_dead(struct vv_uffd_keeper *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_alarms; i++)
		if (kill(a->alarm[i].pid, 0) < 0 && errno == ESRCH)
			close(a->alarm[i].fd);
		else
			a->alarm[n++] = a->alarm[i];
	a->n_alarms = n;
}

void vv_uffd_keeper_follow(struct vv_uffd_keeper *a)
{
	const struct vv_uffd_keeper_process *one;
	struct vv_process_tree t = { 0 };

	forget_dead(a);
	if (vv_process_tree_list(getpid(), &t) < 0)
		return;
	for (size_t i = 1; i < t.n; i++)
		if (!is_armed(a, t.pid[i]) && look_at(a, t.pid[i], &one) >= 0)
			arm(a, t.pid[i], one->socket);
	vv_process_tree_fini(&t);
	vv_err_clear();
}

/* Returns the number of holders; *last becomes a process that still holds the socket. */
static size_t release_all(const struct vv_uffd_keeper *a, pid_t *last)
{
	const struct vv_uffd_keeper_process *one;
	struct vv_process_tree t = { 0 };
	size_t n = 0;

	if (vv_process_tree_list(getpid(), &t) < 0)
		return 0;
	for (size_t i = 1; i < t.n; i++) {
		int fd = look_at(a, t.pid[i], &one);

		n += fd >= 0;
		if (fd >= 0 && vv_inject_syscall_run(t.pid[i], close_it, &fd) < 0)
			*last = t.pid[i];
	}
	vv_process_tree_fini(&t);
	return n;
}

/* A child may have been created during a pass, so only a pass without a holder is the last one. */
void vv_uffd_keeper_release(struct vv_uffd_keeper *a)
{
	pid_t pid = 0;
	bool left = a->n;

	disarm(a);
	for (size_t i = 0; i < a->n; i++)
		empty(a->process[i].socket);
	for (int i = 0; left && i < PASSES; i++) {
		pid = 0;
		left = release_all(a, &pid);
		if (pid)
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	}
	if (left && pid)
		vv_log_warn("process %d keeps a descriptor that its pages came by, which is empty by now: %s", (int)pid, vv_err_last());
	vv_err_clear();
}

void vv_uffd_keeper_close(struct vv_uffd_keeper *a)
{
	for (size_t i = 0; i < a->n_alarms; i++)
		close(a->alarm[i].fd);
	for (size_t i = 0; i < a->n; i++)
		close(a->process[i].socket);
	for (int i = 0; i < 2; i++)
		if (a->alive[i] >= 0)
			close(a->alive[i]);
	vv_mem_free(a->alarm);
	vv_mem_free(a->process);
	*a = (struct vv_uffd_keeper)VV_UFFD_KEEPER_NONE;
}

static bool is_full(int socket)
{
	struct sockaddr_un a = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof(a);

	return getsockname(socket, (struct sockaddr *)&a, &len) == 0 && a.sun_family == AF_UNIX && !a.sun_path[0] &&
	       strncmp(a.sun_path + 1, name, strlen(name)) == 0 && recv(socket, NULL, 0, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

bool vv_uffd_keeper_is_held(pid_t pid)
{
	int pidfd = pidfd_open(pid, 0);
	char path[64], link[64];
	const struct dirent *e;
	bool held = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = pidfd < 0 ? NULL : opendir(path);
	while (!held && d && (e = readdir(d))) {
		int fd = readlinkat(dirfd(d), e->d_name, link, sizeof(link)) > 0 && strncmp(link, socket_link, strlen(socket_link)) == 0
				 ? pidfd_getfd(pidfd, atoi(e->d_name), 0)
				 : -1;

		held = fd >= 0 && is_full(fd);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	if (pidfd >= 0)
		close(pidfd);
	return held;
}
