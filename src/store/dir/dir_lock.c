/* A POSIX record lock: it ends with its process in any case, is not inherited by fork, and works
 * over NFS. It does not exclude the same process, so a list of the locks of this process does. The
 * file's content only names the holder. */
#include "store/dir/dir_lock.h"
#include "base/err.h"
#include "base/own_fds.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/fd_identity.h"
#include "base/held.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLDER = sizeof(((struct vv_lock_holder *)0)->words) };

struct held {
	struct vv_lock base;
	int fd;
	char *path;
	struct vv_fd_identity stamp;
	struct vv_fd_identity folder; /* of the folder of the lock */
	pid_t pid;
	struct held *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct held *list;

static int busy(const char *path, const char *holder)
{
	const char *slash = strrchr(path, '/');

	return vv_err_set(VV_EBUSY, "'%.*s' is being written by %s; one writer at a time (lock: %s)",
			  (int)(slash - path), path, holder, path);
}

/* Reads "pid 123 on host" from the file. */
static void read_holder(int fd, char text[HOLDER])
{
	ssize_t n = pread(fd, text, HOLDER - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '?';
	if (!text[0])
		snprintf(text, HOLDER, "another process");
}

/* The error for the second process. */
static int busy_other(const char *path, int fd)
{
	char text[HOLDER];

	read_holder(fd, text);
	return busy(path, text);
}

/* Under list_lock. Closing any descriptor of the file would drop this process's lock, so look
 * before opening. */
static int held_here(const char *path)
{
	struct stat st;

	VV_HELD(&list_lock);
	if (stat(path, &st) < 0)
		return 0;
	for (struct held *h = list; h; h = h->next)
		if (h->stamp.dev == st.st_dev && h->stamp.ino == st.st_ino && h->pid == getpid())
			return 1;
	return 0;
}

static int name_process(long pid, char text[HOLDER])
{
	char host[128] = "?";

	gethostname(host, sizeof(host) - 1);
	return snprintf(text, HOLDER, "pid %ld on %s", pid, host);
}

/* Overwrites the name of the previous holder, of `len` bytes. An emptied file would get new blocks,
 * which are written when it is closed. */
static int sign(const struct vv_fd_identity *own, int fd, off_t len)
{
	char text[HOLDER];
	int n = name_process((long)getpid(), text);
	struct iovec iov = { text, (size_t)n + 1 };
	struct vv_fd_identity_fs file;

	text[n++] = '\n';
	vv_fd_identity_guard(&file, vv_fs_real(), own);
	if (vv_fs_write_all(&file.fs, fd, &iov, 1, 0) < 0 || (len > n && file.fs.truncate(&file.fs, fd, n) < 0))
		return -1;
	return 0;
}

enum { RETRY = 1 };

/* Opens the lock for writing the holder's name. It must be a regular file of this name, not the
 * target of a link or a device. */
static int open_own(const char *path, struct stat *st)
{
	int fd = vv_own_fds_open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
	int why = errno;

	if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		return fd;
	/* the descriptor belongs to another file by now */
	if (fd >= 0 && lstat(path, st) == 0 && S_ISREG(st->st_mode))
		return vv_fd_identity_err(EBADF, "cannot take the lock '%s'", path);
	if (fd >= 0)
		vv_own_fds_close(fd);
	else if (lstat(path, st) < 0 || S_ISREG(st->st_mode))
		return vv_fd_identity_err(why, "cannot open the lock '%s'", path);
	return vv_err_set(VV_EDAMAGED, "the lock '%s' is %s, not a regular file; remove it", path,
			  S_ISLNK(st->st_mode) ? "a symbolic link" :
			  S_ISDIR(st->st_mode) ? "a directory" :
						 "a special file");
}

static struct vv_fd_identity folder_of(const char *path)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	return vv_fd_identity_named(folder);
}

static int take(const char *path, struct held *h)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st, named;

	h->fd = open_own(path, &st);
	if (h->fd < 0)
		return h->fd;
	h->stamp = (struct vv_fd_identity){ st.st_dev, st.st_ino };
	if (fcntl(h->fd, F_SETLK, &fl) < 0)
		return errno == EACCES || errno == EAGAIN ? busy_other(path, h->fd) :
							    vv_fd_identity_err(errno, "cannot lock '%s'", path);
	if (stat(path, &named) < 0 || named.st_ino != st.st_ino || named.st_dev != st.st_dev)
		/* the last holder removed the lineage between our open and our lock */
		return RETRY;
	if (sign(&h->stamp, h->fd, st.st_size) < 0)
		return vv_fd_identity_err(errno, "cannot write the lock '%s'", path);
	h->pid = getpid();
	h->folder = folder_of(path);
	return 0;
}

int vv_dir_lock_take(struct vv_store *s, const char *path, struct vv_lock **out)
{
	struct held *h = vv_mem_new(1, sizeof(*h));
	int rc;

	if (!h)
		return VV_ENOMEM;
	h->fd = -1;
	h->base.store = s;
	h->path = vv_mem_strdup(path);
	if (!h->path) {
		vv_mem_free(h);
		return VV_ENOMEM;
	}
	pthread_mutex_lock(&list_lock);
	rc = held_here(path) ? busy(path, "another session of this process") : take(path, h);
	for (int tries = 0; rc == RETRY && tries < 10; tries++) {
		vv_fd_identity_close(&h->stamp, h->fd);
		rc = take(path, h);
	}
	if (rc == RETRY)
		rc = vv_err_set(VV_EBUSY, "the lock '%s' is removed again and again", path);
	if (rc == 0) {
		h->next = list;
		list = h;
	}
	pthread_mutex_unlock(&list_lock);
	if (rc == 0) {
		*out = &h->base;
		return 0;
	}
	vv_fd_identity_close(&h->stamp, h->fd);
	vv_mem_free(h->path);
	vv_mem_free(h);
	return rc;
}

static int err_lock_lost(const struct held *h, const char *holder)
{
	return vv_err_set(VV_EBUSY, "the program has closed the descriptor of the lock '%s', which is varve's, and %s has taken it since: open the session again", h->path,
			  holder);
}

/* Under list_lock. The kernel dropped the lock with the descriptor. A process that held it in
 * between has signed it, and may have written epochs that are unknown to this session. */
static int retake(struct held *h)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char signer[HOLDER], ours[HOLDER];
	struct stat st;
	struct vv_fd_identity named;
	int fd = open_own(h->path, &st), rc = 0;

	VV_HELD(&list_lock);
	if (fd < 0)
		return fd;
	named = vv_fd_identity_named(h->path);
	name_process((long)h->pid, ours);
	read_holder(fd, signer);
	if (named.dev != h->stamp.dev || named.ino != h->stamp.ino)
		rc = err_lock_lost(h, "another process");
	else if (!vv_fd_identity_fits(&h->stamp, fd)) /* the program has closed this one too */
		rc = vv_fd_identity_err(EBADF, "cannot take the lock '%s' again", h->path);
	else if (strcmp(signer, ours) != 0)
		rc = err_lock_lost(h, signer);
	else if (fcntl(fd, F_SETLK, &fl) < 0)
		rc = errno == EACCES || errno == EAGAIN ? err_lock_lost(h, "another process") : vv_fd_identity_err(errno, "cannot lock '%s'", h->path);
	if (rc)
		vv_fd_identity_close(&named, fd);
	else
		h->fd = fd;
	return rc;
}

/* Was only the file removed, as by a purge of old files? Then the folder is unchanged. No process
 * has taken the lock since: the file would exist again. */
static bool is_purged(const struct held *h)
{
	struct vv_fd_identity now = folder_of(h->path);

	return h->folder.ino && now.dev == h->folder.dev && now.ino == h->folder.ino;
}

static int take_again(struct held *h)
{
	struct held fresh = { .fd = -1 };
	int rc = take(h->path, &fresh);

	if (rc) {
		vv_fd_identity_close(&fresh.stamp, fresh.fd);
		return rc == RETRY ? vv_err_set(VV_EBUSY, "the lock '%s' is removed again and again", h->path) : rc;
	}
	vv_fd_identity_close(&h->stamp, h->fd);
	h->fd = fresh.fd;
	h->stamp = fresh.stamp;
	vv_log_warn("the lock '%s' was removed under the running session (by hand? a purge of old files?): it was taken again", h->path);
	return 0;
}

/* A lock file that was removed, or moved away with its folders, is still locked. But a process that
 * opens the name does not see that. If the name cannot be examined, the next write reports the
 * reason. */
static int check_name(struct held *h)
{
	struct stat st;

	if (stat(h->path, &st) < 0 && errno == ENOENT && is_purged(h))
		return take_again(h);
	if (stat(h->path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ?
			       vv_err_set(VV_ENOENT, "the lock '%s' is gone: the store or the lineage was removed or moved away while this session has it open; "
						     "nothing more is stored there. Put it back, or open the session again", h->path) :
			       0;
	if (st.st_dev == h->stamp.dev && st.st_ino == h->stamp.ino)
		return 0;
	return vv_err_set(VV_EBUSY, "the lock '%s' is not the one that this session holds: the store, the lineage or the lock was removed or moved away, and another one is "
				    "in its place; nothing more is stored there. Put the old one back, or open the session again", h->path);
}

/* Under list_lock. */
static int renew(struct held *h)
{
	int rc = h->pid == getpid() ? check_name(h) : 0;

	VV_HELD(&list_lock);
	if (rc || h->pid != getpid() || vv_fd_identity_fits(&h->stamp, h->fd))
		return rc;
	rc = retake(h);
	if (rc == 0)
		vv_log_warn("the program has closed the descriptor of the lock '%s', which is varve's: it was taken again", h->path);
	return rc;
}

int vv_dir_lock_renew(struct vv_store *s)
{
	int rc = 0;

	pthread_mutex_lock(&list_lock);
	for (struct held *h = list; h && rc == 0; h = h->next)
		if (h->base.store == s)
			rc = renew(h);
	pthread_mutex_unlock(&list_lock);
	return rc;
}

int vv_dir_lock_held(struct vv_lock *l)
{
	int rc;

	pthread_mutex_lock(&list_lock);
	rc = renew((struct held *)l);
	pthread_mutex_unlock(&list_lock);
	return rc;
}

void vv_dir_lock_drop(struct vv_lock *l)
{
	struct held *h = (struct held *)l;

	pthread_mutex_lock(&list_lock);
	for (struct held **p = &list; *p; p = &(*p)->next)
		if (*p == h) {
			*p = h->next;
			break;
		}
	vv_fd_identity_close(&h->stamp, h->fd);
	pthread_mutex_unlock(&list_lock);
	vv_mem_free(h->path);
	vv_mem_free(h);
}

/* A process of another host may have the same number: the pid is valid only if the file names this
 * host. */
static int look(const char *path, struct vv_lock_holder *out)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), rc = 0;
	char ours[HOLDER];

	if (fd < 0)
		return errno == ENOENT ? 0 : vv_err_sys(errno, "cannot look at the lock '%s'", path);
	if (fcntl(fd, F_GETLK, &fl) < 0)
		rc = vv_err_sys(errno, "cannot look at the lock '%s'", path);
	else if (fl.l_type != F_UNLCK)
		rc = 1;
	if (rc == 1) {
		read_holder(fd, out->words);
		name_process((long)fl.l_pid, ours);
		out->pid = fl.l_pid > 0 && strcmp(ours, out->words) == 0 ? (long)fl.l_pid : 0;
	}
	close(fd);
	return rc;
}

int vv_dir_lock_look(const char *path, struct vv_lock_holder *out)
{
	int rc = 1;

	pthread_mutex_lock(&list_lock);
	if (held_here(path)) {
		out->pid = (long)getpid();
		name_process(out->pid, out->words);
	} else {
		rc = look(path, out);
	}
	pthread_mutex_unlock(&list_lock);
	return rc;
}
