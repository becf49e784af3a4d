/* Reads the entries of CRIU's images. Two magic numbers (in the oldest version one) precede the
 * entries. An entry is a length of 4 bytes and a protobuf message. */
#ifndef VV_READER_CRIU_ENTRIES_H
#define VV_READER_CRIU_ENTRIES_H

#include "reader/proto.h"

enum vv_criu_entries_magic { /* the second magic number */
	VV_CRIU_PSTREE = 0x50273030,
	VV_CRIU_CORE = 0x55053847,
	VV_CRIU_PAGEMAP = 0x56084025,
	VV_CRIU_FILES = 0x56303138,
	VV_CRIU_STATS = 0x57093306,
	VV_CRIU_MM = 0x57492820,
};

/* All entries of an image, or of the beginning of one; empty if it is not of this kind. */
struct vv_proto vv_criu_entries_open(const uint8_t *image, size_t n, enum vv_criu_entries_magic magic);
/* The next entry; false: none, or an incomplete one. left->n distinguishes the two. */
bool vv_criu_entries_next(struct vv_proto *left, struct vv_proto *out);

#endif
