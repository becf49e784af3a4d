/* The policy for each segment of a process's memory: how it is cut into chunks for lookup, and how
 * new content is compressed. */
#ifndef VV_ENGINE_FILES_SEGMENT_POLICY_H
#define VV_ENGINE_FILES_SEGMENT_POLICY_H

#include "core/dedup/cdc.h"
#include "core/dedup/rabin.h"
#include "core/format/recipe.h"
#include "core/format/segment.h"

enum vv_segment_policy_cut { VV_SEGMENT_POLICY_PAGES, VV_SEGMENT_POLICY_GEAR, VV_SEGMENT_POLICY_RABIN };
enum vv_segment_policy_code { VV_SEGMENT_POLICY_AUTO, VV_SEGMENT_POLICY_ZSTD, VV_SEGMENT_POLICY_TRAIL, VV_SEGMENT_POLICY_DEFLATE, VV_SEGMENT_POLICY_PLAIN };

struct vv_segment_policy_rule {
	uint8_t cut, code;
	size_t page; /* 0: the size of other chunks */
	union {
		struct vv_cdc gear;
		struct vv_rabin rabin;
	};
};

struct vv_segment_policy {
	/* the first is the rule of untyped files */
	struct vv_segment_policy_rule rule[VV_SEGMENTS];
};

/* text: NULL, or "SEGMENT=CUT[+CODE],...". CUT is pages[:SIZE], gear[:MIN/AVG/MAX] or
 * rabin[:MIN/AVG/MAX]. CODE is auto, zstd, trail, deflate or none. SEGMENT is a name of
 * core/format/segment.h or "all". The message of VV_EINVAL explains the error. */
int vv_segment_policy_init(struct vv_segment_policy *p, const char *text);
/* The length of the chunk that begins at p; n bytes are available. chunk: the page size if the rule
 * has none. */
size_t vv_segment_policy_next(const struct vv_segment_policy_rule *r, size_t chunk, const uint8_t *p, size_t n);

#endif
