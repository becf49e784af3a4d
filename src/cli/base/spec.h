/* The syntax of operands: LINEAGE, LINEAGE@EPOCH, LINEAGE@FIRST..LAST, LINEAGE[@EPOCH]:REGION. A
 * lineage's name has neither '@' nor ':', so the first of them ends it; a region's name may hold
 * any character. An epoch is a number, a label, `latest`, or -N, the Nth from the end: -1 is the
 * newest. */
#ifndef VV_CLI_BASE_SPEC_H
#define VV_CLI_BASE_SPEC_H

#include "engine/lineage/catalog.h"

enum { VV_SPEC_EPOCH = 1, VV_SPEC_RANGE = 2, VV_SPEC_REGION = 4 };

struct vv_spec {
	char lineage[VV_NAME_LINEAGE_MAX + 1];
	uint64_t first, last; /* 0: not given, or to be looked up */
	/* a label, `latest` or -N, until vv_spec_look_up; "" otherwise */
	char first_word[VV_NAME_LABEL_MAX + 1], last_word[VV_NAME_LABEL_MAX + 1];
	const char *region;   /* NULL: not given */
};

/* allow: the parts that may follow the lineage. */
int vv_spec_parse(const char *text, unsigned allow, struct vv_spec *out);
/* The same for an operand without the lineage: "7", "3..7". */
int vv_spec_range(const char *text, struct vv_spec *out);
/* Is an epoch or a range named, by numbers or words? */
bool vv_spec_has_epoch(const struct vv_spec *spec);
/* Is it named relative to the newest epoch, by `latest` or -N? */
bool vv_spec_is_relative(const struct vv_spec *spec);
/* Replaces words by the numbers of existing epochs. */
int vv_spec_look_up(struct vv_spec *spec, const struct vv_lineage *lin);

#endif
