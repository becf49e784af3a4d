/* The sieve of the host's memory: vv_space_host's half of struct vv_space. */
#ifndef VV_SPACE_HOST_SIEVE_H
#define VV_SPACE_HOST_SIEVE_H

#include "space/space.h"

int vv_host_sieve_open(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_sieve **out);
void vv_host_sieve_close(struct vv_sieve *s);
int vv_host_sieve_pass(struct vv_sieve *s, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_sink *sink);
bool vv_host_sieve_holds(const struct vv_sieve *s, uint32_t number, uint32_t n, const uint8_t *bytes);
int vv_host_sieve_begin(struct vv_sieve *s, struct vv_span *span, size_t n);
int vv_host_sieve_learn(struct vv_sieve *s, const struct vv_grain_bytes *lesson, size_t n);
int vv_host_sieve_adopt(struct vv_sieve *s, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable);
void vv_host_sieve_forget(struct vv_sieve *s, uint32_t ordinal);
/* Bytes of memory that it holds between passes. */
size_t vv_host_sieve_bytes(const struct vv_sieve *s);

#endif
