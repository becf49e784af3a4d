#include "base/json.h"
#include "base/err.h"
#include "base/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vv_json_fini(struct vv_json *j)
{
	vv_buf_fini(&j->buf);
	*j = (struct vv_json){ 0 };
}

static void add_string(struct vv_json *j, const char *s)
{
	struct vv_buf *b = &j->buf;

	vv_buf_add(b, "\"", 1);
	while (*s) {
		size_t n = vv_utf8_len(s);
		unsigned char c = (unsigned char)*s;

		if (n == 0)
			vv_buf_printf(b, "\\ufffd");
		else if (c == '"' || c == '\\')
			vv_buf_printf(b, "\\%c", c);
		else if (c == '\n' && !j->dense)
			vv_buf_printf(b, "\\n");
		else if (c == '\t' && !j->dense)
			vv_buf_printf(b, "\\t");
		else if (c < 0x20 || c == 0x7f)
			vv_buf_printf(b, "\\u%04x", c);
		else
			vv_buf_add(b, s, n);
		s += n ? n : 1;
	}
	vv_buf_add(b, "\"", 1);
}

static void begin(struct vv_json *j, const char *key)
{
	if (j->more)
		vv_buf_add(&j->buf, ", ", j->dense ? 1 : 2);
	j->more = true;
	if (key) {
		add_string(j, key);
		vv_buf_add(&j->buf, ": ", j->dense ? 1 : 2);
	}
}

static void open_level(struct vv_json *j, const char *key, char first, char last)
{
	begin(j, key);
	vv_buf_add(&j->buf, &first, 1);
	if (j->depth < VV_JSON_DEPTH)
		j->close[j->depth++] = last;
	else
		j->buf.failed = true;
	j->more = false;
}

void vv_json_object(struct vv_json *j, const char *key)
{
	open_level(j, key, '{', '}');
}

void vv_json_array(struct vv_json *j, const char *key)
{
	open_level(j, key, '[', ']');
}

void vv_json_end(struct vv_json *j)
{
	if (j->depth)
		vv_buf_add(&j->buf, &j->close[--j->depth], 1);
	j->more = true;
}

void vv_json_text(struct vv_json *j, const char *key, const char *s)
{
	begin(j, key);
	if (s)
		add_string(j, s);
	else
		vv_buf_add(&j->buf, "null", 4);
}

void vv_json_number(struct vv_json *j, const char *key, uint64_t v)
{
	begin(j, key);
	vv_buf_printf(&j->buf, "%" PRIu64, v);
}

void vv_json_signed(struct vv_json *j, const char *key, int64_t v)
{
	begin(j, key);
	vv_buf_printf(&j->buf, "%" PRId64, v);
}

void vv_json_real(struct vv_json *j, const char *key, double v)
{
	char text[32] = "null";

	begin(j, key);
	/* the shortest form that reads back as the same number */
	for (int digits = 15; isfinite(v) && digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	vv_buf_add(&j->buf, text, strlen(text));
}

void vv_json_decimal(struct vv_json *j, const char *key, uint64_t whole, uint32_t billionths)
{
	begin(j, key);
	vv_buf_printf(&j->buf, "%" PRIu64 ".%09" PRIu32, whole, billionths);
}

void vv_json_bool(struct vv_json *j, const char *key, bool v)
{
	begin(j, key);
	vv_buf_printf(&j->buf, v ? "true" : "false");
}

void vv_json_numbers(struct vv_json *j, const char *key, const uint64_t *v, size_t n)
{
	vv_json_array(j, key);
	for (size_t i = 0; i < n; i++)
		vv_json_number(j, NULL, v[i]);
	vv_json_end(j);
}

void vv_json_error(struct vv_json *j, int code)
{
	vv_json_text(j, "error", vv_err_last());
	vv_json_signed(j, "code", code);
	vv_json_text(j, "meaning", vv_err_name(code));
}
