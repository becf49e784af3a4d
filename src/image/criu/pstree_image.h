/* The process numbers in an image: pstree.img, with an entry for each process. */
#ifndef VV_IMAGE_CRIU_PSTREE_IMAGE_H
#define VV_IMAGE_CRIU_PSTREE_IMAGE_H

#include "image/process/process_tree.h"

/* Numbers of processes and threads; unknown entries are ignored. */
int vv_pstree_image_read(const uint8_t *image, size_t n, struct vv_process_tree *out);
/* An ended process keeps its number until its parent reaps it. Waits for such processes as long as
 * their number decreases. Only criu can find out whether a live process has a number, because there
 * are other pid namespaces than ours. */
void vv_pstree_image_wait(const struct vv_process_tree *t);

#endif
