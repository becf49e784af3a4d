#include "image/process/process_tree.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void vv_process_tree_fini(struct vv_process_tree *t)
{
	vv_mem_free(t->pid);
	*t = (struct vv_process_tree){ 0 };
}

ssize_t vv_process_tree_read(pid_t pid, const char *name, char *out, size_t cap)
{
	char path[128];
	size_t n = 0;
	ssize_t got = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (got > 0 && n + 1 < cap) {
		got = read(fd, out + n, cap - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	out[n] = '\0';
	return (ssize_t)n;
}

static int add(struct vv_process_tree *t, pid_t pid)
{
	int rc = vv_mem_room(&t->pid, t->n, &t->cap, sizeof(*t->pid));

	if (rc == 0)
		t->pid[t->n++] = pid;
	return rc;
}

/* Adds the children of one thread. The length of the file depends on their number. */
static int add_children(struct vv_process_tree *t, pid_t pid, const char *thread)
{
	char path[64], *text = NULL, *at, *end;
	size_t cap = 4096;
	ssize_t n;
	int rc = 0;

	snprintf(path, sizeof(path), "task/%.20s/children", thread);
	do {
		cap *= 4;
		vv_mem_free(text);
		text = vv_mem_new(cap, 1);
		if (!text)
			return VV_ENOMEM;
		n = vv_process_tree_read(pid, path, text, cap);
	} while (n + 1 >= (ssize_t)cap);
	for (at = text; rc == 0 && n > 0; at = end) {
		long child = strtol(at, &end, 10);

		if (end == at)
			break;
		rc = add(t, (pid_t)child);
	}
	vv_mem_free(text);
	return rc;
}

int vv_process_tree_list(pid_t root, struct vv_process_tree *out)
{
	struct vv_process_tree t = { 0 };
	int rc;

	if (root <= 0 || (kill(root, 0) < 0 && errno == ESRCH))
		return vv_err_set(VV_ENOENT, "there is no process %d", (int)root);
	rc = add(&t, root);
	for (size_t i = 0; rc == 0 && i < t.n; i++) {
		char path[64];
		const struct dirent *e;
		DIR *d;

		snprintf(path, sizeof(path), "/proc/%d/task", (int)t.pid[i]);
		d = opendir(path);
		while (rc == 0 && d && (e = readdir(d)))
			if (e->d_name[0] != '.')
				rc = add_children(&t, t.pid[i], e->d_name);
		if (d)
			closedir(d);
	}
	if (rc)
		vv_process_tree_fini(&t);
	else
		*out = t;
	return rc;
}

/* Parses a line "NAME: N kB" of the status file; returns bytes. */
static uint64_t status_bytes(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? (uint64_t)strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

uint64_t vv_process_tree_own(pid_t pid)
{
	char text[4096];

	return vv_process_tree_read(pid, "status", text, sizeof(text)) <= 0 ? 0 : status_bytes(text, "\nRssAnon:") + status_bytes(text, "\nVmSwap:");
}

uint64_t vv_process_tree_memory(const struct vv_process_tree *t)
{
	uint64_t own = 0, shared = 0;

	for (size_t i = 0; i < t->n; i++) {
		char text[4096];
		uint64_t n;

		own += vv_process_tree_own(t->pid[i]);
		if (vv_process_tree_read(t->pid[i], "status", text, sizeof(text)) <= 0)
			continue;
		/* Usually the same memory for several processes. */
		n = status_bytes(text, "\nRssShmem:");
		shared = n > shared ? n : shared;
	}
	return own + shared;
}

/* Returns the end of the name in /proc/PID/stat. The name may contain any character. */
static const char *read_stat(pid_t pid, char *text, size_t cap)
{
	return vv_process_tree_read(pid, "stat", text, cap) > 0 ? strrchr(text, ')') : NULL;
}

bool vv_process_tree_is_zombie(pid_t pid)
{
	char text[512];
	const char *at = read_stat(pid, text, sizeof(text));

	return at && at[1] == ' ' && at[2] == 'Z';
}

pid_t vv_process_tree_parent(pid_t pid)
{
	char text[512];
	const char *at = read_stat(pid, text, sizeof(text));
	int parent = 0;

	return at && sscanf(at + 1, " %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

bool vv_process_tree_is_kernels(pid_t pid)
{
	enum { PF_KTHREAD = 0x200000 };
	char text[512];
	const char *at = read_stat(pid, text, sizeof(text));
	unsigned flags = 0;

	return at && sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & PF_KTHREAD;
}

pid_t vv_process_tree_tracer(pid_t pid)
{
	char text[4096];
	const char *at = vv_process_tree_read(pid, "status", text, sizeof(text)) > 0 ? strstr(text, "\nTracerPid:") : NULL;

	return at ? (pid_t)atoi(at + strlen("\nTracerPid:")) : 0;
}

int vv_process_tree_inner(pid_t pid)
{
	char text[4096], *at, *last;

	at = vv_process_tree_read(pid, "status", text, sizeof(text)) > 0 ? strstr(text, "\nNSpid:") : NULL;
	if (!at)
		return 0;
	at++;
	at[strcspn(at, "\n")] = '\0';
	last = strrchr(at, '\t');
	return last ? atoi(last) : 0;
}

void vv_process_tree_wait(const struct vv_process_tree *t)
{
	const double pause_s = 0.002, dying_s = 5;
	size_t fewest = SIZE_MAX;
	double since = vv_clock_s();

	for (;;) {
		size_t dying = 0;

		for (size_t i = 0; i < t->n; i++)
			dying += kill(t->pid[i], 0) == 0 && !vv_process_tree_is_zombie(t->pid[i]);
		if (dying < fewest) {
			fewest = dying;
			since = vv_clock_s();
		}
		if (!dying || vv_clock_s() - since > dying_s)
			return;
		vv_clock_sleep(pause_s);
	}
}

/* Number and start: a restored process may get the number of one that has ended. Start 0: there is
 * no such process. */
struct identity {
	pid_t pid;
	unsigned long long start;
};

/* The processes that vv_process_tree_clear leaves alone. */
static struct {
	struct identity *v;
	size_t n;
} spared;

static struct identity identify(pid_t pid)
{
	char text[512];
	const char *at = read_stat(pid, text, sizeof(text));
	struct identity id = { .pid = pid };

	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &id.start) != 1)
		id.start = 0;
	return id;
}

int vv_process_tree_spare(void)
{
	struct vv_process_tree t = { 0 };
	struct identity *v = NULL;
	int rc = vv_process_tree_list(getpid(), &t);

	if (rc == 0) {
		v = vv_mem_new(t.n, sizeof(*v));
		rc = v ? 0 : VV_ENOMEM;
	}
	if (rc == 0) {
		for (size_t i = 1; i < t.n; i++)
			v[i - 1] = identify(t.pid[i]);
		vv_mem_free(spared.v);
		spared.v = v;
		spared.n = t.n - 1;
	}
	vv_process_tree_fini(&t);
	return rc;
}

/* The process, or an ancestor of it below this process, is spared. */
static bool is_spared(pid_t pid)
{
	for (pid_t me = getpid(); spared.n && pid > 1 && pid != me; pid = vv_process_tree_parent(pid)) {
		struct identity id = identify(pid);

		for (size_t i = 0; id.start && i < spared.n; i++)
			if (spared.v[i].pid == id.pid && spared.v[i].start == id.start)
				return true;
	}
	return false;
}

/* A process that is created during one pass is killed in the next pass. */
void vv_process_tree_clear(void)
{
	const double pause_s = 0.001;
	struct vv_process_tree t = { 0 };
	bool some = true;

	while (some && vv_process_tree_list(getpid(), &t) == 0) {
		some = false;
		for (size_t i = 1; i < t.n; i++)
			some |= !is_spared(t.pid[i]) && kill(t.pid[i], SIGKILL) == 0;
		vv_process_tree_fini(&t);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (some)
			vv_clock_sleep(pause_s);
	}
}

/* Checks the command line: it begins with "criu restore" and contains this folder. */
static bool is_criu_in(const char *folder, pid_t pid)
{
	static const char begins[] = "criu\0restore";
	char text[4096];
	ssize_t n = vv_process_tree_read(pid, "cmdline", text, sizeof(text));

	if (n < (ssize_t)sizeof(begins) || memcmp(text, begins, sizeof(begins)) != 0 || vv_process_tree_is_zombie(pid))
		return false;
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		if (strcmp(at, folder) == 0)
			return true;
	return false;
}

/* A process that criu rebuilds has its own command line before it runs, and waits for criu for
 * ever. */
static bool kill_with_children(pid_t pid)
{
	struct vv_process_tree t = { 0 };
	bool listed = vv_process_tree_list(pid, &t) >= 0, killed = kill(pid, SIGKILL) == 0;

	for (size_t i = 1; listed && i < t.n; i++)
		kill(t.pid[i], SIGKILL);
	vv_process_tree_fini(&t);
	return killed;
}

static bool kill_criu_in(const char *folder)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	bool some = false;

	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);

		if (pid > 0 && is_criu_in(folder, pid))
			some |= kill_with_children(pid);
	}
	if (d)
		closedir(d);
	return some;
}

void vv_process_tree_end_criu(const char *folder)
{
	const double pause_s = 0.002, dying_s = 5;
	double end = vv_clock_s() + dying_s;

	while (kill_criu_in(folder) && vv_clock_s() < end)
		vv_clock_sleep(pause_s);
}

/* Returns 0 if the namespace is unknown. */
static ino_t namespace_of(pid_t pid, const char *kind)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/%.16s", (int)pid, kind);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

bool vv_process_tree_is_apart(pid_t pid, pid_t from, const char *kind)
{
	ino_t its = namespace_of(pid, kind);

	return its && its != namespace_of(from, kind);
}
