/* Lists a folder: its files, and the members of its bundles. A bundle whose directory cannot be
 * read is listed itself, so that it can be seen and removed. */
#include "store/dir/dir_list.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/name.h"
#include "store/backend/names.h"
#include "store/dir/dir.h"
#include "store/dir/dir_member.h"
#include "store/dir/dir_priv.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct dir_list_member {
	uint64_t epoch;
	uint32_t rank;
	bool hidden; /* by a plain object of the same name */
	uint64_t len;
	size_t order; /* of several the first is used */
};

struct dir_list_members {
	struct dir_list_member *v;
	size_t n;
	size_t cap;
};

static int by_layer(const void *a, const void *b)
{
	const struct dir_list_member *x = a, *y = b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_layer_and_order(const void *a, const void *b)
{
	const struct dir_list_member *x = a, *y = b;
	int c = by_layer(a, b);

	return c ? c : (x->order > y->order) - (x->order < y->order);
}

static int add_members(const struct vv_fs *fs, int fd, const char *path, const struct vv_bundle *b, struct dir_list_members *all)
{
	for (size_t i = 0; i < b->n; i++) {
		int rc = vv_dir_member_present(fs, fd, path, b->v[i].off);

		if (rc < 0 || vv_mem_room(&all->v, all->n, &all->cap, sizeof(*all->v)) < 0)
			return rc < 0 ? rc : VV_ENOMEM;
		if (rc == 1) {
			all->v[all->n] = (struct dir_list_member){ b->epoch, b->v[i].rank, false, b->v[i].len, all->n };
			all->n++;
		}
	}
	return 0;
}

/* A file that is not regular is listed as it is. */
static int list_bundle(struct vv_dir *d, const char *path, struct vv_bundle *b, struct dir_list_members *all, struct vv_names *out)
{
	const char *name = strrchr(path, '/') + 1;
	struct stat st = { 0 };
	int fd = -1, rc = vv_dir_open_file(d, path, O_RDONLY | O_NOFOLLOW, &fd, &st);
	struct vv_fd_identity_fs own;

	vv_dir_guard(d, &st, &own);
	if (rc == 0) {
		rc = vv_dir_member_load(&own.fs, fd, path, (uint64_t)st.st_size, b);
		if (rc == VV_EDAMAGED)
			rc = vv_names_add(out, name, strlen(name), (uint64_t)st.st_size, false);
		else if (rc == 0)
			rc = add_members(&own.fs, fd, path, b, all);
	} else if (rc == VV_ENOENT || rc == VV_EDAMAGED) {
		rc = 0;
	}
	if (fd >= 0)
		own.fs.close(&own.fs, fd);
	return rc;
}

static int list_bundles(struct vv_dir *d, const char *folder, struct dir_list_members *all, struct vv_names *out)
{
	struct vv_dir_bundles v = { 0 };
	int rc = vv_dir_member_scan(d, folder, &v);

	for (size_t i = 0; i < v.n; i++) {
		char *path = rc ? NULL : vv_dir_member_bundle(folder, &v.v[i]);

		if (rc == 0)
			rc = path ? list_bundle(d, path, &v.v[i], all, out) : VV_ENOMEM;
		vv_mem_free(path);
		vv_mem_free(v.v[i].v);
	}
	vv_mem_free(v.v);
	if (rc == 0 && all->n)
		qsort(all->v, all->n, sizeof(*all->v), by_layer_and_order);
	for (size_t i = 1; i < all->n; i++)
		all->v[i].hidden = by_layer(&all->v[i - 1], &all->v[i]) == 0;
	return rc;
}

/* A plain object hides a member of the same name. */
static void hide(struct dir_list_members *all, const char *name)
{
	struct dir_list_member key = { 0 }, *m = NULL;

	if (all->n && vv_name_parse(name, &key.epoch, &key.rank) == VV_NAME_IS_LAYER)
		m = bsearch(&key, all->v, all->n, sizeof(*all->v), by_layer);
	while (m && m > all->v && by_layer(m - 1, m) == 0)
		m--;
	if (m)
		m->hidden = true;
}

/* Removed meanwhile, or a dangling link. An inaccessible folder is an error: it would seem
 * empty. */
static bool nothing_there(int dirfd, const char *name, int why)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return S_ISLNK(st.st_mode) && (why == ENOENT || why == ELOOP || why == EACCES || why == ENOTDIR);
}

static bool is_bundle(int dirfd, const char *name)
{
	struct vv_bundle b;
	struct stat st;

	return vv_name_parse_bundle(name, &b.epoch, &b.first, &b.last) &&
	       fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

struct dir_list {
	const char *path;
	struct dir_list_members members;
	struct vv_names *out;
};

static int list_entry(void *arg, int dirfd, const char *name)
{
	struct dir_list *l = arg;
	struct stat st;

	if (name[0] == '.' || is_bundle(dirfd, name))
		return 0;
	if (fstatat(dirfd, name, &st, 0) < 0) {
		int why = errno;

		return nothing_there(dirfd, name, why) ? 0 : vv_fd_identity_err(why, "cannot look at '%s/%s'", l->path, name);
	}
	hide(&l->members, name);
	return vv_names_add(l->out, name, strlen(name), S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size,
				  S_ISDIR(st.st_mode));
}

int vv_dir_list_each(const char *path, int (*fn)(void *arg, int dirfd, const char *name), void *arg)
{
	DIR *h = opendir(path);
	struct dirent *e;
	int rc = 0;

	if (!h)
		return errno == ENOENT ? 0 : vv_fd_identity_err(errno, "cannot list '%s'", path);
	while (rc == 0 && (errno = 0, e = readdir(h)))
		rc = fn(arg, dirfd(h), e->d_name);
	if (rc == 0 && errno)
		rc = vv_fd_identity_err(errno, "cannot list '%s'", path);
	closedir(h);
	return rc;
}

static int list_members(const struct dir_list_members *all, struct vv_names *out)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < all->n; i++) {
		char object[VV_NAME_MAX];
		const char *name;

		if (all->v[i].hidden)
			continue;
		vv_name_layer(object, "", all->v[i].epoch, all->v[i].rank);
		name = strrchr(object, '/') + 1;
		rc = vv_names_add(out, name, strlen(name), all->v[i].len, false);
	}
	return rc;
}

/* Lists members first: if one is replaced meanwhile, either it or the plain object is found. */
int vv_dir_list(struct vv_store *s, const char *dir, struct vv_names *out)
{
	struct vv_dir *d = vv_dir_of(s);
	char *path = vv_dir_path(d, dir);
	struct dir_list l = { .path = path, .out = out };
	int rc;

	if (!path)
		return VV_ENOMEM;
	rc = list_bundles(d, path, &l.members, out);
	if (rc == 0)
		rc = vv_dir_list_each(path, list_entry, &l);
	if (rc == 0)
		rc = list_members(&l.members, out);
	vv_mem_free(l.members.v);
	vv_mem_free(path);
	return rc;
}
