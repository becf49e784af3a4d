#include "image/save/precopied_file.h"
#include "base/err.h"
#include "image/process/copy_memory.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* The next pages lie in the room where they were copied to, if they were. What is there is read anew if it does not hold. */
static int place(struct vv_ahead *a, struct vv_room *room, struct vv_lift *lift, bool *full)
{
	const struct vv_pagelist_entry *e = &a->list.v[a->entry];
	const struct vv_room_gap *gap = vv_room_find(room);
	uint64_t done = a->placed - e->at, addr = e->addr + done, n = e->len - done, most;
	const struct vv_precopy_span *x = vv_precopy_find(a->one, addr);
	bool copied = x && x->lo <= addr, holds = copied && x->holds;
	size_t from = copied ? x->from + (size_t)(addr - x->lo) : gap->from;
	int rc;

	most = copied ? x->hi - addr : x && x->lo - addr < gap->n ? x->lo - addr : gap->n;
	n = n < most ? n : most;
	*full = n == 0;
	if (*full)
		return 0;
	rc = vv_room_add(&a->file, a->placed, from, (size_t)n);
	if (rc == 0 && !holds)
		rc = vv_lift_add(lift, addr, room->pages + from, (size_t)n);
	if (!copied)
		vv_room_take(room, (size_t)n);
	*(holds ? &a->held : &a->late) += n;
	a->placed += n;
	a->entry += a->placed == e->at + e->len;
	return rc;
}

int vv_ahead_fetch(struct vv_ahead *a, struct vv_room *room, const struct vv_buf *pagemap, uint64_t len, struct vv_pool *pool, bool *full)
{
	struct vv_lift lift = { .pid = a->one->pid };
	int rc = a->list.n ? 0 : vv_pagelist_read(pagemap->p, pagemap->n, &a->list);

	if (rc == 0 && a->list.len != len)
		rc = vv_err_set(VV_EIO, "criu's pages of process %d are not those that it tells of", (int)lift.pid);
	while (rc == 0 && !*full && a->entry < a->list.n)
		rc = place(a, room, &lift, full);
	if (rc == 0 && vv_lift_run(&lift, pool))
		rc = vv_err_set(VV_EIO, "some memory of process %d cannot be read; with --no-precopy that is left to criu", (int)lift.pid);
	vv_lift_fini(&lift);
	return rc;
}

int vv_ahead_compare(const struct vv_ahead *a, const struct vv_room *room, const struct vv_room_file *from_criu)
{
	const struct vv_room_stretch *x = a->file.stretch, *y = from_criu->stretch;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < a->list.n; i++) {
		const struct vv_pagelist_entry *e = &a->list.v[i];

		for (uint64_t at = e->at, addr = e->addr; at < e->at + e->len; at += page, addr += page) {
			const struct vv_precopy_span *s = vv_precopy_find(a->one, addr);

			x += at == x->at + x->n;
			y += at == y->at + y->n;
			if (s && s->lo <= addr && s->holds &&
			    memcmp(room->pages + x->from + (at - x->at), room->pages + y->from + (at - y->at), page) != 0)
				return vv_err_set(VV_EMISMATCH, "process %d has changed what it has at %#" PRIx64 ", and the kernel did not tell", (int)a->one->pid,
						  addr);
		}
	}
	return 0;
}

void vv_ahead_fini(struct vv_ahead *a)
{
	vv_room_file_fini(&a->file);
	vv_pagelist_fini(&a->list);
}
