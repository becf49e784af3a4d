/* Writes one JSON text into memory. Inside an object every value has a key, inside an array the key is NULL. */
#ifndef VV_BASE_JSON_H
#define VV_BASE_JSON_H

#include "base/buf.h"

enum { VV_JSON_DEPTH = 16 };

struct vv_json {
	struct vv_buf buf;
	char close[VV_JSON_DEPTH]; /* what ends each open level */
	unsigned depth;
	bool more; /* a comma goes before the next value */
	bool dense; /* no spaces between words; every control character by its number */
};

void vv_json_fini(struct vv_json *j);
void vv_json_object(struct vv_json *j, const char *key);
void vv_json_array(struct vv_json *j, const char *key);
void vv_json_end(struct vv_json *j); /* of the innermost object or array */

/* NULL becomes null; bytes that are no UTF-8 become U+FFFD. */
void vv_json_text(struct vv_json *j, const char *key, const char *s);
void vv_json_number(struct vv_json *j, const char *key, uint64_t v);
void vv_json_signed(struct vv_json *j, const char *key, int64_t v);
void vv_json_real(struct vv_json *j, const char *key, double v); /* null unless it is finite */
void vv_json_decimal(struct vv_json *j, const char *key, uint64_t whole, uint32_t billionths); /* in any locale */
void vv_json_bool(struct vv_json *j, const char *key, bool v);
void vv_json_numbers(struct vv_json *j, const char *key, const uint64_t *v, size_t n); /* an array of them */
/* What went wrong in this thread last, in words, as a code, and what that means. */
void vv_json_error(struct vv_json *j, int code);

#endif
