/* A folder for one run of criu, below $TMPDIR: for its owner alone, and locked for as long as that lives. What a killed one has left behind, the next
 * one removes, with a criu that still waits there. */
#ifndef VV_IMAGE_CRIU_WORKDIR_H
#define VV_IMAGE_CRIU_WORKDIR_H

enum { VV_WORKDIR_PATH = 80 }; /* a socket's path has little room */

/* Where they are made: $TMPDIR, if there is one whose path is short enough; else /tmp. */
const char *vv_workdir_place(void);
int vv_workdir_make(char path[VV_WORKDIR_PATH], int *lock);
/* With all that is in it. */
void vv_workdir_remove(const char *path, int lock);

#endif
