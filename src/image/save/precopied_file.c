#include "image/save/precopied_file.h"
#include "base/err.h"
#include "image/process/copy_memory.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Places the next pages: at their earlier copy, if there is one, otherwise in a free range. Pages
 * that were not copied or have changed are read again. */
static int place(struct vv_precopied_file *a, struct vv_page_buffer *room, struct vv_copy_memory *lift, bool *full)
{
	const struct vv_pagemap_image_entry *e = &a->list.v[a->entry];
	const struct vv_page_buffer_gap *gap = vv_page_buffer_find(room);
	uint64_t done = a->placed - e->at, addr = e->addr + done, n = e->len - done, most;
	const struct vv_precopy_span *x = vv_precopy_find(a->process, addr);
	bool copied = x && x->lo <= addr, holds = copied && x->is_unchanged;
	size_t from = copied ? x->from + (size_t)(addr - x->lo) : gap->from;
	int rc;

	most = copied ? x->hi - addr : x && x->lo - addr < gap->n ? x->lo - addr : gap->n;
	n = n < most ? n : most;
	*full = n == 0;
	if (*full)
		return 0;
	rc = vv_page_buffer_add(&a->file, a->placed, from, (size_t)n);
	if (rc == 0 && !holds)
		rc = vv_copy_memory_add(lift, addr, room->pages + from, (size_t)n);
	if (!copied)
		vv_page_buffer_take(room, (size_t)n);
	*(holds ? &a->held : &a->late) += n;
	a->placed += n;
	a->entry += a->placed == e->at + e->len;
	return rc;
}

int vv_precopied_file_fetch(struct vv_precopied_file *a, struct vv_page_buffer *room, const struct vv_buf *pagemap, uint64_t len, struct vv_pool *pool, bool *full)
{
	struct vv_copy_memory lift = { .pid = a->process->pid };
	int rc = a->list.n ? 0 : vv_pagemap_image_read(pagemap->p, pagemap->n, &a->list);

	if (rc == 0 && a->list.len != len)
		rc = vv_err_set(VV_EIO, "criu's pages of process %d are not those that it tells of", (int)lift.pid);
	while (rc == 0 && !*full && a->entry < a->list.n)
		rc = place(a, room, &lift, full);
	if (rc == 0 && vv_copy_memory_run(&lift, pool))
		rc = vv_err_set(VV_EIO, "some memory of process %d cannot be read; with --no-precopy that is left to criu", (int)lift.pid);
	vv_copy_memory_fini(&lift);
	return rc;
}

int vv_precopied_file_compare(const struct vv_precopied_file *a, const struct vv_page_buffer *room, const struct vv_page_buffer_file *from_criu)
{
	const struct vv_page_buffer_stretch *x = a->file.stretch, *y = from_criu->stretch;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < a->list.n; i++) {
		const struct vv_pagemap_image_entry *e = &a->list.v[i];

		for (uint64_t at = e->at, addr = e->addr; at < e->at + e->len; at += page, addr += page) {
			const struct vv_precopy_span *s = vv_precopy_find(a->process, addr);

			x += at == x->at + x->n;
			y += at == y->at + y->n;
			if (s && s->lo <= addr && s->is_unchanged &&
			    memcmp(room->pages + x->from + (at - x->at), room->pages + y->from + (at - y->at), page) != 0)
				return vv_err_set(VV_EMISMATCH, "process %d has changed what it has at %#" PRIx64 ", and the kernel did not tell", (int)a->process->pid,
						  addr);
		}
	}
	return 0;
}

void vv_precopied_file_fini(struct vv_precopied_file *a)
{
	vv_page_buffer_file_fini(&a->file);
	vv_pagemap_image_fini(&a->list);
}
