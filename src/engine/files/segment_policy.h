/* What is done with each segment of a process's memory: how it is cut into the chunks that are looked up, and how what is new is coded. */
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
	size_t page; /* 0: as large as other chunks */
	union {
		struct vv_cdc gear;
		struct vv_rabin rabin;
	};
};

struct vv_segment_policy {
	struct vv_segment_policy_rule rule[VV_SEGMENTS]; /* the first is that of files nobody understands */
};

/* text: NULL, or "SEGMENT=CUT[+CODE],..." with CUT pages[:SIZE], gear[:MIN/AVG/MAX] or rabin[:MIN/AVG/MAX], CODE auto, zstd, trail, deflate or none, and
 * SEGMENT a name of core/format/segment.h or "all". VV_EINVAL says what is wrong. */
int vv_segment_policy_init(struct vv_segment_policy *p, const char *text);
/* The length of the chunk that begins at p, of which there are n bytes and no more. chunk: a page, where the rule does not say how large one is. */
size_t vv_segment_policy_next(const struct vv_segment_policy_rule *r, size_t chunk, const uint8_t *p, size_t n);

#endif
