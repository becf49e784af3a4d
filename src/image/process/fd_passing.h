/* Passes descriptors over UNIX sockets. */
#ifndef VV_IMAGE_PROCESS_FD_PASSING_H
#define VV_IMAGE_PROCESS_FD_PASSING_H

#include <stddef.h>
#include <sys/types.h>

/* Sends n bytes and a descriptor; -1 sends no descriptor. Returns the result of sendmsg. */
ssize_t vv_fd_passing_send(int socket, const void *p, size_t n, int fd);
/* Receives up to n bytes. *fd is -1 if no descriptor came with them. Returns the result of recvmsg,
 * but never fails with EINTR. */
ssize_t vv_fd_passing_receive(int socket, void *p, size_t n, int *fd);

#endif
