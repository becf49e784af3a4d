#include "image/check/open_files.h"
#include "image/process/process_tree.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { GHOST = 1 << 20 }; /* bytes of a deleted file that criu saves by default */

static bool is_one_of(const char *s, const char *const *word)
{
	while (*word && strncmp(s, *word, strlen(*word)) != 0)
		word++;
	return *word;
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* Returns whether the table has a TCP socket with this inode that is neither listening nor
 * closed. */
static bool is_connected_in(pid_t pid, const char *table, unsigned long inode)
{
	enum { CLOSED = 7, LISTENS = 10 };
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		unsigned long its = 0;
		unsigned state = 0;

		found = sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*s %*s %lu", &state, &its) == 2 && its == inode && state != LISTENS && state != CLOSED;
	}
	if (f)
		fclose(f);
	return found;
}

static void check_socket(struct vv_open_files *b, const char *fd, const char *path, const char *link)
{
	static const char *const fine[] = { "UNIX", "NETLINK", NULL }, *const known[] = { "TCP", "UDP", "RAW", "PACKET", NULL };
	unsigned long inode = strtoul(link + strlen("socket:["), NULL, 10);
	char kind[32] = "";

	if (getxattr(path, "system.sockprotoname", kind, sizeof(kind) - 1) <= 0 || is_one_of(kind, fine))
		return;
	if (!is_one_of(kind, known))
		vv_check_report(b->check, true, "process %d: descriptor %s is a socket of a kind that criu does not know (%s): checkpoint the program from inside "
			      "(varve.h)", (int)b->pid, fd, kind);
	else if (b->sockets_lost)
		vv_check_report(b->check, true, "process %d: descriptor %s is a network socket (%s), which this criu cannot save on this kernel: checkpoint the "
			      "program from inside (varve.h)", (int)b->pid, fd, kind);
	else if ((is_connected_in(b->pid, "tcp", inode) || is_connected_in(b->pid, "tcp6", inode)) && !vv_check_given(b->check, "--tcp-established") &&
		 !vv_check_given(b->check, "--tcp-close"))
		vv_check_report(b->check, true, "process %d: descriptor %s is a TCP connection: add '-- --tcp-established', or '-- --tcp-close'", (int)b->pid, fd);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Criu's size limit for deleted files, in bytes. */
static uint64_t ghost_limit(const struct vv_check *c)
{
	const char *value = vv_check_given(c, "--ghost-limit"), *unit;
	static const char units[] = "KMG";
	uint64_t limit;
	char *end;

	if (!value)
		return GHOST;
	limit = strtoull(value, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	return unit ? limit << 10 * (unit - units + 1) : limit;
}

static const char mark[] = " (deleted)";

static bool is_deleted(const char *name)
{
	size_t n = strlen(name), k = sizeof(mark) - 1;

	return n > k && strcmp(name + n - k, mark) == 0;
}

/* Shared memory also looks like a deleted file, and is ignored. */
static void check_deleted(struct vv_open_files *b, const char *path, const char *name)
{
	static const char *const memory[] = { "/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage", NULL };
	struct stat st;

	if (is_one_of(name, memory) || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino == b->ghost || (uint64_t)st.st_size <= ghost_limit(b->check))
		return;
	b->ghost = st.st_ino;
	vv_check_report(b->check, true, "process %d: '%.*s', which was deleted, is larger than criu saves by itself: add '-- --ghost-limit %jd'", (int)b->pid,
		      (int)(strlen(name) - (sizeof(mark) - 1)), name, (intmax_t)st.st_size);
}

static void check_device(struct vv_open_files *b, const char *fd, const char *link)
{
	static const char *const fine[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/kmsg", NULL };
	static const char *const masters[] = { "/dev/ptmx", "/dev/pts/ptmx", NULL };
	static const char *const terminals[] = { "/dev/tty", "/dev/pts/", "/dev/console", NULL };

	if (is_one_of(link, masters))
		b->master = true;
	else if (is_one_of(link, terminals))
		b->terminal = true;
	else if (!is_one_of(link, fine))
		vv_check_report(b->check, true, "process %d: descriptor %s is the device '%s', whose state criu cannot save: close it first, or checkpoint the program "
			      "from inside (varve.h)", (int)b->pid, fd, link);
}

static void check_file(struct vv_open_files *b, const char *fd, const char *path, const char *link)
{
	static const char *const fine[] = { "[eventfd", "[eventpoll", "[signalfd", "[timerfd", "inotify", "[inotify", "[fanotify", NULL };
	struct stat st;

	if (strncmp(link, "socket:[", 8) == 0)
		check_socket(b, fd, path, link);
	else if (strncmp(link, "anon_inode:", 11) == 0 && !is_one_of(link + 11, fine))
		vv_check_report(b->check, true, "process %d: descriptor %s is an '%s', which criu cannot save: checkpoint the program from inside (varve.h)",
			      (int)b->pid, fd, link + 11);
	else if (b->first && strncmp(link, "pipe:", 5) == 0 && atoi(fd) <= STDERR_FILENO)
		vv_check_report(b->check, false, "process %d: descriptor %s is a pipe; if its other end is outside, no process will be there after a restore",
			      (int)b->pid, fd);
	else if (link[0] == '/' && is_deleted(link))
		check_deleted(b, path, link);
	else if (link[0] == '/' && stat(path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		check_device(b, fd, link);
}

/* ---- the kernel's information about a descriptor --------------------------------------------- */

static bool is_mounted(pid_t pid, int id)
{
	char path[64], line[PATH_MAX];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = atoi(line) == id;
	if (f)
		fclose(f);
	return found;
}

static void check_info(struct vv_open_files *b, const char *fd, const char *link)
{
	char name[32], text[4096];
	const char *mount;

	snprintf(name, sizeof(name), "fdinfo/%.16s", fd);
	if (vv_process_tree_read(b->pid, name, text, sizeof(text)) <= 0)
		return;
	if (strstr(text, "\nlock:") && !b->locks && !vv_check_given(b->check, "--file-locks") && !vv_check_given(b->check, "-l")) {
		b->locks = true;
		vv_check_report(b->check, true, "process %d holds locks on files: add '-- --file-locks'", (int)b->pid);
	}
	mount = link[0] == '/' && vv_process_tree_is_apart(b->pid, getpid(), "mnt") ? strstr(text, "mnt_id:") : NULL;
	if (mount && !is_mounted(b->pid, atoi(mount + strlen("mnt_id:"))))
		vv_check_report(b->check, true, "process %d: descriptor %s is '%.200s' of another mount namespace than its own: let it open that itself", (int)b->pid,
			      fd, link);
}

static void check_descriptor(struct vv_open_files *b, const char *fd)
{
	char path[64], link[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", (int)b->pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return;
	link[n] = '\0';
	check_file(b, fd, path, link);
	check_info(b, fd, link);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void check_mapping(struct vv_open_files *b, unsigned long lo, unsigned long hi, const char *name)
{
	char path[96];

	if (strncmp(name, "/SYSV", 5) == 0 && !b->sysv && !vv_process_tree_is_apart(b->pid, getpid(), "ipc")) {
		b->sysv = true;
		vv_check_report(b->check, true, "process %d has System V shared memory, which criu saves only with an IPC namespace: start it by 'unshare --ipc'",
			      (int)b->pid);
	} else if (name[0] == '/' && is_deleted(name)) {
		snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)b->pid, lo, hi);
		check_deleted(b, path, name);
	}
}

static void check_mappings(struct vv_open_files *b)
{
	char path[64], line[PATH_MAX + 128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)b->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long lo, hi;
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &lo, &hi, &at) == 2 && at)
			check_mapping(b, lo, hi, line + at);
	}
	if (f)
		fclose(f);
}

/* MADV_WIPEONFORK is lost. After the restore, a new child sees memory that should be hidden, such
 * as the state of a key generator. */
static void check_advice(const struct vv_open_files *b)
{
	char path[64], line[512];
	bool wiped = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)b->pid);
	f = fopen(path, "re");
	while (f && !wiped && fgets(line, sizeof(line), f))
		wiped = strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " wf");
	if (f)
		fclose(f);
	if (wiped)
		vv_check_report(b->check, false, "process %d has memory that its children do not see (MADV_WIPEONFORK), which criu does not keep: those that it makes after a "
			      "restore do", (int)b->pid);
}

/* Processes may have ended since the tree was listed, for example in a pipeline. */
static bool is_gone(pid_t pid)
{
	return (kill(pid, 0) < 0 && errno == ESRCH) || vv_process_tree_is_zombie(pid);
}

void vv_open_files_check(struct vv_open_files *b)
{
	char path[64];
	const struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)b->pid);
	d = opendir(path);
	if (!d && !is_gone(b->pid))
		vv_check_report(b->check, true, "process %d: what it has open cannot be seen: criu needs to be run by root", (int)b->pid);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			check_descriptor(b, e->d_name);
	if (d)
		closedir(d);
	check_mappings(b);
	check_advice(b);
}
