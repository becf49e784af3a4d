/* The directory of a zip archive, as in PKWARE's APPNOTE, 4.3, with the 64-bit extensions. An
 * archive may follow other bytes in its file: its positions count from its first byte. */
#ifndef VV_READER_ZIP_H
#define VV_READER_ZIP_H

#include "reader/peek.h"

enum { VV_ZIP_LOCAL_BYTES = 30, VV_ZIP_NAME = 256 };

struct vv_zip {
	struct vv_peek *in, *local; /* two windows: of the directory, and of the members' headers */
	uint64_t from; /* the next header that is looked at; nothing is read many times */
	uint64_t base; /* the archive's first byte in the file */
	uint64_t directory; /* of the next entry in the file */
	uint64_t end;  /* of the directory */
	uint64_t n;    /* entries left */
};

struct vv_zip_member {
	uint64_t header; /* of the member in the file */
	uint64_t at;     /* of its bytes in the file; by vv_zip_find_bytes */
	uint64_t stored, raw;
	unsigned method; /* 0: stored as it is */
	char name[VV_ZIP_NAME];
};

/* Is this the header of a member? The name in it is *name, of *len bytes, cut to the given n. */
bool vv_zip_is(const uint8_t *head, size_t n, const char **name, size_t *len);
/* Opens the archive that ends at `end`. A comment may follow the end record; NumPy and PyTorch
 * write none, and such an archive is not found. */
bool vv_zip_open(struct vv_peek *in, struct vv_peek *local, uint64_t end, struct vv_zip *out);
/* The next entry; false: there is none, or it is invalid. A longer name is cut. */
bool vv_zip_next(struct vv_zip *z, struct vv_zip_member *m);
/* Finds the bytes of a member. Members are asked for in the order of the directory, and must lie in
 * this order in the archive. */
bool vv_zip_find_bytes(struct vv_zip *z, struct vv_zip_member *m);

#endif
