/* The syntax of operands: LINEAGE, LINEAGE@EPOCH, LINEAGE@FIRST..LAST, LINEAGE[@EPOCH]:REGION. A
 * lineage's name has neither '@' nor ':', so the first of them ends it; a region's name may hold
 * any character. */
#ifndef VV_CLI_BASE_SPEC_H
#define VV_CLI_BASE_SPEC_H

#include "core/format/name.h"

enum { VV_SPEC_EPOCH = 1, VV_SPEC_RANGE = 2, VV_SPEC_REGION = 4 };

struct vv_spec {
	char lineage[VV_NAME_LINEAGE_MAX + 1];
	uint64_t first, last; /* 0: not given */
	const char *region;   /* NULL: not given */
};

/* allow: the parts that may follow the lineage. */
int vv_spec_parse(const char *text, unsigned allow, struct vv_spec *out);
/* "7" or "3..7". */
int vv_spec_range(const char *text, uint64_t *first, uint64_t *last);

#endif
