/* Random but repeatable numbers, a sequence to each thread, and what they do to memory: for tests of regions that change. */
#ifndef VV_TEST_DICE_H
#define VV_TEST_DICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static _Thread_local uint64_t seed = 88172645463325252ull;

static inline uint64_t rng(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static inline size_t upto(size_t n)
{
	return (size_t)(rng() % (n + 1));
}

static inline void noise(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(rng() >> 24);
}

/* One change, of any of the kinds that a program makes. */
static inline void dice_edit(uint8_t *p, size_t len)
{
	size_t at = upto(len - 1), n = 1 + upto(len - at - 1), from;

	switch (upto(6)) {
	case 0:
		noise(p + at, n < 3000 ? n : 3000);
		break;
	case 1:
		memset(p + at, 0, n);
		break;
	case 2: /* the same thing over and over */
		for (size_t i = 0; i < n; i++)
			p[at + i] = p[at + i % (1 + upto(3) * 64)];
		break;
	case 3: /* moved by whole grains, or not */
		from = upto(len - n);
		memmove(p + (upto(1) ? at / 512 * 512 : at), p + from, n / 2);
		break;
	case 4:
		p[at]++;
		break;
	default: /* here and there */
		for (int k = 0; k < 20; k++)
			p[upto(len - 1)] ^= 1;
	}
}

#endif
