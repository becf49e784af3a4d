/* Attributes and names of files and folders. */
#include "preload/wrap/wrap.h"
#include <stdarg.h>

#if __GLIBC_PREREQ(2, 33)
int stat(const char *path, struct stat *st)
{
	WRITES_OBJECT(st);
	return REAL(stat)(path, st);
}

int fstat(int fd, struct stat *st)
{
	WRITES_OBJECT(st);
	return REAL(fstat)(fd, st);
}

int lstat(const char *path, struct stat *st)
{
	WRITES_OBJECT(st);
	return REAL(lstat)(path, st);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	WRITES_OBJECT(st);
	return REAL(fstatat)(dir, path, st, flags);
}

int stat64(const char *path, struct stat64 *st)
{
	WRITES_OBJECT(st);
	return REAL(stat64)(path, st);
}

int fstat64(int fd, struct stat64 *st)
{
	WRITES_OBJECT(st);
	return REAL(fstat64)(fd, st);
}

int lstat64(const char *path, struct stat64 *st)
{
	WRITES_OBJECT(st);
	return REAL(lstat64)(path, st);
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	WRITES_OBJECT(st);
	return REAL(fstatat64)(dir, path, st, flags);
}
#endif

int __xstat(int version, const char *path, struct stat *st)
{
	WRITES_OBJECT(st);
	return REAL(__xstat)(version, path, st);
}

int __fxstat(int version, int fd, struct stat *st)
{
	WRITES_OBJECT(st);
	return REAL(__fxstat)(version, fd, st);
}

int __lxstat(int version, const char *path, struct stat *st)
{
	WRITES_OBJECT(st);
	return REAL(__lxstat)(version, path, st);
}

int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	WRITES_OBJECT(st);
	return REAL(__fxstatat)(version, dir, path, st, flags);
}

int __xstat64(int version, const char *path, struct stat64 *st)
{
	WRITES_OBJECT(st);
	return REAL(__xstat64)(version, path, st);
}

int __fxstat64(int version, int fd, struct stat64 *st)
{
	WRITES_OBJECT(st);
	return REAL(__fxstat64)(version, fd, st);
}

int __lxstat64(int version, const char *path, struct stat64 *st)
{
	WRITES_OBJECT(st);
	return REAL(__lxstat64)(version, path, st);
}

int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags)
{
	WRITES_OBJECT(st);
	return REAL(__fxstatat64)(version, dir, path, st, flags);
}

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	WRITES_OBJECT(st);
	return REAL(statx)(dir, path, flags, mask, st);
}

int statfs(const char *path, struct statfs *st)
{
	WRITES_OBJECT(st);
	return REAL(statfs)(path, st);
}

int fstatfs(int fd, struct statfs *st)
{
	WRITES_OBJECT(st);
	return REAL(fstatfs)(fd, st);
}

int statfs64(const char *path, struct statfs64 *st)
{
	WRITES_OBJECT(st);
	return REAL(statfs64)(path, st);
}

int fstatfs64(int fd, struct statfs64 *st)
{
	WRITES_OBJECT(st);
	return REAL(fstatfs64)(fd, st);
}

int statvfs(const char *path, struct statvfs *st)
{
	WRITES_OBJECT(st);
	return REAL(statvfs)(path, st);
}

int fstatvfs(int fd, struct statvfs *st)
{
	WRITES_OBJECT(st);
	return REAL(fstatvfs)(fd, st);
}

int statvfs64(const char *path, struct statvfs64 *st)
{
	WRITES_OBJECT(st);
	return REAL(statvfs64)(path, st);
}

int fstatvfs64(int fd, struct statvfs64 *st)
{
	WRITES_OBJECT(st);
	return REAL(fstatvfs64)(fd, st);
}

ssize_t readlink(const char *path, char *buf, size_t n)
{
	WRITES(buf, n);
	return REAL(readlink)(path, buf, n);
}

ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t room)
{
	WRITES(buf, n);
	return REAL(__readlink_chk)(path, buf, n, room);
}

ssize_t readlinkat(int dir, const char *path, char *buf, size_t n)
{
	WRITES(buf, n);
	return REAL(readlinkat)(dir, path, buf, n);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t n, size_t room)
{
	WRITES(buf, n);
	return REAL(__readlinkat_chk)(dir, path, buf, n, room);
}

char *getcwd(char *buf, size_t n)
{
	WRITES(buf, n);
	char *p = REAL(getcwd)(buf, n);
	return buf ? p : vv_wrap_given(p, (uintptr_t)__builtin_return_address(0));
}

char *__getcwd_chk(char *buf, size_t n, size_t room)
{
	WRITES(buf, n);
	char *p = REAL(__getcwd_chk)(buf, n, room);
	return buf ? p : vv_wrap_given(p, (uintptr_t)__builtin_return_address(0));
}

#if __GLIBC_PREREQ(2, 30)
ssize_t getdents64(int fd, void *buf, size_t n)
{
	WRITES(buf, n);
	return REAL(getdents64)(fd, buf, n);
}
#endif

ssize_t getdirentries(int fd, char *buf, size_t n, off_t *at)
{
	WRITES(buf, n);
	return REAL(getdirentries)(fd, buf, n, at);
}

ssize_t getdirentries64(int fd, char *buf, size_t n, off64_t *at)
{
	WRITES(buf, n);
	return REAL(getdirentries64)(fd, buf, n, at);
}

int name_to_handle_at(int dir, const char *path, struct file_handle *handle, int *mount, int flags)
{
	RANGES(r);
	vv_wrap_add(&r, handle, handle ? sizeof(*handle) + handle->handle_bytes : 0);
	vv_wrap_add(&r, mount, sizeof(*mount));
	vv_wrap_enter_all(&r);
	return REAL(name_to_handle_at)(dir, path, handle, mount, flags);
}

int ttyname_r(int fd, char *buf, size_t n)
{
	WRITES(buf, n);
	return REAL(ttyname_r)(fd, buf, n);
}

int __ttyname_r_chk(int fd, char *buf, size_t n, size_t room)
{
	WRITES(buf, n);
	return REAL(__ttyname_r_chk)(fd, buf, n, room);
}

/* ---- attributes */

ssize_t getxattr(const char *path, const char *name, void *value, size_t n)
{
	WRITES(value, n);
	return REAL(getxattr)(path, name, value, n);
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t n)
{
	WRITES(value, n);
	return REAL(lgetxattr)(path, name, value, n);
}

ssize_t fgetxattr(int fd, const char *name, void *value, size_t n)
{
	WRITES(value, n);
	return REAL(fgetxattr)(fd, name, value, n);
}

ssize_t listxattr(const char *path, char *list, size_t n)
{
	WRITES(list, n);
	return REAL(listxattr)(path, list, n);
}

ssize_t llistxattr(const char *path, char *list, size_t n)
{
	WRITES(list, n);
	return REAL(llistxattr)(path, list, n);
}

ssize_t flistxattr(int fd, char *list, size_t n)
{
	WRITES(list, n);
	return REAL(flistxattr)(fd, list, n);
}

/* ---- locks, owners */

static size_t answer_size(int command)
{
	switch (command) {
	case F_GETLK:
	case F_OFD_GETLK:
		return sizeof(struct flock);
	case F_GETOWN_EX:
		return sizeof(struct f_owner_ex);
	case F_GET_RW_HINT:
	case F_GET_FILE_RW_HINT:
		return sizeof(uint64_t);
	default:
		return 0;
	}
}

int fcntl(int fd, int command, ...)
{
	va_list ap;
	va_start(ap, command);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	WRITES(arg, answer_size(command));
	return REAL(fcntl)(fd, command, arg);
}

int fcntl64(int fd, int command, ...)
{
	va_list ap;
	va_start(ap, command);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	WRITES(arg, answer_size(command));
	return REAL(fcntl64)(fd, command, arg);
}
