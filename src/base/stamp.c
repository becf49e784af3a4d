#include "base/stamp.h"
#include "base/err.h"
#include "base/keep.h"
#include <sys/stat.h>

struct vv_stamp vv_stamp_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (struct vv_stamp){ st.st_dev, st.st_ino } : (struct vv_stamp){ 0 };
}

struct vv_stamp vv_stamp_named(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? (struct vv_stamp){ st.st_dev, st.st_ino } : (struct vv_stamp){ 0 };
}

bool vv_stamp_fits(const struct vv_stamp *s, int fd)
{
	struct stat st;

	return (s->dev || s->ino) && fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

int vv_stamp_check(const struct vv_stamp *s, int fd, const char *what)
{
	return vv_stamp_fits(s, fd) ? 0 : vv_err_set(VV_EIO, "cannot %s: the program has closed a descriptor that is varve's; let it close only what it has opened "
						     "itself, or run it by 'varve run', where varve's stay open", what);
}

void vv_stamp_close(const struct vv_stamp *s, int fd)
{
	if (vv_stamp_fits(s, fd))
		vv_keep_close(fd);
}
