/* The real file system. */
#include "base/fs.h"
#include "base/own_fds.h"
#include "base/fd_identity.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

static int real_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	(void)fs;
	return vv_own_fds_open(path, flags | O_CLOEXEC, mode);
}

static int real_close(const struct vv_fs *fs, int fd)
{
	(void)fs;
	return vv_own_fds_close(fd);
}

static ssize_t real_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	(void)fs;
	return pwritev(fd, iov, n, off);
}

static ssize_t real_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	return pread(fd, p, n, off);
}

static int real_allocate(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	return fallocate(fd, 0, off, len);
}

static int real_start_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	return sync_file_range(fd, off, len, SYNC_FILE_RANGE_WRITE);
}

/* Files in memory accept the flag, but their page cache is the medium. */
static int real_direct(const struct vv_fs *fs, int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	struct statfs st;

	(void)fs;
	if (flags < 0)
		return -1;
	if (on && fstatfs(fd, &st) == 0 && (st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC)) {
		errno = EINVAL;
		return -1;
	}
	return fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

static int real_punch(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len);
}

static int real_truncate(const struct vv_fs *fs, int fd, off_t len)
{
	(void)fs;
	return ftruncate(fd, len);
}

static int real_fsync(const struct vv_fs *fs, int fd)
{
	(void)fs;
	return fsync(fd);
}

static int real_rename(const struct vv_fs *fs, const char *from, const char *to)
{
	(void)fs;
	return rename(from, to);
}

static int real_unlink(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return unlink(path);
}

static int real_mkdir(const struct vv_fs *fs, const char *path, mode_t mode)
{
	(void)fs;
	return mkdir(path, mode);
}

static int real_rmdir(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return rmdir(path);
}

static int real_fsync_dir(const struct vv_fs *fs, const char *path)
{
	struct vv_fd_identity stamp = { 0 };
	struct stat st;
	int fd, rc, saved;
	bool ours;

	(void)fs;
	fd = vv_own_fds_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (stat(path, &st) == 0)
		stamp = (struct vv_fd_identity){ st.st_dev, st.st_ino };
	rc = fsync(fd);
	saved = errno;
	ours = vv_fd_identity_fits(&stamp, fd);
	vv_fd_identity_close(&stamp, fd);
	if (!ours) {
		errno = EBADF;
		return -1;
	}
	/* Some network file systems refuse to sync a directory: a rename cannot be made more
	 * durable there. */
	if (rc < 0 && (saved == EINVAL || saved == ENOTSUP))
		return 0;
	errno = saved;
	return rc;
}

const struct vv_fs *vv_fs_real(void)
{
	static const struct vv_fs real = {
		.open = real_open,
		.close = real_close,
		.pwritev = real_pwritev,
		.pread = real_pread,
		.allocate = real_allocate,
		.start_writeback = real_start_writeback,
		.direct = real_direct,
		.punch = real_punch,
		.truncate = real_truncate,
		.fsync = real_fsync,
		.rename = real_rename,
		.unlink = real_unlink,
		.mkdir = real_mkdir,
		.rmdir = real_rmdir,
		.fsync_dir = real_fsync_dir,
	};

	return &real;
}

int vv_fs_write_all(const struct vv_fs *fs, int fd, struct iovec *iov, int n, off_t off)
{
	while (n > 0) {
		ssize_t put;

		if (iov->iov_len == 0) {
			iov++;
			n--;
			continue;
		}
		put = fs->pwritev(fs, fd, iov, n < IOV_MAX ? n : IOV_MAX, off);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			errno = put == 0 ? EIO : errno;
			return -1;
		}
		off += put;
		for (; n > 0 && (size_t)put >= iov->iov_len; iov++, n--)
			put -= (ssize_t)iov->iov_len;
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + put;
			iov->iov_len -= (size_t)put;
		}
	}
	return 0;
}

int vv_fs_write_list(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	enum { PARTS = 256 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < n; i += PARTS) {
		struct iovec part[PARTS];
		int k = n - i < PARTS ? n - i : PARTS;

		memcpy(part, iov + i, (size_t)k * sizeof(*part));
		rc = vv_fs_write_all(fs, fd, part, k, off);
		for (int j = i; j < i + k; j++)
			off += (off_t)iov[j].iov_len;
	}
	return rc;
}

int vv_fs_read_least(const struct vv_fs *fs, int fd, void *p, size_t least, size_t most, off_t off)
{
	char *to = p;

	for (size_t done = 0; done < least;) {
		ssize_t got = fs->pread(fs, fd, to + done, most - done, off + (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got == 0 ? EIO : errno;
			return -1;
		}
		done += (size_t)got;
	}
	return 0;
}

int vv_fs_read_all(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	return vv_fs_read_least(fs, fd, p, n, n, off);
}

/* An unlisted file system is unknown: FUSE may be anything. */
bool vv_fs_is_local(int fd)
{
	/* ext2, 3 and 4; XFS; Btrfs; F2FS; bcachefs; ZFS; tmpfs; ramfs; overlay */
	static const uint32_t local[] = {
		0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0xca451a4e, 0x2fc12fc1, 0x01021994, 0x858458f6, 0x794c7630,
	};
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if ((uint32_t)st.f_type == local[i])
			return true;
	return false;
}

/* The call also maps the pages, so that a failing disk is an error of madvise, not a later
 * SIGBUS. */
bool vv_fs_resident(const void *p, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)p & ~(page - 1), end = (uintptr_t)p + n;
	unsigned char seen[512];

	while (at < end) {
		size_t pages = (end - at + page - 1) / page;

		pages = pages < sizeof(seen) ? pages : sizeof(seen);
		if (mincore((void *)at, pages * page, seen) < 0)
			return false;
		for (size_t i = 0; i < pages; i++)
			if (!(seen[i] & 1))
				return false;
		if (madvise((void *)at, pages * page, MADV_POPULATE_READ) < 0 && errno != EINVAL)
			return false;
		at += pages * page;
	}
	return true;
}

bool vv_fs_is_cached(const void *p)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char seen = 0;

	return mincore((void *)((uintptr_t)p & ~(page - 1)), page, &seen) == 0 && seen & 1;
}

/* The kernel grants a read lease only while no process has the file open for writing, and delays
 * writers during the lease. It announces a delayed writer by a signal, which must be one that does
 * not end the process. */
bool vv_fs_lease(int fd)
{
	return (fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0) || errno != EAGAIN;
}

bool vv_fs_is_written(int fd)
{
	bool leased = vv_fs_lease(fd);

	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return !leased;
}
