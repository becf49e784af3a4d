/* The layers named by a head's runs, in the order of first use: a layer's section SOURCES,
 * docs/format.md, section 4. */
#ifndef VV_CORE_FORMAT_SOURCES_H
#define VV_CORE_FORMAT_SOURCES_H

#include "base/wire.h"

struct vv_sources { /* starts empty */
	uint64_t *layer; /* by number, from 1 */
	uint64_t *end;   /* end position of the last run of this source */
	uint32_t *slot;  /* a small open hash from layer to number */
	size_t n, cap, mask;
};

void vv_sources_fini(struct vv_sources *s);
/* The layer's number; a new layer gets one. */
int vv_sources_number(struct vv_sources *s, uint64_t layer, uint32_t *out);
void vv_sources_put(const struct vv_sources *s, struct vv_buf *out);
/* newest: no epoch is later. */
int vv_sources_get(struct vv_sources *s, const void *p, size_t n, uint64_t newest);

#endif
