/* Members of bundles as objects. A layer is searched in the bundles whose names cover its epoch and
 * rank. Folders and directories that were read are remembered as hints only. A bundle is opened and
 * its trailer compared before a member is found in it. The folder is scanned again before a member
 * is reported missing.
 *
 * A member is removed by setting its first byte, the mark, to zero: a byte cannot be torn. That is
 * made durable before the rest of it is freed. A bundle is written to, so links to bundles are not
 * followed. */
#include "store/dir/dir_member.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/format/name.h"
#include "store/dir/dir.h"
#include "store/dir/dir_priv.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS = 8, DIRECTORIES = 16 };

struct vv_dir_memory {
	pthread_mutex_t lock;
	unsigned next_folder, next_directory;
	struct {
		char *path;
		struct vv_dir_bundles seen;
	} folder[FOLDERS];
	struct {
		uint64_t size; /* of the file; with the trailer it identifies the directory */
		uint8_t trailer[VV_BUNDLE_TRAILER];
		struct vv_bundle b;
	} directory[DIRECTORIES];
};

int vv_dir_member_init(struct vv_dir *d)
{
	d->memory = vv_mem_new(1, sizeof(*d->memory));
	if (!d->memory)
		return VV_ENOMEM;
	pthread_mutex_init(&d->memory->lock, NULL);
	return 0;
}

void vv_dir_member_fini(struct vv_dir *d)
{
	struct vv_dir_memory *m = d->memory;

	if (!m)
		return;
	for (int i = 0; i < FOLDERS; i++) {
		vv_mem_free(m->folder[i].path);
		vv_mem_free(m->folder[i].seen.v);
	}
	for (int i = 0; i < DIRECTORIES; i++)
		vv_bundle_fini(&m->directory[i].b);
	pthread_mutex_destroy(&m->lock);
	vv_mem_free(m);
}

static bool same_name(const struct vv_bundle *a, const struct vv_bundle *b)
{
	return a->epoch == b->epoch && a->first == b->first && a->last == b->last;
}

static bool covers(const struct vv_bundle *b, uint64_t epoch, uint32_t rank)
{
	return b->epoch == epoch && b->first <= rank && rank <= b->last;
}

/* ---- bundles of a folder --------------------------------------------------------------------- */

static int push(struct vv_dir_bundles *v, const struct vv_bundle *b)
{
	if (vv_mem_room(&v->v, v->n, &v->cap, sizeof(*v->v)) < 0)
		return VV_ENOMEM;
	v->v[v->n++] = *b;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct vv_bundle *x = a, *y = b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->last > y->last) - (x->last < y->last);
}

static void remember(struct vv_dir_memory *m, const char *folder, const struct vv_dir_bundles *v)
{
	struct vv_dir_bundles copy = { 0 };
	unsigned at = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < v->n; i++)
		rc = push(&copy, &v->v[i]);
	pthread_mutex_lock(&m->lock);
	while (at < FOLDERS && !(m->folder[at].path && strcmp(m->folder[at].path, folder) == 0))
		at++;
	if (at == FOLDERS && v->n) {
		at = m->next_folder++ % FOLDERS;
		vv_mem_free(m->folder[at].path);
		m->folder[at].path = vv_mem_strdup(folder);
	}
	if (at < FOLDERS) { /* a folder without bundles does not displace others */
		vv_mem_free(m->folder[at].seen.v);
		m->folder[at].seen = copy;
	}
	pthread_mutex_unlock(&m->lock);
}

/* The remembered bundles of a folder that may hold the layer. */
static int recall(struct vv_dir_memory *m, const char *folder, uint64_t epoch, uint32_t rank, struct vv_dir_bundles *out)
{
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	for (unsigned i = 0; i < FOLDERS; i++) {
		const struct vv_dir_bundles *seen = &m->folder[i].seen;

		if (!m->folder[i].path || strcmp(m->folder[i].path, folder) != 0)
			continue;
		for (size_t k = 0; rc == 0 && k < seen->n; k++)
			if (covers(&seen->v[k], epoch, rank))
				rc = push(out, &seen->v[k]);
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

int vv_dir_member_scan(struct vv_dir *d, const char *folder, struct vv_dir_bundles *out)
{
	struct vv_dir_bundles v = { 0 };
	DIR *h = opendir(folder);
	struct dirent *e;
	int rc = 0;

	if (!h && errno != ENOENT && errno != ENOTDIR)
		return vv_fd_identity_err(errno, "cannot list '%s'", folder);
	while (h && rc == 0 && (errno = 0, e = readdir(h))) {
		struct vv_bundle b = { 0 };

		if (vv_name_parse_bundle(e->d_name, &b.epoch, &b.first, &b.last))
			rc = push(&v, &b);
	}
	if (h && rc == 0 && errno)
		rc = vv_fd_identity_err(errno, "cannot list '%s'", folder);
	if (h)
		closedir(h);
	if (rc) {
		vv_mem_free(v.v);
		return rc;
	}
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), by_name);
	remember(d->memory, folder, &v);
	*out = v;
	return 0;
}

char *vv_dir_member_bundle(const char *folder, const struct vv_bundle *b)
{
	char name[VV_NAME_MAX];

	vv_name_bundle(name, "", b->epoch, b->first, b->last);
	return vv_mem_printf("%s%s", folder, strrchr(name, '/'));
}

/* ---- directory of a bundle ------------------------------------------------------------------- */

/* Reads the copy of the directory that ends at `end`. */
static int load_copy(const struct vv_fs *fs, int fd, const char *path, uint64_t size, uint64_t end, struct vv_bundle *b)
{
	uint8_t trailer[VV_BUNDLE_TRAILER], *dir;
	struct vv_bundle_trailer t;
	int rc = vv_dir_read(fs, fd, path, trailer, sizeof(trailer), end - sizeof(trailer));

	if (rc)
		return rc;
	rc = vv_bundle_get_trailer(&t, trailer, size);
	if (rc == 0 && end != size && end != size - t.dir_len)
		rc = vv_err_set(VV_EDAMAGED, "trailer: at the wrong place");
	if (rc)
		return vv_err_context(rc, "'%s'", path);
	dir = vv_mem_new(t.dir_len, 1);
	rc = dir ? vv_dir_read(fs, fd, path, dir, t.dir_len, end - t.dir_len) : VV_ENOMEM;
	if (rc == 0 && (rc = vv_bundle_get(b, &t, dir)) < 0)
		vv_err_context(rc, "'%s'", path);
	vv_mem_free(dir);
	return rc;
}

static bool is_bad(int rc)
{
	return rc == VV_EDAMAGED || rc == VV_EIO;
}

int vv_dir_member_load(const struct vv_fs *fs, int fd, const char *path, uint64_t size, struct vv_bundle *b)
{
	struct vv_err_state first;
	int rc;

	if (size < 2 * VV_BUNDLE_PAGE || size % VV_BUNDLE_PAGE)
		return vv_err_set(VV_EDAMAGED, "'%s': a bundle cannot have %" PRIu64 " bytes", path, size);
	rc = load_copy(fs, fd, path, size, size, b);
	vv_err_save(rc, &first);
	for (uint64_t end = size; is_bad(rc) && size - end < VV_BUNDLE_DIR_MAX && end >= 2 * VV_BUNDLE_PAGE;) {
		end -= VV_BUNDLE_PAGE;
		rc = load_copy(fs, fd, path, size, end, b);
		if (rc == 0)
			vv_log_warn("'%s': one of its two directories is damaged, the other one is used", path);
	}
	if (is_bad(rc))
		rc = vv_err_restore(&first);
	if (rc) {
		vv_mem_free(b->v);
		b->v = NULL;
		b->n = 0;
	}
	return rc;
}

int vv_dir_member_present(const struct vv_fs *fs, int fd, const char *path, uint64_t off)
{
	uint8_t mark = 0;
	int rc = vv_dir_read(fs, fd, path, &mark, 1, off);

	return rc ? rc : mark != 0;
}

static void keep(struct vv_dir_memory *m, uint64_t size, const uint8_t *trailer, const struct vv_bundle *b)
{
	unsigned at;

	pthread_mutex_lock(&m->lock);
	at = m->next_directory++ % DIRECTORIES;
	vv_bundle_fini(&m->directory[at].b);
	m->directory[at].size = size;
	memcpy(m->directory[at].trailer, trailer, VV_BUNDLE_TRAILER);
	m->directory[at].b = *b;
	pthread_mutex_unlock(&m->lock);
}

static int take(struct vv_dir_member *f, const struct vv_bundle *b, uint32_t rank)
{
	const struct vv_bundle_entry *e = vv_bundle_find(b, rank);

	if (!e)
		return VV_ENOENT;
	f->off = e->off;
	f->len = e->len;
	return 0;
}

/* Takes the entry from memory; 1 if the directory is not remembered. */
static int take_known(struct vv_dir_memory *m, struct vv_dir_member *f, const uint8_t *trailer,
		      const struct vv_bundle *name, uint32_t rank)
{
	int rc = 1;

	pthread_mutex_lock(&m->lock);
	for (unsigned i = 0; rc == 1 && i < DIRECTORIES; i++)
		if (m->directory[i].size == (uint64_t)f->st.st_size && same_name(&m->directory[i].b, name) &&
		    memcmp(m->directory[i].trailer, trailer, VV_BUNDLE_TRAILER) == 0)
			rc = take(f, &m->directory[i].b, rank);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

/* Finds the entry of the rank in the bundle that f has open. An intact trailer identifies the
 * directory, from whichever copy that is then read. */
static int find_entry(struct vv_dir *d, struct vv_dir_member *f, const struct vv_bundle *name, uint32_t rank)
{
	uint64_t size = (uint64_t)f->st.st_size;
	uint8_t trailer[VV_BUNDLE_TRAILER] = { 0 };
	struct vv_bundle b = *name;
	struct vv_bundle_trailer t;
	bool whole = size > sizeof(trailer) &&
		     vv_dir_read(&f->own.fs, f->fd, f->path, trailer, sizeof(trailer), size - sizeof(trailer)) == 0 &&
		     vv_bundle_get_trailer(&t, trailer, size) == 0;
	int rc = whole ? take_known(d->memory, f, trailer, name, rank) : 1;

	if (rc != 1)
		return rc;
	rc = vv_dir_member_load(&f->own.fs, f->fd, f->path, size, &b);
	if (rc)
		return rc;
	rc = take(f, &b, rank);
	if (whole)
		keep(d->memory, size, trailer, &b);
	else
		vv_bundle_fini(&b);
	return rc;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

void vv_dir_member_close(struct vv_dir_member *m)
{
	if (m->fd >= 0)
		m->own.fs.close(&m->own.fs, m->fd);
	vv_mem_free(m->path);
	*m = (struct vv_dir_member){ .fd = -1 };
}

static int open_in(struct vv_dir *d, const char *folder, const struct vv_bundle *b, uint32_t rank, int flags,
		   struct vv_dir_member *out)
{
	struct vv_dir_member m = { .fd = -1, .path = vv_dir_member_bundle(folder, b) };
	int rc = m.path ? vv_dir_open_file(d, m.path, flags | O_NOFOLLOW, &m.fd, &m.st) : VV_ENOMEM;

	vv_dir_guard(d, &m.st, &m.own);
	if (rc == 0)
		rc = find_entry(d, &m, b, rank);
	if (rc == 0) {
		rc = vv_dir_member_present(&m.own.fs, m.fd, m.path, m.off);
		rc = rc < 0 ? rc : rc == 1 ? 0 : VV_ENOENT;
	}
	if (rc)
		vv_dir_member_close(&m);
	else
		*out = m;
	return rc;
}

/* Opens the first bundle that has the member; a damaged bundle is reported only if no other has
 * it. */
static int open_in_any(struct vv_dir *d, const char *folder, const struct vv_dir_bundles *v, uint64_t epoch, uint32_t rank,
		       int flags, struct vv_dir_member *out)
{
	struct vv_err_state damage = { 0 };

	for (size_t i = 0; i < v->n; i++) {
		int rc = covers(&v->v[i], epoch, rank) ? open_in(d, folder, &v->v[i], rank, flags, out) : VV_ENOENT;

		if (rc == VV_EDAMAGED)
			vv_err_save(rc, &damage);
		else if (rc != VV_ENOENT)
			return rc;
	}
	return damage.code ? vv_err_restore(&damage) : vv_err_set(VV_ENOENT, "'%s' has no bundle with that layer", folder);
}

int vv_dir_member_open(struct vv_dir *d, const char *path, int flags, bool look, struct vv_dir_member *out)
{
	const char *slash = strrchr(path, '/');
	struct vv_dir_bundles v = { 0 };
	uint64_t epoch = 0;
	uint32_t rank = 0;
	char *folder;
	int rc;

	if (vv_name_parse(slash + 1, &epoch, &rank) != VV_NAME_IS_LAYER)
		return vv_err_set(VV_ENOENT, "'%s' is no layer", path);
	folder = vv_mem_printf("%.*s", (int)(slash - path), path);
	rc = folder ? recall(d->memory, folder, epoch, rank, &v) : VV_ENOMEM;
	if (rc == 0)
		rc = open_in_any(d, folder, &v, epoch, rank, flags, out);
	if (look && (rc == VV_ENOENT || rc == VV_EDAMAGED)) {
		vv_mem_free(v.v);
		v = (struct vv_dir_bundles){ 0 };
		rc = vv_dir_member_scan(d, folder, &v);
		if (rc == 0)
			rc = open_in_any(d, folder, &v, epoch, rank, flags, out);
	}
	vv_mem_free(v.v);
	vv_mem_free(folder);
	return rc;
}

/* ---- removal --------------------------------------------------------------------------------- */

/* Frees the pages of a member; if the file system cannot, they are freed with the bundle. */
static void free_pages(const struct vv_fs *fs, int fd, uint64_t off, uint64_t len)
{
	uint64_t pages = (len + VV_BUNDLE_PAGE - 1) / VV_BUNDLE_PAGE;

	fs->punch(fs, fd, (off_t)off, (off_t)(pages * VV_BUNDLE_PAGE));
}

static int clear(const struct vv_fs *fs, int fd, const char *path, uint64_t off, uint64_t len)
{
	uint8_t mark = 0;
	struct iovec iov = { &mark, 1 };

	if (vv_fs_write_all(fs, fd, &iov, 1, (off_t)off) < 0)
		return vv_fd_identity_err(errno, "cannot remove from '%s'", path);
	if (fs->fsync(fs, fd) < 0)
		return vv_fd_identity_err(errno, "cannot make '%s' durable", path);
	free_pages(fs, fd, off, len);
	return 0;
}

/* Starts at the end, because members are usually removed from the front. 1 if none is left. */
static int is_empty(const struct vv_fs *fs, int fd, const char *path, const struct vv_bundle *b)
{
	for (size_t i = b->n; i-- > 0;) {
		int rc = vv_dir_member_present(fs, fd, path, b->v[i].off);

		if (rc)
			return rc < 0 ? rc : 0;
	}
	return 1;
}

/* Processes that remove the last members at the same time may each find the bundle empty. If the
 * name reappears after a power loss, it is that of an empty bundle. */
static int remove_if_empty(struct vv_dir *d, const struct vv_dir_member *m)
{
	struct vv_bundle b = { 0 };
	int rc = 0;

	vv_name_parse_bundle(strrchr(m->path, '/') + 1, &b.epoch, &b.first, &b.last);
	rc = vv_dir_member_load(&m->own.fs, m->fd, m->path, (uint64_t)m->st.st_size, &b);
	if (rc == 0)
		rc = is_empty(&m->own.fs, m->fd, m->path, &b);
	if (rc == 1 && d->fs->unlink(d->fs, m->path) < 0 && errno != ENOENT)
		rc = vv_fd_identity_err(errno, "cannot remove '%s'", m->path);
	vv_bundle_fini(&b);
	return rc < 0 ? rc : 0;
}

static int remove_open(struct vv_dir *d, struct vv_dir_member *m)
{
	int rc = clear(&m->own.fs, m->fd, m->path, m->off, m->len);

	if (rc == 0)
		rc = remove_if_empty(d, m);
	vv_dir_member_close(m);
	return rc;
}

/* The members of a damaged bundle cannot be read, so they are treated as absent. */
int vv_dir_member_remove(struct vv_dir *d, const char *path)
{
	struct vv_dir_member m = { .fd = -1 };
	int rc = 0, found;

	while (rc == 0 && (found = vv_dir_member_open(d, path, O_RDWR, true, &m)) != VV_ENOENT && found != VV_EDAMAGED)
		rc = found ? found : remove_open(d, &m);
	return rc;
}

void vv_dir_member_replaced(struct vv_dir *d, const char *path)
{
	struct vv_dir_member m = { .fd = -1 };

	if (vv_dir_member_open(d, path, O_RDWR, false, &m) == 0)
		remove_open(d, &m);
}

/* ---- sweep ----------------------------------------------------------------------------------- */

/* Removes members that a plain object has replaced, and frees the pages of removed members. Returns
 * the number of members left, or an error. */
static int sweep_members(const struct vv_fs *own, int fd, const char *folder, const char *path, const struct vv_bundle *b)
{
	int left = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct vv_bundle_entry *e = &b->v[i];
		int rc = vv_dir_member_present(own, fd, path, e->off);
		char name[VV_NAME_MAX], *object;

		vv_name_layer(name, "", b->epoch, e->rank);
		object = vv_mem_printf("%s%s", folder, strrchr(name, '/'));
		if (rc >= 0 && !object)
			rc = VV_ENOMEM;
		if (rc == 1 && access(object, F_OK) == 0) {
			rc = clear(own, fd, path, e->off, e->len);
		} else if (rc == 0) {
			off_t data = lseek(fd, (off_t)e->off, SEEK_DATA);

			if (data >= 0 && (uint64_t)data < e->off + e->len)
				free_pages(own, fd, e->off, e->len);
		}
		vv_mem_free(object);
		if (rc < 0)
			return rc;
		left += rc;
	}
	return left;
}

static int sweep_bundle(struct vv_dir *d, const char *folder, const char *path, struct vv_bundle *b)
{
	struct stat st = { 0 };
	int fd = -1, left, rc = vv_dir_open_file(d, path, O_RDWR | O_NOFOLLOW, &fd, &st);
	struct vv_fd_identity_fs own;

	vv_dir_guard(d, &st, &own);
	if (rc == 0)
		rc = vv_dir_member_load(&own.fs, fd, path, (uint64_t)st.st_size, b);
	left = rc ? rc : sweep_members(&own.fs, fd, folder, path, b);
	if (left >= 0 && (size_t)left < b->n && own.fs.fsync(&own.fs, fd) < 0)
		left = vv_fd_identity_err(errno, "cannot make '%s' durable", path);
	if (left == 0)
		d->fs->unlink(d->fs, path);
	if (fd >= 0)
		own.fs.close(&own.fs, fd);
	return left == VV_EDAMAGED || left == VV_ENOENT || left == VV_EDENIED || left > 0 ? 0 : left;
}

int vv_dir_member_sweep(struct vv_dir *d, const char *folder)
{
	struct vv_dir_bundles v = { 0 };
	int rc = vv_dir_member_scan(d, folder, &v);

	for (size_t i = 0; rc == 0 && i < v.n; i++) {
		char *path = vv_dir_member_bundle(folder, &v.v[i]);

		rc = path ? sweep_bundle(d, folder, path, &v.v[i]) : VV_ENOMEM;
		vv_mem_free(path);
		vv_mem_free(v.v[i].v);
	}
	vv_mem_free(v.v);
	return rc;
}
