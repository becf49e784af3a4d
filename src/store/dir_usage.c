/* Adds up the blocks that files occupy, as du does: holes are free, and unfinished files count.
 * Links are not followed. */
#include "store/dir_usage.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/dir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 4, BLOCK = 512 }; /* of st_blocks, on every file system */

static int add_folder(const char *path, int depth, uint64_t *bytes);

static int add_entry(int dirfd, const char *path, const char *name, int depth, uint64_t *bytes)
{
	struct stat st;
	char *below;
	int rc;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : vv_fd_identity_err(errno, "cannot look at '%s/%s'", path, name);
	*bytes += (uint64_t)st.st_blocks * BLOCK;
	if (!S_ISDIR(st.st_mode) || depth == DEEPEST)
		return 0;
	below = vv_mem_printf("%s/%s", path, name);
	rc = below ? add_folder(below, depth + 1, bytes) : VV_ENOMEM;
	vv_mem_free(below);
	return rc;
}

static int add_folder(const char *path, int depth, uint64_t *bytes)
{
	DIR *h = opendir(path);
	struct dirent *e;
	int rc = 0;

	if (!h)
		return errno == ENOENT ? 0 : vv_fd_identity_err(errno, "cannot list '%s'", path);
	while (rc == 0 && (errno = 0, e = readdir(h)))
		rc = add_entry(dirfd(h), path, e->d_name, depth, bytes);
	if (rc == 0 && errno)
		rc = vv_fd_identity_err(errno, "cannot list '%s'", path);
	closedir(h);
	return rc;
}

int vv_dir_usage(struct vv_store *s, const char *dir, uint64_t *bytes)
{
	char *path = vv_dir_path(vv_dir_of(s), dir);
	int rc;

	*bytes = 0;
	if (!path)
		return VV_ENOMEM;
	rc = add_folder(path, 0, bytes);
	vv_mem_free(path);
	return rc;
}
