#include "engine/files/output_dir.h"
#include "base/err.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	TMP_NAME = sizeof(((struct vv_output_dir_file *)0)->tmp),
};

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* ---- the folder itself ----------------------------------------------------------------------- */

static int sync_folder(int fd, const char *path)
{
	return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? vv_err_sys(errno, "cannot make folder '%s' durable", path) : 0;
}

/* Syncs the parent folder of `path`, so that its new entry is durable. */
static int sync_above(const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];
	int fd, rc;

	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	fd = open(above[0] ? above : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 0 : vv_err_sys(errno, "cannot open folder '%s'", above);
	rc = sync_folder(fd, above);
	close(fd);
	return rc;
}

static int make_folder(const char *path)
{
	if (mkdir(path, 0777) == 0)
		return sync_above(path);
	return errno == EEXIST || errno == EISDIR ? 0 : vv_err_sys(errno, "cannot make folder '%s'", path);
}

static int make_path(const char *path)
{
	char part[PATH_MAX];
	size_t n = strlen(path);
	int rc = 0;

	if (n >= sizeof(part))
		return vv_err_set(VV_EINVAL, "the name of folder '%.100s...' is too long", path);
	memcpy(part, path, n + 1);
	for (size_t i = 1; rc == 0 && i <= n; i++) {
		char c = part[i];
		struct stat st;

		if ((c != '/' && c) || part[i - 1] == '/')
			continue;
		part[i] = '\0';
		/* an existing folder may be one where nothing can be made */
		if (stat(part, &st) < 0)
			rc = make_folder(part);
		part[i] = c;
	}
	return rc;
}

int vv_output_dir_open(struct vv_output_dir *t, const char *path, bool make)
{
	int rc = make ? make_path(path) : 0;

	*t = (struct vv_output_dir){ .fd = -1, .path = path };
	if (rc)
		return rc;
	t->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->fd < 0 && (make || errno != ENOENT))
		return vv_err_sys(errno, "cannot open folder '%s'", path);
	t->unnamed = make && access("/proc/thread-self/fd", X_OK) == 0;
	return 0;
}

void vv_output_dir_close(struct vv_output_dir *t)
{
	close_fd(t->fd);
	vv_map_fini(&t->touched);
	for (size_t i = 0; i < t->n_names; i++)
		vv_mem_free(t->name[i]);
	vv_mem_free(t->name);
	*t = (struct vv_output_dir){ .fd = -1 };
}

static int note(struct vv_output_dir *t, const char *name, size_t len)
{
	char *copy = vv_mem_printf("%.*s", (int)len, name);
	int rc = copy ? 0 : VV_ENOMEM;

	if (rc || vv_map_get(&t->touched, copy) != VV_MAP_NONE)
		goto out;
	rc = vv_mem_room(&t->name, t->n_names, &t->names_cap, sizeof(*t->name));
	if (rc == 0)
		rc = vv_map_put(&t->touched, copy, t->n_names);
	if (rc == 0) {
		t->name[t->n_names++] = copy;
		copy = NULL;
	}
out:
	vv_mem_free(copy);
	return rc;
}

/* ---- walking down ---------------------------------------------------------------------------- */

/* Steps from `from`, which is closed, into the folder `part`; the path so far is name[0..len].
 * VV_ENOENT, without a message: it does not exist, and make is false. */
static int step(const struct vv_output_dir *t, const char *name, size_t len, const char *part, bool make, int from, int *out)
{
	int error = 0, fd = openat(from, part, FOLDER);

	if (fd < 0 && errno == ENOENT && make && (mkdirat(from, part, 0777) == 0 || errno == EEXIST))
		fd = openat(from, part, FOLDER);
	error = errno;
	close(from);
	*out = fd;
	if (fd >= 0)
		return 0;
	if (error == ELOOP || error == ENOTDIR)
		return vv_err_set(VV_EINVAL, "'%s/%.*s' is in the way: it is a file or a link, and a folder is needed there for '%s'", t->path,
				  (int)len, name, name);
	if (error == ENOENT && !make)
		return VV_ENOENT;
	return vv_err_sys(error, "cannot %s folder '%.*s' below '%s'", make ? "make" : "open", (int)len, name, t->path);
}

/* Opens the parent folder of the file; VV_ENOENT as above. */
static int walk(const struct vv_output_dir *t, const char *name, bool make, int *out)
{
	int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0), rc = 0;
	char part[NAME_MAX + 1];
	const char *slash;

	if (fd < 0)
		return vv_err_sys(errno, "cannot open folder '%s'", t->path);
	for (const char *at = name; rc == 0 && (slash = strchr(at, '/')); at = slash + 1) {
		if ((size_t)snprintf(part, sizeof(part), "%.*s", (int)(slash - at), at) >= sizeof(part)) {
			close(fd);
			return vv_err_set(VV_EINVAL, "a part of the name '%s' is too long", name);
		}
		rc = step(t, name, (size_t)(slash - name), part, make, fd, &fd);
	}
	if (rc == 0)
		*out = fd;
	return rc;
}

static const char *last_part(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

int vv_output_dir_check_file(const struct vv_output_dir *t, const char *name, bool *there)
{
	struct stat st;
	int fd, rc, found;

	*there = false;
	if (t->fd < 0)
		return 0;
	rc = walk(t, name, false, &fd);
	if (rc)
		return rc == VV_ENOENT ? 0 : rc;
	found = fstatat(fd, last_part(name), &st, AT_SYMLINK_NOFOLLOW);
	if (found < 0 && errno != ENOENT)
		rc = vv_err_sys(errno, "cannot look at '%s' below '%s'", name, t->path);
	else if (found == 0 && S_ISDIR(st.st_mode))
		rc = vv_err_set(VV_EINVAL, "'%s/%s' is a folder, and a file of that name is to be unpacked", t->path, name);
	*there = found == 0;
	close(fd);
	return rc;
}

static void take_name(char tmp[TMP_NAME])
{
	static atomic_uint serial;

	snprintf(tmp, TMP_NAME, ".varve-%d-%u.tmp", (int)getpid(), atomic_fetch_add(&serial, 1));
}

/* Opens the file without a name if possible, so that nothing is left if the process is killed. */
static int open_file(const struct vv_output_dir *t, struct vv_output_dir_file *f)
{
	int fd = t->unnamed ? openat(f->folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		return fd;
	do {
		take_name(f->tmp);
		fd = openat(f->folder, f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EEXIST);
	return fd;
}

/* Makes and opens the parent folder, and marks it as changed. */
static int walk_to_write(struct vv_output_dir *t, const char *name, int *out)
{
	int fd, rc = walk(t, name, true, &fd);

	if (rc)
		return rc;
	rc = note(t, "", 0);
	for (size_t i = strlen(name); rc == 0 && i-- > 0;)
		if (name[i] == '/')
			rc = note(t, name, i);
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

int vv_output_dir_create(struct vv_output_dir *t, const char *name, struct vv_output_dir_file *out)
{
	struct vv_output_dir_file f = { .fd = -1, .folder = -1, .name = name };
	int rc = walk_to_write(t, name, &f.folder);

	if (rc)
		return rc;
	f.fd = open_file(t, &f);
	if (f.fd < 0) {
		rc = vv_err_sys(errno, "cannot make file '%s' below '%s'", name, t->path);
		close(f.folder);
		return rc;
	}
	*out = f;
	return 0;
}

static void end(struct vv_output_dir_file *f)
{
	close_fd(f->fd);
	close_fd(f->folder);
	*f = (struct vv_output_dir_file){ .fd = -1, .folder = -1 };
}

void vv_output_dir_abort(struct vv_output_dir_file *f)
{
	if (f->folder >= 0 && f->tmp[0])
		unlinkat(f->folder, f->tmp, 0);
	end(f);
}

/* Links by descriptor, which Linux before 6.10 permits to few processes; else by /proc, which takes
 * twice as long. */
static int link_as(const struct vv_output_dir_file *f, const char *name)
{
	char fd[64];

	if (linkat(f->fd, "", f->folder, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno == EEXIST)
		return -1;
	snprintf(fd, sizeof(fd), "/proc/thread-self/fd/%d", f->fd);
	return linkat(AT_FDCWD, fd, f->folder, name, AT_SYMLINK_FOLLOW);
}

/* Names an unnamed file: with its own name, or, to replace another file, with a temporary one
 * first. */
static int link_file(struct vv_output_dir_file *f, bool replace)
{
	int rc;

	if (!replace)
		return link_as(f, last_part(f->name));
	do {
		take_name(f->tmp);
		rc = link_as(f, f->tmp);
	} while (rc < 0 && errno == EEXIST);
	if (rc < 0)
		f->tmp[0] = '\0';
	return rc < 0 ? rc : renameat(f->folder, f->tmp, f->folder, last_part(f->name));
}

/* If the kernel or the file system cannot rename without replacing, there is a moment between the
 * check and the rename. */
static int give_name(struct vv_output_dir_file *f, bool replace)
{
	const char *last = last_part(f->name);
	struct stat st;

	if (!f->tmp[0])
		return link_file(f, replace);
	if (!replace && renameat2(f->folder, f->tmp, f->folder, last, RENAME_NOREPLACE) == 0)
		return 0;
	if (!replace && errno != EINVAL && errno != ENOSYS)
		return -1;
	if (!replace && fstatat(f->folder, last, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(f->folder, f->tmp, f->folder, last);
}

static int cannot_write(const struct vv_output_dir_file *f)
{
	return vv_err_sys(errno, "cannot write '%s'", f->name);
}

/* Setting an unchanged length would cost as much as changing it. */
int vv_output_dir_set_attributes(struct vv_output_dir_file *f, uint64_t len, uint32_t mode, struct timespec mtime)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, mtime };
	struct stat st;

	if (fstat(f->fd, &st) < 0 || ((uint64_t)st.st_size != len && ftruncate(f->fd, (off_t)len) < 0) || fchmod(f->fd, mode & 01777) < 0 ||
	    futimens(f->fd, times) < 0)
		return cannot_write(f);
	(void)sync_file_range(f->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

int vv_output_dir_commit(struct vv_output_dir_file *f, bool replace)
{
	int rc = fsync(f->fd) < 0 ? cannot_write(f) : 0;

	if (rc == 0 && give_name(f, replace) < 0)
		rc = vv_err_sys(errno, errno == EEXIST ? "another process has made '%s' in the meantime, and it is kept" : "cannot give '%s' its name", f->name);
	if (rc)
		vv_output_dir_abort(f);
	else
		end(f);
	return rc;
}

/* ---- folders and links ----------------------------------------------------------------------- */

/* Opens the folder itself; "": the target folder. */
static int walk_into(const struct vv_output_dir *t, const char *folder, int *out)
{
	char name[PATH_MAX + 4];

	snprintf(name, sizeof(name), "%s%sx", folder, folder[0] ? "/" : "");
	return walk(t, name, false, out);
}

int vv_output_dir_check_folder(const struct vv_output_dir *t, const char *name)
{
	int fd, rc = t->fd < 0 ? VV_ENOENT : walk_into(t, name, &fd);

	if (rc == 0)
		close(fd);
	return rc == VV_ENOENT ? 0 : rc;
}

int vv_output_dir_make(struct vv_output_dir *t, const char *name, bool *made)
{
	int fd, rc = walk_to_write(t, name, &fd);

	if (rc)
		return rc;
	*made = mkdirat(fd, last_part(name), 0700) == 0;
	if (!*made && errno != EEXIST)
		rc = vv_err_sys(errno, "cannot make folder '%s' below '%s'", name, t->path);
	close(fd);
	return rc ? rc : vv_output_dir_check_folder(t, name);
}

int vv_output_dir_finish(const struct vv_output_dir *t, const char *name, const struct vv_file_attributes *a, struct vv_xattr_left *left, uint32_t mode, struct timespec mtime)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, mtime };
	int fd, rc = walk_into(t, name, &fd);

	if (rc)
		return rc == VV_ENOENT ? vv_err_set(VV_EIO, "folder '%s' below '%s' has vanished while files were unpacked into it", name, t->path) : rc;
	vv_xattr_write(fd, name, a, left);
	if (fchmod(fd, mode & 01777) < 0 || futimens(fd, times) < 0)
		rc = vv_err_sys(errno, "cannot give folder '%s' its mode and time", name);
	else
		rc = sync_folder(fd, name);
	close(fd);
	return rc;
}

/* Renames from a temporary name over an existing file. Two names of one file do not replace each
 * other, so the temporary one is removed. */
static int rename_over(int folder, const char *tmp, const char *name)
{
	int rc = renameat(folder, tmp, folder, name), error = errno;

	(void)unlinkat(folder, tmp, 0);
	errno = error;
	return rc;
}

int vv_output_dir_symlink(struct vv_output_dir *t, const char *name, const char *to, struct timespec mtime, bool replace)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, mtime };
	char tmp[TMP_NAME];
	int fd, made, rc = walk_to_write(t, name, &fd);

	if (rc)
		return rc;
	made = symlinkat(to, fd, last_part(name));
	if (made < 0 && errno == EEXIST && replace) {
		do {
			take_name(tmp);
			made = symlinkat(to, fd, tmp);
		} while (made < 0 && errno == EEXIST);
		made = made < 0 ? made : rename_over(fd, tmp, last_part(name));
	}
	if (made < 0)
		rc = vv_err_sys(errno, "cannot make link '%s' below '%s'", name, t->path);
	else
		(void)utimensat(fd, last_part(name), times, AT_SYMLINK_NOFOLLOW);
	close(fd);
	return rc;
}

static int link_to(int from_folder, const char *from, int folder, const char *name, bool replace)
{
	char tmp[TMP_NAME];
	int rc = linkat(from_folder, from, folder, name, 0);

	if (rc == 0 || errno != EEXIST || !replace)
		return rc;
	do {
		take_name(tmp);
		rc = linkat(from_folder, from, folder, tmp, 0);
	} while (rc < 0 && errno == EEXIST);
	return rc < 0 ? rc : rename_over(folder, tmp, name);
}

int vv_output_dir_link(struct vv_output_dir *t, const char *from, const char *name, bool replace)
{
	int from_folder, folder = -1, rc = walk(t, from, false, &from_folder);

	if (rc)
		return rc == VV_ENOENT ? vv_err_set(VV_EIO, "'%s' below '%s' has vanished while '%s' was to become another name of it", from, t->path, name) : rc;
	rc = walk_to_write(t, name, &folder);
	if (rc == 0 && link_to(from_folder, last_part(from), folder, last_part(name), replace) < 0) {
		bool cannot = errno == EXDEV || errno == EMLINK || errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;

		rc = vv_err_sys(errno, "cannot make '%s' another name of '%s' below '%s'", name, from, t->path);
		rc = cannot ? VV_ENOTSUP : rc;
	}
	close(from_folder);
	close_fd(folder);
	return rc;
}

int vv_output_dir_sync(struct vv_output_dir *t)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n_names; i++) {
		int fd;

		rc = walk_into(t, t->name[i], &fd);
		/* another process has moved the folder away meanwhile */
		if (rc)
			return vv_err_set(VV_EIO, "folder '%s' below '%s' has vanished while files were unpacked into it", t->name[i], t->path);
		rc = sync_folder(fd, t->name[i]);
		close(fd);
	}
	return rc;
}
