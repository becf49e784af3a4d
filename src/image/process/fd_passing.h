/* Descriptors that travel over UNIX sockets. */
#ifndef VV_IMAGE_PROCESS_FD_PASSING_H
#define VV_IMAGE_PROCESS_FD_PASSING_H

#include <stddef.h>
#include <sys/types.h>

/* n bytes, and with them a descriptor, unless it is -1; as sendmsg returns. */
ssize_t vv_fd_passing_send(int socket, const void *p, size_t n, int fd);
/* Up to n bytes; *fd is -1 if none came with them. As recvmsg returns, but for EINTR. */
ssize_t vv_fd_passing_receive(int socket, void *p, size_t n, int *fd);

#endif
