/* A directory as a store: objects are files, published by rename (dir_put.c), read by pread or from
 * a mapping (dir_get.c). Changes that a dead writer left without durability are made durable before
 * any process relies on them. */
#include "store/dir/dir.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "store/dir/dir_bundle.h"
#include "store/dir/dir_direct.h"
#include "store/dir/dir_get.h"
#include "store/dir/dir_list.h"
#include "store/dir/dir_usage.h"
#include "store/dir/dir_lock.h"
#include "store/dir/dir_look.h"
#include "store/dir/dir_member.h"
#include "store/dir/dir_priv.h"
#include "store/dir/dir_put.h"
#include "store/dir/dir_cut.h"
#include "store/dir/dir_spare.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_STEP = 128 << 10, /* small enough to be still in the cache when it is checked */
};

static const struct vv_fs *usual_fs; /* NULL = the real one */

char *vv_dir_path(struct vv_dir *d, const char *name)
{
	return vv_mem_printf("%s%s%s", d->root, name[0] ? "/" : "", name);
}

/* Removes a directory that may not be durable: the next try would take it for durable. */
static void undo_mkdir(struct vv_dir *d, const char *path)
{
	int saved = errno;

	d->fs->rmdir(d->fs, path);
	errno = saved;
}

int vv_dir_make_parents(struct vv_dir *d, char *path)
{
	for (char *p = path + strlen(d->root) + 1; (p = strchr(p, '/')); p++) {
		bool made;
		int rc;

		*p = '\0';
		rc = d->fs->mkdir(d->fs, path, 0777);
		made = rc == 0;
		if (made || errno == EEXIST) { /* another process may have made it, and may not have made it durable */
			char *slash = strrchr(path, '/');

			*slash = '\0';
			rc = d->fs->fsync_dir(d->fs, path);
			*slash = '/';
			if (rc < 0 && made)
				undo_mkdir(d, path);
		}
		if (rc < 0)
			return vv_fd_identity_err(errno, "cannot make directory '%s'", path);
		*p = '/';
	}
	return 0;
}

static int sync_dir(struct vv_dir *d, const char *dir)
{
	if (d->fs->fsync_dir(d->fs, dir) < 0)
		return vv_fd_identity_err(errno, "cannot make '%s' durable", dir);
	return 0;
}

int vv_dir_sync_parent(struct vv_dir *d, const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	return sync_dir(d, dir);
}

/* A folder that is gone has nothing to sync. */
static int sync_parent_if_any(struct vv_dir *d, const char *path)
{
	int rc = vv_dir_sync_parent(d, path);

	if (rc == VV_ENOENT) {
		vv_err_clear();
		rc = 0;
	}
	return rc;
}

/* Has a medium or a local file system reported a loss? Over a network, EIO may be an outage. */
static bool is_hard(int errnum)
{
	return errnum == EIO || errnum == EUCLEAN || errnum == EBADMSG;
}

static int err_unreadable(int errnum, const char *path)
{
	vv_err_sys(errnum, "cannot read '%s', nor at a second try", path);
	return VV_EDAMAGED;
}

int vv_dir_read(const struct vv_fs *fs, int fd, const char *path, void *to, size_t n, uint64_t off)
{
	int rc = vv_dir_direct_read(fs, fd, to, n, off), why = errno;

	if (rc < 0 && is_hard(why)) {
		rc = vv_dir_direct_read(fs, fd, to, n, off);
		why = errno;
	}
	if (rc == 0)
		return 0;
	return is_hard(why) && vv_fs_is_local(fd) ? err_unreadable(why, path) : vv_fd_identity_err(why, "cannot read '%s' at %" PRIu64, path, off);
}

/* If a file could not be opened, the root shows whether the store is local. */
static bool is_local(const struct vv_dir *d)
{
	int fd = open(d->root, O_PATH | O_CLOEXEC);
	bool local = fd >= 0 && vv_fs_is_local(fd);

	if (fd >= 0)
		close(fd);
	return local;
}

/* An object is a regular file. Another kind of file with its name must not block the process, as a
 * FIFO or a terminal would. A socket and a link to itself cannot be opened at all, nor can a folder
 * for writing. */
int vv_dir_open_file(struct vv_dir *d, const char *path, int flags, int *fd, struct stat *st)
{
	bool odd;

	flags |= O_NONBLOCK | O_NOCTTY;
	*fd = d->fs->open(d->fs, path, flags, 0);
	if (*fd < 0 && is_hard(errno))
		*fd = d->fs->open(d->fs, path, flags, 0);
	odd = *fd < 0 && (errno == ENXIO || errno == ENODEV || errno == ELOOP || errno == EISDIR);
	if (!odd && (*fd < 0 || fstat(*fd, st) < 0)) {
		int why = errno;

		return is_hard(why) && is_local(d) ? err_unreadable(why, path) : vv_fd_identity_err(why, "cannot open '%s'", path);
	}
	if (odd || !S_ISREG(st->st_mode))
		return vv_err_set(VV_EDAMAGED, "'%s' is not a regular file", path);
	return 0;
}

/* Removes a replaced member before the plain object, because it must not reappear. If the lock is
 * lost, nothing is removed: the object may belong to another writer. */
static int remove_object(struct vv_store *s, const char *name)
{
	struct vv_dir *d = vv_dir_of(s);
	char *path = vv_dir_path(d, name);
	bool kept = false;
	int rc, fd;

	if (!path)
		return VV_ENOMEM;
	rc = vv_dir_lock_renew(s);
	if (rc == 0)
		rc = vv_dir_member_remove(d, path);
	if (rc == 0)
		rc = vv_dir_spare_keep(d, path, &kept);
	fd = rc == 0 && !kept ? vv_dir_cut_open(d, path) : -1;
	if (rc == 0 && !kept && d->fs->unlink(d->fs, path) < 0 && errno != ENOENT)
		rc = vv_fd_identity_err(errno, "cannot remove '%s'", path);
	else if (rc == 0 && !kept) /* also if it is gone: an earlier removal may have failed to sync */
		rc = sync_parent_if_any(d, path);
	vv_dir_cut_close(d, fd, rc == 0);
	vv_mem_free(path);
	return rc;
}

static bool free_step(struct vv_store *s)
{
	return vv_dir_cut_step(vv_dir_of(s));
}

static int remove_dir(struct vv_store *s, const char *dir)
{
	struct vv_dir *d = vv_dir_of(s);
	char *path = vv_dir_path(d, dir);

	if (!path)
		return VV_ENOMEM;
	d->fs->rmdir(d->fs, path);
	vv_mem_free(path);
	return 0;
}

/* The caller holds the lineage's lock, so no process is writing: every temporary file is an orphan.
 * Renames and removals that a dead writer did not make durable are made durable, because others
 * will rely on them. Only after that may a replaced member be removed. */
static int sweep(struct vv_store *s, const char *dir)
{
	struct vv_dir *d = vv_dir_of(s);
	char *path = vv_dir_path(d, dir);
	struct dirent *e;
	DIR *h;
	int rc = 0;

	if (!path)
		return VV_ENOMEM;
	h = opendir(path);
	if (!h && errno != ENOENT && errno != ENOTDIR)
		rc = vv_fd_identity_err(errno, "cannot look for unfinished files in '%s'", path);
	while (h && (e = readdir(h))) {
		char *file;

		if (strncmp(e->d_name, VV_DIR_TMP, strlen(VV_DIR_TMP)) != 0)
			continue;
		file = vv_mem_printf("%s/%s", path, e->d_name);
		if (file)
			vv_dir_cut_unlink(d, file);
		vv_mem_free(file);
	}
	if (h)
		rc = sync_dir(d, path);
	if (h && rc == 0)
		rc = vv_dir_member_sweep(d, path);
	if (h)
		closedir(h);
	vv_mem_free(path);
	return rc;
}

/* Directories above the root may be inaccessible; then another user owns them, and they are durable
 * already. */
static int sync_above(struct vv_dir *d, const char *path)
{
	char dir[PATH_MAX];
	size_t n = (size_t)(strrchr(path, '/') - path);

	snprintf(dir, sizeof(dir), "%.*s", (int)(n ? n : 1), path);
	if (d->fs->fsync_dir(d->fs, dir) < 0 && errno != EACCES && errno != EPERM)
		return vv_fd_identity_err(errno, "store '%s': cannot make '%s' durable", d->base.url, dir);
	return 0;
}

/* A writer may find directories and a lineage record that another process made and did not make
 * durable before it died. */
static int sync_parents(struct vv_dir *d, const char *path)
{
	int rc = sync_above(d, d->root);

	if (rc == 0)
		rc = sync_dir(d, d->root);
	return rc ? rc : vv_dir_sync_parent(d, path);
}

static int lock(struct vv_store *s, const char *name, struct vv_lock **out)
{
	struct vv_dir *d = vv_dir_of(s);
	char *path = vv_dir_path(d, name);
	struct vv_lock *l = NULL;
	int rc = path ? vv_dir_make_parents(d, path) : VV_ENOMEM;

	if (rc == 0)
		rc = vv_dir_lock_take(s, path, &l);
	if (rc == 0)
		rc = sync_parents(d, path);
	if (rc == 0)
		*out = l;
	else if (l)
		vv_dir_lock_drop(l);
	vv_mem_free(path);
	return rc;
}

static int holder(struct vv_store *s, const char *name, struct vv_lock_holder *out)
{
	char *path = vv_dir_path(vv_dir_of(s), name);
	int rc = path ? vv_dir_lock_look(path, out) : VV_ENOMEM;

	vv_mem_free(path);
	return rc;
}

static void close_store(struct vv_store *s)
{
	struct vv_dir *d = vv_dir_of(s);

	vv_backend_fini(s);
	vv_dir_spare_fini(d);
	vv_dir_cut_fini(d);
	vv_dir_member_fini(d);
	vv_mem_free(d->root);
	vv_mem_free(d);
}

static const struct vv_store_ops ops = {
	.put_open = vv_dir_put_open,
	.put_write = vv_dir_put_write,
	.put_submit = vv_dir_put_submit,
	.put_commit = vv_dir_put_commit,
	.put_abort = vv_dir_put_abort,
	.get_open = vv_dir_get_open,
	.get_read = vv_dir_get_read,
	.get_map = vv_dir_get_map,
	.get_direct = vv_dir_get_direct,
	.get_check = vv_dir_get_check,
	.get_advise = vv_dir_get_advise,
	.get_close = vv_dir_get_close,
	.list = vv_dir_list,
	.usage = vv_dir_usage,
	.size = vv_dir_look_size,
	.remove = remove_object,
	.free_step = free_step,
	.remove_dir = remove_dir,
	.sweep = sweep,
	.locks = { .take = lock, .release = vv_dir_lock_drop, .held = vv_dir_lock_held, .holder = holder },
	.unfinished = vv_dir_look_unfinished,
	.bundle = { vv_dir_bundle_make, vv_dir_put_join, vv_dir_bundle_seal, vv_dir_bundle_drop },
	.close = close_store,
};

/* Makes the root and its missing parents, each durable in its parent. An existing parent is made
 * durable too, in case its maker died before that. */
static int make_root(struct vv_dir *d)
{
	char path[PATH_MAX];
	size_t n = strlen(d->root);
	int rc;

	for (size_t i = 1; i <= n; i++) {
		if (d->root[i] != '/' && d->root[i] != '\0')
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)i, d->root);
		if (d->fs->mkdir(d->fs, path, 0777) < 0) {
			int why = errno; /* access changes errno */

			if (why == EEXIST || why == EISDIR ||
			    ((why == EROFS || why == EACCES) && access(path, F_OK) == 0))
				continue;
			return vv_fd_identity_err(why, "store '%s': cannot make directory '%s'", d->base.url, path);
		}
		rc = sync_above(d, path);
		if (rc) {
			undo_mkdir(d, path);
			return rc;
		}
		*(strrchr(path, '/') == path ? path + 1 : strrchr(path, '/')) = '\0';
		rc = sync_above(d, path);
		if (rc)
			return rc;
	}
	return 0;
}

static int find_root(struct vv_dir *d, const char *path, bool create)
{
	char cwd[PATH_MAX];
	struct stat st;
	int rc;

	if (!path[0] || strlen(path) > PATH_MAX - 512)
		return vv_err_set(VV_EINVAL, "store '%s': the path is empty or too long", d->base.url);
	if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return vv_fd_identity_err(errno, "store '%s'", d->base.url);
	d->root = path[0] == '/' ? vv_mem_strdup(path) : vv_mem_printf("%s/%s", cwd, path);
	if (!d->root)
		return VV_ENOMEM;
	for (size_t n = strlen(d->root); n > 1 && d->root[n - 1] == '/'; n--)
		d->root[n - 1] = '\0';
	rc = create ? make_root(d) : 0;
	if (rc == 0 && stat(d->root, &st) < 0)
		rc = vv_fd_identity_err(errno, "store '%s'", d->base.url);
	else if (rc == 0 && !S_ISDIR(st.st_mode))
		rc = vv_err_set(VV_EINVAL, "store '%s' is not a directory", d->base.url);
	if (rc == 0) {
		d->base.device = (uint64_t)st.st_dev;
		d->base.inode = (uint64_t)st.st_ino;
	}
	return rc;
}

void vv_dir_set_fs(const struct vv_fs *fs)
{
	usual_fs = fs;
}

int vv_dir_open(const char *url, const struct vv_store_options *opt, struct vv_store **out)
{
	struct vv_dir *d = vv_mem_new(1, sizeof(*d));
	int rc;

	if (!d)
		return VV_ENOMEM;
	d->fs = usual_fs ? usual_fs : vv_fs_real();
	d->pid = getpid();
	vv_dir_cut_init(d);
	rc = vv_backend_init(&d->base, &ops, url, opt);
	if (rc == 0)
		rc = vv_dir_member_init(d);
	if (rc == 0)
		rc = find_root(d, strncmp(url, "dir:", 4) == 0 ? url + 4 : url, opt->create);
	if (rc == 0 && opt->recycle)
		rc = vv_dir_spare_init(d);
	d->base.read_step = READ_STEP;
	d->io = opt->io;
	if (rc)
		close_store(&d->base);
	else
		*out = &d->base;
	return rc;
}
