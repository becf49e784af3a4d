/* Small reads from a file, most of them near the last one, served from a window. */
#ifndef VV_READER_PEEK_H
#define VV_READER_PEEK_H

#include "reader/reader.h"
#include <string.h>

enum { VV_PEEK_WINDOW = 16 << 10 };

struct vv_peek {
	const struct vv_reader_file *f;
	int rc; /* of the first read that failed; nothing is read after it */
	uint64_t at;
	size_t n;
	uint8_t window[VV_PEEK_WINDOW];
};

void vv_peek_init(struct vv_peek *p, const struct vv_reader_file *f);
/* n bytes, at most VV_PEEK_WINDOW, valid until the next call; NULL: they lie outside the file, or
 * rc is set. */
const uint8_t *vv_peek_at(struct vv_peek *p, uint64_t at, size_t n);

/* A number of 1 to 8 bytes. */
static inline uint64_t vv_peek_number(const uint8_t *p, size_t n, bool swapped)
{
	uint64_t v = 0;
	uint32_t u;

	if (n == 8) {
		memcpy(&v, p, 8);
		return swapped ? __builtin_bswap64(v) : v;
	}
	if (n == 4) {
		memcpy(&u, p, 4);
		return swapped ? __builtin_bswap32(u) : u;
	}
	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[swapped ? i : n - 1 - i];
	return v;
}

#endif
