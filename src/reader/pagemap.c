#include "reader/pagemap.h"
#include "reader/criu_entries.h"

enum {
	ID = 1,                                                             /* of the first entry */
	/* of the others; the last one since criu 4 */
	ADDRESS = 1, PAGES_32 = 2, IN_PARENT_OLD = 3, FLAGS = 4, PAGES = 5,
	LAZY = 2, PRESENT = 4,
};

struct vv_proto vv_pagemap_open(const uint8_t *image, size_t n, uint64_t *id)
{
	struct vv_proto left = vv_criu_entries_open(image, n, VV_CRIU_PAGEMAP), head;

	if (!vv_criu_entries_next(&left, &head))
		return (struct vv_proto){ 0 };
	*id = vv_proto_number(head, ID);
	return left;
}

bool vv_pagemap_next(struct vv_proto *entries, struct vv_pagemap_range *out)
{
	struct vv_proto_field f;
	struct vv_proto entry;

	while (vv_criu_entries_next(entries, &entry)) {
		uint64_t flags = PRESENT;

		*out = (struct vv_pagemap_range){ 0 };
		while (vv_proto_next(&entry, &f)) {
			out->address = f.number == ADDRESS ? f.value : out->address;
			out->pages = (f.number == PAGES_32 && !out->pages) || (f.number == PAGES && f.value) ? f.value : out->pages;
			flags = f.number == FLAGS ? f.value : f.number == IN_PARENT_OLD && f.value ? 0 : flags;
		}
		out->lazy = flags & LAZY;
		if (flags & PRESENT)
			return true;
	}
	return false;
}

int vv_pagemap_pieces(struct vv_proto entries, uint64_t page, uint64_t len, struct vv_memory_areas *m)
{
	struct vv_pagemap_range r;
	uint64_t at = 0;
	int rc = 0;

	while (rc == 0 && at < len && vv_pagemap_next(&entries, &r)) {
		uint64_t bytes = r.pages < (len - at) / page ? r.pages * page : len - at;

		rc = vv_memory_areas_piece(m, r.address, bytes, at);
		at += bytes;
	}
	return rc;
}
