/* Files of removed objects, kept to be written again. On many disks it takes longer to free a
 * gigabyte and to allocate another than to write one. */
#ifndef VV_STORE_DIR_DIR_SPARE_H
#define VV_STORE_DIR_DIR_SPARE_H

#include "store/dir/dir_priv.h"

/* For stores that recycle. In a child of fork the files stay the parent's. */
int vv_dir_spare_init(struct vv_dir *d);
void vv_dir_spare_fini(struct vv_dir *d);
/* Removes an object, and keeps its file so that it can be written again. *kept is false if that is
 * not worthwhile: then the caller removes the object. */
int vv_dir_spare_keep(struct vv_dir *d, const char *path, bool *kept);
/* Opens a spare file for the object `path` of about `expected` bytes, and gives it the name tmp.
 * *size: the size of that file. -1: there is none that fits. */
int vv_dir_spare_take(struct vv_dir *d, const char *path, const char *tmp, uint64_t expected, uint64_t *size);
/* After a failure with this errno: does a second attempt find more space on the disk? If it is
 * full, all spare files and the rest of removed ones are freed. errno stays as it was. */
bool vv_dir_spare_made_room(struct vv_dir *d, int errnum);
/* Tests: the size from which files are kept. */
void vv_dir_spare_set_least(uint64_t bytes);

#endif
