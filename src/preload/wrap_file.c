/* What files and folders are, and where. */
#include "preload/wrap.h"

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
