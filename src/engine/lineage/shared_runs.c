#include "engine/lineage/shared_runs.h"
#include "base/mem.h"

struct vv_shared_runs *vv_shared_runs_new(void)
{
	struct vv_shared_runs *s = vv_mem_new(1, sizeof(*s));

	if (s)
		atomic_init(&s->refs, 1);
	return s;
}

struct vv_shared_runs *vv_shared_runs_ref(struct vv_shared_runs *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void vv_shared_runs_unref(struct vv_shared_runs *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	vv_run_fini(&s->runs);
	vv_mem_free(s);
}
