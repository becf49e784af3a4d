/* The input as the sections REGIONS and PARTS of a layer (a u16 length of the first, then both). What is decoded must encode to the same
 * bytes. Each pair of regions is composed: the part of the one that the other has, without any byte outside of either. */
#include "base/err.h"
#include "core/format/distribution.h"
#include "engine/read/compose.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void compose(const struct vv_head_region *to, const struct vv_head_region *from)
{
	struct vv_run all = { 0, from->shape.len, 1 << 20, 0 };
	struct vv_runs runs = { &all, from->shape.len > 0, 1 };
	struct vv_compose_source source = { .runs = &runs };
	struct vv_composition c = { .element = vv_head_type_size(to->shape.type), .source = &source, .n = 1 };
	struct vv_composed out = { 0 };
	uint8_t *base = (uint8_t *)(uintptr_t)4096; /* never read or written */

	if (to->shape.ndim != from->shape.ndim || to->shape.type != from->shape.type || to->shape.len > 4096 || from->shape.len > 4096)
		return;
	vv_distribution_memory(&to->shape, to->part, &c.memory);
	vv_distribution_memory(&from->shape, from->part, &source.memory);
	vv_distribution_provided(&from->shape, from->part, &source.provided);
	if (vv_distribution_is_empty(&source.provided) || vv_compose_begin(&c) < 0)
		return;
	while (!c.done) {
		vv_compose_clear(&out);
		insist(vv_compose_slice(&c, base, "T", &out) == 0);
		for (size_t i = 0; i < out.n; i++)
			insist(out.want[i].to >= base && out.want[i].to + out.want[i].len <= base + to->shape.len);
		for (size_t i = 0; i < out.runs.n; i++)
			insist(out.runs.v[i].pos + out.runs.v[i].len <= from->shape.len);
	}
	vv_compose_fini(&out);
}

static void use(const struct vv_head *h)
{
	enum { MOST = 8 };

	for (size_t i = 0; i < h->n_regions && i < MOST; i++)
		for (size_t k = 0; k < h->n_regions && k < MOST; k++)
			if (h->region[i].part && h->region[i].part->kind == VV_DISTRIBUTION_SLAB && h->region[k].part &&
			    h->region[k].part->kind == VV_DISTRIBUTION_SLAB)
				compose(&h->region[i], &h->region[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size < 2 ? 0 : (size_t)(data[0] | data[1] << 8);
	struct vv_head h = { .parent = 1 };

	if (size < 2 || n > size - 2)
		return 0;
	if (vv_head_get_regions(&h, data + 2, n) == 0 && vv_distribution_get(&h, data + 2 + n, size - 2 - n) == 0) {
		struct vv_buf b = { 0 };

		vv_distribution_put(&h, &b);
		insist(!b.failed && b.n == size - 2 - n && memcmp(b.p, data + 2 + n, b.n) == 0);
		vv_buf_fini(&b);
		use(&h);
	}
	vv_head_fini(&h);
	return 0;
}
