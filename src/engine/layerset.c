#include "engine/layerset.h"
#include "base/err.h"
#include "base/mem.h"

void vv_layerset_fini(struct vv_layerset *l)
{
	vv_mem_free(l->v);
	vv_mem_free(l->slot);
}

static uint32_t *slot_of(const struct vv_layerset *l, uint64_t layer)
{
	size_t i = (size_t)((layer * 0x9e3779b97f4a7c15u) >> 32) & l->mask;

	while (l->slot[i] && l->v[l->slot[i] - 1].layer != layer)
		i = (i + 1) & l->mask;
	return &l->slot[i];
}

static int grow(struct vv_layerset *l)
{
	size_t size = l->slot ? 2 * (l->mask + 1) : 256;
	uint32_t *slot = vv_mem_new(size, sizeof(*slot));

	if (!slot)
		return VV_ENOMEM;
	vv_mem_free(l->slot);
	l->slot = slot;
	l->mask = size - 1;
	for (size_t i = 0; i < l->n; i++)
		*slot_of(l, l->v[i].layer) = (uint32_t)(i + 1);
	return 0;
}

static int note(struct vv_layerset *l, uint64_t layer)
{
	uint32_t *slot;

	if ((!l->slot || 2 * l->n > l->mask) && grow(l) < 0)
		return VV_ENOMEM;
	slot = slot_of(l, layer);
	if (!*slot) {
		if (vv_mem_room(&l->v, l->n, &l->cap, sizeof(*l->v)) < 0)
			return VV_ENOMEM;
		l->v[l->n] = (struct vv_layerset_layer){ layer, 0 };
		*slot = (uint32_t)++l->n;
	}
	l->v[*slot - 1].n_runs++;
	return 0;
}

int vv_layerset_find(struct vv_layerset *out, const struct vv_want *w, size_t n)
{
	int rc = 0;

	for (; n > 0; n--, w++)
		for (size_t i = vv_run_find(w->runs, w->at); i < w->runs->n && w->runs->v[i].at < w->at + w->len; i++) {
			const struct vv_run *r = &w->runs->v[i];
			uint64_t at = r->at > w->at ? r->at : w->at, end = w->at + w->len;

			end = r->at + r->len < end ? r->at + r->len : end;
			if (!r->layer)
				continue;
			out->bytes += end - at;
			rc = rc ? rc : note(out, r->layer);
		}
	return rc;
}
