/* Format: a byte below 32 announces that many literal bytes and one more. Any other byte begins a
 * copy: three bits of length (7: another byte is added), 13 of distance. Two is added to the
 * length, one to the distance. */
#include "reader/lzf.h"
#include "base/err.h"

enum { LITERALS = 32, LONG = 7 };

int vv_lzf_unpack(const uint8_t *from, size_t n, uint8_t *to, size_t cap, size_t *out)
{
	const uint8_t *p = from, *end = from + n;
	size_t at = 0;

	while (p < end) {
		size_t first = *p++, len = first >> 5, distance;

		if (first < LITERALS) {
			if (first + 1 > (size_t)(end - p) || first + 1 > cap - at)
				goto damaged;
			for (size_t i = 0; i <= first; i++)
				to[at++] = *p++;
			continue;
		}
		if (len == LONG && p < end)
			len += *p++;
		if (p == end)
			goto damaged;
		distance = ((first & 31) << 8 | *p++) + 1;
		len += 2;
		if (distance > at || len > cap - at)
			goto damaged;
		for (; len; len--, at++)
			to[at] = to[at - distance];
	}
	*out = at;
	return 0;
damaged:
	return vv_err_set(VV_EDAMAGED, "an LZF chunk of %zu bytes is not sound", n);
}
