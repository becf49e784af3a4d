/* The kinds of parts of a process's memory. Chen 2016, section 3, distinguishes them because they
 * repeat themselves in different ways. */
#ifndef VV_CORE_FORMAT_SEGMENT_H
#define VV_CORE_FORMAT_SEGMENT_H

#include <stddef.h>

enum vv_segment {
	VV_SEGMENT_NONE, /* not memory */
	VV_SEGMENT_HEAP,
	VV_SEGMENT_STACK,
	VV_SEGMENT_CODE,    /* of the executable: its text and its data */
	VV_SEGMENT_LIBRARY,
	VV_SEGMENT_ANON,
	VV_SEGMENT_SHARED,
	VV_SEGMENT_FILE,    /* any other mapped file */
	VV_SEGMENT_VDSO,    /* provided by the kernel */
	VV_SEGMENTS,
};

const char *vv_segment_name(unsigned segment); /* "-": none */
/* VV_SEGMENT_NONE: not the name of a segment */
unsigned vv_segment_find(const char *name, size_t len);

#endif
