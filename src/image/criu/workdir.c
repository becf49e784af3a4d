#include "image/criu/workdir.h"
#include "base/err.h"
#include "image/process/process_tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char name[] = "varve-criu-XXXXXX";

enum {
	FIXED = sizeof("varve-criu-") - 1,
	/* Since the last change in it. A new folder is not locked yet, and a criu without its owner
	 * still needs time to end. */
	SETTLED_S = 60,
};

const char *vv_workdir_place(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && tmp[0] && strlen(tmp) + 1 + sizeof(name) <= VV_WORKDIR_PATH ? tmp : P_tmpdir;
}

/* Removes all files of the folder and closes fd. */
static void empty(int fd)
{
	DIR *d = fdopendir(fd);
	const struct dirent *e;

	if (!d)
		close(fd);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

/* The folder is ours and not locked: its owner was killed, on any host or in any container. */
static bool is_left(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IRWXG | S_IRWXO)) && time(NULL) - st.st_mtime > SETTLED_S &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void sweep(const char *place)
{
	DIR *d = opendir(place);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[VV_WORKDIR_PATH];
		int fd = strncmp(e->d_name, name, FIXED) == 0 && strlen(e->d_name) == strlen(name)
				 ? openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				 : -1;

		if (fd < 0)
			continue;
		if (!is_left(fd)) {
			close(fd);
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", place, e->d_name);
		vv_process_tree_end_criu(path);
		empty(fd);
		unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

int vv_workdir_make(char path[VV_WORKDIR_PATH], int *lock)
{
	const char *place = vv_workdir_place();

	*lock = -1;
	snprintf(path, VV_WORKDIR_PATH, "%s/%s", place, name);
	sweep(place);
	if (!mkdtemp(path)) {
		int err = errno;

		path[0] = '\0';
		return vv_err_sys(err, "cannot make a folder in '%s'", place);
	}
	*lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lock >= 0)
		/* Without such locks no process gets one, and no folder is swept. */
		(void)!flock(*lock, LOCK_EX | LOCK_NB);
	return 0;
}

void vv_workdir_remove(const char *path, int lock)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		empty(fd);
	rmdir(path);
	if (lock >= 0)
		close(lock);
}
