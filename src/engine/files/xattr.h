/* Extended attributes of an open file or folder, including access control lists, between the kernel
 * and core/format/file_attributes.h. */
#ifndef VV_ENGINE_FILES_XATTR_H
#define VV_ENGINE_FILES_XATTR_H

#include "core/format/file_attributes.h"
#include <inttypes.h>

struct vv_xattr_left { /* attributes that were not packed or restored */
	uint64_t n;
	bool unread; /* some could not be read */
	char first[VV_FILE_ATTRIBUTES_NAME + 512]; /* a sentence about the first of them */
};

/* out starts empty. Attributes that are not packed (vv_file_attributes_is_kept) are counted in
 * left. name: of the file, for the sentence. A file system without attributes yields none. */
int vv_xattr_read(int fd, const char *name, struct vv_file_attributes *out, struct vv_xattr_left *left);
/* Attributes that the file system refuses are counted in left. */
void vv_xattr_write(int fd, const char *name, const struct vv_file_attributes *a, struct vv_xattr_left *left);
/* Does the file have the same attributes, of those that are packed? Not if some cannot be read:
 * *unread. */
bool vv_xattr_equal(int fd, const struct vv_file_attributes *a, bool *unread);

#endif
