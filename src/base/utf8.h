/* UTF-8 for names and messages. */
#ifndef VV_BASE_UTF8_H
#define VV_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the character at s; 0 at the end or at bytes that are not UTF-8. */
size_t vv_utf8_len(const char *s);

#endif
