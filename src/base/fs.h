/* The file-system calls that durability rests on, as a table: the real one, and in tests one that fails, tears or loses
 * power. Each operation returns as the system call does: -1 and errno. */
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
	int (*allocate)(const struct vv_fs *fs, int fd, off_t off, off_t len); /* a hint; may fail harmlessly */
	int (*start_writeback)(const struct vv_fs *fs, int fd, off_t off, off_t len); /* a hint */
	/* Gives the space of a range back; it reads as zeros then. Where that cannot be done it fails, and nothing is changed. */
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

/* Whole transfers over short ones. 0, or -1 with errno (EIO where a file ended early). iov is used up. */
int vv_fs_write_all(const struct vv_fs *fs, int fd, struct iovec *iov, int n, off_t off);
int vv_fs_read_all(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off);

/* Are the file's bytes on a medium of this machine? A read error is the medium's then, and no outage. false where that is not known. */
bool vv_fs_is_local(int fd);

/* Has somebody the file open for writing? fd is open for reading only. Where that cannot be told, false. */
bool vv_fs_is_written(int fd);
/* Whoever wants to write to it waits until it is closed; for moments, not longer. false: somebody has it open for that. Of another user's file, and where
 * there are no leases, it is true, and nobody waits. */
bool vv_fs_lease(int fd);

/* Is the whole of a stretch of a mapped file in memory now, so that touching it reads nothing? */
bool vv_fs_resident(const void *p, size_t n);
/* Is the page of a mapped file that holds p in memory now? Nothing is promised of what comes after. */
bool vv_fs_is_cached(const void *p);

#endif
