/* Pages that are known by number: equal numbers hold equal bytes, on every rank and in every run. 0 is a page of zeros. */
#ifndef VV_TEST_PAGES_H
#define VV_TEST_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t pages_mix(uint64_t z)
{
	z = (z + 0x9E3779B97F4A7C15ull);
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

static inline void pages_fill(uint32_t id, uint8_t *p, size_t len)
{
	memset(p, 0, len);
	for (size_t i = 0; id && i < len; i += 8) {
		uint64_t v = pages_mix((uint64_t)id << 20 | i);

		memcpy(p + i, &v, 8);
	}
}

#endif
