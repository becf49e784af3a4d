#include "reader/peek.h"

void vv_peek_init(struct vv_peek *p, const struct vv_reader_file *f)
{
	p->f = f;
	p->rc = 0;
	p->at = 0;
	p->n = 0;
}

const uint8_t *vv_peek_at(struct vv_peek *p, uint64_t at, size_t n)
{
	uint64_t left = at < p->f->len ? p->f->len - at : 0;

	if (p->rc || at > p->f->len || n > left || n > VV_PEEK_WINDOW)
		return NULL;
	if (at >= p->at && at - p->at <= p->n && n <= p->n - (size_t)(at - p->at))
		return p->window + (at - p->at);
	p->at = at;
	p->n = left < VV_PEEK_WINDOW ? (size_t)left : VV_PEEK_WINDOW;
	p->rc = p->n ? p->f->read(p->f->arg, at, p->window, p->n) : 0;
	if (p->rc)
		p->n = 0;
	return p->rc ? NULL : p->window;
}
