#include "gpu/work.h"

/* Bytes of all stages for each number of a slice, and the least for small sets. With the arrays
 * below, they stay within vv_grain_limit's memory for the work on a slice. */
enum { STAGE_PER_NUMBER = 8, LEAST_STAGE = 1 << 20 };

static const char purpose[] = "the work on a slice";

void vv_work_fini(struct vv_work *w)
{
	vv_cuda_free(w->all);
	if (w->host)
		cudaFreeHost(w->host);
	for (int i = 0; i < VV_WORK_TURNS; i++)
		if (w->piece[i])
			cudaFreeHost(w->piece[i]);
	*w = (struct vv_work){ 0 };
}

/* The next n elements of the memory at base. With base NULL it only advances *at. */
static void *carve(uint8_t *base, size_t *at, size_t n, size_t size)
{
	enum { ALIGN = 256 };
	size_t begin = *at;

	*at = (begin + n * size + ALIGN - 1) / ALIGN * ALIGN;
	return base ? base + begin : NULL;
}

/* Lays out all arrays; returns their bytes. */
static size_t lay_out(struct vv_work *w, uint8_t *base)
{
	struct vv_gpu_batch *b = &w->batch;
	size_t n = w->cap, at = 0;

	b->from = carve(base, &at, n, sizeof(*b->from));
	b->piece = carve(base, &at, n, sizeof(*b->piece));
	b->item = carve(base, &at, n, sizeof(*b->item));
	b->slot = carve(base, &at, n, sizeof(*b->slot));
	b->back = carve(base, &at, n, sizeof(*b->back));
	b->height = (uint8_t *)b->back;
	b->node = (struct vv_digest *)b->piece;
	b->sorting.slot = carve(base, &at, n, sizeof(*b->sorting.slot));
	b->sorting.order = carve(base, &at, n, sizeof(*b->sorting.order));
	b->sorting.order_too = carve(base, &at, n, sizeof(*b->sorting.order_too));
	b->sorting.temp = carve(base, &at, vv_sort_bytes(w->cap), 1);
	b->portion = carve(base, &at, n / VV_GPU_PORTION + 1, sizeof(*b->portion));
	b->counts = carve(base, &at, 1, sizeof(*b->counts));
	for (int i = 0; i < VV_WORK_TURNS; i++)
		w->fresh[i] = carve(base, &at, n, sizeof(*w->fresh[i]));
	for (int i = 0; i < VV_OUTLET_STAGES; i++)
		w->stage[i] = carve(base, &at, w->stage_len, 1);
	return at;
}

static int make(struct vv_work *w)
{
	size_t total = w->slices * sizeof(*w->host->total);
	int rc = vv_cuda_new(&w->all, lay_out(w, NULL), 1, purpose);

	if (rc)
		return rc;
	lay_out(w, w->all);
	rc = vv_cuda_check(cudaHostAlloc((void **)&w->host, sizeof(*w->host) + total, cudaHostAllocMapped), purpose);
	for (int i = 0; rc == 0 && i < VV_WORK_TURNS; i++)
		rc = vv_cuda_check(cudaHostAlloc((void **)&w->piece[i], w->cap * sizeof(**w->piece) + 1, cudaHostAllocMapped), purpose);
	return rc;
}

int vv_work_fit(struct vv_work *w, uint32_t end, uint32_t chunk)
{
	uint32_t cap = end < VV_GRAIN_SLICE ? end : VV_GRAIN_SLICE;
	uint32_t slices = (uint32_t)(((uint64_t)end + VV_GRAIN_SLICE - 1) / VV_GRAIN_SLICE);
	size_t stage = (size_t)cap * STAGE_PER_NUMBER / VV_OUTLET_STAGES, whole = (size_t)cap * chunk;
	int rc;

	if (w->all && cap <= w->cap && slices <= w->slices)
		return 0;
	vv_work_fini(w);
	stage = stage > LEAST_STAGE ? stage : LEAST_STAGE;
	w->stage_len = (stage < whole ? stage : whole) / VV_GRAIN_MAX * VV_GRAIN_MAX + VV_GRAIN_MAX;
	w->cap = cap;
	w->slices = slices;
	rc = make(w);
	if (rc)
		vv_work_fini(w);
	return rc;
}
