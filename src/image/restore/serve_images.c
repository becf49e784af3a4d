#include "image/restore/serve_images.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/criu/pstree_image.h"
#include "image/criu/stream_protocol.h"
#include "reader/reader.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- damage: the memory area at an offset of an image of pages ------------------------------- */

enum { AREA_WORDS = 160 };

struct serve_images_place {
	struct vv_serve_images *serve;
	const char *name; /* of the image of pages */
	size_t folder;    /* length of the folder in the name */
};

/* Returns zeros: the outline does not depend on the contents of the pages, and these may be
 * damaged. */
static int read_none(void *arg, uint64_t at, void *to, size_t n)
{
	(void)arg, (void)at;
	memset(to, 0, n);
	return 0;
}

static int read_sibling(void *arg, const char *name, size_t most, uint8_t **out, size_t *n)
{
	const struct serve_images_place *p = arg;
	char *whole = vv_mem_printf("%.*s%s", (int)p->folder, p->name, name);
	size_t i = 0;
	int rc = 0;

	if (!whole)
		return VV_ENOMEM;
	while (i < p->serve->files.n_files && strcmp(vv_unpack_at(&p->serve->files, i).file->name, whole) != 0)
		i++;
	vv_mem_free(whole);
	if (i < p->serve->files.n_files)
		rc = vv_serve_images_read(p->serve, i, out, n);
	*n = *n < most ? *n : most;
	return rc;
}

static const struct vv_variable *area_at(const struct vv_outline *o, uint64_t at)
{
	for (size_t i = 0; i < o->n_pieces; i++)
		if (o->piece[i].at <= at && at - o->piece[i].at < o->piece[i].len)
			return &o->variable[o->piece[i].variable];
	return NULL;
}

/* Writes " (heap)", " (library, libc.so.6/data)", or "" if the other images do not give the area.
 * Keeps the caller's VV_EDAMAGED error. */
static void name_area(struct vv_serve_images *s, size_t file, uint64_t at, char words[AREA_WORDS])
{
	struct vv_unpack_file image = vv_unpack_at(&s->files, file);
	const char *slash = strrchr(image.file->name, '/');
	struct serve_images_place p = { s, image.file->name, slash ? (size_t)(slash + 1 - image.file->name) : 0 };
	struct vv_reader_file f = { image.file->name, image.region->shape.len, read_none, &p, read_sibling };
	struct vv_outline o = { 0 };
	const struct vv_variable *v;
	struct vv_err_state error;

	vv_err_save(VV_EDAMAGED, &error);
	v = vv_reader_outline(&f, &o) == 0 ? area_at(&o, at) : NULL;
	words[0] = '\0';
	if (v && v->segment != VV_SEGMENT_NONE) {
		const char *segment = vv_segment_name(v->segment), *part = v->name + (v->name[0] == '/');

		snprintf(words, AREA_WORDS, strcmp(part, segment) == 0 ? " (%s)" : " (%s, %.100s)", segment, part);
	}
	vv_reader_outline_fini(&o);
	vv_err_restore(&error);
}

/* ---- pipes ----------------------------------------------------------------------------------- */

enum {
	SMALL = 64 << 10,  /* a smaller image is copied: it fits into the pipe */
	WHOLE = 64 << 20,  /* limit of an image that we read ourselves */
	PIPE = 4 << 20,    /* for larger images; without the permission the default size works */
	TURN = 8 << 20,    /* bytes for one pipe before the others are polled */
};

struct pin { /* a piece that may still be in the pipe */
	struct vv_block_cache_piece piece;
	size_t len;
	uint64_t end; /* total of sent bytes, including this piece */
};

struct vv_serve_images_pipe {
	int fd;
	size_t file, part;
	uint64_t at;   /* written bytes of the part */
	uint64_t sent; /* total of written bytes */
	uint64_t read_ahead_end;
	struct pin *pin;
	size_t first, n, cap;
};

/* ---- reading --------------------------------------------------------------------------------- */

uint64_t vv_serve_images_memory(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && !kib && fgets(line, sizeof(line), f))
		(void)!sscanf(line, "MemAvailable: %llu", &kib);
	if (f)
		fclose(f);
	return (uint64_t)kib << 9;
}

static uint64_t length_of(const struct vv_serve_images *s, size_t file)
{
	return vv_unpack_at(&s->files, file).region->shape.len;
}

static const char *name_of(const struct vv_serve_images *s, size_t file)
{
	return vv_unpack_at(&s->files, file).file->name;
}

int vv_serve_images_refuse(const struct vv_serve_images *s, int rc)
{
	return rc == VV_EDAMAGED ? vv_err_context(rc, "nothing was restored, because epoch %" PRIu64 " is damaged", s->files.epoch) : rc;
}

/* At first criu gets every image completely. */
static int make_parts(struct vv_serve_images *s)
{
	int rc = 0;

	s->parts = vv_mem_new(s->files.n_files, sizeof(*s->parts));
	if (!s->parts)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < s->files.n_files; i++) {
		rc = vv_mem_room(&s->parts[i].v, 0, &s->parts[i].cap, sizeof(*s->parts[i].v));
		if (rc == 0 && length_of(s, i))
			s->parts[i].v[s->parts[i].n++] = (struct vv_serve_images_part){ 0, length_of(s, i) };
	}
	return rc;
}

static int open_cache(struct vv_serve_images *s, struct vv_pool *pool, uint64_t memory)
{
	size_t n = s->files.n_files;
	const struct vv_runs **runs = vv_mem_new(n, sizeof(*runs));
	int rc = runs ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		runs[i] = &vv_unpack_at(&s->files, i).region->runs;
	if (rc == 0)
		rc = vv_block_cache_open(s->files.lineage, pool, runs, n, memory, &s->cache);
	vv_mem_free(runs);
	return rc;
}

static bool is_image(const struct vv_unpack *u)
{
	return u->n_files && strcmp(vv_unpack_at(u, 0).file->format, "criu") == 0;
}

int vv_serve_images_open_files(struct vv_serve_images *s, int rc, struct vv_unpack *files, struct vv_pool *pool, uint64_t memory, const struct vv_unpack_reader *from,
			bool late)
{
	*s = (struct vv_serve_images){ .files = *files, .folder = "", .listening = -1, .connection = -1 };
	*files = (struct vv_unpack){ 0 };
	memory = memory ? memory : vv_serve_images_memory();
	if (rc == 0 && !is_image(&s->files))
		rc = vv_err_set(VV_EINVAL, "epoch %" PRIu64 " of lineage '%s' is not the image of a process ('varve unpack' gives its files back)", s->files.epoch,
				s->files.lineage->name);
	if (rc == 0)
		rc = make_parts(s);
	if (from)
		rc = vv_remote_images_open(&s->remote_images, rc, &s->files, memory, from, late);
	else if (rc == 0)
		rc = open_cache(s, pool, memory);
	return vv_serve_images_refuse(s, rc);
}

int vv_serve_images_open(struct vv_serve_images *s, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, uint64_t memory)
{
	struct vv_unpack files = { 0 };
	int rc = vv_unpack_open(lin, epoch, pool, &files);

	if (rc == 0 && is_image(&files) && strchr(vv_unpack_at(&files, 0).file->name, '/'))
		rc = vv_err_set(VV_EINVAL, "epoch %" PRIu64 " of lineage '%s' holds a group of processes: 'varve image restore' brings all of them back", epoch,
				lin->name);
	return vv_serve_images_open_files(s, rc, &files, pool, memory, NULL, false);
}

int vv_serve_images_read_parts(struct vv_serve_images *s, int rc)
{
	for (size_t i = 0; rc == 0 && i < s->files.n_files; i++)
		for (size_t k = 0; k < s->parts[i].n; k++)
			vv_remote_buffer_request(&s->remote_images.image[i], s->parts[i].v[k].at, s->parts[i].v[k].len);
	return vv_serve_images_refuse(s, vv_remote_images_read(&s->remote_images, rc, 0));
}

int vv_serve_images_check(struct vv_serve_images *s, bool all, const struct vv_progress *progress)
{
	size_t file = s->files.n_files;
	char segment[AREA_WORDS];
	uint64_t at = 0;
	int rc;

	if (!s->cache) /* it was checked when it was read */
		return 0;
	for (size_t i = 0; all && i < s->files.n_files; i++)
		vv_block_cache_want(s->cache, i, 0, length_of(s, i));
	for (size_t i = 0; i < s->files.n_files; i++)
		for (size_t k = 0; k < s->parts[i].n; k++)
			vv_block_cache_want(s->cache, i, s->parts[i].v[k].at, s->parts[i].v[k].len);
	rc = vv_block_cache_check(s->cache, progress, &file, &at);
	if (rc == VV_EDAMAGED && file < s->files.n_files) {
		name_area(s, file, at, segment);
		vv_err_context(rc, "'%s'%s", name_of(s, file), segment);
	}
	return vv_serve_images_refuse(s, rc);
}

/* criu's names have no folder. */
size_t vv_serve_images_find(const struct vv_serve_images *s, const char *name)
{
	size_t i = 0, skip = strlen(s->folder);

	while (i < s->files.n_files && (strncmp(name_of(s, i), s->folder, skip) != 0 || strcmp(name_of(s, i) + skip, name) != 0))
		i++;
	return i;
}

static int take(struct vv_serve_images *s, size_t file, uint64_t at, struct vv_block_cache_piece *out)
{
	if (s->cache)
		return vv_block_cache_get(s->cache, file, at, true, out);
	*out = (struct vv_block_cache_piece){ .bytes = s->remote_images.image[file].bytes + at, .len = (size_t)(length_of(s, file) - at) };
	return 0;
}

static void give(struct vv_serve_images *s, const struct vv_block_cache_piece *piece, size_t read, bool borrowed)
{
	if (s->cache)
		vv_block_cache_release(s->cache, piece, read, borrowed);
}

int vv_serve_images_read(struct vv_serve_images *s, size_t file, uint8_t **out, size_t *n)
{
	uint64_t len = length_of(s, file);
	uint8_t *bytes;
	int rc = 0;

	if (len > WHOLE)
		return vv_err_set(VV_EDAMAGED, "'%s' is larger than such an image can be", name_of(s, file));
	bytes = vv_mem_new((size_t)len, 1);
	if (!bytes)
		return VV_ENOMEM;
	for (uint64_t at = 0; rc == 0 && at < len;) {
		struct vv_block_cache_piece p;

		rc = take(s, file, at, &p);
		if (rc)
			break;
		memcpy(bytes + at, p.bytes, p.len);
		at += p.len;
		give(s, &p, 0, false);
	}
	if (rc) {
		vv_mem_free(bytes);
		return rc;
	}
	*out = bytes;
	*n = (size_t)len;
	return 0;
}

int vv_serve_images_await_numbers(struct vv_serve_images *s)
{
	size_t file = vv_serve_images_find(s, "pstree.img"), n = 0;
	struct vv_process_tree t = { 0 };
	uint8_t *image = NULL;
	int rc = file < s->files.n_files ? vv_serve_images_read(s, file, &image, &n) : 0;

	if (rc == 0 && image)
		rc = vv_pstree_image_read(image, n, &t);
	vv_pstree_image_wait(&t);
	vv_process_tree_fini(&t);
	vv_mem_free(image);
	return rc;
}

int vv_serve_images_listen(struct vv_serve_images *s, const char *folder)
{
	return vv_stream_protocol_listen(folder, true, &s->listening);
}

/* ---- serving --------------------------------------------------------------------------------- */

static int answer(struct vv_serve_images *s)
{
	char name[VV_STREAM_PROTOCOL_NAME];
	int fd = -1, rc = vv_stream_protocol_request(s->connection, name);
	size_t file;

	if (rc == 0) {
		close(s->connection);
		s->connection = -1;
	}
	if (rc <= 0)
		return rc;
	file = vv_serve_images_find(s, name);
	rc = vv_stream_protocol_reply(s->connection, file < s->files.n_files);
	if (rc || file == s->files.n_files)
		return rc;
	rc = vv_mem_room(&s->pipe, s->n_pipes, &s->pipes_cap, sizeof(*s->pipe));
	if (rc == 0)
		rc = vv_stream_protocol_pipe(s->connection, &fd);
	if (rc == 0)
		s->pipe[s->n_pipes++] = (struct vv_serve_images_pipe){ .fd = fd, .file = file };
	if (rc == 0 && length_of(s, file) > SMALL)
		(void)!fcntl(fd, F_SETPIPE_SZ, PIPE);
	return rc;
}

/* Releases the pieces that criu has read; with `all`, also those that are still in the pipe. */
static void unpin(struct vv_serve_images *s, struct vv_serve_images_pipe *p, bool all)
{
	int unread = 0;

	if (!all && (p->first == p->n || ioctl(p->fd, FIONREAD, &unread) < 0))
		return;
	while (p->first < p->n && (all || p->pin[p->first].end + (uint64_t)unread <= p->sent)) {
		const struct pin *x = &p->pin[p->first++];

		give(s, &x->piece, x->len, all);
	}
	if (p->first == p->n)
		p->first = p->n = 0;
}

static void end_pipe(struct vv_serve_images *s, size_t i)
{
	struct vv_serve_images_pipe *p = &s->pipe[i];

	unpin(s, p, true);
	close(p->fd);
	vv_mem_free(p->pin);
	*p = s->pipe[--s->n_pipes];
}

/* Copies small images. Of others it passes the pages themselves, which must not change until criu
 * has read them. */
static ssize_t hand_over(struct vv_serve_images *s, struct vv_serve_images_pipe *p, const struct vv_block_cache_piece *piece, size_t len)
{
	const struct iovec v = { (void *)(uintptr_t)piece->bytes, len };
	bool copied = length_of(s, p->file) <= SMALL;
	ssize_t n = -1;
	int err = ENOMEM;

	if (copied || vv_mem_room(&p->pin, p->n, &p->cap, sizeof(*p->pin)) == 0) {
		n = copied ? write(p->fd, v.iov_base, len) : vmsplice(p->fd, &v, 1, SPLICE_F_NONBLOCK);
		err = errno;
	}
	if (n > 0 && !copied)
		p->pin[p->n++] = (struct pin){ *piece, (size_t)n, p->sent + (uint64_t)n };
	else
		give(s, piece, n > 0 ? (size_t)n : 0, false);
	errno = err;
	return n;
}

/* Writes one piece. *n: bytes; 0: the pipe is full; -1: criu has closed the pipe (of some images it
 * reads only the beginning). */
static int write_piece(struct vv_serve_images *s, struct vv_serve_images_pipe *p, const struct vv_serve_images_part *part, ssize_t *n, bool *full)
{
	uint64_t at = part->at + p->at, left = part->len - p->at;
	struct vv_block_cache_piece piece;
	size_t len;
	int rc;

	if (s->cache)
		vv_block_cache_read_ahead(s->cache, p->file, at, &p->read_ahead_end);
	rc = take(s, p->file, at, &piece);
	if (rc)
		return vv_err_context(rc, "'%s'", name_of(s, p->file));
	len = piece.len < left ? piece.len : (size_t)left;
	*n = hand_over(s, p, &piece, len);
	*full = *n >= 0 && (size_t)*n < len;
	if (*n >= 0 || errno == EPIPE)
		return 0;
	*n = 0;
	return errno == EAGAIN || errno == EINTR ? 0 : vv_err_sys(errno, "cannot hand '%s' to criu", name_of(s, p->file));
}

static int write_some(struct vv_serve_images *s, size_t i)
{
	struct vv_serve_images_pipe *p = &s->pipe[i];
	const struct vv_serve_images_parts *parts = &s->parts[p->file];
	bool full = false;
	size_t turn = 0;
	ssize_t n = 1;
	int rc = 0;

	unpin(s, p, false);
	while (!full && p->part < parts->n && turn < TURN) {
		rc = write_piece(s, p, &parts->v[p->part], &n, &full);
		if (rc || n <= 0)
			break;
		p->at += (size_t)n;
		p->sent += (size_t)n;
		turn += (size_t)n;
		if (p->at == parts->v[p->part].len) {
			p->part++;
			p->at = 0;
		}
	}
	if (p->part == parts->n || n < 0)
		end_pipe(s, i);
	return rc;
}

enum { SOCKET, CRIU, HOOK, PIPES };

/* Returns 1 if criu has ended or waits at the hook. */
static int react(struct vv_serve_images *s, const struct pollfd *poll, size_t n_pipes)
{
	int rc = 0;

	/* From the end: a closed pipe is replaced by the last one. */
	for (size_t i = n_pipes; rc == 0 && i > 0; i--)
		if (poll[PIPES + i - 1].revents)
			rc = write_some(s, i - 1);
	if (rc == 0 && poll[SOCKET].revents && s->connection >= 0) {
		rc = answer(s);
	} else if (rc == 0 && poll[SOCKET].revents) {
		rc = vv_stream_protocol_accept(s->listening, &s->connection);
		close(s->listening);
		s->listening = -1;
	} else if (rc == 0 && (poll[CRIU].revents || poll[HOOK].revents)) {
		rc = 1;
	}
	return rc;
}

int vv_serve_images_run(struct vv_serve_images *s, const struct vv_criu *criu, const struct vv_action_script *hook)
{
	int rc = 0;

	while (rc == 0) {
		struct pollfd *fds = vv_mem_new(PIPES + s->n_pipes, sizeof(*fds));

		if (!fds)
			return VV_ENOMEM;
		fds[SOCKET] = (struct pollfd){ s->connection >= 0 ? s->connection : s->listening, POLLIN, 0 };
		fds[CRIU] = (struct pollfd){ criu->pidfd, POLLIN, 0 };
		fds[HOOK] = (struct pollfd){ hook ? hook->ready[0] : -1, POLLIN, 0 };
		for (size_t i = 0; i < s->n_pipes; i++)
			fds[PIPES + i] = (struct pollfd){ s->pipe[i].fd, POLLOUT, 0 };
		if (poll(fds, PIPES + s->n_pipes, -1) >= 0)
			rc = react(s, fds, s->n_pipes);
		else if (errno != EINTR)
			rc = vv_err_sys(errno, "cannot wait for criu");
		vv_mem_free(fds);
	}
	return rc < 0 ? rc : 0;
}

void vv_serve_images_disconnect(struct vv_serve_images *s)
{
	while (s->n_pipes)
		end_pipe(s, s->n_pipes - 1);
	if (s->listening >= 0)
		close(s->listening);
	if (s->connection >= 0)
		close(s->connection);
	s->listening = s->connection = -1;
}

void vv_serve_images_close(struct vv_serve_images *s)
{
	vv_serve_images_disconnect(s);
	vv_block_cache_close(s->cache);
	for (size_t i = 0; s->parts && i < s->files.n_files; i++)
		vv_mem_free(s->parts[i].v);
	vv_remote_images_close(&s->remote_images);
	vv_mem_free(s->pipe);
	vv_mem_free(s->parts);
	vv_unpack_close(&s->files);
	*s = (struct vv_serve_images){ .listening = -1, .connection = -1 };
}
