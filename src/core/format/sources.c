#include "core/format/sources.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"

enum { MAX_SOURCES = 1 << 24 };

void vv_sources_fini(struct vv_sources *s)
{
	vv_mem_free(s->layer);
	vv_mem_free(s->end);
	vv_mem_free(s->slot);
}

static uint32_t *slot_of(const struct vv_sources *s, uint64_t layer)
{
	size_t i = (size_t)((layer * 0x9e3779b97f4a7c15ull) >> 32) & s->mask;

	while (s->slot[i] && s->layer[s->slot[i]] != layer)
		i = (i + 1) & s->mask;
	return &s->slot[i];
}

static int grow(struct vv_sources *s)
{
	size_t cap = s->cap ? s->cap * 2 : 16;
	uint64_t *layer = vv_mem_grow(s->layer, cap, sizeof(*layer));
	uint64_t *end = layer ? vv_mem_grow(s->end, cap, sizeof(*end)) : NULL;
	uint32_t *slot = end ? vv_mem_new(cap * 2, sizeof(*slot)) : NULL;

	s->layer = layer ? layer : s->layer;
	s->end = end ? end : s->end;
	if (!slot)
		return VV_ENOMEM;
	vv_mem_free(s->slot);
	s->slot = slot;
	s->cap = cap;
	s->mask = cap * 2 - 1;
	for (size_t i = 1; i <= s->n; i++)
		*slot_of(s, s->layer[i]) = (uint32_t)i;
	return 0;
}

int vv_sources_number(struct vv_sources *s, uint64_t layer, uint32_t *out)
{
	uint32_t *slot;

	if (s->n + 1 >= s->cap && grow(s) < 0)
		return VV_ENOMEM;
	slot = slot_of(s, layer);
	if (!*slot) {
		*slot = (uint32_t)++s->n;
		s->layer[s->n] = layer;
		s->end[s->n] = 0;
	}
	*out = *slot;
	return 0;
}

void vv_sources_put(const struct vv_sources *s, struct vv_buf *out)
{
	vv_wire_put_var(out, s->n);
	for (size_t i = 1; i <= s->n; i++) {
		vv_wire_put_var(out, vv_run_epoch(s->layer[i]));
		vv_wire_put_var(out, vv_run_rank(s->layer[i]));
	}
}

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "section SOURCES: %s", what);
}

int vv_sources_get(struct vv_sources *s, const void *p, size_t n, uint64_t newest)
{
	struct vv_wire w = vv_wire_over(p, n);
	size_t count = (size_t)vv_wire_var_max(&w, MAX_SOURCES);

	if (w.bad || count > vv_wire_left(&w) / 2)
		return damaged("impossible number of sources");
	for (size_t i = 1; i <= count; i++) {
		uint64_t epoch = vv_wire_var_max(&w, newest);
		uint32_t rank = (uint32_t)vv_wire_var_max(&w, VV_MAX_RANKS - 1), k = 0;

		if (w.bad || epoch == 0)
			return damaged("malformed source");
		if (vv_sources_number(s, vv_run_layer(epoch, rank), &k) < 0)
			return VV_ENOMEM;
		if (k != i)
			return damaged("a source is listed twice");
	}
	return vv_wire_left(&w) ? damaged("bytes left over") : 0;
}
