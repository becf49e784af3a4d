/* Extended attributes of an open file or folder, access control lists among them: as the kernel has them, and core/format/file_attributes.h. */
#ifndef VV_ENGINE_FILES_XATTR_H
#define VV_ENGINE_FILES_XATTR_H

#include "core/format/file_attributes.h"
#include <inttypes.h>

struct vv_xattr_left { /* attributes that are not kept */
	uint64_t n;
	char first[VV_FILE_ATTRIBUTES_NAME + 512]; /* what became of the first, in words */
};

/* out starts empty. What is not packed (vv_file_attributes_is_kept) is counted; name: of the file, for the words. A file system without attributes has none. */
int vv_xattr_read(int fd, const char *name, struct vv_file_attributes *out, struct vv_xattr_left *left);
/* What the file system does not take is counted. */
void vv_xattr_write(int fd, const char *name, const struct vv_file_attributes *a, struct vv_xattr_left *left);
/* Those that are packed: has the file the same? */
bool vv_xattr_equal(int fd, const struct vv_file_attributes *a);

#endif
