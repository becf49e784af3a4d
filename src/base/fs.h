/* The file-system calls on which durability depends, as a table: the real one, and in tests one
 * that fails, tears writes or loses power. Each operation returns like the system call: -1 and
 * errno. */
#ifndef VV_BASE_FS_H
#define VV_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

struct vv_fs {
	int (*open)(const struct vv_fs *fs, const char *path, int flags, mode_t mode);
	int (*close)(const struct vv_fs *fs, int fd);
	ssize_t (*pwritev)(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off);
	ssize_t (*pread)(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off);
	/* a hint; may fail harmlessly */
	int (*allocate)(const struct vv_fs *fs, int fd, off_t off, off_t len);
	int (*start_writeback)(const struct vv_fs *fs, int fd, off_t off, off_t len); /* a hint */
	/* Switches reads and writes of this descriptor past the page cache, or back. It fails where
	 * that is impossible or useless. */
	int (*direct)(const struct vv_fs *fs, int fd, bool on);
	/* Frees the space of a range, which then reads as zeros. If that is impossible, it fails
	 * and changes nothing. */
	int (*punch)(const struct vv_fs *fs, int fd, off_t off, off_t len);
	int (*truncate)(const struct vv_fs *fs, int fd, off_t len);
	int (*fsync)(const struct vv_fs *fs, int fd);
	int (*rename)(const struct vv_fs *fs, const char *from, const char *to);
	int (*unlink)(const struct vv_fs *fs, const char *path);
	int (*mkdir)(const struct vv_fs *fs, const char *path, mode_t mode);
	int (*rmdir)(const struct vv_fs *fs, const char *path);
	int (*fsync_dir)(const struct vv_fs *fs, const char *path);
};

const struct vv_fs *vv_fs_real(void);

/* Transfers all bytes, over short transfers. 0, or -1 with errno (EIO if a file ended early). iov
 * is modified. */
int vv_fs_write_all(const struct vv_fs *fs, int fd, struct iovec *iov, int n, off_t off);
/* The same without a change of iov, for callers that may try again. */
int vv_fs_write_list(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off);
int vv_fs_read_all(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off);
/* The same for any number of bytes from `least` to `most`. */
int vv_fs_read_least(const struct vv_fs *fs, int fd, void *p, size_t least, size_t most, off_t off);

/* Are the file's bytes on a medium of this machine? Then a read error is one of the medium, not an
 * outage. False if unknown. */
bool vv_fs_is_local(int fd);

/* Does a process have the file open for writing? fd is open for reading only. False if unknown. */
bool vv_fs_is_written(int fd);
/* Delays processes that want to write until the file is closed, for moments only. False: a process
 * has it open for writing. True, without a delay, for another user's file and where there are no
 * leases. */
bool vv_fs_lease(int fd);

/* Is a range of a mapped file completely in memory now, so that access reads nothing? */
bool vv_fs_resident(const void *p, size_t n);
/* Is the page of a mapped file that holds p in memory now? It may be evicted at any time. */
bool vv_fs_is_cached(const void *p);

#endif
