#include "cli/run/run_events.h"
#include "base/err.h"
#include "core/format/run.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4096 };

static const char *const words[VV_RUN_EVENT_KINDS] = {
	[VV_RUN_EVENT_RESTORED] = "restored", [VV_RUN_EVENT_FRESH] = "fresh",     [VV_RUN_EVENT_TAKEN] = "taken",     [VV_RUN_EVENT_DURABLE] = "durable",
	[VV_RUN_EVENT_FAILED] = "failed",     [VV_RUN_EVENT_DAMAGED] = "damaged", [VV_RUN_EVENT_REFUSED] = "refused", [VV_RUN_EVENT_UNABLE] = "unable",
	[VV_RUN_EVENT_UNREAD] = "unread",
};

int vv_run_events_open(struct vv_run_events *e, bool shared)
{
	const char *tmp = getenv("TMPDIR");
	char here[PATH_MAX];

	*e = (struct vv_run_events){ .fd = -1 };
	if (shared && !getcwd(here, sizeof(here)))
		return vv_err_sys(errno, "run: cannot tell the current folder");
	if (snprintf(e->path, sizeof(e->path), "%s/.varve-run-XXXXXX", shared ? here : tmp && tmp[0] == '/' ? tmp : P_tmpdir) >= (int)sizeof(e->path))
		return vv_err_set(VV_EINVAL, "run: the path of the folder for events is too long");
	e->fd = mkostemp(e->path, O_CLOEXEC);
	return e->fd >= 0 ? 0 : vv_err_sys(errno, "run: cannot make '%s' for events", e->path);
}

void vv_run_events_close(struct vv_run_events *e)
{
	if (e->fd >= 0) {
		unlink(e->path);
		close(e->fd);
	}
	vv_buf_fini(&e->rest);
	e->fd = -1;
}

/* Any process may have written the line: returns false if it is no event. */
static bool parse(const char *line, struct vv_run_event *out)
{
	size_t n = strcspn(line, " ");
	unsigned long long epoch;
	char *end;

	for (int kind = 0; kind < VV_RUN_EVENT_KINDS; kind++) {
		if (strlen(words[kind]) != n || memcmp(words[kind], line, n) != 0 || !isdigit((unsigned char)line[n + 1]))
			continue;
		epoch = strtoull(line + n + 1, &end, 10);
		if (epoch > VV_MAX_EPOCH || (*end && *end != ' '))
			return false;
		*out = (struct vv_run_event){ .kind = (enum vv_run_event_kind)kind, .word = words[kind], .epoch = epoch };
		snprintf(out->text, sizeof(out->text), "%s", *end ? end + 1 : "");
		return true;
	}
	return false;
}

/* Reads more; false if there is nothing new. */
static bool fill(struct vv_run_events *e)
{
	uint8_t *room = vv_buf_room(&e->rest, LINE);
	ssize_t n = room ? pread(e->fd, room, LINE, (off_t)e->at) : 0;

	if (n <= 0)
		return false;
	e->rest.n += (size_t)n;
	e->at += (uint64_t)n;
	return true;
}

bool vv_run_events_next(struct vv_run_events *e, struct vv_run_event *out)
{
	for (;;) {
		uint8_t *end = e->rest.n ? memchr(e->rest.p, '\n', e->rest.n) : NULL;
		size_t n = end ? (size_t)(end - e->rest.p) + 1 : e->rest.n;
		bool fine = false;

		if (!end && n < LINE) {
			if (!fill(e))
				return false;
			continue;
		}
		if (end) {
			*end = '\0';
			fine = !e->skip && parse((const char *)e->rest.p, out);
		}
		e->skip = !end;
		memmove(e->rest.p, e->rest.p + n, e->rest.n - n);
		e->rest.n -= n;
		if (fine)
			return true;
	}
}
