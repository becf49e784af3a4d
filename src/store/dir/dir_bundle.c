/* A bundle in progress is an ordinary temporary file, so the next sweep removes those of dead
 * processes. */
#include "store/dir/dir_bundle.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/fd_identity.h"
#include "core/format/name.h"
#include "store/dir/dir.h"
#include "store/dir/dir_member.h"
#include "store/dir/dir_priv.h"
#include "store/dir/dir_put.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Accepts only "digits-digits": it becomes part of a path. */
static bool is_token(const char *s)
{
	size_t a = strspn(s, "0123456789"), b = s[a] == '-' ? strspn(s + a + 1, "0123456789") : 0;

	return a && b && a + 1 + b < VV_STORE_TOKEN && s[a + 1 + b] == '\0';
}

static int parse(const char *bundle, struct vv_bundle *b)
{
	const char *slash = strrchr(bundle, '/');

	if (!slash || !vv_name_parse_bundle(slash + 1, &b->epoch, &b->first, &b->last))
		return vv_err_set(VV_EINVAL, "'%s' is not the name of a bundle", bundle);
	return 0;
}

int vv_dir_bundle_tmp(struct vv_dir *d, const char *bundle, const char *token, char **out)
{
	struct vv_bundle b = { 0 };
	int rc = parse(bundle, &b);
	char *path;

	if (rc)
		return rc;
	if (!is_token(token))
		return vv_err_set(VV_EINVAL, "'%s/%s': '%.*s' is not the token of a bundle", d->root, bundle,
				  VV_STORE_TOKEN, token);
	path = vv_dir_path(d, bundle);
	*out = path ? vv_dir_put_tmp(path, token) : NULL;
	vv_mem_free(path);
	return *out ? 0 : VV_ENOMEM;
}

int vv_dir_bundle_make(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN])
{
	struct vv_dir *d = vv_dir_of(s);
	char *tmp = NULL;
	int fd = -1, rc;

	vv_dir_put_token(token);
	rc = vv_dir_bundle_tmp(d, bundle, token, &tmp);
	if (rc == 0)
		rc = vv_dir_put_create(d, tmp, &fd);
	if (rc == 0) {
		struct vv_fd_identity stamp = vv_fd_identity_named(tmp);

		if (vv_fd_identity_fits(&stamp, fd))
			d->fs->close(d->fs, fd);
	}
	vv_mem_free(tmp);
	return rc;
}

void vv_dir_bundle_drop(struct vv_store *s, const char *bundle, const char *token)
{
	struct vv_dir *d = vv_dir_of(s);
	char *tmp = NULL;

	if (vv_dir_bundle_tmp(d, bundle, token, &tmp) == 0)
		d->fs->unlink(d->fs, tmp);
	vv_mem_free(tmp);
}

/* A plain object of that name would hide the member, and so may another bundle. */
static int check_free(struct vv_dir *d, const char *folder, const char *path, const struct vv_member *m)
{
	struct vv_dir_member other = { 0 };
	char *object = vv_mem_printf("%s/%s", folder, m->name);
	bool taken;

	if (!object)
		return VV_ENOMEM;
	taken = access(object, F_OK) == 0;
	if (!taken && vv_dir_member_open(d, object, O_RDONLY, false, &other) == 0) {
		taken = strcmp(other.path, path) != 0;
		vv_dir_member_close(&other);
	}
	if (taken)
		vv_err_set(VV_EINVAL, "'%s' is there already: remove it before '%s' is sealed", object, path);
	vv_mem_free(object);
	return taken ? VV_EINVAL : 0;
}

/* Scans the folder once, so that its bundles are remembered. */
static int look(struct vv_dir *d, const char *folder)
{
	struct vv_dir_bundles seen = { 0 };
	int rc = vv_dir_member_scan(d, folder, &seen);

	vv_mem_free(seen.v);
	return rc;
}

/* A member that was never written must not look like one that was written and removed. */
static int check_written(const struct vv_fs *fs, int fd, const char *tmp, const struct vv_bundle *b)
{
	const struct vv_bundle_entry *last = &b->v[b->n - 1];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return vv_fd_identity_err(errno, "cannot look at '%s'", tmp);
	if ((uint64_t)st.st_size < last->off + last->len)
		return vv_err_set(VV_EINVAL, "'%s' ends at %" PRIu64 ", before its last member does", tmp,
				  (uint64_t)st.st_size);
	for (size_t i = 0; i < b->n; i++) {
		int rc = vv_dir_member_present(fs, fd, tmp, b->v[i].off);

		if (rc < 0)
			return rc;
		if (rc == 0)
			return vv_err_set(VV_EINVAL, "'%s': the member of rank %" PRIu32 " was not written, or begins with a zero",
					  tmp, b->v[i].rank);
	}
	return 0;
}

/* Cuts off bytes behind the members, for instance of a writer that gave up. */
static int write_directory(const struct vv_fs *fs, int fd, const char *tmp, const struct vv_bundle *b)
{
	struct vv_buf dir = { 0 };
	uint64_t end = vv_bundle_end(b);
	int rc = vv_bundle_put(b, &dir);
	struct iovec iov = { dir.p, dir.n };

	if (rc == 0 && (fs->truncate(fs, fd, (off_t)end) < 0 || vv_fs_write_all(fs, fd, &iov, 1, (off_t)end) < 0))
		rc = vv_fd_identity_err(errno, "cannot write '%s'", tmp);
	if (rc == 0 && fs->fsync(fs, fd) < 0)
		rc = vv_fd_identity_err(errno, "cannot make '%s' durable", tmp);
	vv_buf_fini(&dir);
	return rc;
}

static int finish(struct vv_dir *d, const char *tmp, const struct vv_bundle *b)
{
	int fd = d->fs->open(d->fs, tmp, O_RDWR, 0), rc;
	struct vv_fd_identity stamp = vv_fd_identity_named(tmp);
	struct vv_fd_identity_fs own;

	if (fd < 0)
		return vv_fd_identity_err(errno, "cannot open '%s'", tmp);
	vv_fd_identity_guard(&own, d->fs, &stamp);
	rc = check_written(&own.fs, fd, tmp, b);
	if (!vv_fd_identity_fits(&stamp, fd)) /* then the size is that of another file */
		rc = vv_fd_identity_check(&stamp, fd, "write a bundle");
	if (rc == 0)
		rc = write_directory(&own.fs, fd, tmp, b);
	if (rc == 0)
		rc = vv_fd_identity_check(&stamp, fd, "write a bundle");
	if (own.fs.close(&own.fs, fd) < 0 && rc == 0)
		rc = vv_fd_identity_err(errno, "cannot close '%s'", tmp);
	return rc;
}

int vv_dir_bundle_seal(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n)
{
	struct vv_dir *d = vv_dir_of(s);
	struct vv_bundle b = { 0 };
	char *tmp = NULL, *path, *folder;
	int rc = vv_dir_bundle_tmp(d, bundle, token, &tmp);

	if (rc)
		return rc;
	path = vv_dir_path(d, bundle);
	folder = path ? vv_mem_printf("%.*s", (int)(strrchr(path, '/') - path), path) : NULL;
	rc = folder ? parse(bundle, &b) : VV_ENOMEM;
	if (rc == 0 && (rc = vv_bundle_set(&b, m, n)) < 0)
		vv_err_context(rc, "'%s'", path);
	if (rc == 0)
		rc = look(d, folder);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = check_free(d, folder, path, &m[i]);
	if (rc == 0)
		rc = finish(d, tmp, &b);
	rc = vv_dir_put_publish(d, tmp, path, rc);
	if (rc == 0)
		look(d, folder);
	vv_bundle_fini(&b);
	vv_mem_free(folder);
	vv_mem_free(path);
	vv_mem_free(tmp);
	return rc;
}
