#include "engine/lineage/shared_runs.h"
#include "base/mem.h"

struct vv_sheet *vv_sheet_new(void)
{
	struct vv_sheet *s = vv_mem_new(1, sizeof(*s));

	if (s)
		atomic_init(&s->holders, 1);
	return s;
}

struct vv_sheet *vv_sheet_hold(struct vv_sheet *s)
{
	atomic_fetch_add(&s->holders, 1);
	return s;
}

void vv_sheet_drop(struct vv_sheet *s)
{
	if (!s || atomic_fetch_sub(&s->holders, 1) > 1)
		return;
	vv_run_fini(&s->runs);
	vv_mem_free(s);
}
