/* The process numbers that an image names: pstree.img, with an entry for each process. */
#ifndef VV_IMAGE_CRIU_PSTREE_IMAGE_H
#define VV_IMAGE_CRIU_PSTREE_IMAGE_H

#include "image/process/process_tree.h"

/* Of processes and threads; what is not understood is left out. */
int vv_pstree_image_read(const uint8_t *image, size_t n, struct vv_process_tree *out);
/* One that has ended keeps its number until its parent has heard of it: waits for those, as long as they become fewer. Whether a number is taken by one
 * that lives is criu's to say: there are spaces of numbers besides ours. */
void vv_pstree_image_wait(const struct vv_process_tree *t);

#endif
