/* On a terminal the view is redrawn repeatedly, on the terminal's second screen, with a few control
 * sequences that all terminals support. */
#include "base/clock.h"
#include "base/err.h"
#include "cli/base/interrupt.h"
#include "cli/top/top.h"
#include "cli/top/top_text.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define SCREEN_ON "\033[?1049h\033[?25l"
#define SCREEN_OFF "\033[?25h\033[?1049l"

enum { ROWS_AT_ONCE = 30, CTRL_C = 3, CTRL_Z = 26 };

static const struct vv_conf_item items[] = {
	{ "every", VV_CONF_DURATION, "1s", NULL, 0, 0, "how often" },
};

struct screen {
	struct termios before;
	bool has_keys; /* the standard input is a terminal, too */
	struct sigaction was;
};

static void on_resize(int sig)
{
	(void)sig; /* the signal only ends the wait */
}

static void screen_open(struct screen *s, struct vv_out *o)
{
	struct sigaction act = { .sa_handler = on_resize };
	struct termios keys;

	*s = (struct screen){ 0 };
	sigaction(SIGWINCH, &act, &s->was);
	s->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &s->before) == 0;
	if (s->has_keys) {
		keys = s->before;
		keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		/* the screen is restored before the process stops */
		keys.c_cc[VSUSP] = _POSIX_VDISABLE;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
	}
	vv_out_printf(o, SCREEN_ON);
}

static void screen_close(struct screen *s, struct vv_out *o)
{
	vv_out_printf(o, SCREEN_OFF);
	vv_out_flush(o);
	if (s->has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
	sigaction(SIGWINCH, &s->was, NULL);
}

static void measure(size_t *columns, size_t *lines)
{
	struct winsize w = { 0 };

	*columns = 80;
	*lines = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col && w.ws_row) {
		*columns = w.ws_col;
		*lines = w.ws_row;
	}
}

/* Each line is drawn over the old one and its rest cleared, to avoid flicker. Lines that do not fit
 * into a very low window are left out. */
static int draw(const struct vv_top *t, struct vv_out *o)
{
	struct vv_buf text = { 0 };
	size_t columns, lines;
	int rc;

	measure(&columns, &lines);
	rc = vv_top_text_put(t, columns, lines - 1, &text);
	vv_out_printf(o, "\033[H");
	for (size_t i = 0, left = lines; rc == 0 && i < text.n && left > 1; i++) {
		left -= text.p[i] == '\n';
		if (text.p[i] == '\n')
			vv_buf_add(&o->buf, "\033[K\r", 4);
		vv_buf_add(&o->buf, &text.p[i], 1);
	}
	vv_out_printf(o, "\033[K\033[J\033[%zu;1Hq quits", lines);
	vv_out_flush(o);
	vv_buf_fini(&text);
	return rc;
}

/* Stops until the shell continues the process with fg. */
static void suspend(struct screen *s, struct vv_out *o)
{
	screen_close(s, o);
	kill(0, SIGTSTP);
	screen_open(s, o);
}

/* Returns true if the command is to end. A key or a new size of the window ends the wait. */
static bool wait_for_key(struct screen *s, struct vv_out *o, double seconds, const atomic_bool *stop)
{
	struct pollfd p = { .fd = s->has_keys ? STDIN_FILENO : -1, .events = POLLIN };
	char key = 0;

	if (poll(&p, 1, (int)(seconds * 1e3)) < 1)
		return atomic_load(stop);
	if (read(STDIN_FILENO, &key, 1) < 1)
		return true;
	if (key == CTRL_Z)
		suspend(s, o);
	return key == 'q' || key == 'Q' || key == CTRL_C || atomic_load(stop);
}

static int watch(struct vv_verb_context *job, struct vv_top *t, double every)
{
	atomic_bool stop = false;
	struct screen s;
	int rc = 0;

	vv_interrupt_set_stop(&stop);
	screen_open(&s, &job->out);
	do {
		rc = vv_top_read(t, &job->conf);
		if (rc == 0)
			rc = draw(t, &job->out);
	} while (rc == 0 && !job->out.error && !wait_for_key(&s, &job->out, every, &stop));
	screen_close(&s, &job->out);
	vv_interrupt_set_stop(NULL);
	if (rc == 0 && atomic_load(&stop))
		vv_interrupt_die();
	return rc;
}

static int parse_every(struct vv_verb_context *job, double *every)
{
	const char *value = vv_args_value(job->args, "every");
	struct vv_conf c;
	int rc = vv_args_conf(job->args, items, sizeof(items) / sizeof(items[0]), &c);

	if (rc == 0)
		*every = vv_conf_real(&c, "every");
	if (rc == 0 && !(*every >= 0.05 && *every <= 3600))
		rc = vv_err_set(VV_EINVAL, "top: --every '%s' is not between 50ms and 1h", value);
	vv_conf_fini(&c);
	return rc;
}

/* Reads twice, a moment apart, because a rate can only be measured over time. */
static int look_once(struct vv_verb_context *job, struct vv_top *t, double apart)
{
	int rc = vv_top_read(t, &job->conf);

	if (rc == 0 && t->now.held) {
		vv_clock_sleep(apart);
		rc = vv_top_read(t, &job->conf);
	}
	if (rc)
		return rc;
	if (job->args->json)
		vv_top_text_json(t, &job->json);
	else
		rc = vv_top_text_put(t, SIZE_MAX, ROWS_AT_ONCE, &job->out.buf);
	return rc;
}

static bool is_screen(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

static int run(struct vv_verb_context *job)
{
	static struct vv_top t;
	struct vv_lineage lin;
	struct vv_spec spec;
	double every = 1;
	int rc = vv_spec_parse(job->args->operand[1], 0, &spec);

	if (rc == 0)
		rc = parse_every(job, &every);
	if (rc == 0)
		rc = vv_verb_context_open_lineage(job, &spec, &lin);
	if (rc)
		return rc;
	vv_top_init(&t, &lin, &job->conf);
	if (job->args->json || vv_args_value(job->args, "once") || !is_screen())
		rc = look_once(job, &t, every < 0.5 ? every : 0.5);
	else
		rc = watch(job, &t, every);
	vv_top_fini(&t);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "every", 0, "TIME", "interval of updates (1s)" },
	{ "once", 0, NULL, "print once and end (the default for JSON and\n                               without a terminal)" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_top = {
	.name = "top",
	.operands = "STORE LINEAGE",
	.min = 2,
	.max = 2,
	.brief = "shows a running job: epochs, flush in progress, next checkpoint",
	.help = "Shows the state of a lineage until q is pressed: its writer, the epoch in\n"
		"progress and its rate, the expected time of the next checkpoint, and the newest\n"
		"epochs. The command takes no lock and changes nothing. The expected time follows\n"
		"from interval, overhead and mtbf, as set here or in the writer's environment, or\n"
		"from the previous epochs. With -c stats=FILE, the writer's statistics file,\n"
		"failures are shown as well.",
	.option = options,
	.run = run,
};
