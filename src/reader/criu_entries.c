#include "reader/criu_entries.h"
#include "reader/peek.h"

enum { IMAGE = 0x54564319, SERVICE = 0x55105940 }; /* the first magic number */

struct vv_proto vv_criu_entries_open(const uint8_t *image, size_t n, enum vv_criu_entries_magic magic)
{
	uint64_t first = n >= 8 ? vv_peek_number(image, 4, false) : 0;
	size_t at = first == IMAGE || first == SERVICE ? 4 : 0;

	if (n < at + 4 || vv_peek_number(image + at, 4, false) != magic)
		return (struct vv_proto){ 0 };
	return (struct vv_proto){ image + at + 4, n - at - 4 };
}

bool vv_criu_entries_next(struct vv_proto *left, struct vv_proto *out)
{
	uint64_t len = left->n < 4 ? UINT64_MAX : vv_peek_number(left->p, 4, false);

	if (len > left->n || len > left->n - 4)
		return false;
	*out = (struct vv_proto){ left->p + 4, (size_t)len };
	left->p += 4 + len;
	left->n -= 4 + (size_t)len;
	return true;
}
