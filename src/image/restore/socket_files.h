/* Files of UNIX sockets. Criu removes them before it binds its own; if the restore fails they are put back. */
#ifndef VV_IMAGE_RESTORE_SOCKET_FILES_H
#define VV_IMAGE_RESTORE_SOCKET_FILES_H

#include "image/restore/serve_images.h"

struct vv_socket_files {
	struct vv_socket_files_file *file;
	size_t n, cap;
};

/* Gives each socket file that the tree had, and that is still there, a second name beside it. */
int vv_socket_files_keep(struct vv_socket_files *k, struct vv_serve_images *s);
/* Removes the second names. put_back: the first ones lead to the same files again, whatever is there now. */
void vv_socket_files_close(struct vv_socket_files *k, bool put_back);

#endif
