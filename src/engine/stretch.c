#include "engine/stretch.h"
#include "base/err.h"
#include "base/mem.h"

int vv_stretch_add(struct vv_stretches *p, struct vv_stretch piece)
{
	struct vv_stretch *last = p->n ? &p->v[p->n - 1] : NULL;

	if (last && last->layer == piece.layer && last->pos + last->len == piece.pos && last->to + last->len == piece.to) {
		last->len += piece.len;
		return 0;
	}
	if (vv_mem_room(&p->v, p->n, &p->cap, sizeof(*p->v)) < 0)
		return VV_ENOMEM;
	p->v[p->n++] = piece;
	return 0;
}
