#include "codec/stream.h"
#include "base/err.h"
#include "codec/context_pool.h"
#include <string.h>

enum { WIDEST = 8 };

void vv_stream_put(struct vv_stream_out *o, const void *p, size_t n)
{
	if (o->full || o->cap - o->at < n) {
		o->full = true;
		return;
	}
	if (n)
		memcpy(o->to + o->at, p, n);
	o->at += n;
}

int vv_stream_put_planes(struct vv_stream_out *o, const uint8_t *plane, unsigned n_planes, size_t m)
{
	struct vv_buf head = { 0 }, lengths = { 0 };
	size_t n = n_planes * m, room = o->cap - o->at, got = 0;
	int rc = 0;

	if (!o->full && n && room > VV_STREAM_HEADER)
		rc = vv_split_encode(plane, n_planes, m, &o->how, &lengths, plane, 0, o->to + o->at + VV_STREAM_HEADER, room - VV_STREAM_HEADER, &got);
	vv_wire_put_var(&head, n);
	vv_wire_put_var(&head, got ? got : n);
	if (rc == 0)
		rc = vv_buf_check(&head);
	if (rc == 0)
		vv_stream_put(o, head.p, head.n);
	if (rc == 0 && got) {
		memmove(o->to + o->at, o->to + o->at + VV_STREAM_HEADER - head.n, got);
		o->at += got;
	} else if (rc == 0) {
		vv_stream_put(o, plane, n);
	}
	vv_buf_fini(&head);
	vv_buf_fini(&lengths);
	return rc;
}

int vv_stream_put_items(struct vv_stream_out *o, const uint8_t *p, size_t n, unsigned width)
{
	uint8_t *plane = vv_context_pool_room(n);
	int rc;

	if (!plane)
		return VV_ENOMEM;
	vv_split_apart(p, n / width, width, plane, n / width);
	rc = vv_stream_put_planes(o, plane, width, n / width);
	vv_context_pool_room_back(plane);
	return rc;
}

int vv_stream_get(struct vv_wire *w, unsigned width, size_t most, uint32_t coder, struct vv_stream_in *s)
{
	size_t n = (size_t)vv_wire_var_max(w, most * width), stored = (size_t)vv_wire_var_max(w, n);
	const uint8_t *p = vv_wire_bytes(w, stored);
	struct vv_wire in;

	if (w->bad || n % width || (n && !stored))
		return vv_err_set(VV_EDAMAGED, "a block of streams does not decode: the length of a stream is none");
	s->width = width;
	s->n = n / width;
	s->as_it_is = p;
	s->made = stored < n;
	if (!s->made)
		return 0;
	in = vv_wire_over(p, stored);
	return vv_split_decode(&s->split, &in, width, s->n, 0, coder);
}

void vv_stream_join(const struct vv_stream_in *s, size_t at, size_t n, uint8_t *x)
{
	const uint8_t *plane[WIDEST];

	for (unsigned k = 0; k < s->width; k++)
		plane[k] = s->made ? s->split.plane[k] : s->as_it_is + k * s->n;
	vv_split_join(plane, at, n, s->width, x);
}
