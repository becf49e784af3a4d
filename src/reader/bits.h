/* Reads bits of a stream, the highest of each byte first. */
#ifndef VV_READER_BITS_H
#define VV_READER_BITS_H

#include <stddef.h>
#include <stdint.h>

struct vv_bits {
	const uint8_t *p;
	uint64_t at; /* in bits; the caller has checked that enough follow */
};

/* The next n bits, 64 at most, as a number. */
static inline uint64_t vv_bits_take(struct vv_bits *b, unsigned n)
{
	uint64_t v = 0;

	while (n) {
		unsigned skip = b->at % 8, part = 8 - skip < n ? 8 - skip : n;

		v = v << part | (b->p[b->at / 8] >> (8 - skip - part) & ((1u << part) - 1));
		b->at += part;
		n -= part;
	}
	return v;
}

/* Writes the low bytes of a number in the byte order of a file. */
static inline void vv_bits_put(uint8_t *to, unsigned size, uint64_t v, int high_first)
{
	for (unsigned i = 0; i < size; i++)
		to[high_first ? size - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

#endif
