/* LZF, as h5py's filter writes it: literal bytes and copies of what came before. */
#ifndef VV_READER_LZF_H
#define VV_READER_LZF_H

#include <stddef.h>
#include <stdint.h>

/* n bytes into at most `cap`: *out of them. */
int vv_lzf_unpack(const uint8_t *from, size_t n, uint8_t *to, size_t cap, size_t *out);

#endif
