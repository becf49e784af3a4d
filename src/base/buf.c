#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void vv_buf_fini(struct vv_buf *b)
{
	vv_mem_free(b->p);
	*b = (struct vv_buf){ 0 };
}

uint8_t *vv_buf_room(struct vv_buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 256;
	uint8_t *p;

	if (b->failed)
		return NULL;
	if (b->cap - b->n >= n && b->p)
		return b->p + b->n;
	while (cap - b->n < n && cap < SIZE_MAX / 4)
		cap *= 2;
	p = vv_mem_grow(b->p, cap, 1);
	if (!p) {
		b->failed = true;
		return NULL;
	}
	b->p = p;
	b->cap = cap;
	return p + b->n;
}

void vv_buf_add(struct vv_buf *b, const void *p, size_t n)
{
	uint8_t *to = vv_buf_room(b, n);

	if (!to)
		return;
	if (n)
		memcpy(to, p, n);
	b->n += n;
}

void vv_buf_printf(struct vv_buf *b, const char *fmt, ...)
{
	va_list ap;
	uint8_t *to;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	to = n < 0 ? NULL : vv_buf_room(b, (size_t)n + 1);
	if (!to)
		return;
	va_start(ap, fmt);
	vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

int vv_buf_check(const struct vv_buf *b)
{
	return b->failed ? vv_err_set(VV_ENOMEM, "out of memory (a buffer of %zu bytes could not grow)", b->cap) : 0;
}
