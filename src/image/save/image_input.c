/* CRIU moves the pages of a frozen process into our pipes without copying them: until they are
 * read, they still belong to the process. So a hook stops criu after its last image, before it
 * releases the process. It waits until all pages are in memory. If the process is to end, it waits
 * until the epoch is durable. If we die meanwhile, the hook fails, and criu lets the process
 * continue. */
#include "image/save/image_input.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/save/precopied_file.h"
#include "image/save/process_areas.h"
#include "image/check/check.h"
#include "image/save/drain_pipe.h"
#include "image/criu/stream_protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	LEAST = 1 << 20,     /* bytes of pages at a time */
	SLACK = 64 << 20,    /* the process may have grown by the time it is frozen */
	OTHER = 16 << 10,    /* bytes of other images at a time */
	OTHER_MOST = 64 << 20, /* limit of their sum */
	PATIENCE_MS = 30000, /* for the end of a pipe after the last image */
};

enum { SOCKET, HOOK, CRIU, STREAMS }; /* indices of poll */

struct vv_image_input_stream {
	char name[VV_STREAM_PROTOCOL_NAME];
	int fd; /* -1: it has ended */
	bool announced; /* its name was delivered */
	struct vv_buf bytes; /* contents of an image without pages */
	size_t n_delivered;   /* bytes of it that were delivered */
	bool is_pages, is_pagemap;
	struct vv_page_buffer_file pages;
	struct vv_precopied_file ahead; /* used if its pages were copied before the freeze */
	bool thrown_away;      /* its pages are discarded as they come */
	uint64_t len; /* of pages so far */
	const struct vv_image_input_stream *pagemap; /* describes these pages */
	struct vv_process_areas *areas; /* NULL: unknown */
	uint8_t segment; /* of pages without known areas */
};

/* ---- criu ------------------------------------------------------------------------------------ */

static int start(struct vv_image_input *c)
{
	int rc = vv_stream_protocol_listen(c->criu->folder, false, &c->listening);
	size_t used = 0;

	if (rc == 0 && c->opt.precopy)
		vv_precopy_run(&c->precopy, c->opt.pid, vv_drain_pipe_pool(c->drain), c->room.pages, c->room.cap, &used);
	vv_page_buffer_reset(&c->room, used);
	if (rc == 0)
		rc = vv_action_script_open(&c->hook, c->criu, "post-dump", c->opt.with);
	return rc ? rc : vv_criu_start(c->criu, "dump", false);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* If criu's log gives no reason, a check of the process may find one. */
static int wait_for_criu(struct vv_image_input *c)
{
	int rc = vv_criu_wait(c->criu, c->opt.what);

	return rc && c->criu->unexplained ? vv_check_explain(c->criu, c->opt.pid, rc) : rc;
}

static int say_go(struct vv_image_input *c)
{
	int rc = vv_action_script_go(&c->hook);

	vv_precopy_disarm(&c->precopy);
	return rc ? rc : wait_for_criu(c);
}

/* ---- the process of a stream ----------------------------------------------------------------- */

/* Returns the process of a pagemap; 0: there is none in our tree. */
static pid_t find_process(const struct vv_image_input *c, const char *pagemap)
{
	long inside = strtol(pagemap + strlen("pagemap-"), NULL, 10);

	for (size_t i = 0; i < c->n_pids; i++)
		if (c->pids[i].inside == inside)
			return c->pids[i].outside;
	return 0;
}

/* Decides whether the earlier copy of this process is used; otherwise frees its part of the
 * buffer. */
static int look_ahead(struct vv_image_input *c, struct vv_image_input_stream *s, pid_t pid)
{
	size_t from, len;

	s->ahead.process = vv_precopy_check(&c->precopy, pid, &from, &len);
	s->thrown_away = s->ahead.process && !c->check;
	return len ? vv_page_buffer_give(&c->room, from, len) : 0;
}

/* The image of pages follows its pagemap; pages without a process are shared memory. All processes
 * are frozen by now. */
static int look_around(struct vv_image_input *c, struct vv_image_input_stream *s)
{
	size_t i = c->streams.n_streams;
	pid_t pid;
	int rc = 0;

	while (i > 0 && !c->streams.stream[i - 1]->is_pagemap)
		i--;
	s->segment = VV_SEGMENT_ANON;
	if (i == 0)
		return 0;
	s->pagemap = c->streams.stream[i - 1];
	if (strncmp(s->pagemap->name, "pagemap-shmem-", strlen("pagemap-shmem-")) == 0) {
		s->segment = VV_SEGMENT_SHARED;
		return 0;
	}
	if (!c->pids)
		rc = vv_process_areas_pids(c->opt.pid, &c->pids, &c->n_pids);
	pid = rc ? 0 : find_process(c, s->pagemap->name);
	if (!pid)
		return rc;
	s->areas = vv_mem_new(1, sizeof(*s->areas));
	rc = s->areas ? vv_process_areas_open(s->areas, pid) : VV_ENOMEM;
	return rc ? rc : look_ahead(c, s, pid);
}

/* ---- streams --------------------------------------------------------------------------------- */

static int begin_stream(struct vv_image_input *c)
{
	struct vv_image_input_stream *s = vv_mem_new(1, sizeof(*s));
	int rc = s ? vv_stream_protocol_request(c->connection, s->name) : VV_ENOMEM;

	if (rc > 0 && vv_mem_room(&c->streams.stream, c->streams.n_streams, &c->streams.streams_cap, sizeof(*c->streams.stream)) < 0)
		rc = VV_ENOMEM;
	if (rc <= 0) {
		vv_mem_free(s);
		if (rc == 0)
			close_fd(&c->connection);
		return rc;
	}
	s->fd = -1;
	c->streams.stream[c->streams.n_streams++] = s;
	rc = vv_mem_room(&c->streams.open, c->streams.n_open, &c->streams.open_cap, sizeof(*c->streams.open));
	if (rc == 0)
		rc = vv_mem_room(&c->streams.poll, STREAMS + c->streams.n_open, &c->streams.poll_cap, sizeof(*c->streams.poll));
	if (rc == 0)
		rc = vv_stream_protocol_pipe(c->connection, &s->fd);
	if (rc)
		return rc;
	c->streams.open[c->streams.n_open++] = s;
	s->is_pages = strncmp(s->name, "pages-", strlen("pages-")) == 0;
	s->is_pagemap = strncmp(s->name, "pagemap-", strlen("pagemap-")) == 0;
	return s->is_pages ? look_around(c, s) : 0;
}

static int read_pages(struct vv_image_input *c, struct vv_image_input_stream *s)
{
	const struct vv_page_buffer_gap *gap = vv_page_buffer_find(&c->room);
	size_t from = gap->from, took = 0;
	int rc;

	c->full = gap->n == 0 && !s->thrown_away;
	if (c->full)
		return 0;
	rc = s->thrown_away ? vv_drain_pipe_skip(c->drain, s->fd, &took) : vv_drain_pipe_take(c->drain, s->fd, c->room.pages + from, gap->n, &took);
	if (rc <= 0)
		return rc;
	if (took == 0)
		close_fd(&s->fd);
	s->len += took;
	if (took == 0 || s->thrown_away)
		return 0;
	vv_page_buffer_take(&c->room, took);
	return vv_page_buffer_add(&s->pages, s->len - took, from, took);
}

static int read_other(struct vv_image_input *c, struct vv_image_input_stream *s)
{
	uint8_t bytes[OTHER];
	ssize_t got = read(s->fd, bytes, sizeof(bytes));

	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : vv_err_sys(errno, "cannot read '%s' from criu", s->name);
	if (got == 0)
		close_fd(&s->fd);
	vv_buf_add(&s->bytes, bytes, (size_t)got);
	c->other += (size_t)got;
	c->full |= c->other >= OTHER_MOST;
	return vv_buf_check(&s->bytes);
}

/* Returns the buffer ranges of its pages. */
static const struct vv_page_buffer_file *pages_of(const struct vv_image_input_stream *s)
{
	return s->thrown_away ? &s->ahead.file : &s->pages;
}

/* During the freeze criu runs code in the process, and the kernel records its position in the
 * memory (rseq). So changed pages are found again before the comparison, since they may differ. */
static int check(struct vv_image_input *c, struct vv_image_input_stream *s)
{
	size_t from, len;

	vv_precopy_check(&c->precopy, s->ahead.process->pid, &from, &len);
	return vv_precopied_file_compare(&s->ahead, &c->room, &s->pages);
}

/* All images have come, and the process is still frozen: reads the contents of the discarded
 * pages. */
static int fetch_all(struct vv_image_input *c)
{
	int rc = 0;

	c->precopied = c->late = 0;
	for (size_t i = 0; rc == 0 && i < c->streams.n_streams; i++) {
		struct vv_image_input_stream *s = c->streams.stream[i];

		if (!s->ahead.process)
			continue;
		rc = vv_precopied_file_fetch(&s->ahead, &c->room, &s->pagemap->bytes, s->len, vv_drain_pipe_pool(c->drain), &c->full);
		if (rc == 0 && !s->thrown_away && !c->full)
			rc = check(c, s);
		c->precopied += s->ahead.held;
		c->late += s->ahead.late;
	}
	return rc;
}

/* ---- reading all ----------------------------------------------------------------------------- */

static void watch(struct vv_image_input *c)
{
	c->streams.poll[SOCKET] = (struct pollfd){ c->connection >= 0 ? c->connection : c->listening, POLLIN, 0 };
	c->streams.poll[HOOK] = (struct pollfd){ c->is_ready ? -1 : c->hook.ready[0], POLLIN, 0 };
	c->streams.poll[CRIU] = (struct pollfd){ c->is_ready ? -1 : c->criu->pidfd, POLLIN, 0 };
	for (size_t i = 0; i < c->streams.n_open; i++)
		c->streams.poll[STREAMS + i] = (struct pollfd){ c->streams.open[i]->fd, POLLIN, 0 };
}

static int read_streams(struct vv_image_input *c)
{
	size_t left = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->streams.n_open && !c->full; i++)
		if (c->streams.poll[STREAMS + i].revents)
			rc = c->streams.open[i]->is_pages ? read_pages(c, c->streams.open[i]) : read_other(c, c->streams.open[i]);
	for (size_t i = 0; i < c->streams.n_open; i++)
		if (c->streams.open[i]->fd >= 0)
			c->streams.open[left++] = c->streams.open[i];
	c->streams.n_open = left;
	return rc;
}

static int accept_criu(struct vv_image_input *c)
{
	int rc = vv_stream_protocol_accept(c->listening, &c->connection);

	close_fd(&c->listening);
	return rc;
}

/* An early close of the connection is ignored: criu's end or the hook's message will follow. */
static int react(struct vv_image_input *c)
{
	bool knocks = c->streams.poll[SOCKET].revents, speaks = c->streams.poll[HOOK].revents, is_gone = c->streams.poll[CRIU].revents;
	int rc = read_streams(c);

	if (rc)
		return rc;
	if (knocks)
		return c->connection >= 0 ? begin_stream(c) : accept_criu(c);
	if (speaks) {
		char word[8];

		c->is_ready = read(c->hook.ready[0], word, sizeof(word)) > 0;
		return 0;
	}
	if (is_gone && c->streams.n_open == 0) {
		rc = wait_for_criu(c);
		return rc ? rc : vv_err_set(VV_EIO, "%s: criu ended before it had called its hook", c->opt.what);
	}
	return 0;
}

/* Reads until all images have come, or the buffer is full. It does no other work meanwhile, because
 * the process is frozen. */
static int collect(struct vv_image_input *c)
{
	int rc = c->criu->pid ? 0 : start(c);

	while (rc == 0 && !c->full && !(c->is_ready && c->streams.n_open == 0)) {
		int n;

		watch(c);
		n = poll(c->streams.poll, STREAMS + c->streams.n_open, c->is_ready ? PATIENCE_MS : -1);
		if (n < 0 && errno != EINTR)
			rc = vv_err_sys(errno, "cannot wait for criu");
		else if (n == 0)
			rc = vv_err_set(VV_EIO, "%s: criu does not end an image", c->opt.what);
		else if (n > 0)
			rc = react(c);
	}
	if (rc == 0)
		rc = vv_drain_pipe_wait(c->drain);
	if (rc == 0 && !c->full)
		rc = fetch_all(c);
	if (rc == 0 && c->full && c->check)
		rc = vv_err_set(VV_ENOMEM, "%s: there is not the memory to compare its pages", c->opt.what);
	c->ended = rc == 0 && !c->full;
	return c->ended && c->opt.leave_running ? say_go(c) : rc;
}

/* ---- delivering ------------------------------------------------------------------------------ */

/* The areas of pages are known as far as their pagemaps have come. A pagemap lags behind its pages
 * by some entries until its end. */
static int begin_telling(struct vv_image_input *c)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->streams.n_streams; i++) {
		struct vv_image_input_stream *s = c->streams.stream[i];

		if (s->areas && pages_of(s)->n)
			rc = vv_process_areas_place(s->areas, s->pagemap->bytes.p, s->pagemap->bytes.n, s->len);
	}
	c->at_stream = c->at_stretch = c->at_byte = 0;
	c->delivering = rc == 0;
	return rc;
}

/* Resets the buffers: all delivered parts have been stored. */
static void end_telling(struct vv_image_input *c)
{
	for (size_t i = 0; i < c->streams.n_streams; i++) {
		struct vv_image_input_stream *s = c->streams.stream[i];

		s->pages.n = s->ahead.file.n = 0;
		if (!s->is_pagemap) {
			vv_buf_fini(&s->bytes);
			s->n_delivered = 0;
		}
	}
	vv_precopy_forget(&c->precopy);
	vv_page_buffer_reset(&c->room, 0);
	c->other = 0;
	c->full = false;
}

static void fill_part(struct vv_image_input *c, const struct vv_image_input_stream *s, struct vv_stream_input_part *out)
{
	const struct vv_page_buffer_stretch *x = &pages_of(s)->stretch[c->at_stretch];

	out->bytes = c->room.pages + x->from + c->at_byte;
	out->n = x->n - c->at_byte;
	out->segment = s->segment;
	out->variable = vv_segment_name(s->segment);
	if (s->areas)
		vv_process_areas_find(s->areas, x->at + c->at_byte, &out->n, &out->variable, &out->segment);
	c->at_byte += out->n;
	if (c->at_byte == x->n) {
		c->at_stretch++;
		c->at_byte = 0;
	}
}

/* Gives the next part; false: there is none. */
static bool next_part(struct vv_image_input *c, struct vv_stream_input_part *out)
{
	for (; c->at_stream < c->streams.n_streams; c->at_stream++, c->at_stretch = 0) {
		struct vv_image_input_stream *s = c->streams.stream[c->at_stream];
		bool is_new = !s->announced;

		s->announced = true;
		*out = (struct vv_stream_input_part){ .name = s->name };
		if (c->at_stretch < pages_of(s)->n) {
			fill_part(c, s, out);
			return true;
		}
		if (is_new || s->bytes.n > s->n_delivered) {
			out->bytes = s->bytes.p + s->n_delivered;
			out->n = s->bytes.n - s->n_delivered;
			s->n_delivered = s->bytes.n;
			return true;
		}
	}
	return false;
}

static int next(void *arg, struct vv_stream_input_part *out)
{
	struct vv_image_input *c = arg;

	if (!c->delivering) {
		int rc;

		end_telling(c);
		rc = collect(c);
		if (rc == 0)
			rc = begin_telling(c);
		if (rc)
			return rc;
	}
	if (next_part(c, out))
		return VV_STREAM_INPUT_PART;
	c->delivering = false;
	return c->ended ? VV_STREAM_INPUT_END : VV_STREAM_INPUT_PAUSE;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Does all slow preparations that are possible before the freeze. */
static int make_room(struct vv_image_input *c)
{
	uint64_t memory = c->opt.memory ? c->opt.memory : vv_mem_available() / 2, most = c->opt.expected + c->opt.expected / 8 + SLACK;
	int rc;

	most *= c->check ? 2 : 1;
	memory = memory < most ? memory : most;
	memory = memory > LEAST ? memory : LEAST;
	rc = vv_page_buffer_open(&c->room, (size_t)(memory - memory % PAGE), (size_t)c->opt.expected);
	return rc ? rc : vv_drain_pipe_open(&c->drain);
}

int vv_image_input_open(struct vv_image_input *c, struct vv_criu *criu, const struct vv_image_input_options *opt)
{
	const char *check = getenv("VARVE_PRECOPY");

	*c = (struct vv_image_input){
		.criu = criu,
		.opt = *opt,
		.stream_input = { .arg = c, .format = "criu", .expected = opt->expected, .next = next },
		.listening = -1,
		.connection = -1,
		.hook = VV_ACTION_SCRIPT_NONE,
		.check = opt->precopy && check && strcmp(check, "check") == 0,
	};
	if (opt->leave_running)
		vv_criu_add_arg(criu, "--leave-running");
	if (vv_mem_room(&c->streams.poll, STREAMS, &c->streams.poll_cap, sizeof(*c->streams.poll)) < 0)
		return VV_ENOMEM;
	return make_room(c);
}

int vv_image_input_finish(struct vv_image_input *c, bool stored)
{
	if (stored)
		return c->opt.leave_running ? 0 : say_go(c);
	for (size_t i = 0; i < c->streams.n_streams; i++)
		close_fd(&c->streams.stream[i]->fd);
	close_fd(&c->connection);
	close_fd(&c->listening);
	vv_action_script_close(&c->hook);
	return 0;
}

static void free_stream(struct vv_image_input_stream *s)
{
	if (s->areas)
		vv_process_areas_close(s->areas);
	vv_mem_free(s->areas);
	vv_precopied_file_fini(&s->ahead);
	vv_page_buffer_file_fini(&s->pages);
	vv_buf_fini(&s->bytes);
	vv_mem_free(s);
}

void vv_image_input_close(struct vv_image_input *c)
{
	vv_image_input_finish(c, false);
	for (size_t i = 0; i < c->streams.n_streams; i++)
		free_stream(c->streams.stream[i]);
	vv_precopy_close(&c->precopy);
	vv_drain_pipe_close(c->drain);
	vv_page_buffer_close(&c->room);
	vv_mem_free(c->streams.stream);
	vv_mem_free(c->streams.open);
	vv_mem_free(c->streams.poll);
	vv_mem_free(c->pids);
}
