#include "cli/base/outfile.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/base/interrupt.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void release(struct vv_outfile *f)
{
	if (f->fd >= 0)
		close(f->fd);
	vv_mem_free(f->path);
	vv_mem_free(f->tmp);
	*f = (struct vv_outfile){ .fd = -1 };
}

/* DIR/NAME -> DIR/.NAME.PID.tmp, with the name cut to the limit of file systems */
static char *tmp_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return vv_mem_printf("%.*s.%.200s.%d.tmp", (int)(name - path), path, name, (int)getpid());
}

/* Renaming over a device or a pipe would replace it: those are written in place. */
static bool in_place(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* The new file is as private as the one that it replaces. */
static void keep_mode(const struct vv_outfile *f)
{
	struct stat st;

	if (stat(f->path, &st) == 0)
		(void)fchmod(f->fd, st.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO));
}

static int open_it(struct vv_outfile *f)
{
	if (in_place(f->path)) {
		f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
		return f->fd < 0 ? vv_err_sys(errno, "cannot write '%s'", f->path) : 0;
	}
	f->tmp = tmp_name(f->path);
	if (!f->tmp)
		return VV_ENOMEM;
	f->fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (f->fd < 0) {
		int rc = vv_err_sys(errno, "cannot create '%s'", f->path);

		vv_mem_free(f->tmp);
		f->tmp = NULL;
		return rc;
	}
	keep_mode(f);
	vv_interrupt_file(f->tmp);
	return 0;
}

int vv_outfile_open(struct vv_outfile *f, const char *path)
{
	char real[PATH_MAX];
	int rc;

	*f = (struct vv_outfile){ .fd = -1 };
	f->path = vv_mem_strdup(realpath(path, real) ? real : path);
	rc = f->path ? open_it(f) : VV_ENOMEM;
	if (rc)
		release(f);
	return rc;
}

int vv_outfile_commit(struct vv_outfile *f)
{
	int rc = 0, fd = f->fd;

	if (f->tmp && fsync(fd) < 0)
		rc = vv_err_sys(errno, "cannot write '%s'", f->path);
	f->fd = -1;
	if (close(fd) < 0 && rc == 0)
		rc = vv_err_sys(errno, "cannot write '%s'", f->path);
	if (rc == 0 && f->tmp && rename(f->tmp, f->path) < 0)
		rc = vv_err_sys(errno, "cannot rename '%s' to '%s'", f->tmp, f->path);
	if (rc && f->tmp)
		unlink(f->tmp);
	vv_interrupt_file(NULL);
	release(f);
	return rc;
}

void vv_outfile_abort(struct vv_outfile *f)
{
	if (f->tmp)
		unlink(f->tmp);
	vv_interrupt_file(NULL);
	release(f);
}
