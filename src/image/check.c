#include "image/check.h"
#include "base/err.h"
#include "image/criu.h"
#include "image/tree.h"
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GHOST = 1 << 20 }; /* bytes of a deleted file that criu saves without being asked to */

struct look {
	struct vv_check *check;
	pid_t pid;
	const struct vv_tree *tree;
	bool tcp_lost;            /* no TCP socket can be saved by this criu on this kernel */
	bool terminal, master, told_shell; /* for the whole tree; master: of terminals, as tmux has them */
};

__attribute__((format(printf, 3, 4))) static void tell(struct vv_check *c, bool grave, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->grave += grave;
	c->tell(c->arg, grave, text);
}

/* ---- criu -------------------------------------------------------------------------------------------------------------------- */

static bool has_tcp_trouble(const struct vv_criu_version *v)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return (major > 6 || (major == 6 && minor >= 16)) && (v->major < 4 || (v->major == 4 && v->minor < 2));
}

int vv_check_criu(struct vv_check *c)
{
	static const char *const word[] = { "criu", "check", NULL };
	struct vv_criu_version v;
	char text[4096], path[PATH_MAX];
	int status, rc = vv_criu_version(&v);

	if (rc == 0)
		rc = vv_criu_find(path);
	if (rc == 0)
		rc = vv_criu_ask(word, text, sizeof(text), &status);
	if (rc)
		return rc;
	tell(c, false, "criu %u.%u is '%s'", v.major, v.minor, path);
	if (geteuid() != 0)
		tell(c, false, "you are not root: criu needs that, or CAP_CHECKPOINT_RESTORE and more");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		char *at = strstr(text, "Error"), *end;

		for (end = at; end && strstr(end + 1, "Error"); end = at)
			at = strstr(end + 1, "Error");
		if (at)
			at[strcspn(at, "\n")] = '\0';
		end = at ? strstr(at, "): ") : NULL; /* where in criu it says so is of no use */
		tell(c, true, "criu cannot do its work here: %s", end ? end + 3 : at ? at : "'criu check' fails and says nothing");
	}
	if (has_tcp_trouble(&v))
		tell(c, false, "criu %u.%u cannot save TCP sockets on Linux 6.16 and later: programs that have one open (of MPI, for example) are refused; "
		     "such programs are checkpointed from inside (varve_mpi.h)", v.major, v.minor);
	return 0;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------------------- */

/* Is a socket's inode in one of the kernel's tables of the process's network? */
static bool is_in_table(pid_t pid, const char *table, const char *inode)
{
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, inode);

		found = at && at > line && at[-1] == ' ' && (at[strlen(inode)] == ' ' || at[strlen(inode)] == '\n');
	}
	if (f)
		fclose(f);
	return found;
}

static void look_at_socket(struct look *l, const char *fd, const char *link)
{
	char inode[32];

	if (sscanf(link, "socket:[%31[0-9]]", inode) != 1)
		return;
	if (is_in_table(l->pid, "tcp", inode) || is_in_table(l->pid, "tcp6", inode)) {
		if (l->tcp_lost)
			tell(l->check, true, "process %d: descriptor %s is a TCP socket, which this criu cannot save on this kernel", (int)l->pid, fd);
		else
			tell(l->check, false, "process %d: descriptor %s is a TCP socket: a connection needs '-- --tcp-established', or '-- --tcp-close'",
			     (int)l->pid, fd);
	} else if (is_in_table(l->pid, "packet", inode) || is_in_table(l->pid, "raw", inode)) {
		tell(l->check, true, "process %d: descriptor %s is a raw socket, which criu may not be able to save", (int)l->pid, fd);
	}
}

static bool is_one_of(const char *s, const char *const *word)
{
	while (*word && strncmp(s, *word, strlen(*word)) != 0)
		word++;
	return *word;
}

static void look_at_device(struct look *l, const char *fd, const char *link)
{
	static const char *const fine[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm/", "/dev/mqueue/", "/dev/kmsg",
					    NULL };
	static const char *const masters[] = { "/dev/ptmx", "/dev/pts/ptmx", NULL };
	static const char *const terminals[] = { "/dev/tty", "/dev/pts/", "/dev/console", NULL };

	if (is_one_of(link, masters))
		l->master = true;
	else if (is_one_of(link, terminals))
		l->terminal = true;
	else if (!is_one_of(link, fine))
		tell(l->check, true, "process %d: descriptor %s is the device '%s', whose state criu cannot save", (int)l->pid, fd, link);
}

static void look_at_descriptor(struct look *l, const char *fd)
{
	static const char *const fine[] = { "[eventfd", "[eventpoll", "[signalfd", "[timerfd", "inotify", "[inotify", "[fanotify", NULL };
	char path[64], link[PATH_MAX];
	const char *deleted;
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", (int)l->pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return;
	link[n] = '\0';
	deleted = strstr(link, " (deleted)");
	if (strncmp(link, "socket:", 7) == 0)
		look_at_socket(l, fd, link);
	else if (strncmp(link, "/dev/", 5) == 0)
		look_at_device(l, fd, link);
	else if (strncmp(link, "anon_inode:", 11) == 0 && !is_one_of(link + 11, fine))
		tell(l->check, true, "process %d: descriptor %s is an '%s', which criu cannot save", (int)l->pid, fd, link + 11);
	else if (deleted && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > GHOST)
		tell(l->check, true, "process %d: descriptor %s is a deleted file of %jd bytes: add '-- --ghost-limit SIZE'", (int)l->pid, fd,
		     (intmax_t)st.st_size);
	else if (l->pid == l->tree->pid[0] && strncmp(link, "pipe:", 5) == 0 && atoi(fd) <= STDERR_FILENO)
		tell(l->check, false, "process %d: descriptor %s is a pipe; if its other end is outside, nobody will be there after a restore", (int)l->pid, fd);
}

/* ---- processes --------------------------------------------------------------------------------------------------------------- */

static bool is_in_tree(const struct vv_tree *t, pid_t pid)
{
	size_t i = 0;

	while (i < t->n && t->pid[i] != pid)
		i++;
	return i < t->n;
}

static void look_at_session(struct look *l)
{
	char text[1024];
	const char *at;
	int session = 0;

	if (vv_tree_read(l->pid, "stat", text, sizeof(text)) <= 0)
		return;
	at = strrchr(text, ')'); /* a name may hold anything */
	if (at && sscanf(at + 1, " %*c %*d %*d %d", &session) == 1 && !is_in_tree(l->tree, session) && !l->told_shell) {
		l->told_shell = true;
		tell(l->check, false, "process %d belongs to the session of process %d, which is not saved with it: add --shell-job, here and when it is restored",
		     (int)l->pid, session);
	}
}

static void look_at_status(struct look *l)
{
	char text[4096];
	const char *at;

	if (vv_tree_read(l->pid, "status", text, sizeof(text)) <= 0)
		return;
	at = strstr(text, "TracerPid:");
	if (at && atoi(at + 10) > 0)
		tell(l->check, true, "process %d is traced by process %d (a debugger?), and cannot be frozen meanwhile", (int)l->pid, atoi(at + 10));
	at = strstr(text, "State:\tZ");
	if (at && l->pid == l->tree->pid[0])
		tell(l->check, true, "process %d has ended, and only waits for its parent to hear of it", (int)l->pid);
}

static void look_at_locks(struct look *l)
{
	char line[256];
	FILE *f = fopen("/proc/locks", "re");
	int pid;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d: %*s %*s %*s %d", &pid) == 1 && pid == l->pid) {
			tell(l->check, false, "process %d holds locks on files: add '-- --file-locks'", (int)l->pid);
			break;
		}
	if (f)
		fclose(f);
}

static int look_at_process(struct look *l)
{
	char path[64];
	const struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)l->pid);
	d = opendir(path);
	if (!d)
		tell(l->check, true, "process %d: what it has open cannot be seen; criu needs to be run by root", (int)l->pid);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			look_at_descriptor(l, e->d_name);
	if (d)
		closedir(d);
	look_at_session(l);
	look_at_status(l);
	look_at_locks(l);
	return 0;
}

int vv_check_process(struct vv_check *c, pid_t pid)
{
	struct vv_criu_version v;
	struct vv_tree t = { 0 };
	struct look l = { .check = c, .tree = &t };
	int rc = vv_criu_version(&v);

	if (rc == 0)
		rc = vv_tree_list(pid, &t);
	l.tcp_lost = rc == 0 && has_tcp_trouble(&v);
	for (size_t i = 0; rc == 0 && i < t.n; i++) {
		l.pid = t.pid[i];
		rc = look_at_process(&l);
	}
	if (rc == 0 && l.terminal && !l.master && !l.told_shell)
		tell(c, false, "process %d has a terminal, whose other end is not saved with it: add --shell-job", (int)pid);
	vv_tree_fini(&t);
	return rc;
}
