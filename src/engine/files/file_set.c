#include "engine/files/file_set.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/log.h"
#include "base/search.h"
#include "core/format/digest.h"
#include "core/format/file_links.h"
#include "engine/files/neighbour_file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 64,            /* files whose outlines are in memory at a time */
	MAX_SPANS = 1 << 21,   /* files with more are not parsed further */
	MAX_KINDS = 1 << 16,
	SPARE_FILES = 64,      /* descriptors for other uses */
	SUM_AT_ONCE = 1 << 20,
	/* chunks of numbers are so many times larger: they change together, and finer digests cost
	 * more than they find */
	FIELD = 4,
	/* a shorter file of unknown format shares chunks with its neighbours: its own digest would
	 * cost more than its bytes */
	SMALL_FILE = 4 << 10,
	TICK_MS = 20, /* a file written so recently could change again without a new time stamp */
};

/* ---- opening --------------------------------------------------------------------------------- */

static int changed(const struct vv_file_set_file *f)
{
	return vv_err_set(VV_EBUSY, "'%s' changed while it was being packed; pack it when it is complete", f->path);
}

/* A FIFO must not block. */
static int open_path(const struct vv_file_set_file *f, int *out)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (f->nofollow ? O_NOFOLLOW : 0));

	if (fd < 0)
		return f->nofollow && errno == ELOOP ? changed(f) : vv_err_sys(errno, "cannot open '%s'", f->path);
	*out = fd;
	return 0;
}

static int look_at_path(const char *path, bool nofollow, struct stat *out)
{
	return fstatat(AT_FDCWD, path, out, nofollow ? AT_SYMLINK_NOFOLLOW : 0);
}

static int open_file(struct vv_file_set_file *f)
{
	int rc = open_path(f, &f->fd);

	if (rc)
		return rc;
	if (fstat(f->fd, &f->st) < 0)
		return vv_err_sys(errno, "cannot look at '%s'", f->path);
	if (!S_ISREG(f->st.st_mode) && f->nofollow)
		return changed(f);
	if (!S_ISREG(f->st.st_mode))
		return vv_err_set(VV_EINVAL, "'%s' is not a regular file", f->path);
	if ((uint64_t)f->st.st_size > VV_MAX_REGION_BYTES)
		return vv_err_set(VV_EINVAL, "'%s' has %jd bytes, the format's limit is 2^40", f->path, (intmax_t)f->st.st_size);
	return 0;
}

/* How many of n files can stay open until the epoch is committed; the others are opened for each
 * read. */
static size_t make_room(size_t n)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return 0;
	if (lim.rlim_cur != RLIM_INFINITY && lim.rlim_cur < n + SPARE_FILES && lim.rlim_cur < lim.rlim_max) {
		rlim_t was = lim.rlim_cur;

		lim.rlim_cur = lim.rlim_max == RLIM_INFINITY || n + SPARE_FILES < lim.rlim_max ? n + SPARE_FILES : lim.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
			lim.rlim_cur = was;
	}
	if (lim.rlim_cur == RLIM_INFINITY || lim.rlim_cur >= n + SPARE_FILES)
		return n;
	return lim.rlim_cur > 2 * SPARE_FILES ? (size_t)lim.rlim_cur - SPARE_FILES : 0;
}

static void close_file(struct vv_file_set_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static int read_from(const struct vv_file_set_file *f, int fd, uint64_t at, uint8_t *p, size_t n);

/* A check value of the whole file. */
static int sum_up(const struct vv_file_set_file *f, int fd, uint64_t *out)
{
	uint8_t *bytes = vv_mem_map(SUM_AT_ONCE);
	uint64_t len = (uint64_t)f->st.st_size;
	struct vv_digest_stream s;
	int rc = bytes ? 0 : VV_ENOMEM;

	vv_digest_stream_init(&s);
	for (uint64_t at = 0, n; rc == 0 && at < len; at += n) {
		n = len - at < SUM_AT_ONCE ? len - at : SUM_AT_ONCE;
		rc = read_from(f, fd, at, bytes, (size_t)n);
		if (rc == 0)
			vv_digest_stream_add(&s, bytes, (size_t)n);
	}
	*out = vv_digest_stream_check(&s);
	vv_mem_unmap(bytes, SUM_AT_ONCE);
	return rc;
}

/* A process that writes through a mapping changes a file without a new time stamp. It has the file
 * open for writing, so such files are read twice. */
static int look_for_writers(struct vv_file_set_file *f)
{
	f->busy = vv_fs_is_written(f->fd);
	return f->busy ? sum_up(f, f->fd, &f->check) : 0;
}

static bool is_recent(const struct stat *st)
{
	struct timespec now;
	int64_t ms;

	clock_gettime(CLOCK_REALTIME, &now);
	ms = (int64_t)(now.tv_sec - st->st_ctim.tv_sec) * 1000 + (now.tv_nsec - st->st_ctim.tv_nsec) / 1000000;
	return ms >= 0 && ms < TICK_MS;
}

/* Finds hard links: a file of several names is read once. */
static int find_links(struct vv_file_set *c, bool shared)
{
	struct vv_link *link = NULL;
	size_t n = 0, cap = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_files; i++) {
		const struct stat *st = &c->file[i].st;

		if (st->st_nlink < 2)
			continue;
		rc = vv_mem_room(&link, n, &cap, sizeof(*link));
		if (rc == 0)
			link[n++] = (struct vv_link){ .dev = (uint64_t)st->st_dev, .ino = (uint64_t)st->st_ino, .file = i };
	}
	vv_file_links_group(link, n);
	for (size_t i = 0; i < n; i++) {
		struct vv_file_set_file *f = &c->file[link[i].file], *first = &c->file[link[i].first];

		f->linked |= shared || f != first;
		first->linked |= f != first;
		f->repeats = f != first ? (uint32_t)link[i].first + 1 : 0;
	}
	vv_mem_free(link);
	return rc;
}

static int open_all(const struct vv_pack_file *file, size_t n, bool shared, struct vv_file_set *c)
{
	size_t room = make_room(n);
	bool recent = false;
	int rc = 0;

	c->file = vv_mem_new(n, sizeof(*c->file));
	if (!c->file)
		return VV_ENOMEM;
	for (; rc == 0 && c->n_files < n; c->n_files++) {
		struct vv_file_set_file *f = &c->file[c->n_files];

		*f = (struct vv_file_set_file){ .path = file[c->n_files].path, .name = file[c->n_files].name, .nofollow = file[c->n_files].nofollow,
						.fd = -1, .format = "opaque" };
		rc = open_file(f);
		if (rc == 0)
			rc = vv_xattr_read(f->fd, f->name, &f->attrs, &c->left);
		if (rc == 0)
			rc = look_for_writers(f);
		c->bytes += rc ? 0 : (uint64_t)f->st.st_size;
		recent |= rc == 0 && is_recent(&f->st);
		if (rc == 0 && c->n_files >= room)
			close_file(f);
	}
	if (rc == 0 && recent)
		nanosleep(&(struct timespec){ .tv_nsec = TICK_MS * 1000000 }, NULL);
	return rc ? rc : find_links(c, shared);
}

/* Opens the same file again. */
static int reopen(const struct vv_file_set_file *f, int *out)
{
	struct stat st;
	int fd = -1, rc = open_path(f, &fd);

	if (rc)
		return rc;
	if (fstat(fd, &st) < 0 || st.st_dev != f->st.st_dev || st.st_ino != f->st.st_ino) {
		close(fd);
		return changed(f);
	}
	*out = fd;
	return 0;
}

static int read_from(const struct vv_file_set_file *f, int fd, uint64_t at, uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t got = pread(fd, p, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return vv_err_sys(errno, "cannot read '%s' at %" PRIu64, f->path, at);
		if (got == 0)
			return vv_err_set(VV_EBUSY, "'%s' became shorter while it was being packed; pack it when it is complete", f->path);
		p += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* ---- reading; streamed files are held in memory ---------------------------------------------- */

/* The first stretch that ends behind `at`; n_held: none. */
static size_t find_held(const struct vv_file_set *c, uint32_t file, uint64_t at)
{
	const struct vv_file_set_held *h = c->held;
	size_t i;

	VV_SEARCH(i, 0, c->n_held, h[i].file < file || (h[i].file == file && h[i].at + h[i].n <= at));
	return i;
}

static int read_held(const struct vv_file_set *c, uint32_t file, uint64_t at, void *to, size_t n)
{
	uint8_t *p = to;

	for (size_t i = find_held(c, file, at), take; n; i++, at += take, p += take, n -= take) {
		const struct vv_file_set_held *h = &c->held[i];

		if (i == c->n_held || h->file != file || h->at > at)
			return vv_err_set(VV_EINVAL, "'%s': what is at %" PRIu64 " is not in memory any more", c->file[file].name, at);
		take = h->n - (size_t)(at - h->at) < n ? h->n - (size_t)(at - h->at) : n;
		memcpy(p, h->bytes + (at - h->at), take);
	}
	return 0;
}

int vv_file_set_check_stop(const struct vv_file_set *c)
{
	return c->stop && atomic_load(c->stop) ? vv_err_set(VV_EIO, "interrupted: nothing was packed") : 0;
}

int vv_file_set_read(const struct vv_file_set *c, uint32_t file, uint64_t at, void *to, size_t n)
{
	const struct vv_file_set_file *f = &c->file[file];
	int fd = f->fd, rc;

	if (c->is_streamed)
		return read_held(c, file, at, to, n);
	rc = vv_file_set_check_stop(c);
	if (rc == 0 && fd < 0)
		rc = reopen(f, &fd);
	if (rc == 0)
		rc = read_from(f, fd, at, to, n);
	if (fd >= 0 && fd != f->fd)
		close(fd);
	return rc;
}

static bool is_sparse(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
}

/* If the file system does not report holes, all bytes are data. vv_file_set_check later detects
 * changes of the file. */
void vv_file_set_find_hole(const struct vv_file_set *c, uint32_t file, uint64_t at, uint64_t len, uint64_t *hole, uint64_t *data)
{
	const struct vv_file_set_file *f = &c->file[file];
	int fd = f->fd;
	off_t from, to;

	*hole = 0;
	*data = len;
	if (c->is_streamed || !is_sparse(&f->st))
		return;
	if (fd < 0 && reopen(f, &fd) < 0) {
		vv_err_clear(); /* the next read reports the error */
		return;
	}
	from = lseek(fd, (off_t)at, SEEK_DATA);
	if (from < 0 && errno == ENXIO)
		from = (off_t)(at + len);
	if (from >= 0) {
		*hole = (uint64_t)from - at < len ? (uint64_t)from - at : len;
		to = lseek(fd, from, SEEK_HOLE);
		*data = to >= from && (uint64_t)(to - from) < len - *hole ? (uint64_t)(to - from) : len - *hole;
	}
	if (fd != f->fd)
		close(fd);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int sum_again(const struct vv_file_set_file *f, uint64_t *out)
{
	int fd = f->fd, rc = fd >= 0 ? 0 : reopen(f, &fd);

	if (rc == 0)
		rc = sum_up(f, fd, out);
	if (fd >= 0 && fd != f->fd)
		close(fd);
	return rc;
}

int vv_file_set_check(const struct vv_file_set *c)
{
	for (size_t i = 0; !c->is_streamed && i < c->n_files; i++) {
		uint64_t check = 0;
		struct stat now;
		int rc;

		if ((c->file[i].fd >= 0 ? fstat(c->file[i].fd, &now) : look_at_path(c->file[i].path, c->file[i].nofollow, &now)) < 0)
			return vv_err_sys(errno, "cannot look at '%s'", c->file[i].path);
		if (!is_same(&now, &c->file[i].st))
			return changed(&c->file[i]);
		if (c->file[i].busy) {
			rc = sum_again(&c->file[i], &check);
			if (rc || check != c->file[i].check)
				return rc ? rc : changed(&c->file[i]);
		}
	}
	return 0;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static struct vv_file_set_kind *add_kind(struct vv_file_set *c, const char *key, const char *tag)
{
	struct vv_file_set_kind *k;

	if (vv_mem_room(&c->kind, c->n_kinds, &c->kinds_cap, sizeof(*c->kind)) < 0)
		return NULL;
	k = &c->kind[c->n_kinds];
	*k = (struct vv_file_set_kind){ .key = vv_mem_strdup(key), .tag = vv_mem_strdup(tag) };
	if (!k->key || !k->tag || vv_map_put(&c->by_tag, k->tag, c->n_kinds) < 0) {
		vv_mem_free(k->key);
		vv_mem_free(k->tag);
		return NULL;
	}
	c->n_kinds++;
	return k;
}

/* The number of the kind, added if it is new; VV_FILE_SET_SKELETON if there are too many. */
static int find_kind(struct vv_file_set *c, const char *key, const struct vv_form *form, bool by_shape, uint32_t *out)
{
	char tag[VV_SIMILARITY_KEY_MAX + 96];
	size_t at;

	snprintf(tag, sizeof(tag), "%s|%u %u|%" PRIu64 " %" PRIu64, key, form->type, form->record, by_shape ? form->row : 0,
		 by_shape ? form->plane : 0);
	at = vv_map_get(&c->by_tag, tag);
	*out = VV_FILE_SET_SKELETON;
	if (at == VV_MAP_NONE && c->n_kinds >= MAX_KINDS)
		return 0;
	if (at == VV_MAP_NONE) {
		struct vv_file_set_kind *k = add_kind(c, key, tag);

		if (!k)
			return VV_ENOMEM;
		k->form = *form;
		at = c->n_kinds - 1;
	}
	*out = (uint32_t)at;
	return 0;
}

/* Untyped files are of one kind if their names differ only in numbers. */
static void opaque_key(const char *name, char key[VV_SIMILARITY_KEY_MAX])
{
	const char *base = strrchr(name, '/');
	size_t n = (size_t)snprintf(key, VV_SIMILARITY_KEY_MAX, "(opaque) ");

	for (const char *s = base ? base + 1 : name; *s && n + 2 < VV_SIMILARITY_KEY_MAX; s++) {
		if (*s < '0' || *s > '9')
			key[n++] = (unsigned char)*s < ' ' || (unsigned char)*s > '~' ? '?' : *s;
		else if (key[n - 1] != '#')
			key[n++] = '#';
	}
	key[n] = '\0';
}

/* ---- spans ----------------------------------------------------------------------------------- */

static int add_span(struct vv_file_set *c, uint32_t file, uint32_t kind, uint64_t at, uint64_t len)
{
	struct vv_file_span *last = c->n_spans ? &c->span[c->n_spans - 1] : NULL;
	int rc;

	if (len == 0)
		return 0;
	c->kind[kind].raw += len;
	if (kind == VV_FILE_SET_SKELETON && last && last->file == file && last->kind_id == kind && last->at + last->len == at) {
		last->len += len;
		return 0;
	}
	rc = vv_mem_room(&c->span, c->n_spans, &c->spans_cap, sizeof(*c->span));
	if (rc == 0)
		c->span[c->n_spans++] = (struct vv_file_span){ .file = file, .kind_id = kind, .at = at, .len = len };
	return rc;
}

/* opt: NULL if files are not divided into kinds. */
static int add_opaque(struct vv_file_set *c, uint32_t file, const struct vv_file_set_options *opt)
{
	static const struct vv_form none = { 0 };
	char key[VV_SIMILARITY_KEY_MAX] = "(small files)";
	uint64_t len = (uint64_t)c->file[file].st.st_size;
	bool small = opt && opt->by_shape && len < SMALL_FILE;
	uint32_t kind = VV_FILE_SET_SKELETON;
	int rc = 0;

	if (opt && len) {
		if (!small)
			opaque_key(c->file[file].name, key);
		rc = find_kind(c, key, &none, false, &kind);
	}
	if (rc == 0 && kind != VV_FILE_SET_SKELETON) {
		c->kind[kind].opaque = true;
		c->kind[kind].small = small;
		c->kind[kind].instances++;
	}
	return rc ? rc : add_span(c, file, kind, 0, len);
}

static void note_instance(struct vv_file_set_kind *k, const struct vv_variable *v, uint32_t file, uint32_t variable)
{
	if (k->instances == 0) {
		k->first = *v;
		k->first.name = NULL;
	}
	if (k->last != file + 1 || k->last_dataset != variable)
		k->instances++;
	k->last = file + 1;
	k->last_dataset = variable;
}

static int piece_kind(struct vv_file_set *c, const struct vv_outline *o, const struct vv_outline_piece *p, const struct vv_file_set_options *opt,
		      uint32_t *out)
{
	const struct vv_variable *v = &o->variable[p->variable];
	struct vv_form form = vv_reader_form(v, p);
	char key[VV_SIMILARITY_KEY_MAX];

	int rc;

	if (v->segment) /* has no type */
		snprintf(key, sizeof(key), "%s", v->name + 1);
	else
		vv_similarity_key_key(opt->similarity_key, v->name, v->type, v->width, v->swapped, v->ndim, key);
	/* a guessed row differs between files */
	rc = find_kind(c, key, &form, opt->by_shape && !v->row && !v->partial, out);
	if (rc == 0 && *out != VV_FILE_SET_SKELETON)
		c->kind[*out].segment = v->segment;
	return rc;
}

static int add_pieces(struct vv_file_set *c, uint32_t file, const struct vv_outline *o, const struct vv_file_set_options *opt)
{
	uint64_t at = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o->n_pieces; i++) {
		const struct vv_outline_piece *p = &o->piece[i];
		uint32_t kind = VV_FILE_SET_SKELETON;

		if (p->len < opt->small)
			continue;
		rc = piece_kind(c, o, p, opt, &kind);
		if (rc == 0)
			rc = add_span(c, file, VV_FILE_SET_SKELETON, at, p->at - at);
		if (rc == 0)
			rc = add_span(c, file, kind, p->at, p->len);
		if (rc == 0 && kind != VV_FILE_SET_SKELETON)
			note_instance(&c->kind[kind], &o->variable[p->variable], file, p->variable);
		at = p->at + p->len;
	}
	return rc ? rc : add_span(c, file, VV_FILE_SET_SKELETON, at, (uint64_t)c->file[file].st.st_size - at);
}

/* ---- outlines -------------------------------------------------------------------------------- */

struct file_set_look {
	struct vv_file_set *file_set;
	uint32_t file;
	struct vv_outline outline;
	int rc;
	struct vv_err_state error;
};

static int read_for_reader(void *arg, uint64_t at, void *to, size_t n)
{
	struct file_set_look *l = arg;

	return vv_file_set_read(l->file_set, l->file, at, to, n);
}

/* Another rank may pack the file, so it is read from the file system. */
static int read_sibling(void *arg, const char *name, size_t most, uint8_t **out, size_t *n)
{
	const struct file_set_look *l = arg;

	return vv_neighbour_file_read(l->file_set->file[l->file].path, name, most, out, n);
}

static void look_inside(void *arg, size_t i)
{
	struct file_set_look *l = (struct file_set_look *)arg + i;
	struct vv_file_set_file *f = &l->file_set->file[l->file];
	struct vv_reader_file in = { .name = f->name, .len = (uint64_t)f->st.st_size, .read = read_for_reader, .arg = l,
				     .sibling = read_sibling };

	if (f->repeats)
		return;
	l->rc = vv_reader_outline(&in, &l->outline);
	if (l->rc)
		vv_err_save(l->rc, &l->error);
}

static int add_file(struct vv_file_set *c, struct file_set_look *l, const struct vv_file_set_options *opt)
{
	if (l->rc)
		return vv_err_restore(&l->error);
	if (c->file[l->file].repeats) {
		c->file[l->file].format = c->file[c->file[l->file].repeats - 1].format;
		return 0;
	}
	if (l->outline.n_pieces == 0 || c->n_spans + 2 * l->outline.n_pieces > MAX_SPANS) {
		if (l->outline.n_pieces)
			vv_log_info("'%s' has %zu pieces, too many to be told apart", c->file[l->file].path, l->outline.n_pieces);
		return add_opaque(c, l->file, opt);
	}
	c->file[l->file].format = l->outline.format;
	return add_pieces(c, l->file, &l->outline, opt);
}

static int look_at_all(struct vv_file_set *c, const struct vv_file_set_options *opt, struct vv_pool *pool)
{
	struct file_set_look *look = vv_mem_new(BATCH, sizeof(*look));
	int rc = look ? 0 : VV_ENOMEM;

	for (size_t first = 0; rc == 0 && first < c->n_files; first += BATCH) {
		size_t n = c->n_files - first < BATCH ? c->n_files - first : BATCH;

		for (size_t i = 0; i < n; i++)
			look[i] = (struct file_set_look){ .file_set = c, .file = (uint32_t)(first + i) };
		vv_pool_each(pool, n, look_inside, look);
		for (size_t i = 0; i < n; i++) {
			if (rc == 0)
				rc = add_file(c, &look[i], opt);
			vv_reader_outline_fini(&look[i].outline);
		}
	}
	vv_mem_free(look);
	return rc;
}

int vv_file_set_await(const char *segments, struct vv_file_set *out)
{
	struct vv_file_set c = { .is_streamed = true };
	int rc = vv_segment_policy_init(&c.policy, segments);

	vv_map_init(&c.by_tag);
	if (rc == 0)
		rc = add_kind(&c, "(skeleton)", "") ? 0 : VV_ENOMEM;
	*out = c;
	return rc;
}

int vv_file_set_segment(struct vv_file_set *c, const char *name, uint8_t segment, uint32_t *kind)
{
	static const struct vv_form bytes = { .type = VV_TYPE_BYTES };
	char key[VV_SIMILARITY_KEY_MAX];
	size_t before = c->n_kinds;
	int rc;

	snprintf(key, sizeof(key), "%s", name);
	rc = find_kind(c, key, &bytes, true, kind);
	if (rc == 0 && *kind >= before) {
		c->kind[*kind].segment = segment;
		c->kind[*kind].first.segment = segment;
		c->kind[*kind].first.ndim = 1;
	}
	return rc;
}

int vv_file_set_open(const struct vv_pack_file *file, size_t n, const struct vv_file_set_options *opt, struct vv_pool *pool,
		  struct vv_file_set *out)
{
	struct vv_file_set c = { .stop = opt->stop };
	int rc = vv_segment_policy_init(&c.policy, opt->segments);

	vv_map_init(&c.by_tag);
	if (rc == 0)
		rc = open_all(file, n, opt->shared, &c);
	if (rc == 0)
		rc = add_kind(&c, opt->similarity_key ? "(skeleton)" : "(files)", "") ? 0 : VV_ENOMEM;
	if (rc == 0 && opt->similarity_key)
		rc = look_at_all(&c, opt, pool);
	for (uint32_t i = 0; rc == 0 && !opt->similarity_key && i < c.n_files; i++)
		rc = c.file[i].repeats ? 0 : add_opaque(&c, i, NULL);
	if (rc == 0)
		c.kind[VV_FILE_SET_SKELETON].instances = c.n_files;
	*out = c;
	if (rc)
		vv_file_set_close(out);
	return rc;
}

void vv_file_set_close(struct vv_file_set *c)
{
	for (size_t i = 0; i < c->n_files; i++) {
		close_file(&c->file[i]);
		vv_run_fini(&c->file[i].runs);
		vv_buf_fini(&c->file[i].skeleton);
		vv_file_attributes_fini(&c->file[i].attrs);
	}
	for (size_t i = 0; i < c->n_kinds; i++) {
		vv_mem_free(c->kind[i].key);
		vv_mem_free(c->kind[i].tag);
		vv_mem_free(c->kind[i].placed.range);
	}
	vv_mem_free(c->held);
	vv_map_fini(&c->by_tag);
	vv_mem_free(c->file);
	vv_mem_free(c->kind);
	vv_mem_free(c->span);
	*c = (struct vv_file_set){ 0 };
}

int vv_file_set_by_kind(const struct vv_file_set *c, uint32_t **out)
{
	size_t *next = vv_mem_new(c->n_kinds, sizeof(*next));
	uint32_t *order = vv_mem_new(c->n_spans, sizeof(*order));

	if (!next || !order) {
		vv_mem_free(next);
		vv_mem_free(order);
		return VV_ENOMEM;
	}
	for (size_t i = 0; i < c->n_spans; i++)
		next[c->span[i].kind_id]++;
	for (size_t k = 0, at = 0; k < 2 * c->n_kinds; k++) {
		size_t i = k % c->n_kinds, n = next[i];

		if (c->kind[i].joint == (k >= c->n_kinds)) {
			next[i] = at;
			at += n;
		}
	}
	for (size_t i = 0; i < c->n_spans; i++)
		order[next[c->span[i].kind_id]++] = (uint32_t)i;
	vv_mem_free(next);
	*out = order;
	return 0;
}

bool vv_file_set_cuts_by_content(const struct vv_file_set *c, const struct vv_file_set_kind *k)
{
	return k->opaque || (k->segment && c->policy.rule[k->segment].cut != VV_SEGMENT_POLICY_PAGES);
}

size_t vv_file_set_cut(const struct vv_file_set *c, const struct vv_file_set_kind *k, size_t chunk, const uint8_t *p, size_t n)
{
	if (k->opaque || k->segment)
		return vv_segment_policy_next(&c->policy.rule[k->segment], chunk, p, n);
	chunk = chunk < VV_MAX_CHUNK / FIELD ? chunk * FIELD : VV_MAX_CHUNK;
	return chunk < n ? chunk : n;
}

/* A file belongs to the share in which its middle lies. */
int vv_file_set_shares(const struct vv_pack_file *file, size_t n, uint32_t shares, uint64_t *first)
{
	uint64_t *size = vv_mem_new(n, sizeof(*size)), total = 0, before = 0;
	uint32_t at = 0;
	struct stat st;

	if (!size)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (look_at_path(file[i].path, file[i].nofollow, &st) < 0) {
			vv_mem_free(size);
			return vv_err_sys(errno, "cannot look at '%s'", file[i].path);
		}
		size[i] = (uint64_t)st.st_size + 1; /* empty files are shared out too */
		total += size[i];
	}
	first[0] = 0;
	for (size_t i = 0; i < n; before += size[i++])
		for (double middle = (double)before + (double)size[i] / 2; at + 1 < shares && middle * shares >= (double)total * (at + 1);)
			first[++at] = i;
	while (at < shares)
		first[++at] = n;
	vv_mem_free(size);
	return 0;
}
