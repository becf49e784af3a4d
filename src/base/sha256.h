/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). */
#ifndef VV_BASE_SHA256_H
#define VV_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define VV_SHA256_BYTES 32
#define VV_SHA256_BLOCK 64
#define VV_SHA256_HEX (2 * VV_SHA256_BYTES + 1) /* with the final NUL */

struct vv_sha256 {
	uint32_t h[8];
	uint64_t total;
	uint8_t block[VV_SHA256_BLOCK]; /* total % 64 bytes of it wait for their block to fill */
};

void vv_sha256_init(struct vv_sha256 *s);
void vv_sha256_update(struct vv_sha256 *s, const void *p, size_t n);
void vv_sha256_final(struct vv_sha256 *s, uint8_t out[VV_SHA256_BYTES]);

void vv_sha256_of(const void *p, size_t n, uint8_t out[VV_SHA256_BYTES]);
/* out may be the key. */
void vv_sha256_hmac(const void *key, size_t key_n, const void *p, size_t n, uint8_t out[VV_SHA256_BYTES]);
void vv_sha256_hex(const uint8_t digest[VV_SHA256_BYTES], char out[VV_SHA256_HEX]);

#endif
