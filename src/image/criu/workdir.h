/* A folder for one run of criu, below $TMPDIR: for its owner alone, and locked for as long as that lives. What a killed one has left behind, the next
 * one removes, with a criu that still waits there. */
#ifndef VV_IMAGE_FOLDER_H
#define VV_IMAGE_FOLDER_H

enum { VV_FOLDER_PATH = 80 }; /* a socket's path has little room */

/* Where they are made: $TMPDIR, if there is one whose path is short enough; else /tmp. */
const char *vv_folder_place(void);
int vv_folder_make(char path[VV_FOLDER_PATH], int *lock);
/* With all that is in it. */
void vv_folder_remove(const char *path, int lock);

#endif
