#include "gpu/numbers.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

static const char purpose[] = "the digests of the grains";

static void drop(struct vv_gpu_numbers *of)
{
	vv_cuda_free(of->span);
	vv_cuda_free(of->digest);
	vv_cuda_free(of->tile);
	vv_cuda_free(of->changed);
	vv_cuda_free(of->zero);
	vv_cuda_free(of->count);
	*of = (struct vv_gpu_numbers){ .chunk = of->chunk, .blank = of->blank };
}

void vv_numbers_fini(struct vv_numbers *g)
{
	drop(&g->of);
	vv_mem_free(g->region);
	g->region = NULL;
	g->n = 0;
	g->end = 0;
}

/* Makes everything again, without a past. */
static int start(struct vv_numbers *g, const struct vv_span *span, size_t n, uint32_t end)
{
	size_t tiles = end / VV_GRAIN_TILE;
	int rc;

	g->n = n;
	g->end = end;
	g->of.n_span = (uint32_t)n;
	g->region = vv_mem_new(n, sizeof(*g->region));
	if (!g->region)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++)
		g->region[i] = (struct vv_numbers_region){ span[i].id, { .first = span[i].first, .n = span[i].n } };
	rc = vv_cuda_new(&g->of.span, n, sizeof(*g->of.span), purpose);
	if (rc == 0)
		rc = vv_cuda_new(&g->of.digest, end, sizeof(*g->of.digest), purpose);
	if (rc == 0)
		rc = vv_cuda_new(&g->of.tile, tiles, sizeof(*g->of.tile), purpose);
	if (rc == 0)
		rc = vv_cuda_new(&g->of.changed, tiles, sizeof(*g->of.changed), purpose);
	if (rc == 0)
		rc = vv_cuda_new(&g->of.zero, tiles, sizeof(*g->of.zero), purpose);
	if (rc == 0)
		rc = vv_cuda_new(&g->of.count, (size_t)vv_numbers_slices(g) * VV_GPU_GROUPS, sizeof(*g->of.count), purpose);
	return rc;
}

static bool same(const struct vv_numbers *g, const struct vv_span *span, size_t n, uint32_t end)
{
	bool same = g->of.digest && g->n == n && g->end == end;

	for (size_t i = 0; same && i < n; i++)
		same = g->region[i].id == span[i].id && g->region[i].span.n == span[i].n;
	return same;
}

static int by_id(const void *a, const void *b)
{
	const struct vv_numbers_region *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int copy(void *to, const void *from, size_t n, cudaStream_t stream)
{
	return n ? vv_cuda_check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, stream), purpose) : 0;
}

/* Moves the tiles' sums, too. They do not match tiles that are cut off or grow: those are compared
 * grain by grain. */
static int carry(struct vv_numbers *to, struct vv_gpu_span *now, const struct vv_numbers *from, const struct vv_gpu_span *was,
		 cudaStream_t stream)
{
	uint32_t tiles;
	int rc;

	now->had = now->n < was->had ? now->n : was->had;
	tiles = (now->had + VV_GRAIN_TILE - 1) / VV_GRAIN_TILE;
	rc = copy(to->of.digest + now->first, from->of.digest + was->first, now->had * sizeof(*to->of.digest), stream);
	return rc ? rc :
		    copy(to->of.tile + now->first / VV_GRAIN_TILE, from->of.tile + was->first / VV_GRAIN_TILE,
			 tiles * sizeof(*to->of.tile), stream);
}

/* `was` stays unchanged: it is needed if this fails. */
static int carry_all(struct vv_numbers *now, const struct vv_numbers *was, cudaStream_t stream)
{
	struct vv_numbers_region *sorted = vv_mem_new(was->n, sizeof(*sorted));
	int rc = sorted ? 0 : VV_ENOMEM;

	if (rc == 0 && was->n) {
		memcpy(sorted, was->region, was->n * sizeof(*sorted));
		qsort(sorted, was->n, sizeof(*sorted), by_id);
	}
	for (size_t i = 0; rc == 0 && i < now->n && was->n; i++) {
		const struct vv_numbers_region *r = bsearch(&now->region[i], sorted, was->n, sizeof(*sorted), by_id);

		if (r)
			rc = carry(now, &now->region[i].span, was, &r->span, stream);
	}
	vv_mem_free(sorted);
	return rc;
}

int vv_numbers_fit(struct vv_numbers *g, const struct vv_span *span, size_t n, uint32_t end, cudaStream_t stream)
{
	struct vv_numbers now = { .of = { .chunk = g->of.chunk, .blank = g->of.blank } };
	int rc;

	if (!same(g, span, n, end)) {
		rc = start(&now, span, n, end);
		if (rc == 0)
			rc = carry_all(&now, g, stream);
		if (rc == 0)
			rc = vv_cuda_check(cudaStreamSynchronize(stream), purpose);
		if (rc) {
			vv_numbers_fini(&now);
			return rc;
		}
		vv_numbers_fini(g);
		*g = now;
	}
	for (size_t i = 0; i < n; i++)
		g->region[i].span.p = span[i].p;
	return 0;
}

int vv_numbers_publish(struct vv_numbers *g, cudaStream_t stream)
{
	struct vv_gpu_span *span = vv_mem_new(g->n, sizeof(*span));
	int rc;

	if (!span)
		return VV_ENOMEM;
	for (size_t i = 0; i < g->n; i++)
		span[i] = g->region[i].span;
	rc = vv_cuda_check(cudaMemcpyAsync(g->of.span, span, g->n * sizeof(*span), cudaMemcpyHostToDevice, stream), purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaMemsetAsync(g->of.count, 0, (size_t)vv_numbers_slices(g) * VV_GPU_GROUPS * sizeof(*g->of.count), stream),
				   purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamSynchronize(stream), purpose);
	else
		cudaStreamSynchronize(stream); /* the copy reads from `span` */
	vv_mem_free(span);
	return rc;
}

void vv_numbers_seen(struct vv_numbers *g)
{
	for (size_t i = 0; i < g->n; i++)
		g->region[i].span.had = g->region[i].span.n;
}

void vv_numbers_forget(struct vv_numbers *g)
{
	for (size_t i = 0; i < g->n; i++)
		g->region[i].span.had = 0;
}
