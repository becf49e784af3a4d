/* Files that are streamed from pipes; their lengths are known at their ends. A load of them, as
 * large as the source can hold, is kept in memory and packed like files on a disk, kind by kind.
 * Small content that is not process memory stays until all files have come. */
#ifndef VV_ENGINE_FILES_STREAM_INPUT_H
#define VV_ENGINE_FILES_STREAM_INPUT_H

#include "engine/files/file_set.h"

enum vv_stream_input_next {
	VV_STREAM_INPUT_END,
	VV_STREAM_INPUT_PART,
	/* the source can hold no more: its parts must be stored before the next call */
	VV_STREAM_INPUT_PAUSE,
};

struct vv_stream_input_part { /* the next stretch of a file */
	const char *name; /* valid until the epoch is written; the same pointer for the same file */
	/* parts of one name are of one kind; NULL: skeleton, and then the whole file is skeleton */
	const char *variable;
	uint8_t segment;      /* enum vv_segment, of a variable */
	/* of a variable: valid until the first call after the next pause; of skeleton: until the
	 * next call */
	const uint8_t *bytes;
	size_t n;             /* 0: an empty file, unless more parts of it follow */
};

struct vv_stream_input {
	void *arg;
	const char *format; /* of all files */
	uint64_t expected;  /* bytes in all, approximately */
	/* Waits for the next part. Returns enum vv_stream_input_next; < 0 is an error, and the
	 * epoch is abandoned. */
	int (*next)(void *arg, struct vv_stream_input_part *out);
};

/* Takes all parts up to the next pause or the end, as spans of the file set with bytes in memory.
 * Sets *more after a pause. The parts of the previous call must be stored. */
int vv_stream_input_take(const struct vv_stream_input *in, struct vv_file_set *c, bool *more);

/* The first call adds a stretch of a file in memory, to be stored as this kind. The second sorts
 * all stretches afterwards. */
int vv_stream_input_add(struct vv_file_set *c, uint32_t file, uint32_t kind, uint64_t at, const uint8_t *bytes, size_t n);
void vv_stream_input_sort(struct vv_file_set *c);

#endif
