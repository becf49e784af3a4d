#include "core/format/segment.h"
#include <string.h>

static const char *const names[VV_SEGMENTS] = { "-", "heap", "stack", "code", "library", "anon", "shared", "file", "vdso" };

const char *vv_segment_name(unsigned segment)
{
	return names[segment < VV_SEGMENTS ? segment : VV_SEGMENT_NONE];
}

unsigned vv_segment_find(const char *name, size_t len)
{
	for (unsigned i = VV_SEGMENT_NONE + 1; i < VV_SEGMENTS; i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return i;
	return VV_SEGMENT_NONE;
}
