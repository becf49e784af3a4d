#include "image/save/page_buffer.h"
#include "base/err.h"
#include "base/mem.h"

int vv_room_open(struct vv_room *r, size_t bytes, size_t expected)
{
	*r = (struct vv_room){ .pages = vv_mem_map_wide(bytes), .cap = bytes };
	if (!r->pages)
		return VV_ENOMEM;
	vv_mem_populate(r->pages, expected < bytes ? expected : bytes);
	return vv_room_give(r, 0, bytes);
}

void vv_room_close(struct vv_room *r)
{
	vv_mem_unmap(r->pages, r->cap);
	vv_mem_free(r->gap);
	*r = (struct vv_room){ 0 };
}

void vv_room_reset(struct vv_room *r, size_t used)
{
	r->gap[0] = (struct vv_room_gap){ used, r->cap - used };
	r->n_gaps = 1;
}

int vv_room_give(struct vv_room *r, size_t from, size_t n)
{
	int rc = vv_mem_room(&r->gap, r->n_gaps, &r->gaps_cap, sizeof(*r->gap));

	if (rc == 0)
		r->gap[r->n_gaps++] = (struct vv_room_gap){ from, n };
	return rc;
}

const struct vv_room_gap *vv_room_find(struct vv_room *r)
{
	while (r->n_gaps > 1 && !r->gap[r->n_gaps - 1].n)
		r->n_gaps--;
	return &r->gap[r->n_gaps - 1];
}

void vv_room_take(struct vv_room *r, size_t n)
{
	struct vv_room_gap *last = &r->gap[r->n_gaps - 1];

	last->from += n;
	last->n -= n;
}

int vv_room_add(struct vv_room_file *f, uint64_t at, size_t from, size_t n)
{
	struct vv_room_stretch *last = f->n ? &f->stretch[f->n - 1] : NULL;

	if (last && last->from + last->n == from) {
		last->n += n;
		return 0;
	}
	if (vv_mem_room(&f->stretch, f->n, &f->cap, sizeof(*f->stretch)) < 0)
		return VV_ENOMEM;
	f->stretch[f->n++] = (struct vv_room_stretch){ .at = at, .from = from, .n = n };
	return 0;
}

void vv_room_file_fini(struct vv_room_file *f)
{
	vv_mem_free(f->stretch);
	*f = (struct vv_room_file){ 0 };
}
