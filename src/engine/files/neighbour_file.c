#include "engine/files/neighbour_file.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int read_some(int fd, const char *path, size_t most, uint8_t **out, size_t *n)
{
	struct stat st;
	uint8_t *p;
	size_t len;

	if (fstat(fd, &st) < 0)
		return vv_err_sys(errno, "cannot look at '%s'", path);
	if (!S_ISREG(st.st_mode))
		return 0;
	len = (uint64_t)st.st_size < most ? (size_t)st.st_size : most;
	p = vv_mem_new(len, 1);
	if (!p)
		return VV_ENOMEM;
	if (vv_fs_read_all(vv_fs_real(), fd, p, len, 0) < 0) {
		vv_mem_free(p);
		return vv_err_sys(errno, "cannot read '%s'", path);
	}
	*out = p;
	*n = len;
	return 0;
}

/* A file that cannot be opened is treated as missing: it would only have improved the compression
 * of another file. */
int vv_neighbour_file_read(const char *path, const char *name, size_t most, uint8_t **out, size_t *n)
{
	const char *slash = strrchr(path, '/');
	char *full = vv_mem_printf("%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
	int fd, rc = 0;

	*out = NULL;
	*n = 0;
	if (!full)
		return VV_ENOMEM;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0) {
		rc = read_some(fd, full, most, out, n);
		close(fd);
	}
	vv_mem_free(full);
	return rc;
}
