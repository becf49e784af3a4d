/* SHA-256, after the text of FIPS 180-4. Blocks are hashed in place; only an incomplete block is
 * copied. */
#include "base/sha256.h"
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes ... */
static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* ... and of the square roots of the first eight. */
static const uint32_t start[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static inline uint32_t rotr(uint32_t x, unsigned k)
{
	return x >> k | x << (32 - k);
}

static inline uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void store_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

/* The schedule word of round i, kept in a window of 16: w[i] replaces w[i - 16]. */
static inline uint32_t extend(uint32_t w[16], unsigned i)
{
	uint32_t w15 = w[(i + 1) & 15], w2 = w[(i + 14) & 15];
	uint32_t s0 = rotr(w15, 7) ^ rotr(w15, 18) ^ w15 >> 3;
	uint32_t s1 = rotr(w2, 17) ^ rotr(w2, 19) ^ w2 >> 10;

	return w[i & 15] += s0 + w[(i + 9) & 15] + s1;
}

/* One round; instead of moving eight variables, the callers rotate their names. */
#define ROUND(a, b, c, d, e, f, g, h, k, x)                                                        \
	do {                                                                                       \
		uint32_t t = (h) + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) +                      \
			     ((g) ^ ((e) & ((f) ^ (g)))) + (k) + (x);                              \
		(d) += t;                                                                          \
		(h) = t + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + (((a) & (b)) | ((c) & ((a) | (b)))); \
	} while (0)

#define EIGHT_ROUNDS(i, W)                                                                         \
	do {                                                                                       \
		ROUND(a, b, c, d, e, f, g, h, round_constants[(i)], W(i));                         \
		ROUND(h, a, b, c, d, e, f, g, round_constants[(i) + 1], W((i) + 1));               \
		ROUND(g, h, a, b, c, d, e, f, round_constants[(i) + 2], W((i) + 2));               \
		ROUND(f, g, h, a, b, c, d, e, round_constants[(i) + 3], W((i) + 3));               \
		ROUND(e, f, g, h, a, b, c, d, round_constants[(i) + 4], W((i) + 4));               \
		ROUND(d, e, f, g, h, a, b, c, round_constants[(i) + 5], W((i) + 5));               \
		ROUND(c, d, e, f, g, h, a, b, round_constants[(i) + 6], W((i) + 6));               \
		ROUND(b, c, d, e, f, g, h, a, round_constants[(i) + 7], W((i) + 7));               \
	} while (0)

#define W_LOAD(i) (w[i] = load_be32(p + 4 * (i)))
#define W_NEXT(i) extend(w, i)

static void hash_blocks(uint32_t state[8], const uint8_t *p, size_t blocks)
{
	for (; blocks; blocks--, p += VV_SHA256_BLOCK) {
		uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
		uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
		uint32_t w[16];

		EIGHT_ROUNDS(0, W_LOAD);
		EIGHT_ROUNDS(8, W_LOAD);
		for (unsigned i = 16; i < 64; i += 16) {
			EIGHT_ROUNDS(i, W_NEXT);
			EIGHT_ROUNDS(i + 8, W_NEXT);
		}
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
		state[4] += e;
		state[5] += f;
		state[6] += g;
		state[7] += h;
	}
}

void vv_sha256_init(struct vv_sha256 *s)
{
	memcpy(s->h, start, sizeof(s->h));
	s->total = 0;
}

void vv_sha256_update(struct vv_sha256 *s, const void *data, size_t n)
{
	size_t have = s->total % VV_SHA256_BLOCK;
	const uint8_t *p = data;

	if (n == 0)
		return;
	s->total += n;
	if (have) {
		size_t take = n < VV_SHA256_BLOCK - have ? n : VV_SHA256_BLOCK - have;

		memcpy(s->block + have, p, take);
		p += take;
		n -= take;
		if (have + take < VV_SHA256_BLOCK)
			return;
		hash_blocks(s->h, s->block, 1);
	}
	hash_blocks(s->h, p, n / VV_SHA256_BLOCK);
	memcpy(s->block, p + n / VV_SHA256_BLOCK * VV_SHA256_BLOCK, n % VV_SHA256_BLOCK);
}

void vv_sha256_final(struct vv_sha256 *s, uint8_t out[VV_SHA256_BYTES])
{
	uint64_t bits = s->total * 8;
	size_t have = s->total % VV_SHA256_BLOCK;

	s->block[have++] = 0x80;
	if (have > VV_SHA256_BLOCK - 8) {
		memset(s->block + have, 0, VV_SHA256_BLOCK - have);
		hash_blocks(s->h, s->block, 1);
		have = 0;
	}
	memset(s->block + have, 0, VV_SHA256_BLOCK - 8 - have);
	store_be32(s->block + 56, (uint32_t)(bits >> 32));
	store_be32(s->block + 60, (uint32_t)bits);
	hash_blocks(s->h, s->block, 1);
	for (int i = 0; i < 8; i++)
		store_be32(out + 4 * i, s->h[i]);
}

void vv_sha256_of(const void *p, size_t n, uint8_t out[VV_SHA256_BYTES])
{
	struct vv_sha256 s;

	vv_sha256_init(&s);
	vv_sha256_update(&s, p, n);
	vv_sha256_final(&s, out);
}

void vv_sha256_hmac(const void *key, size_t key_n, const void *p, size_t n, uint8_t out[VV_SHA256_BYTES])
{
	uint8_t inner_key[VV_SHA256_BLOCK] = { 0 }, outer_key[VV_SHA256_BLOCK];
	struct vv_sha256 s;

	if (key_n > sizeof(inner_key))
		vv_sha256_of(key, key_n, inner_key);
	else if (key_n)
		memcpy(inner_key, key, key_n);
	for (size_t i = 0; i < sizeof(inner_key); i++) {
		outer_key[i] = inner_key[i] ^ 0x5c;
		inner_key[i] ^= 0x36;
	}
	vv_sha256_init(&s);
	vv_sha256_update(&s, inner_key, sizeof(inner_key));
	vv_sha256_update(&s, p, n);
	vv_sha256_final(&s, out);
	vv_sha256_init(&s);
	vv_sha256_update(&s, outer_key, sizeof(outer_key));
	vv_sha256_update(&s, out, VV_SHA256_BYTES);
	vv_sha256_final(&s, out);
}

void vv_sha256_hex(const uint8_t digest[VV_SHA256_BYTES], char out[VV_SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < VV_SHA256_BYTES; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[2 * VV_SHA256_BYTES] = '\0';
}
