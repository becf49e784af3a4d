#include "image/criu/criu.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "image/criu/capabilities.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char log_name[] = "criu.log";

/* ---- finding criu ---------------------------------------------------------------------------- */

bool vv_criu_look_for(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	return (folders && vv_child_find(name, folders, path)) || vv_child_find(name, "/usr/local/sbin:/usr/sbin:/sbin", path);
}

int vv_criu_find(char path[PATH_MAX])
{
	const char *own = getenv("VARVE_CRIU");

	if (own && own[0]) {
		snprintf(path, PATH_MAX, "%s", own);
		return access(path, X_OK) == 0 ? 0 : vv_err_sys(errno, "VARVE_CRIU is '%s'", own);
	}
	if (vv_criu_look_for("criu", path))
		return 0;
	return vv_err_set(VV_ENOTSUP, "there is no criu here, which freezes and rebuilds processes: install it (Debian: apt-get install criu), or say "
			  "where it is by VARVE_CRIU");
}

/* alone: in its own process group, so a Ctrl-C at the terminal does not reach it. */
static int spawn(const char *path, const char *const *word, const posix_spawn_file_actions_t *files, bool alone, pid_t *pid)
{
	posix_spawnattr_t attr;
	sigset_t all, none;
	int err = posix_spawnattr_init(&attr);

	if (err)
		return vv_err_sys(err, "cannot start '%s'", path);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (alone ? POSIX_SPAWN_SETPGROUP : 0)));
	err = posix_spawn(pid, path, files, &attr, (char *const *)(uintptr_t)word, environ);
	posix_spawnattr_destroy(&attr);
	return err ? vv_err_sys(err, "cannot start '%s'", path) : 0;
}

/* Reads all available bytes and drops those above cap; false: there will be no more. */
static bool drain(int fd, char *out, size_t cap, size_t *n)
{
	for (;;) {
		char rest[256];
		bool full = *n + 1 >= cap;
		ssize_t got = read(fd, full ? rest : out + *n, full ? sizeof(rest) : cap - 1 - *n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 && errno == EAGAIN;
		*n += full ? 0 : (size_t)got;
	}
}

/* Reads its output until it has ended; its surviving children may hold the pipe for longer. Returns
 * false if it has not ended in time. */
static bool attend(int fd, int pidfd, double limit_s, char *out, size_t cap)
{
	double end = vv_clock_s() + limit_s, left = limit_s;
	struct pollfd p[] = { { fd, POLLIN, 0 }, { pidfd, POLLIN, 0 } };
	bool ended = false;
	size_t n = 0;

	for (; !ended && left > 0; left = end - vv_clock_s()) {
		ended = poll(p, 2, (int)(left * 1000) + 1) > 0 && p[1].revents;
		if (p[0].fd >= 0 && !drain(p[0].fd, out, cap, &n))
			p[0].fd = -1;
	}
	out[n] = '\0';
	return ended;
}

static int reap(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return vv_err_sys(errno, "cannot wait for criu");
	return 0;
}

/* The child leads its own process group, so its children are killed with it. */
static int read_output(pid_t pid, int fd, const char *what, double limit_s, char *out, size_t cap, int *status)
{
	int pidfd = pidfd_open(pid, 0), rc = pidfd < 0 ? vv_err_sys(errno, "cannot watch criu") : 0;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (rc == 0 && !attend(fd, pidfd, limit_s, out, cap))
		rc = vv_err_set(VV_EIO, "'criu %s' has not ended in %g s, and was killed: try it by hand, or name another criu by VARVE_CRIU", what, limit_s);
	if (rc)
		kill(-pid, SIGKILL);
	if (pidfd >= 0)
		close(pidfd);
	return reap(pid, status) < 0 && rc == 0 ? VV_EIO : rc;
}

int vv_criu_ask(const char *const *word, double limit_s, char *out, size_t cap, int *status)
{
	posix_spawn_file_actions_t files;
	char path[PATH_MAX];
	int ends[2], rc = vv_criu_find(path);
	pid_t pid = 0;

	if (rc)
		return rc;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return vv_err_sys(errno, "cannot make a pipe");
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
	rc = spawn(path, word, &files, true, &pid);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	if (rc == 0)
		rc = read_output(pid, ends[0], word[1], limit_s, out, cap, status);
	close(ends[0]);
	return rc;
}

int vv_criu_version(struct vv_criu_version *out)
{
	static const char *const word[] = { "criu", "--version", NULL };
	char text[256];
	const char *at;
	int status, rc = vv_criu_ask(word, VV_CRIU_LIMIT_S, text, sizeof(text), &status);

	if (rc)
		return rc;
	at = strstr(text, "ersion:");
	if (!at || sscanf(at, "ersion: %u.%u", &out->major, &out->minor) != 2)
		return vv_err_set(VV_ENOTSUP, "criu does not say what version it is");
	if (out->major < 3 || (out->major == 3 && out->minor < 15))
		return vv_err_set(VV_ENOTSUP, "criu %u.%u is too old: images are streamed from 3.15 on", out->major, out->minor);
	return 0;
}

/* ---- a run of criu --------------------------------------------------------------------------- */

int vv_criu_open(struct vv_criu *c)
{
	int rc;

	*c = (struct vv_criu){ .pidfd = -1, .lock = -1 };
	rc = vv_criu_find(c->path);
	if (rc == 0)
		rc = vv_workdir_make(c->folder, &c->lock);
	if (rc)
		return rc;
	vv_criu_add_arg(c, "criu");
	vv_criu_add_arg(c, ""); /* the verb */
	vv_criu_add_arg(c, "--stream");
	vv_criu_add_arg(c, "-D");
	vv_criu_add_arg(c, c->folder);
	vv_criu_add_arg(c, "-W");
	vv_criu_add_arg(c, c->folder);
	vv_criu_add_arg(c, "-o");
	vv_criu_add_arg(c, log_name);
	vv_criu_add_arg(c, "-v2");
	return 0;
}

void vv_criu_add_arg(struct vv_criu *c, const char *word)
{
	if (c->n_args < VV_CRIU_WORDS)
		c->arg[c->n_args] = word;
	c->n_args++;
}

/* nsenter(1) becomes criu. */
static int spawn_inside(struct vv_criu *c, const posix_spawn_file_actions_t *files, bool alone)
{
	enum { AHEAD = 3 };
	const char *word[AHEAD + VV_CRIU_WORDS + 1] = { "nsenter" };
	char path[PATH_MAX], where[48];

	if (!vv_criu_look_for("nsenter", path))
		return vv_err_set(VV_ENOTSUP, "process %d has a private devpts, and there is no nsenter here to reach it: install it (Debian: apt-get install "
				  "util-linux)", (int)c->inside);
	snprintf(where, sizeof(where), "--mount=/proc/%d/ns/mnt", (int)c->inside);
	word[1] = where;
	word[2] = "--";
	memcpy(word + AHEAD, c->arg, sizeof(c->arg));
	word[AHEAD] = c->path;
	return spawn(path, word, files, alone, &c->pid);
}

int vv_criu_start(struct vv_criu *c, const char *verb, bool terminal)
{
	posix_spawn_file_actions_t files;
	int rc;

	if (c->n_args > VV_CRIU_WORDS)
		return vv_err_set(VV_EINVAL, "too many words for criu's command line, the limit is %d", VV_CRIU_WORDS);
	c->arg[1] = verb;
	posix_spawn_file_actions_init(&files);
	for (int fd = 0; fd <= STDERR_FILENO && !terminal; fd++)
		posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
	rc = c->inside ? spawn_inside(c, &files, !terminal) : spawn(c->path, c->arg, &files, !terminal, &c->pid);
	posix_spawn_file_actions_destroy(&files);
	if (rc)
		return rc;
	c->pidfd = pidfd_open(c->pid, 0);
	return c->pidfd < 0 ? vv_err_sys(errno, "cannot watch criu") : 0;
}

void vv_criu_close(struct vv_criu *c)
{
	/* Never killed: it may trace a process that contains criu's code. It cleans up when its
	 * pipes break. */
	if (c->pid)
		reap(c->pid, &c->status);
	if (c->pidfd > 0)
		close(c->pidfd);
	if (c->folder[0])
		vv_workdir_remove(c->folder, c->lock);
	*c = (struct vv_criu){ .pidfd = -1, .lock = -1 };
}

/* ---- reason of a failure --------------------------------------------------------------------- */

/* Messages of criu's log and advice for each; the first match is used. */
static const struct {
	const char *says;
	int code;
	const char *advice; /* NULL: missing capabilities */
} hints[] = {
	{ "outside of its pid namespace", VV_EINVAL, "start it by setsid, inside of that" },
	{ "session leader", VV_EINVAL, "it belongs to the session of a shell: add --shell-job, or start it by setsid" },
	{ "is not in the pid", VV_EINVAL, "it belongs to the session of a shell: add --shell-job, or start it by setsid" },
	{ "tty: Found slave peer index", VV_EINVAL, "it has a terminal that is not part of it: add --shell-job" },
	{ "tty: Found dangling tty", VV_EINVAL, "it has a terminal that is not part of it: add --shell-job" },
	{ "with specified index", VV_EBUSY, "another program has a terminal of the number that it had: add --private-pts, or end that program" },
	{ "File exists", VV_EBUSY, "a process id that it had is taken: the process that has it must end first, and its parent must have waited for it" },
	{ "pid mismatch", VV_EBUSY, "a process id that it had is taken: the process that has it must end first, and its parent must have waited for it" },
	{ "has bad size", VV_EMISMATCH, "a file that it had open was changed after it was saved: put it back as it was" },
	{ "has bad build-ID", VV_EMISMATCH, "its executable or a library was changed after it was saved: put it back as it was" },
	{ "bad mode", VV_EMISMATCH, "a file that it had open was changed after it was saved: put it back as it was" },
	{ "execvp(", VV_ENOTSUP, "criu needs this program, and could not run it: is it installed?" },
	{ "No such file or directory", VV_ENOENT, "a file or folder that it used is not here: put it back" },
	{ "External socket is used", VV_ENOTSUP, "a UNIX socket that it has is connected with a process that is not saved: save their common parent" },
	{ "whose /proc doesn't belong", VV_ENOTSUP, "it does not see the /proc of its pid namespace: start it by 'unshare --mount-proc'" },
	{ "inet: ", VV_ENOTSUP, "it has network sockets that criu cannot save; --tcp-established or --tcp-close after '--' may help" },
	{ "file lock", VV_ENOTSUP, "it holds locks on files: add -- --file-locks" },
	{ "Can't get rlimit", VV_EDENIED, "it is another user's, and for that criu needs CAP_SYS_RESOURCE, which root lacks here: run it outside of the container" },
	{ "restore capabilities", VV_EDENIED, "it had capabilities that root lacks here: run the command where it has them" },
	{ "Operation not permitted", VV_EDENIED, NULL },
	{ "Permission denied", VV_EDENIED, NULL },
	{ "SECURE_NO_SETUID_FIXUP", VV_EDENIED, NULL },
	{ "No process with", VV_ENOENT, "there is no such process" },
};

/* Returns the text of an error in a line of the log: "(00.012) 12: Error (criu/x.c:3): text". NULL:
 * it is not an error, or not a useful one. */
static char *error_in(char *line)
{
	char *at = strstr(line, "Error ("), *text = at ? strstr(at, "): ") : NULL;

	line[strcspn(line, "\r\n")] = '\0';
	if (!text || strstr(text, "exited, status=") || strstr(text, "rlimit: ") || strstr(text, "FAILED") || strstr(text, "killed by signal"))
		return NULL;
	return text + 3;
}

/* The first error is the cause; the later ones are its consequences. */
static int find_reason(struct vv_criu *c, const char *what)
{
	char path[VV_WORKDIR_PATH + sizeof(log_name) + 1], line[512], first[320] = "", rights[VV_CAPABILITIES_WORDS];
	const char *advice = NULL;
	int code = VV_EIO;
	FILE *f;

	vv_capabilities_advice(rights);
	snprintf(path, sizeof(path), "%s/%s", c->folder, log_name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *text = error_in(line);

		if (!text)
			continue;
		if (!first[0])
			snprintf(first, sizeof(first), "%s", text);
		for (size_t i = 0; !advice && i < sizeof(hints) / sizeof(hints[0]); i++)
			if (strstr(text, hints[i].says)) {
				advice = hints[i].advice ? hints[i].advice : rights;
				code = hints[i].code;
				snprintf(first, sizeof(first), "%s", text);
			}
	}
	if (f)
		fclose(f);
	c->unexplained = !advice;
	if (!first[0] && WIFSIGNALED(c->status))
		return vv_err_set(VV_EIO, "%s: criu was killed by signal %d", what, WTERMSIG(c->status));
	if (!first[0])
		return vv_err_set(VV_EIO, "%s: criu ended with status %d and says nothing; 'varve image check' may tell more", what,
				  WEXITSTATUS(c->status));
	return vv_err_set(code, "%s: criu says: %s%s%s", what, first, advice ? "; " : "", advice ? advice : "");
}

int vv_criu_wait(struct vv_criu *c, const char *what)
{
	int rc = c->pid ? reap(c->pid, &c->status) : 0;

	c->pid = 0;
	if (rc)
		return rc;
	return WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0 ? 0 : find_reason(c, what);
}
