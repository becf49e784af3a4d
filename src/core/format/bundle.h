/* A bundle: one file with the layers of several ranks of an epoch side by side. A directory is at
 * its end, twice. docs/format.md, section 9. */
#ifndef VV_CORE_FORMAT_BUNDLE_H
#define VV_CORE_FORMAT_BUNDLE_H

#include "base/buf.h"

enum {
	VV_BUNDLE_PAGE = 4096,     /* members and directories begin at multiples of this */
	VV_BUNDLE_TRAILER = 48,    /* the end of each copy of the directory */
	VV_BUNDLE_MEMBERS = 65536, /* at most */
	VV_BUNDLE_DIR_MAX = 4 << 20,
};

struct vv_member { /* as given by the writer of a bundle */
	const char *name; /* the last component of an object's name */
	uint64_t off;
	uint64_t len;
};

struct vv_bundle_entry {
	uint32_t rank;
	uint64_t off;
	uint64_t len;
};

struct vv_bundle {
	uint64_t epoch; /* these three are part of the file's name */
	uint32_t first;
	uint32_t last;
	struct vv_bundle_entry *v; /* ascending by rank, and by place */
	size_t n;
};

struct vv_bundle_trailer {
	uint64_t dir_off; /* of the first copy: the end of the members */
	uint64_t dir_len; /* of one copy */
	uint64_t check;   /* of a copy without its trailer */
	uint32_t n;
};

void vv_bundle_fini(struct vv_bundle *b);
/* Adds the members of a writer: VV_EINVAL if no bundle of that name can have them. */
int vv_bundle_set(struct vv_bundle *b, const struct vv_member *m, size_t n);
/* The end of the members, where the directory begins. */
uint64_t vv_bundle_end(const struct vv_bundle *b);
/* Writes both copies of the directory. */
int vv_bundle_put(const struct vv_bundle *b, struct vv_buf *out);

int vv_bundle_get_trailer(struct vv_bundle_trailer *t, const uint8_t trailer[VV_BUNDLE_TRAILER], uint64_t file_len);
/* dir: one copy, dir_len bytes. */
int vv_bundle_get(struct vv_bundle *b, const struct vv_bundle_trailer *t, const uint8_t *dir);

/* The entry of a rank, or NULL. */
const struct vv_bundle_entry *vv_bundle_find(const struct vv_bundle *b, uint32_t rank);

#endif
