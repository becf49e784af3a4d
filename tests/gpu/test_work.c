/* The arrays that the work on a slice needs: each as large as it must be, none over another, all in one block; whichever call fails, nothing is left.
 * Without a device. */
#include "base/err.h"
#include "gpu/work.h"
#include "host_runtime.h"

enum { MOST = 32 };

/* As the kernels': some bytes for each item. */
size_t vv_sort_bytes(uint32_t n)
{
	return (size_t)n / 16 * 1024 / 64 + 4096;
}

struct range {
	const uint8_t *p;
	size_t n;
};

static size_t n_ranges;
static struct range ranges[MOST];

static void add(const void *p, size_t n)
{
	CHECK(n_ranges < MOST && p && (uintptr_t)p % 16 == 0);
	ranges[n_ranges++] = (struct range){p, n};
}

static void check(const struct vv_work *w, uint32_t end, uint32_t chunk)
{
	const struct vv_gpu_batch *b = &w->batch;
	uint32_t cap = end < VV_GRAIN_SLICE ? end : VV_GRAIN_SLICE;
	const uint8_t *all = w->all;
	size_t n = w->cap, bytes = host_size(w->all);

	n_ranges = 0;
	CHECK(n >= cap && (uint64_t)w->slices * VV_GRAIN_SLICE >= end);
	CHECK(w->stage_len >= chunk && w->stage_len % VV_GRAIN_MAX == 0);
	add(b->from, n * sizeof(*b->from));
	add(b->piece, n * sizeof(*b->piece));
	add(b->item, n * sizeof(*b->item));
	add(b->slot, n * sizeof(*b->slot));
	add(b->back, n * sizeof(*b->back));
	add(b->sorting.slot, n * sizeof(*b->sorting.slot));
	add(b->sorting.order, n * sizeof(*b->sorting.order));
	add(b->sorting.order_too, n * sizeof(*b->sorting.order_too));
	add(b->sorting.temp, vv_sort_bytes(w->cap));
	add(b->portion, (n / VV_GPU_PORTION + 1) * sizeof(*b->portion));
	add(b->counts, sizeof(*b->counts));
	for (int i = 0; i < VV_WORK_TURNS; i++)
		add(w->fresh[i], n * sizeof(*w->fresh[i]));
	for (int i = 0; i < VV_OUTLET_STAGES; i++)
		add(w->stage[i], w->stage_len);
	for (size_t i = 0; i < n_ranges; i++) {
		CHECK(ranges[i].p >= all && ranges[i].p + ranges[i].n <= all + bytes);
		for (size_t k = 0; k < i; k++)
			CHECK(ranges[i].p + ranges[i].n <= ranges[k].p || ranges[k].p + ranges[k].n <= ranges[i].p);
	}
	CHECK(host_size(w->host) >= sizeof(*w->host) + w->slices * sizeof(w->host->total[0]));
	for (int i = 0; i < VV_WORK_TURNS; i++)
		CHECK(host_size(w->piece[i]) >= n * sizeof(**w->piece));
	/* what is lent to others in between lies in what it is lent from */
	CHECK((uint8_t *)b->height == (uint8_t *)b->back && (uint8_t *)b->node == (uint8_t *)b->piece &&
	      sizeof(*b->node) <= sizeof(*b->piece));
}

static void test_random(void)
{
	static const uint32_t chunks[] = {32, 64, 256, 4096};

	for (int round = 0; round < 15; round++) {
		uint32_t chunk = chunks[upto(3)];
		struct vv_work w = {0};

		for (int i = 0; i < 6; i++) {
			uint32_t end =
				VV_GRAIN_TILE * (uint32_t)upto(upto(3) ? 4000 : 3 * VV_GRAIN_SLICE / VV_GRAIN_TILE);

			host_fail(upto(1) ? 1 + (long)upto(5) : 0);
			if (vv_work_fit(&w, end, chunk)) {
				CHECK(!w.all && !w.cap && !w.host);
				CHECK_EQ(host_blocks, 0);
			} else {
				check(&w, end, chunk);
			}
			host_fail(0);
		}
		vv_work_fini(&w);
		vv_work_fini(&w);
		host_end();
	}
}

/* Of a set that has become smaller nothing is made anew. */
static void test_keeps(void)
{
	struct vv_work w = {0};
	void *all;

	CHECK_EQ(vv_work_fit(&w, 64000, 128), 0);
	all = w.all;
	CHECK_EQ(vv_work_fit(&w, 32, 128), 0);
	CHECK(w.all == all);
	check(&w, 64000, 128);
	CHECK_EQ(vv_work_fit(&w, 64032, 128), 0);
	check(&w, 64032, 128);
	vv_work_fini(&w);
	host_end();
}

int main(void)
{
	test_random();
	test_keeps();
	return 0;
}
