/* Files of UNIX sockets. CRIU removes them before it binds its own; they are put back if the
 * restore fails. */
#ifndef VV_IMAGE_RESTORE_SOCKET_FILES_H
#define VV_IMAGE_RESTORE_SOCKET_FILES_H

#include "image/restore/serve_images.h"

struct vv_socket_files {
	struct vv_socket_files_file *file;
	size_t n, cap;
};

/* Gives each existing socket file of the tree a second name beside it. */
int vv_socket_files_keep(struct vv_socket_files *k, struct vv_serve_images *s);
/* Removes the second names. put_back: the first names lead to the same files again; this replaces
 * newer files there. */
void vv_socket_files_close(struct vv_socket_files *k, bool put_back);

#endif
