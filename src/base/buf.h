/* A growing string of bytes. Failure to grow is remembered: a writer appends freely and checks once
 * at the end. */
#ifndef VV_BASE_BUF_H
#define VV_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_buf {
	uint8_t *p;
	size_t n;
	size_t cap;
	bool failed;
};

void vv_buf_fini(struct vv_buf *b);
/* Room for n more bytes at the end, or NULL. The caller then adds the number of used bytes to
 * b->n. */
uint8_t *vv_buf_room(struct vv_buf *b, size_t n);
void vv_buf_add(struct vv_buf *b, const void *p, size_t n);
void vv_buf_printf(struct vv_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* 0, or VV_ENOMEM if any append failed. */
int vv_buf_check(const struct vv_buf *b);

#endif
