#include "image/check/check.h"
#include "base/err.h"
#include "image/process/uffd_keeper.h"
#include "image/check/open_files.h"
#include "image/criu/action_script.h"
#include "image/criu/capabilities.h"
#include "image/process/process_tree.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

void vv_check_report(struct vv_check *c, bool grave, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->grave += grave;
	c->report(c->arg, grave, text);
}

const char *vv_check_given(const struct vv_check *c, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i < c->n_args; i++)
		if (strncmp(c->arg_list[i], word, n) == 0 && (!c->arg_list[i][n] || c->arg_list[i][n] == '='))
			return c->arg_list[i][n] ? c->arg_list[i] + n + 1 : i + 1 < c->n_args ? c->arg_list[i + 1] : "";
	return NULL;
}

/* ---- criu ------------------------------------------------------------------------------------ */

static bool has_socket_trouble(const struct vv_criu_version *v)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return (major > 6 || (major == 6 && minor >= 16)) && (v->major < 4 || (v->major == 4 && v->minor < 2));
}

static void check_rights(struct vv_check *c)
{
	char names[VV_CAPABILITIES_WORDS], advice[VV_CAPABILITIES_WORDS];

	vv_capabilities_advice(advice);
	if (geteuid() != 0)
		vv_check_report(c, false, "you are not root: criu needs that, or CAP_CHECKPOINT_RESTORE and more");
	else if (vv_capabilities_lack(false, names))
		vv_check_report(c, true, "%s", advice);
	else if (vv_capabilities_lack(true, names))
		vv_check_report(c, false, "a restore needs %s, which root lacks here", names);
	if (vv_action_script_may_run(vv_workdir_place()) < 0)
		vv_check_report(c, true, "%s", vv_err_last());
}

/* Finds the first error in criu's output, without its position in criu's source. The later ones are
 * its consequences. */
static const char *find_error(char *text)
{
	const char *found = NULL;

	for (char *line = strtok(text, "\n"); line && !found; line = strtok(NULL, "\n")) {
		char *at = strstr(line, "Error ("), *words = at ? strstr(at, "): ") : NULL;

		if (words && !strstr(words, "exited, status="))
			found = words + 3;
	}
	return found ? found : "'criu check' fails and says nothing";
}

/* An older criu does not know features of a newer kernel. */
static bool is_about_kernel(const char *error)
{
	return strstr(error, "vdso") || strstr(error, "kerndat") || strstr(error, "kernel");
}

int vv_check_criu(struct vv_check *c)
{
	static const char *const word[] = { "criu", "check", NULL };
	struct vv_criu_version v;
	char text[4096], path[PATH_MAX], advice[96] = "";
	int status, rc = vv_criu_version(&v);

	if (rc == 0)
		rc = vv_criu_find(path);
	if (rc == 0)
		rc = vv_criu_ask(word, VV_CRIU_LIMIT_S, text, sizeof(text), &status);
	if (rc)
		return rc;
	vv_check_report(c, false, "criu %u.%u is '%s'", v.major, v.minor, path);
	check_rights(c);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		const char *error = find_error(text);

		if (is_about_kernel(error))
			snprintf(advice, sizeof(advice), "; criu %u.%u may be too old for this kernel: install a newer one", v.major, v.minor);
		vv_check_report(c, true, "criu cannot do its work here: %s%s", error, advice);
	}
	if (has_socket_trouble(&v))
		vv_check_report(c, false, "criu %u.%u cannot save network sockets on Linux 6.16 and later: programs that have one open (of MPI, for example) are refused; "
			      "such programs are checkpointed from inside (varve_mpi.h)", v.major, v.minor);
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

struct check_look {
	struct vv_check *check;
	const struct vv_process_tree *tree;
	bool reported_shell, reported_space, reported_user;
};

static bool is_in_tree(const struct vv_process_tree *t, pid_t pid)
{
	size_t i = 0;

	while (i < t->n && t->pid[i] != pid)
		i++;
	return i < t->n;
}

static bool is_shell_job(const struct vv_check *c)
{
	return c->shell_job || vv_check_given(c, "--shell-job") || vv_check_given(c, "-j");
}

static void check_session(struct check_look *l, pid_t pid)
{
	/* a session (setsid) across two pid namespaces cannot be saved in any case. */
	bool apart = vv_process_tree_is_apart(pid, getpid(), "pid");
	char text[1024];
	const char *at;
	int session = 0;

	if (l->reported_shell || (is_shell_job(l->check) && !apart) || vv_process_tree_read(pid, "stat", text, sizeof(text)) <= 0)
		return;
	at = strrchr(text, ')'); /* a name may contain any character */
	if (at && sscanf(at + 1, " %*c %*d %*d %d", &session) == 1 && !is_in_tree(l->tree, session)) {
		l->reported_shell = true;
		vv_check_report(l->check, true, "process %d belongs to the session of another one, which is not saved with it: %sstart it by setsid", (int)pid,
			      apart ? "" : "add --shell-job, here and when it is restored, or ");
	}
}

static void check_status(struct check_look *l, pid_t pid)
{
	pid_t tracer = vv_process_tree_tracer(pid);

	if (tracer)
		vv_check_report(l->check, true, "process %d is traced by process %d (a debugger, or another dump?): end that first, or wait for its end",
			      (int)pid, (int)tracer);
	if (vv_uffd_keeper_is_held(pid))
		vv_check_report(l->check, true, "process %d was restored by --lazy, and not all of its pages are there yet: wait until they are", (int)pid);
	if (pid == l->tree->pid[0] && vv_process_tree_is_zombie(pid))
		vv_check_report(l->check, true, "process %d has ended, and only waits for its parent to hear of it", (int)pid);
}

/* Compares the three user and three group numbers of a process with ours. If one differs,
 * prlimit(2) needs a capability. */
static bool is_of_another(pid_t pid)
{
	char text[4096];
	const char *users, *groups;
	unsigned u[3], g[3];

	if (vv_process_tree_read(pid, "status", text, sizeof(text)) <= 0 || vv_process_tree_is_apart(pid, getpid(), "user"))
		return false;
	users = strstr(text, "\nUid:");
	groups = strstr(text, "\nGid:");
	if (!users || !groups || sscanf(users, "\nUid: %u %u %u", &u[0], &u[1], &u[2]) != 3 || sscanf(groups, "\nGid: %u %u %u", &g[0], &g[1], &g[2]) != 3)
		return false;
	for (int i = 0; i < 3; i++)
		if (u[i] != getuid() || g[i] != getgid())
			return true;
	return false;
}

static void check_user(struct check_look *l, pid_t pid)
{
	if (geteuid() != 0 || l->reported_user || !vv_capabilities_stay_home() || !is_of_another(pid))
		return;
	l->reported_user = true;
	vv_check_report(l->check, true, "process %d is another user's, and for that criu needs CAP_SYS_RESOURCE, which root lacks here: run it outside of the "
		      "container", (int)pid);
}

static void check_space(struct check_look *l, pid_t pid)
{
	pid_t root = l->tree->pid[0];

	if (l->reported_space || !vv_process_tree_is_apart(pid, getpid(), "pid"))
		return;
	if (pid == root ? vv_process_tree_inner(pid) != 1 : vv_process_tree_is_apart(pid, root, "pid")) {
		l->reported_space = true;
		vv_check_report(l->check, true, pid == root ? "process %d is in a pid namespace whose first process is not saved with it: name that one" :
			      "process %d is in a pid namespace below that of the first one, which criu does not save: name the first process in it", (int)pid);
	}
}

static void check_network(struct check_look *l, pid_t pid)
{
	static const char lock[] = "iptables-restore";
	char path[PATH_MAX];

	if (vv_process_tree_is_apart(pid, getpid(), "net") && !vv_criu_look_for(lock, path) && !vv_check_given(l->check, "--network-lock") && !vv_check_given(l->check, "--empty-ns"))
		vv_check_report(l->check, true, "process %d has a network of its own, which criu locks by '%s': install that (Debian: apt-get install iptables)",
			      (int)pid, lock);
}

static void check_tree(struct check_look *l, bool sockets_lost)
{
	pid_t root = l->tree->pid[0];
	bool terminal = false, master = false;

	for (size_t i = 0; i < l->tree->n; i++) {
		struct vv_open_files b = { .check = l->check, .pid = l->tree->pid[i], .first = i == 0, .sockets_lost = sockets_lost };

		vv_open_files_check(&b);
		terminal |= b.terminal;
		master |= b.master;
		check_session(l, b.pid);
		check_status(l, b.pid);
		check_space(l, b.pid);
		check_user(l, b.pid);
	}
	check_network(l, root);
	if (terminal && !master && !l->reported_shell && !is_shell_job(l->check))
		vv_check_report(l->check, true, "process %d has a terminal, whose other end is not saved with it: add --shell-job", (int)root);
}

int vv_check_process(struct vv_check *c, pid_t pid)
{
	struct vv_criu_version v;
	struct vv_process_tree t = { 0 };
	struct check_look l = { .check = c, .tree = &t };
	int rc = vv_criu_version(&v);

	if (rc == 0)
		rc = vv_process_tree_list(pid, &t);
	if (rc == 0 && vv_process_tree_is_kernels(pid))
		vv_check_report(c, true, "process %d is a part of the kernel", (int)pid);
	else if (rc == 0)
		check_tree(&l, has_socket_trouble(&v));
	vv_process_tree_fini(&t);
	return rc;
}

/* ---- after a failure ------------------------------------------------------------------------- */

struct first {
	char text[512];
};

static void keep_first(void *arg, bool grave, const char *text)
{
	struct first *f = arg;

	if (grave && !f->text[0])
		snprintf(f->text, sizeof(f->text), "%s", text);
}

int vv_check_explain(const struct vv_criu *criu, pid_t pid, int rc)
{
	struct first first = { "" };
	struct vv_check c = { .arg = &first, .report = keep_first, .arg_list = criu->arg, .n_args = criu->n_args };
	struct vv_err_state error;

	vv_err_save(rc, &error);
	check_rights(&c);
	if (!c.grave && vv_check_process(&c, pid) < 0)
		return vv_err_restore(&error);
	return c.grave ? vv_err_set(VV_ENOTSUP, "%.500s; %s", error.message, first.text) : vv_err_restore(&error);
}
