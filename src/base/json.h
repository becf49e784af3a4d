/* Writes one JSON text into memory. Inside an object every value has a key, inside an array the key
 * is NULL. */
#ifndef VV_BASE_JSON_H
#define VV_BASE_JSON_H

#include "base/buf.h"

enum { VV_JSON_DEPTH = 16 };

struct vv_json {
	struct vv_buf buf;
	char close[VV_JSON_DEPTH]; /* the closing character of each open level */
	unsigned depth;
	bool more; /* a comma goes before the next value */
	bool dense; /* no spaces between tokens; every control character as a number */
};

void vv_json_fini(struct vv_json *j);
void vv_json_object(struct vv_json *j, const char *key);
void vv_json_array(struct vv_json *j, const char *key);
void vv_json_end(struct vv_json *j); /* ends the innermost object or array */

/* NULL becomes null; invalid UTF-8 becomes U+FFFD. */
void vv_json_text(struct vv_json *j, const char *key, const char *s);
void vv_json_number(struct vv_json *j, const char *key, uint64_t v);
void vv_json_signed(struct vv_json *j, const char *key, int64_t v);
void vv_json_real(struct vv_json *j, const char *key, double v); /* null unless it is finite */
/* independent of the locale */
void vv_json_decimal(struct vv_json *j, const char *key, uint64_t whole, uint32_t billionths);
void vv_json_bool(struct vv_json *j, const char *key, bool v);
/* an array of numbers */
void vv_json_numbers(struct vv_json *j, const char *key, const uint64_t *v, size_t n);
/* The last error of this thread: message, code and meaning of the code. */
void vv_json_error(struct vv_json *j, int code);

#endif
