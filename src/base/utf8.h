/* UTF-8, as far as names and messages need it. */
#ifndef VV_BASE_UTF8_H
#define VV_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the character at s; 0 if there is none: the end, or bytes that are not UTF-8. */
size_t vv_utf8_len(const char *s);

#endif
