/* Adds up the blocks that files occupy, as du does: holes are free, and unfinished files count.
 * Links are not followed. */
#include "store/dir/dir_usage.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/dir/dir.h"
#include "store/dir/dir_list.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 4, BLOCK = 512 }; /* of st_blocks, on every file system */

struct dir_usage {
	const char *path; /* of the folder in progress */
	int depth;
	uint64_t bytes;
};

static int add_entry(void *arg, int dirfd, const char *name)
{
	struct dir_usage *u = arg, below;
	struct stat st;
	char *path;
	int rc;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : vv_fd_identity_err(errno, "cannot look at '%s/%s'", u->path, name);
	u->bytes += (uint64_t)st.st_blocks * BLOCK;
	if (!S_ISDIR(st.st_mode) || u->depth == DEEPEST)
		return 0;
	path = vv_mem_printf("%s/%s", u->path, name);
	below = (struct dir_usage){ path, u->depth + 1, 0 };
	rc = path ? vv_dir_list_each(path, add_entry, &below) : VV_ENOMEM;
	u->bytes += below.bytes;
	vv_mem_free(path);
	return rc;
}

int vv_dir_usage(struct vv_store *s, const char *dir, uint64_t *bytes)
{
	char *path = vv_dir_path(vv_dir_of(s), dir);
	struct dir_usage u = { .path = path };
	int rc = path ? vv_dir_list_each(path, add_entry, &u) : VV_ENOMEM;

	*bytes = u.bytes;
	vv_mem_free(path);
	return rc;
}
