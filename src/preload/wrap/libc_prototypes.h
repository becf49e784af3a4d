/* Functions of the C library that programs call indirectly: no header declares them in all
 * configurations. wrap.h includes this. */
#ifndef VV_PRELOAD_WRAP_LIBC_PROTOTYPES_H
#define VV_PRELOAD_WRAP_LIBC_PROTOTYPES_H

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#if __GLIBC_PREREQ(2, 28)
#include <threads.h>
#endif

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t room);
size_t __fread_chk(void *buf, size_t room, size_t size, size_t n, FILE *f);
size_t __fread_unlocked_chk(void *buf, size_t room, size_t size, size_t n, FILE *f);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags, __SOCKADDR_ARG addr, socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t n, size_t room);
char *__getcwd_chk(char *buf, size_t n, size_t room);
int __getgroups_chk(int n, gid_t *list, size_t room);
int __ttyname_r_chk(int fd, char *buf, size_t n, size_t room);
int capget(void *head, void *data);
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
sighandler_t __sysv_signal(int sig, sighandler_t handler);
sighandler_t bsd_signal(int sig, sighandler_t handler);

#endif
