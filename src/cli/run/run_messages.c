#include "cli/run/run_messages.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int vv_run_messages_open(struct vv_run_messages *t, const char *path, bool quiet, bool json)
{
	*t = (struct vv_run_messages){ .fd = STDERR_FILENO, .quiet = quiet, .json = json };
	if (path)
		t->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
	return t->fd >= 0 ? 0 : vv_err_sys(errno, "run: cannot open '%s' for what happens", path);
}

void vv_run_messages_close(struct vv_run_messages *t)
{
	if (t->fd > STDERR_FILENO)
		close(t->fd);
	t->fd = -1;
}

/* One write for a line, because the program may write there, too. */
static void write_out(const struct vv_run_messages *t, struct vv_buf *b)
{
	vv_buf_add(b, "\n", 1);
	if (!b->failed && write(t->fd, b->p, b->n) < 0)
		b->failed = true; /* no reader is left */
	vv_buf_fini(b);
}

static struct vv_json begin(const char *event, uint64_t epoch)
{
	struct vv_json j = { 0 };

	vv_json_object(&j, NULL);
	vv_json_text(&j, "event", event);
	if (epoch)
		vv_json_number(&j, "epoch", epoch);
	return j;
}

static void end(const struct vv_run_messages *t, struct vv_json *j)
{
	vv_json_end(j);
	write_out(t, &j->buf);
	j->buf = (struct vv_buf){ 0 };
	vv_json_fini(j);
}

__attribute__((format(printf, 4, 0))) static void say(const struct vv_run_messages *t, const char *event, uint64_t epoch, const char *fmt, va_list ap)
{
	struct vv_buf b = { 0 };
	char text[2048];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (t->json) {
		struct vv_json j = begin(event, epoch);

		vv_json_text(&j, "text", text);
		end(t, &j);
	} else {
		vv_buf_printf(&b, "varve run: %s", vv_text_safe(text).s);
		write_out(t, &b);
	}
}

void vv_run_messages_line(const struct vv_run_messages *t, const char *event, uint64_t epoch, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (t->json || !t->quiet)
		say(t, event, epoch, fmt, ap);
	va_end(ap);
}

void vv_run_messages_warn(const struct vv_run_messages *t, const char *event, uint64_t epoch, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(t, event, epoch, fmt, ap);
	va_end(ap);
}

void vv_run_messages_durable(const struct vv_run_messages *t, uint64_t epoch, uint64_t memory, uint64_t stored)
{
	if (t->json) {
		struct vv_json j = begin("durable", epoch);

		vv_json_number(&j, "bytes_memory", memory);
		vv_json_number(&j, "bytes_layer", stored);
		end(t, &j);
	} else {
		vv_run_messages_line(t, "durable", epoch, "epoch %" PRIu64 " is durable: %s in memory, layer of %s", epoch, vv_text_size(memory).s,
				 vv_text_size(stored).s);
	}
}

/* Sizes are those of the epochs that were measured before they were dropped. */
static void format_epochs(const struct vv_run_sums *s, char *out, size_t size)
{
	const char *plural = s->epochs == 1 ? "" : "s";

	if (s->measured == s->epochs)
		snprintf(out, size, "%" PRIu64 " epoch%s, %s in memory, layers of %s", s->epochs, plural, vv_text_size(s->memory).s, vv_text_size(s->stored).s);
	else if (s->measured)
		snprintf(out, size, "%" PRIu64 " epochs (%s in memory, layers of %s, of %" PRIu64 " of them; the rest were gone before they were measured)", s->epochs,
			 vv_text_size(s->memory).s, vv_text_size(s->stored).s, s->measured);
	else
		snprintf(out, size, "%" PRIu64 " epoch%s (gone before measured)", s->epochs, plural);
}

/* Sums of 0 are left out. */
static void print_sums(const struct vv_run_messages *t, const struct vv_run_sums *s)
{
	char epochs[240] = "no epoch", failed[60] = "", restarts[40] = "no restart", lost[80] = "";

	if (s->epochs)
		format_epochs(s, epochs, sizeof(epochs));
	if (s->failed)
		snprintf(failed, sizeof(failed), "; %" PRIu64 " checkpoint%s failed", s->failed, s->failed == 1 ? "" : "s");
	if (s->restarts)
		snprintf(restarts, sizeof(restarts), "%" PRIu64 " restart%s", s->restarts, s->restarts == 1 ? "" : "s");
	if (s->lost_s > 0)
		snprintf(lost, sizeof(lost), ", %s lost", vv_text_duration(s->lost_s).s);
	vv_run_messages_line(t, "summary", 0, "%s%s; %s%s; status %d", epochs, failed, restarts, lost, s->status);
}

void vv_run_messages_summary(const struct vv_run_messages *t, const struct vv_run_sums *s)
{
	struct vv_json j;

	if (!t->json) {
		print_sums(t, s);
		return;
	}
	j = begin("summary", 0);
	vv_json_number(&j, "epochs", s->epochs);
	vv_json_number(&j, "epochs_measured", s->measured);
	vv_json_number(&j, "bytes_memory", s->memory);
	vv_json_number(&j, "bytes_layer", s->stored);
	vv_json_number(&j, "failed", s->failed);
	vv_json_number(&j, "restarts", s->restarts);
	vv_json_real(&j, "seconds_lost", s->lost_s);
	vv_json_signed(&j, "status", s->status);
	end(t, &j);
}
