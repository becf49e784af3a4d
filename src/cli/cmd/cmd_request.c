/* Requests a checkpoint from running programs. A signal that a process does not catch would kill
 * it, so the set of caught signals is read first. The signal goes to the examined process, not to a
 * later one with the same number. */
#include "base/err.h"
#include "cli/base/verb_context.h"
#include "cli/run/listener.h"
#include "engine/session/signal_request.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int parse_pid(const char *text, pid_t *out)
{
	unsigned long long v;
	char *end = NULL;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || v < 1 || v > INT32_MAX)
		return vv_err_set(VV_EINVAL, "request: '%s' is not the number of a process", text);
	*out = (pid_t)v;
	return 0;
}

static int no_such_process(pid_t pid)
{
	return vv_err_set(VV_ENOENT, "request: there is no process %d", (int)pid);
}

static int check_catches(pid_t pid, int sig, const char *word)
{
	struct vv_listener l;

	if (!vv_listener_read(pid, &l))
		return errno == ENOENT ? no_such_process(pid) : vv_err_sys(errno, "request: cannot look at process %d", (int)pid);
	if (l.state == 'Z' || l.state == 'X')
		return vv_err_set(VV_ENOENT, "request: process %d has ended", (int)pid);
	if (l.leader != pid)
		return vv_err_set(VV_EINVAL, "request: %d is a thread of process %d", (int)pid, (int)l.leader);
	if (!vv_listener_catches(&l, sig))
		return vv_err_set(VV_EINVAL,
				  "request: process %d does not catch SIG%s: it has no varve session with the option signal=%s "
				  "(nothing was sent)",
				  (int)pid, word, word);
	return 0;
}

static int send_signal(int fd, pid_t pid, int sig)
{
	return fd >= 0 ? (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) : kill(pid, sig);
}

/* Without `really`, does everything except sending the signal. */
static int ask(pid_t pid, int sig, const char *word, bool really)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), rc;

	if (fd < 0 && errno == ESRCH)
		return no_such_process(pid);
	/* old kernels have no such descriptors: then by number */
	rc = check_catches(pid, sig, word);
	if (rc == 0 && send_signal(fd, pid, really ? sig : 0) < 0) {
		if (errno == ESRCH)
			rc = no_such_process(pid);
		else if (errno == EPERM)
			rc = vv_err_set(VV_EDENIED, "request: process %d is another user's: no permission to signal it", (int)pid);
		else
			rc = vv_err_sys(errno, "request: cannot signal process %d", (int)pid);
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	const struct vv_args *a = job->args;
	const char *given = vv_args_value(a, "signal"), *word = given ? given : vv_conf_text(&job->conf, "signal");
	int sig = vv_signal_request_signal(word), rc = 0;
	pid_t pid = 0;

	if (given && !sig)
		return vv_err_set(VV_EINVAL, "request: --signal '%s' is not USR1 or USR2", given);
	if (!sig)
		return vv_err_set(VV_EINVAL, "request: the option signal is none; name one with --signal");
	for (int really = 0; rc == 0 && really < 2; really++)
		for (size_t i = 0; rc == 0 && i < a->n_operands; i++) {
			rc = parse_pid(a->operand[i], &pid);
			if (rc == 0)
				rc = ask(pid, sig, word, really);
			if (rc == 0 && really && !a->json && !a->quiet)
				vv_out_printf(&job->out, "asked process %d for a checkpoint\n", (int)pid);
		}
	if (rc)
		return rc;
	vv_json_text(&job->json, "signal", word);
	vv_json_array(&job->json, "asked");
	for (size_t i = 0; i < a->n_operands; i++)
		vv_json_number(&job->json, NULL, strtoull(a->operand[i], NULL, 10));
	vv_json_end(&job->json);
	return 0;
}

static const struct vv_args_option options[] = {
	{ "signal", 0, "USR1|USR2", "signal to send (that of the option signal)" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_request = {
	.name = "request",
	.operands = "PID...",
	.min = 1,
	.max = SIZE_MAX,
	.brief = "requests a checkpoint from running programs",
	.help = "Sends the signal that makes the next varve_due of a process return 1. The signal\n"
		"is sent only if all processes exist, may be signalled, and catch the signal,\n"
		"which would end them otherwise. The program takes the checkpoint at its next\n"
		"varve_due, and 'varve ls' shows the epoch. Do not name a shell: bash with a trap\n"
		"catches all signals, but still ends.",
	.option = options,
	.run = run,
};
