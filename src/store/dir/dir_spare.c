/* A spare file lies in the folder of its object under a name of unfinished objects. So the next
 * writer of the lineage removes the spare files of a dead process. The name ends like the object's
 * (".r3.layer"). So each of the processes that share a folder takes the files of its own rank,
 * whichever process has removed the object. A file gets this name only when the removal of its
 * object is durable. Else the object could come back after a power failure, with the bytes of
 * another one.
 *
 * A file that is still open elsewhere is not kept, nor written again: a reader may have mapped it.
 * The reader takes a file with another name for a changed one. Only a reader on another host can
 * see new bytes in a removed object. It finds that the checksum is wrong and the epoch's record is
 * gone, as for a removed member of a bundle. */
#include "store/dir/dir_spare.h"
#include "base/err.h"
#include "base/held.h"
#include "base/mem.h"
#include "store/dir/dir.h"
#include "store/dir/dir_cut.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST = 64 }; /* spare files of one process */

static uint64_t least = 4 << 20; /* bytes: smaller files are freed at once */

struct vv_dir_spares {
	pthread_mutex_t lock;
	char *path[MOST]; /* that this process made; others may have taken them */
	size_t n;
};

void vv_dir_spare_set_least(uint64_t bytes)
{
	least = bytes;
}

/* Frees all spare files. True if there were any. */
static bool free_all(struct vv_dir *d)
{
	struct vv_dir_spares *s = d->spares;
	int saved = errno;
	bool freed = false;

	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	while (s->n) {
		freed |= vv_dir_cut_unlink(d, s->path[--s->n]) == 0;
		vv_mem_free(s->path[s->n]);
	}
	pthread_mutex_unlock(&s->lock);
	errno = saved;
	return freed;
}

int vv_dir_spare_init(struct vv_dir *d)
{
	d->spares = vv_mem_new(1, sizeof(*d->spares));
	if (!d->spares)
		return VV_ENOMEM;
	pthread_mutex_init(&d->spares->lock, NULL);
	return 0;
}

void vv_dir_spare_fini(struct vv_dir *d)
{
	if (!d->spares)
		return;
	if (d->pid == getpid()) {
		free_all(d);
		pthread_mutex_destroy(&d->spares->lock);
	}
	while (d->spares->n)
		vv_mem_free(d->spares->path[--d->spares->n]);
	vv_mem_free(d->spares);
	d->spares = NULL;
}

/* DIR/0000000012.r3.layer -> DIR/.tmp-spare.r3.layer, which the caller frees. */
static char *spare_name(const char *path)
{
	const char *base = strrchr(path, '/') + 1, *end = strchr(base, '.');

	return end ? vv_mem_printf("%.*s%sspare%s", (int)(base - path), path, VV_DIR_TMP, end) : NULL;
}

/* Is there so much space that nobody misses it? */
static bool is_affordable(const char *path, uint64_t size)
{
	struct statvfs st;

	return statvfs(path, &st) == 0 && (uint64_t)st.f_bavail * st.f_frsize / 2 > size;
}

/* Takes ownership of the path. False: there are too many. */
static bool note(struct vv_dir_spares *s, char *path)
{
	size_t i = 0;

	while (i < s->n && strcmp(s->path[i], path) != 0)
		i++;
	if (i == MOST)
		return false;
	if (i < s->n)
		vv_mem_free(s->path[i]);
	else
		s->n++;
	s->path[i] = path;
	return true;
}

/* A file that could not be written again, since it is open elsewhere or the file system has no
 * leases, would only take space. */
static bool can_be_taken(const struct vv_dir *d, const char *path)
{
	int fd = d->fs->open(d->fs, path, O_WRONLY | O_NOFOLLOW, 0);
	bool can = fd >= 0 && vv_dir_cut_is_only_ours(fd);

	if (fd >= 0)
		d->fs->close(d->fs, fd);
	return can;
}

static bool is_worthwhile(const struct vv_dir *d, const char *path)
{
	struct stat st;

	return d->spares && d->wrote_direct && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       (uint64_t)st.st_size >= least && is_affordable(path, (uint64_t)st.st_size) && can_be_taken(d, path);
}

/* An earlier spare file may have the name. */
static int replace_spare(struct vv_dir *d, const char *hidden, const char *spare)
{
	int old = vv_dir_cut_open(d, spare), rc = d->fs->rename(d->fs, hidden, spare);

	vv_dir_cut_close(d, old, rc == 0);
	return rc;
}

/* Under the lock. hidden: a name that no writer looks for. Takes ownership of spare. */
static int keep_as(struct vv_dir *d, const char *path, const char *hidden, char *spare, bool *kept)
{
	int rc;

	VV_HELD(&d->spares->lock);
	*kept = d->fs->rename(d->fs, path, hidden) == 0;
	rc = *kept ? vv_dir_sync_parent(d, path) : 0;
	if (*kept && rc == 0 && replace_spare(d, hidden, spare) == 0 && note(d->spares, spare))
		return 0;
	if (*kept) {
		d->fs->unlink(d->fs, hidden);
		d->fs->unlink(d->fs, spare);
	}
	vv_mem_free(spare);
	return rc;
}

int vv_dir_spare_keep(struct vv_dir *d, const char *path, bool *kept)
{
	char *spare = is_worthwhile(d, path) ? spare_name(path) : NULL;
	char *hidden = spare ? vv_mem_printf("%s-%d", spare, (int)getpid()) : NULL;
	int rc = 0;

	*kept = false;
	if (hidden) {
		pthread_mutex_lock(&d->spares->lock);
		rc = keep_as(d, path, hidden, spare, kept);
		pthread_mutex_unlock(&d->spares->lock);
	} else {
		vv_mem_free(spare);
	}
	vv_mem_free(hidden);
	return rc;
}

/* Another process may replace the spare file after it was opened: then tmp is that other file. */
static bool take_name(struct vv_dir *d, const char *spare, const char *tmp, const struct stat *st)
{
	struct stat now;

	if (d->fs->rename(d->fs, spare, tmp) < 0)
		return false;
	if (lstat(tmp, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino)
		return true;
	d->fs->unlink(d->fs, tmp);
	return false;
}

/* A file that is much too large would have to be cut, which takes as long as freeing it. */
int vv_dir_spare_take(struct vv_dir *d, const char *path, const char *tmp, uint64_t expected, uint64_t *size)
{
	char *spare = d->spares ? spare_name(path) : NULL;
	int fd = spare ? d->fs->open(d->fs, spare, O_WRONLY | O_NOFOLLOW, 0) : -1;
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 || (uint64_t)st.st_size / 2 > expected ||
			!vv_dir_cut_is_only_ours(fd) || !take_name(d, spare, tmp, &st))) {
		d->fs->close(d->fs, fd);
		fd = -1;
	}
	if (fd >= 0)
		*size = (uint64_t)st.st_size;
	vv_mem_free(spare);
	return fd;
}

bool vv_dir_spare_made_room(struct vv_dir *d, int errnum)
{
	bool freed = false;

	if (errnum != ENOSPC && errnum != EDQUOT)
		return false;
	freed = free_all(d);
	while (vv_dir_cut_step(d))
		freed = true;
	errno = errnum;
	return freed;
}
