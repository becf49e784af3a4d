/* Sizes of objects, and unfinished objects of a folder, for observers. Space is allocated ahead of
 * the bytes, so a file's size is too large: the written bytes are those outside holes. */
#include "store/dir/dir_look.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/backend/names.h"
#include "store/dir/dir.h"
#include "store/dir/dir_list.h"
#include "store/dir/dir_member.h"
#include "store/dir/dir_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { STRETCHES = 4096 }; /* stretches of a bundle: one for each member, and the gaps between */

static uint64_t written(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	off_t at = 0, hole;
	uint64_t n = 0;

	for (int i = 0; fd >= 0 && i < STRETCHES; i++) {
		at = lseek(fd, at, SEEK_DATA);
		hole = at < 0 ? -1 : lseek(fd, at, SEEK_HOLE);
		if (hole <= at)
			break;
		n += (uint64_t)(hole - at);
		at = hole;
	}
	if (fd >= 0)
		close(fd);
	return n;
}

/* .tmp-NAME-PID-N: the length of NAME; 0 if the file is not varve's. */
static size_t name_in(const char *tmp)
{
	size_t n = strlen(tmp);

	for (int dashes = 0; dashes < 2 && n; dashes++)
		for (n--; n && tmp[n] != '-';)
			n--;
	return n;
}

static int add_unfinished(void *out, int dirfd, const char *tmp)
{
	const char *name = tmp + strlen(VV_DIR_TMP);
	size_t n = strncmp(tmp, VV_DIR_TMP, strlen(VV_DIR_TMP)) == 0 ? name_in(name) : 0;

	return n ? vv_names_add(out, name, n, written(dirfd, tmp), false) : 0;
}

int vv_dir_look_unfinished(struct vv_store *s, const char *dir, struct vv_names *out)
{
	char *path = vv_dir_path(vv_dir_of(s), dir);
	int rc = path ? vv_dir_list_each(path, add_unfinished, out) : VV_ENOMEM;

	vv_mem_free(path);
	return rc;
}

/* A plain object, or else a member of a bundle, in the same order as for opening. */
int vv_dir_look_size(struct vv_store *s, const char *name, uint64_t *size)
{
	struct vv_dir *d = vv_dir_of(s);
	struct vv_dir_member m = { .fd = -1 };
	char *path = vv_dir_path(d, name);
	struct stat st;
	int rc = 0;

	if (!path)
		return VV_ENOMEM;
	if (stat(path, &st) == 0)
		*size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	else if (errno != ENOENT && errno != ENOTDIR)
		rc = vv_fd_identity_err(errno, "cannot look at '%s'", path);
	else
		rc = vv_dir_member_open(d, path, O_RDONLY, true, &m);
	if (m.fd >= 0)
		*size = m.len;
	vv_dir_member_close(&m);
	vv_mem_free(path);
	return rc;
}
