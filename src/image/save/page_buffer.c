#include "image/save/page_buffer.h"
#include "base/err.h"
#include "base/mem.h"

int vv_page_buffer_open(struct vv_page_buffer *r, size_t bytes, size_t expected)
{
	*r = (struct vv_page_buffer){ .pages = vv_mem_map_wide(bytes), .cap = bytes };
	if (!r->pages)
		return VV_ENOMEM;
	vv_mem_populate(r->pages, expected < bytes ? expected : bytes);
	return vv_page_buffer_give(r, 0, bytes);
}

void vv_page_buffer_close(struct vv_page_buffer *r)
{
	vv_mem_unmap(r->pages, r->cap);
	vv_mem_free(r->gap);
	*r = (struct vv_page_buffer){ 0 };
}

void vv_page_buffer_reset(struct vv_page_buffer *r, size_t used)
{
	r->gap[0] = (struct vv_page_buffer_gap){ used, r->cap - used };
	r->n_gaps = 1;
}

int vv_page_buffer_give(struct vv_page_buffer *r, size_t from, size_t n)
{
	int rc = vv_mem_room(&r->gap, r->n_gaps, &r->gaps_cap, sizeof(*r->gap));

	if (rc == 0)
		r->gap[r->n_gaps++] = (struct vv_page_buffer_gap){ from, n };
	return rc;
}

const struct vv_page_buffer_gap *vv_page_buffer_find(struct vv_page_buffer *r)
{
	while (r->n_gaps > 1 && !r->gap[r->n_gaps - 1].n)
		r->n_gaps--;
	return &r->gap[r->n_gaps - 1];
}

void vv_page_buffer_take(struct vv_page_buffer *r, size_t n)
{
	struct vv_page_buffer_gap *last = &r->gap[r->n_gaps - 1];

	last->from += n;
	last->n -= n;
}

int vv_page_buffer_add(struct vv_page_buffer_file *f, uint64_t at, size_t from, size_t n)
{
	struct vv_page_buffer_stretch *last = f->n ? &f->stretch[f->n - 1] : NULL;

	if (last && last->from + last->n == from) {
		last->n += n;
		return 0;
	}
	if (vv_mem_room(&f->stretch, f->n, &f->cap, sizeof(*f->stretch)) < 0)
		return VV_ENOMEM;
	f->stretch[f->n++] = (struct vv_page_buffer_stretch){ .at = at, .from = from, .n = n };
	return 0;
}

void vv_page_buffer_file_fini(struct vv_page_buffer_file *f)
{
	vv_mem_free(f->stretch);
	*f = (struct vv_page_buffer_file){ 0 };
}
