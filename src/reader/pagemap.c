#include "reader/pagemap.h"
#include "reader/peek.h"

enum {
	COMMON = 0x54564319, PAGEMAP = 0x56084025,
	ID = 1,                                                      /* of the first entry */
	ADDRESS = 1, PAGES_32 = 2, IN_PARENT_OLD = 3, FLAGS = 4, PAGES = 5, /* of the others */
	IN_PARENT = 1, PRESENT = 4,
};

bool vv_pagemap_entry(struct vv_proto *left, struct vv_proto *out)
{
	uint64_t len = left->n < 4 ? UINT64_MAX : vv_peek_number(left->p, 4, false);

	if (len > left->n || len > left->n - 4)
		return false;
	*out = (struct vv_proto){ left->p + 4, (size_t)len };
	left->p += 4 + len;
	left->n -= 4 + (size_t)len;
	return true;
}

struct vv_proto vv_pagemap_open(const uint8_t *image, size_t n, uint64_t *id)
{
	size_t at = n >= 8 && vv_peek_number(image, 4, false) == COMMON ? 4 : 0;
	struct vv_proto left = { 0 }, head;

	if (n < at + 4 || vv_peek_number(image + at, 4, false) != PAGEMAP)
		return left;
	left = (struct vv_proto){ image + at + 4, n - at - 4 };
	if (!vv_pagemap_entry(&left, &head))
		return (struct vv_proto){ 0 };
	*id = vv_proto_number(head, ID);
	return left;
}

int vv_pagemap_pieces(struct vv_proto entries, uint64_t page, uint64_t len, struct vv_memory_areas *m)
{
	struct vv_proto entry;
	uint64_t at = 0;
	int rc = 0;

	while (rc == 0 && at < len && vv_pagemap_entry(&entries, &entry)) {
		uint64_t flags = vv_proto_number(entry, FLAGS), n = vv_proto_number(entry, PAGES), bytes;

		n = n ? n : vv_proto_number(entry, PAGES_32); /* in older versions */
		if (vv_proto_number(entry, IN_PARENT_OLD) || flags & IN_PARENT || (flags && !(flags & PRESENT)))
			continue;
		bytes = n < (len - at) / page ? n * page : len - at;
		rc = vv_memory_areas_piece(m, vv_proto_number(entry, ADDRESS), bytes, at);
		at += bytes;
	}
	return rc;
}
