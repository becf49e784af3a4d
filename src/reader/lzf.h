/* LZF, as written by h5py's filter: literal bytes and copies of earlier bytes. */
#ifndef VV_READER_LZF_H
#define VV_READER_LZF_H

#include <stddef.h>
#include <stdint.h>

/* Decompresses n bytes into at most `cap` bytes; *out is their number. */
int vv_lzf_unpack(const uint8_t *from, size_t n, uint8_t *to, size_t cap, size_t *out);

#endif
