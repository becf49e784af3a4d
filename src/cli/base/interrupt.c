#include "cli/base/interrupt.h"
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static char file[PATH_MAX];
static atomic_bool has_file, has_line;
static atomic_bool *_Atomic gentle;
static atomic_int came;

static void die(int signal_number)
{
	atomic_bool *stop = atomic_exchange(&gentle, NULL);

	if (stop) {
		atomic_store(&came, signal_number);
		atomic_store(stop, true);
		return;
	}
	if (atomic_load(&has_file))
		unlink(file);
	if (atomic_load(&has_line) && write(STDERR_FILENO, "\n", 1) < 0)
		_exit(2);
	raise(signal_number); /* the handler was for one signal: now the signal kills */
}

void vv_interrupt_arm(void)
{
	static const int deadly[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction ignore = { .sa_handler = SIG_IGN }, act = { .sa_handler = die, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGPIPE, &ignore, NULL); /* a write returns EPIPE instead */
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
		struct sigaction was;

		/* signals that nohup or a shell has ignored stay ignored */
		if (sigaction(deadly[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			sigaction(deadly[i], &act, NULL);
	}
}

void vv_interrupt_file(const char *path)
{
	atomic_store(&has_file, false);
	if (path) {
		snprintf(file, sizeof(file), "%s", path);
		atomic_store(&has_file, true);
	}
}

void vv_interrupt_set_stop(atomic_bool *stop)
{
	atomic_store(&gentle, stop);
}

void vv_interrupt_die(void)
{
	if (atomic_load(&came))
		die(atomic_load(&came));
}

void vv_interrupt_line(bool open)
{
	atomic_store(&has_line, open);
}
