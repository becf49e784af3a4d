/* Files that come by themselves, from pipes: their lengths are known when they end. As much of them is held in memory as their source can hold, all of it
 * if need be; then it is packed like files on a disk, kind by kind. What is no memory of a process, small as it is, stays until all have come. */
#ifndef VV_ENGINE_FILES_STREAM_INPUT_H
#define VV_ENGINE_FILES_STREAM_INPUT_H

#include "engine/files/file_set.h"

enum vv_stream_input_next {
	VV_STREAM_INPUT_END,
	VV_STREAM_INPUT_PART,
	VV_STREAM_INPUT_PAUSE, /* the source can hold no more: what it told must be stored before it is asked again */
};

struct vv_stream_input_part { /* the next stretch of a file */
	const char *name;     /* it stays until the epoch is laid down, and is the same pointer for the same file */
	const char *variable; /* what it is: what has one name is of one kind; NULL: skeleton, and then all of the file is */
	uint8_t segment;      /* enum vv_segment, of a variable */
	const uint8_t *bytes; /* of a variable: they stay until what is behind the next pause is asked for; of skeleton: until the next part is */
	size_t n;             /* 0: there is such a file, if nothing more is heard of it */
};

struct vv_stream_input {
	void *arg;
	const char *format; /* of all files */
	uint64_t expected;  /* bytes in all, about */
	/* enum vv_stream_input_next; < 0: an error, and no epoch comes of it. It waits. */
	int (*next)(void *arg, struct vv_stream_input_part *out);
};

/* All up to the next pause, or the end: spans of the file set, whose bytes are in memory. *more: it was a pause. What was taken before is stored. */
int vv_stream_input_take(const struct vv_stream_input *in, struct vv_file_set *c, bool *more);

/* A stretch of a file that is in memory, and is to be stored as of this kind, is added to what was taken; then all is put in order. */
int vv_stream_input_add(struct vv_file_set *c, uint32_t file, uint32_t kind, uint64_t at, const uint8_t *bytes, size_t n);
void vv_stream_input_sort(struct vv_file_set *c);

#endif
