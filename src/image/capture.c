/* CRIU moves the pages of a frozen process into our pipes without copying them: until they are read they are still the process's own. So it is held
 * by a hook, behind its last image and before it lets the process go, until all pipes are empty; or, where the process is to end, until the
 * epoch is durable. If we die meanwhile the hook fails, and criu lets the process run on. */
#include "image/capture.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/streamer.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	BYTES = 512 << 10,
	PATIENCE_MS = 30000, /* for the end of a pipe behind the last image */
	KIND_PAGES = 1,
};

struct vv_capture_stream {
	char name[VV_STREAMER_NAME];
	int fd; /* -1: it has ended */
	uint32_t kind;
	uint8_t rest[PAGE]; /* of a page, whose other part has not come yet */
	size_t n_rest;
};

/* The seam for policies by segment: what a stretch of an image is. */
static const char *const kinds[] = { "pages" };

static uint32_t kind_of(const char *name)
{
	return strncmp(name, "pages-", 6) == 0 ? KIND_PAGES : VV_CARGO_SKELETON;
}

/* ---- the hook ---------------------------------------------------------------------------------------------------------------- */

/* It reaches our pipes by /proc: criu closes what it inherits, and if we are gone there is nothing to open. */
static int write_hook(struct vv_capture *c, const char *path)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
			 "#!/bin/sh\n[ \"$CRTOOLS_SCRIPT_ACTION\" = post-dump ] || exit 0\n"
			 "exec 8>/proc/%d/fd/%d 9</proc/%d/fd/%d || exit 1\necho ready >&8 && read word <&9 && [ \"$word\" = go ]\n",
			 (int)getpid(), c->ready[1], (int)getpid(), c->go[0]);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	bool written = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0 && close(fd) < 0)
		written = false;
	return written ? 0 : vv_err_sys(errno, "cannot write '%s'", path);
}

static int start(struct vv_capture *c)
{
	char hook[VV_CRIU_FOLDER + 8];
	int rc = vv_streamer_listen(c->criu->folder, false, &c->listening);

	snprintf(hook, sizeof(hook), "%s/hook", c->criu->folder);
	if (rc == 0 && (pipe2(c->ready, O_CLOEXEC) < 0 || pipe2(c->go, O_CLOEXEC) < 0))
		rc = vv_err_sys(errno, "cannot make a pipe");
	if (rc == 0)
		rc = write_hook(c, hook);
	vv_criu_word(c->criu, "--action-script");
	vv_criu_word(c->criu, hook);
	return rc ? rc : vv_criu_start(c->criu, "dump", false);
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int say_go(struct vv_capture *c)
{
	return write(c->go[1], "go\n", 3) == 3 ? vv_criu_wait(c->criu, c->what) : vv_err_sys(errno, "cannot speak to criu");
}

/* ---- streams ----------------------------------------------------------------------------------------------------------------- */

static int begin_stream(struct vv_capture *c, struct vv_inflow_part *out)
{
	struct vv_capture_stream *s = vv_mem_new(1, sizeof(*s));
	int rc = s ? vv_streamer_request(c->connection, s->name) : VV_ENOMEM;

	if (rc <= 0) {
		vv_mem_free(s);
		if (rc == 0)
			shut(&c->connection);
		return rc;
	}
	s->fd = -1;
	rc = vv_mem_room(&c->stream, c->n_streams, &c->streams_cap, sizeof(*c->stream));
	if (rc) {
		vv_mem_free(s);
		return rc;
	}
	c->stream[c->n_streams++] = s;
	rc = vv_streamer_pipe(c->connection, &s->fd);
	if (rc)
		return rc;
	c->n_open++;
	s->kind = kind_of(s->name);
	*out = (struct vv_inflow_part){ .name = s->name, .kind = s->kind };
	return 1;
}

/* 1: a part; 0: nothing yet. Of pages only whole ones are handed on. */
static int read_stream(struct vv_capture *c, struct vv_capture_stream *s, struct vv_inflow_part *out)
{
	size_t have = s->n_rest;
	ssize_t got;

	memcpy(c->bytes, s->rest, have);
	got = read(s->fd, c->bytes + have, BYTES - have);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : vv_err_sys(errno, "cannot read '%s' from criu", s->name);
	have += (size_t)got;
	s->n_rest = got && s->kind == KIND_PAGES ? have % PAGE : 0;
	have -= s->n_rest;
	memcpy(s->rest, c->bytes + have, s->n_rest);
	if (got == 0) {
		shut(&s->fd);
		c->n_open--;
	}
	*out = (struct vv_inflow_part){ .name = s->name, .kind = s->kind, .bytes = c->bytes, .n = have };
	return have > 0;
}

/* ---- the next part ----------------------------------------------------------------------------------------------------------- */

struct watched {
	struct pollfd *poll; /* listening or connected, the hook, criu, then the open streams */
	size_t *number;      /* of the stream */
	size_t n;
};

enum { SOCKET, HOOK, CRIU, STREAMS };

static int watch(const struct vv_capture *c, struct watched *w)
{
	w->poll = vv_mem_new(STREAMS + c->n_open, sizeof(*w->poll));
	w->number = vv_mem_new(STREAMS + c->n_open, sizeof(*w->number));
	if (!w->poll || !w->number)
		return VV_ENOMEM;
	w->poll[SOCKET] = (struct pollfd){ c->connection >= 0 ? c->connection : c->listening, POLLIN, 0 };
	w->poll[HOOK] = (struct pollfd){ c->is_ready ? -1 : c->ready[0], POLLIN, 0 };
	w->poll[CRIU] = (struct pollfd){ c->is_ready ? -1 : c->criu->pidfd, POLLIN, 0 };
	w->n = STREAMS;
	for (size_t i = 0; i < c->n_streams; i++)
		if (c->stream[i]->fd >= 0) {
			w->poll[w->n] = (struct pollfd){ c->stream[i]->fd, POLLIN, 0 };
			w->number[w->n++] = i;
		}
	return 0;
}

/* Who was read last comes last: no stream waits for ever. */
static int any_stream(struct vv_capture *c, const struct watched *w, struct vv_inflow_part *out)
{
	size_t n = w->n - STREAMS;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		size_t at = STREAMS + (c->turn + i) % n;

		if (w->poll[at].revents)
			rc = read_stream(c, c->stream[w->number[at]], out);
		if (rc > 0)
			c->turn += i + 1;
	}
	return rc;
}

/* 1: a part; 0: look again. */
static int react(struct vv_capture *c, const struct watched *w, struct vv_inflow_part *out)
{
	int rc;

	if (w->poll[SOCKET].revents && c->connection >= 0)
		return begin_stream(c, out);
	if (w->poll[SOCKET].revents) {
		rc = vv_streamer_accept(c->listening, &c->connection);
		shut(&c->listening);
		return rc;
	}
	rc = any_stream(c, w, out);
	if (rc)
		return rc;
	if (w->poll[HOOK].revents) {
		char word[8];

		c->is_ready = read(c->ready[0], word, sizeof(word)) > 0;
		return 0;
	}
	if (w->poll[CRIU].revents && c->n_open == 0) {
		rc = vv_criu_wait(c->criu, c->what);
		return rc ? rc : vv_err_set(VV_EIO, "%s: criu ended before it had called its hook", c->what);
	}
	return 0;
}

/* A connection that criu closed early is of no account: its end or the hook's word will come. */
static int next(void *arg, struct vv_inflow_part *out)
{
	struct vv_capture *c = arg;
	int rc = c->criu->pid || c->ended ? 0 : start(c);

	while (rc == 0 && !c->ended) {
		struct watched w = { 0 };

		if (c->is_ready && c->n_open == 0) {
			rc = c->leave_running ? say_go(c) : 0;
			c->ended = rc == 0;
			break;
		}
		rc = watch(c, &w);
		if (rc == 0) {
			int n = poll(w.poll, w.n, c->is_ready ? PATIENCE_MS : -1);

			if (n < 0 && errno != EINTR)
				rc = vv_err_sys(errno, "cannot wait for criu");
			else if (n == 0)
				rc = vv_err_set(VV_EIO, "%s: criu does not end an image", c->what);
			else if (n > 0)
				rc = react(c, &w, out);
		}
		vv_mem_free(w.poll);
		vv_mem_free(w.number);
	}
	return rc;
}

/* ---- life -------------------------------------------------------------------------------------------------------------------- */

int vv_capture_open(struct vv_capture *c, struct vv_criu *criu, const char *what, bool leave_running, uint64_t expected)
{
	*c = (struct vv_capture){
		.criu = criu,
		.what = what,
		.leave_running = leave_running,
		.inflow = { .arg = c, .format = "criu", .kind = kinds, .n_kinds = sizeof(kinds) / sizeof(kinds[0]), .expected = expected, .next = next },
		.listening = -1,
		.connection = -1,
		.ready = { -1, -1 },
		.go = { -1, -1 },
	};
	if (leave_running)
		vv_criu_word(criu, "--leave-running");
	c->bytes = vv_mem_map(BYTES);
	return c->bytes ? 0 : VV_ENOMEM;
}

int vv_capture_conclude(struct vv_capture *c, bool stored)
{
	if (stored)
		return c->leave_running ? 0 : say_go(c);
	for (size_t i = 0; i < c->n_streams; i++)
		shut(&c->stream[i]->fd);
	shut(&c->connection);
	shut(&c->listening);
	shut(&c->go[1]);
	return 0;
}

void vv_capture_close(struct vv_capture *c)
{
	vv_capture_conclude(c, false);
	shut(&c->go[0]);
	shut(&c->ready[0]);
	shut(&c->ready[1]);
	for (size_t i = 0; i < c->n_streams; i++)
		vv_mem_free(c->stream[i]);
	vv_mem_free(c->stream);
	vv_mem_unmap(c->bytes, BYTES);
	c->stream = NULL;
	c->n_streams = 0;
	c->bytes = NULL;
}
