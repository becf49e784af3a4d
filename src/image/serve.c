#include "image/serve.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/restore.h"
#include "engine/verify.h"
#include "image/pstree.h"
#include "image/streamer.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	WINDOW = 32 << 20,  /* of an image that is not in memory as a whole */
	SMALL = 1 << 20,    /* what is not larger stays in memory: it may be asked for again */
	WRITE = 1 << 20,
};

struct vv_serve_pipe {
	int fd;
	size_t file;
	uint64_t at; /* what was written so far */
};

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

static uint64_t free_memory(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && !kib && fgets(line, sizeof(line), f))
		(void)!sscanf(line, "MemAvailable: %llu", &kib);
	if (f)
		fclose(f);
	return (uint64_t)kib << 10;
}

static void let_go(struct vv_serve_image *i)
{
	vv_mem_unmap(i->bytes, i->cap);
	*i = (struct vv_serve_image){ 0 };
}

static int make_room(struct vv_serve_image *i, size_t n)
{
	let_go(i);
	i->bytes = vv_mem_map_wide(n ? n : 1);
	i->cap = n ? n : 1;
	i->len = n;
	return i->bytes ? 0 : VV_ENOMEM;
}

static struct vv_want want_of(const struct vv_serve *s, size_t file)
{
	struct vv_unpack_file f = vv_unpack_at(&s->files, file);
	const struct vv_serve_image *i = &s->image[file];

	return (struct vv_want){ &f.region->runs, i->from, i->len, i->bytes, f.file->name };
}

static int read_all(struct vv_serve *s)
{
	struct vv_want *want = vv_mem_new(s->files.n_files, sizeof(*want));
	int rc = want ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < s->files.n_files; i++) {
		rc = make_room(&s->image[i], (size_t)vv_unpack_at(&s->files, i).region->shape.len);
		want[i] = want_of(s, i);
	}
	if (rc == 0)
		rc = vv_restore_read(s->files.lineage, s->pool, want, s->files.n_files);
	vv_mem_free(want);
	return rc;
}

static void keep_first(void *arg, const char *problem)
{
	char *first = arg;

	if (!first[0])
		snprintf(first, 512, "%s", problem);
}

static int verify(const struct vv_serve *s)
{
	static const struct vv_progress silent = { 0 };
	struct vv_verify_report r;
	char first[512] = "";
	int rc = vv_verify_run(s->files.lineage, s->pool, s->files.epoch, true, keep_first, first, &silent, &r);

	return rc || !r.problems ? rc : vv_err_set(VV_EDAMAGED, "%s", first);
}

/* What is at `at` of a file is in memory then. */
static int reach(struct vv_serve *s, size_t file, uint64_t at)
{
	struct vv_serve_image *i = &s->image[file];
	uint64_t len = vv_unpack_at(&s->files, file).region->shape.len;
	struct vv_want want;
	int rc;

	if (i->bytes && at >= i->from && at < i->from + i->len)
		return 0;
	rc = make_room(i, len - at < WINDOW ? (size_t)(len - at) : WINDOW);
	i->from = at;
	want = want_of(s, file);
	return rc ? rc : vv_restore_read(s->files.lineage, s->pool, &want, 1);
}

int vv_serve_open(struct vv_serve *s, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, uint64_t memory)
{
	uint64_t bytes = 0;
	int rc;

	*s = (struct vv_serve){ .pool = pool, .listening = -1, .connection = -1 };
	rc = vv_unpack_open(lin, epoch, pool, &s->files);
	if (rc)
		return rc;
	if (s->files.n_files == 0 || strcmp(vv_unpack_at(&s->files, 0).file->format, "criu") != 0)
		return vv_err_set(VV_EINVAL, "epoch %" PRIu64 " of lineage '%s' is not the image of a process ('varve unpack' gives its files back)", epoch,
				  lin->name);
	s->image = vv_mem_new(s->files.n_files, sizeof(*s->image));
	if (!s->image)
		return VV_ENOMEM;
	for (size_t i = 0; i < s->files.n_files; i++)
		bytes += vv_unpack_at(&s->files, i).region->shape.len;
	rc = bytes <= (memory ? memory : free_memory() / 2) ? read_all(s) : verify(s);
	return rc == VV_EDAMAGED ? vv_err_context(rc, "nothing was restored, because epoch %" PRIu64 " is damaged", epoch) : rc;
}

int vv_serve_listen(struct vv_serve *s, const char *folder)
{
	return vv_streamer_listen(folder, true, &s->listening);
}

/* ---- serving ----------------------------------------------------------------------------------------------------------------- */

static size_t find(const struct vv_serve *s, const char *name)
{
	size_t i = 0;

	while (i < s->files.n_files && strcmp(vv_unpack_at(&s->files, i).file->name, name) != 0)
		i++;
	return i;
}

int vv_serve_await_numbers(struct vv_serve *s)
{
	size_t file = find(s, "pstree.img");
	struct vv_tree t = { 0 };
	int rc = file < s->files.n_files && vv_unpack_at(&s->files, file).region->shape.len ? reach(s, file, 0) : 0;

	if (rc == 0 && file < s->files.n_files && s->image[file].bytes)
		rc = vv_pstree_read(s->image[file].bytes, s->image[file].len, &t);
	vv_pstree_patience(&t);
	vv_tree_fini(&t);
	return rc;
}

static int answer(struct vv_serve *s)
{
	char name[VV_STREAMER_NAME];
	int fd = -1, rc = vv_streamer_request(s->connection, name);
	size_t file;

	if (rc == 0) {
		close(s->connection);
		s->connection = -1;
	}
	if (rc <= 0)
		return rc;
	file = find(s, name);
	rc = vv_streamer_reply(s->connection, file < s->files.n_files);
	if (rc || file == s->files.n_files)
		return rc;
	rc = vv_mem_room(&s->pipe, s->n_pipes, &s->pipes_cap, sizeof(*s->pipe));
	if (rc == 0)
		rc = vv_streamer_pipe(s->connection, &fd);
	if (rc == 0)
		s->pipe[s->n_pipes++] = (struct vv_serve_pipe){ .fd = fd, .file = file };
	return rc;
}

static void end_pipe(struct vv_serve *s, size_t i)
{
	size_t file = s->pipe[i].file;

	close(s->pipe[i].fd);
	s->pipe[i] = s->pipe[--s->n_pipes];
	if (s->image[file].cap > SMALL)
		let_go(&s->image[file]);
}

/* What criu has read enough of is as good as written: it looks at the first of some images only. */
static int write_some(struct vv_serve *s, size_t i)
{
	struct vv_serve_pipe *p = &s->pipe[i];
	const struct vv_serve_image *m = &s->image[p->file];
	uint64_t len = vv_unpack_at(&s->files, p->file).region->shape.len;
	int rc = p->at < len ? reach(s, p->file, p->at) : 0;
	ssize_t n = 0;

	if (rc)
		return rc;
	if (p->at < len) {
		size_t have = (size_t)(m->from + m->len - p->at);

		n = write(p->fd, m->bytes + (p->at - m->from), have < WRITE ? have : WRITE);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno != EPIPE)
		return vv_err_sys(errno, "cannot hand '%s' to criu", vv_unpack_at(&s->files, p->file).file->name);
	p->at = n < 0 ? len : p->at + (uint64_t)n;
	if (p->at == len)
		end_pipe(s, i);
	return 0;
}

enum { SOCKET, CRIU, PIPES };

static int react(struct vv_serve *s, const struct pollfd *poll, size_t n_pipes, bool *ended)
{
	int rc = 0;

	for (size_t i = n_pipes; rc == 0 && i > 0; i--) /* from the end: one that ends is replaced by the last */
		if (poll[PIPES + i - 1].revents)
			rc = write_some(s, i - 1);
	if (rc == 0 && poll[SOCKET].revents && s->connection >= 0) {
		rc = answer(s);
	} else if (rc == 0 && poll[SOCKET].revents) {
		rc = vv_streamer_accept(s->listening, &s->connection);
		close(s->listening);
		s->listening = -1;
	} else if (poll[CRIU].revents) {
		*ended = true;
	}
	return rc;
}

int vv_serve_run(struct vv_serve *s, const struct vv_criu *criu)
{
	bool ended = false;
	int rc = 0;

	while (rc == 0 && !ended) {
		struct pollfd *fds = vv_mem_new(PIPES + s->n_pipes, sizeof(*fds));

		if (!fds)
			return VV_ENOMEM;
		fds[SOCKET] = (struct pollfd){ s->connection >= 0 ? s->connection : s->listening, POLLIN, 0 };
		fds[CRIU] = (struct pollfd){ criu->pidfd, POLLIN, 0 };
		for (size_t i = 0; i < s->n_pipes; i++)
			fds[PIPES + i] = (struct pollfd){ s->pipe[i].fd, POLLOUT, 0 };
		if (poll(fds, PIPES + s->n_pipes, -1) >= 0)
			rc = react(s, fds, s->n_pipes, &ended);
		else if (errno != EINTR)
			rc = vv_err_sys(errno, "cannot wait for criu");
		vv_mem_free(fds);
	}
	return rc;
}

void vv_serve_close(struct vv_serve *s)
{
	for (size_t i = 0; i < s->n_pipes; i++)
		close(s->pipe[i].fd);
	for (size_t i = 0; s->image && i < s->files.n_files; i++)
		let_go(&s->image[i]);
	if (s->listening >= 0)
		close(s->listening);
	if (s->connection >= 0)
		close(s->connection);
	vv_mem_free(s->pipe);
	vv_mem_free(s->image);
	vv_unpack_close(&s->files);
	*s = (struct vv_serve){ .listening = -1, .connection = -1 };
}
