/* A folder for one run of criu, below $TMPDIR: private to its owner, and locked during the
 * owner's life. The next run removes the folder of a killed owner and kills a criu that still
 * waits there. */
#ifndef VV_IMAGE_CRIU_WORKDIR_H
#define VV_IMAGE_CRIU_WORKDIR_H

enum { VV_WORKDIR_PATH = 80 }; /* the path of a socket has a small limit */

/* The parent folder: $TMPDIR, if its path is short enough; else /tmp. */
const char *vv_workdir_place(void);
int vv_workdir_make(char path[VV_WORKDIR_PATH], int *lock);
/* Removes the folder and its contents, and closes the lock. */
void vv_workdir_remove(const char *path, int lock);

#endif
