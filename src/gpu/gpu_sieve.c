#include "gpu/gpu_sieve.h"
#include "base/mem.h"
#include "gpu/full.h"
#include "gpu/sieve_pass.h"
#include <stdlib.h>

static const char purpose[] = "beginning dedup on the device";

static struct vv_gpu_sieve *sieve_of(struct vv_sieve *s)
{
	return (struct vv_gpu_sieve *)s;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int make_streams(struct vv_gpu_sieve *s)
{
	cudaEvent_t *event[] = { &s->judged, &s->done, &s->placed[0], &s->placed[1], &s->gathered[0], &s->gathered[1] };
	int least = 0, greatest = 0;
	int rc = vv_cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), purpose);

	/* Batches are short, and the host waits for them. Their priority is above the fused pass of
	 * later slices, and below the outlet. */
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking, greatest + (least - greatest > 1)), purpose);
	for (int i = 0; rc == 0 && i < VV_GPU_LANES; i++)
		rc = vv_cuda_check(cudaStreamCreateWithPriority(&s->lane[i], cudaStreamNonBlocking, least), purpose);
	for (int i = 0; rc == 0 && i < VV_GPU_AHEAD; i++)
		rc = vv_cuda_check(cudaEventCreateWithFlags(&s->fused[i], cudaEventDisableTiming), purpose);
	for (size_t i = 0; rc == 0 && i < sizeof(event) / sizeof(*event); i++)
		rc = vv_cuda_check(cudaEventCreateWithFlags(event[i], cudaEventDisableTiming), purpose);
	return rc ? rc : vv_outlet_init(&s->outlet);
}

static void drop_streams(struct vv_gpu_sieve *s)
{
	cudaEvent_t event[] = { s->judged, s->done, s->placed[0], s->placed[1], s->gathered[0], s->gathered[1] };

	for (size_t i = 0; i < sizeof(event) / sizeof(*event); i++)
		if (event[i])
			cudaEventDestroy(event[i]);
	for (int i = 0; i < VV_GPU_AHEAD; i++)
		if (s->fused[i])
			cudaEventDestroy(s->fused[i]);
	for (int i = 0; i < VV_GPU_LANES; i++)
		if (s->lane[i])
			cudaStreamDestroy(s->lane[i]);
	if (s->stream)
		cudaStreamDestroy(s->stream);
	vv_outlet_fini(&s->outlet);
}

static int check_options(const struct vv_sieve_options *opt)
{
	if (opt->chunk < VV_GRAIN_MIN || opt->chunk > VV_GRAIN_MAX || (opt->chunk & (opt->chunk - 1)))
		return vv_err_set(VV_EINVAL, "grains of %u bytes: want a power of two from %d to %d", opt->chunk, VV_GRAIN_MIN, VV_GRAIN_MAX);
	if (opt->digest_kind != VV_DIGEST_XXH3)
		return vv_err_set(VV_ENOTSUP, "dedup on the device knows the digest xxh3 only; set digest=xxh3, or the regions go through the host");
	return 0;
}

int vv_gpu_sieve_open(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_sieve **out)
{
	static const uint8_t zeros[VV_GRAIN_MAX];
	struct vv_gpu_sieve *s;
	struct vv_cuda_before before;
	int rc = check_options(opt);

	(void)pool;
	if (rc)
		return rc;
	s = vv_mem_new(1, sizeof(*s));
	if (!s)
		return VV_ENOMEM;
	s->base = (struct vv_sieve){ .space = vv_space_cuda(), .opt = *opt };
	s->numbers.of.chunk = opt->chunk;
	vv_digest_xxh3(zeros, opt->chunk, &s->numbers.of.blank);
	rc = vv_cuda_enter(opt->device, &before);
	if (rc == 0) {
		rc = make_streams(s);
		vv_cuda_leave(before);
	}
	if (rc) {
		vv_gpu_sieve_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

void vv_gpu_sieve_close(struct vv_sieve *base)
{
	struct vv_gpu_sieve *s = base ? sieve_of(base) : NULL;
	struct vv_err_state why;
	struct vv_cuda_before before;

	if (!s)
		return;
	vv_err_save(0, &why);
	if (vv_cuda_enter(base->opt.device, &before) == 0) {
		drop_streams(s);
		vv_numbers_fini(&s->numbers);
		vv_known_map_fini(&s->known);
		vv_known_map_fini(&s->nodes);
		vv_work_fini(&s->work);
		vv_cuda_leave(before);
	}
	vv_mem_free(s->dead);
	vv_mem_free(s);
	vv_err_restore(&why);
}

/* ---- the beginning of a pass ----------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Removes the ordinals forgotten since the last pass from the maps. */
static int bury(struct vv_gpu_sieve *s)
{
	int rc;

	if (s->n_dead == 0)
		return 0;
	qsort(s->dead, s->n_dead, sizeof(*s->dead), by_value);
	rc = vv_known_map_kill(&s->known, s->dead, s->n_dead, s->stream);
	if (rc == 0)
		rc = vv_known_map_kill(&s->nodes, s->dead, s->n_dead, s->stream);
	if (rc == 0)
		s->n_dead = 0;
	return rc;
}

static int fit_maps(struct vv_gpu_sieve *s)
{
	const struct vv_sieve_options *opt = &s->base.opt;
	size_t limit = vv_grain_limit(opt->memory, s->numbers.end, opt->states);
	int rc = bury(s);

	if (opt->method == VV_METHOD_TREE) {
		limit /= 2;
		if (rc == 0)
			rc = vv_known_map_limit(&s->nodes, limit, s->numbers.end, s->stream);
	}
	return rc ? rc : vv_known_map_limit(&s->known, limit, s->numbers.end, s->stream);
}

static int check_ordinal(uint32_t ordinal)
{
	if (ordinal < VV_GRAIN_ORDINALS)
		return 0;
	return vv_err_set(VV_EINVAL, "a session has at most %u epochs with dedup of grains; begin another one", VV_GRAIN_ORDINALS);
}

/* The set becomes these spans. */
static int fit_numbers(struct vv_gpu_sieve *s, struct vv_span *span, size_t n, uint32_t *end)
{
	int rc = vv_grain_number_spans(span, n, s->base.opt.chunk, end);

	return rc || s->base.opt.method == VV_METHOD_FULL ? rc : vv_numbers_fit(&s->numbers, span, n, *end, s->stream);
}

/* Fits the memory for work on the set's digests. */
static int fit_work(struct vv_gpu_sieve *s)
{
	int rc = vv_work_fit(&s->work, s->numbers.end, s->base.opt.chunk);

	for (int i = 0; rc == 0 && i < VV_OUTLET_STAGES; i++)
		s->outlet.stage[i] = s->work.stage[i];
	s->outlet.stage_len = s->work.stage_len;
	return rc || !vv_gpu_sieve_looks_up(s) ? rc : fit_maps(s);
}

static int begin(struct vv_gpu_sieve *s, struct vv_span *span, size_t n, uint32_t ordinal, uint32_t *end)
{
	int rc = check_ordinal(ordinal);

	if (rc == 0)
		rc = fit_numbers(s, span, n, end);
	return rc || s->base.opt.method == VV_METHOD_FULL ? rc : fit_work(s);
}

/* ---- the operations -------------------------------------------------------------------------- */

static int pass(struct vv_gpu_sieve *s, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_sink *sink)
{
	uint64_t forgotten = s->known.forgotten;
	uint32_t end;
	int rc = begin(s, span, n, ordinal, &end);

	s->base.counts = (struct vv_sieve_counts){ 0 };
	s->outlet.sink = sink;
	s->outlet.of = &s->numbers.of;
	if (rc == 0)
		rc = s->base.opt.method == VV_METHOD_FULL ? vv_full_pass(&s->outlet, span, n, end, &s->base.counts) :
							    vv_sieve_pass_pass(s, ordinal, sink);
	s->base.counts.forgotten = s->known.forgotten - forgotten;
	return rc;
}

/* Stops all work in progress. The error that ended it is kept. */
static void stop(struct vv_gpu_sieve *s)
{
	struct vv_err_state why;

	vv_err_save(0, &why);
	vv_outlet_stop(&s->outlet);
	for (int i = 0; i < VV_GPU_LANES; i++)
		vv_cuda_check(cudaStreamSynchronize(s->lane[i]), purpose);
	vv_cuda_check(cudaStreamSynchronize(s->stream), purpose);
	vv_err_restore(&why);
}

int vv_gpu_sieve_pass(struct vv_sieve *base, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_sink *sink)
{
	struct vv_gpu_sieve *s = sieve_of(base);
	struct vv_cuda_before before;
	int rc = vv_cuda_enter(base->opt.device, &before);

	if (rc)
		return rc;
	rc = pass(s, span, n, ordinal, sink);
	if (rc) {
		stop(s);
		vv_gpu_sieve_forget(base, ordinal);
	}
	vv_cuda_leave(before);
	return rc;
}

int vv_gpu_sieve_begin(struct vv_sieve *base, struct vv_span *span, size_t n)
{
	struct vv_gpu_sieve *s = sieve_of(base);
	uint32_t end;
	struct vv_cuda_before before;
	int rc = vv_cuda_enter(base->opt.device, &before);

	if (rc)
		return rc;
	rc = fit_numbers(s, span, n, &end);
	vv_numbers_forget(&s->numbers);
	vv_known_map_clear(&s->known);
	vv_known_map_clear(&s->nodes);
	s->n_dead = 0; /* with all that was known */
	vv_cuda_leave(before);
	return rc;
}

int vv_gpu_sieve_learn(struct vv_sieve *base, const struct vv_grain_bytes *lesson, size_t n)
{
	struct vv_gpu_sieve *s = sieve_of(base);
	struct vv_cuda_before before;
	int rc = vv_cuda_enter(base->opt.device, &before);

	(void)lesson;
	if (rc)
		return rc;
	if (n && base->opt.method != VV_METHOD_FULL)
		rc = vv_sieve_pass_look(s);
	if (rc) {
		stop(s);
		vv_numbers_forget(&s->numbers);
	}
	vv_cuda_leave(before);
	return rc;
}

int vv_gpu_sieve_adopt(struct vv_sieve *base, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable)
{
	struct vv_gpu_sieve *s = sieve_of(base);
	struct vv_cuda_before before;
	int rc = vv_cuda_enter(base->opt.device, &before);

	if (rc)
		return rc;
	s->n_dead = 0;
	rc = check_ordinal(ordinal);
	if (rc == 0 && base->opt.method != VV_METHOD_FULL)
		rc = fit_work(s);
	if (rc == 0)
		rc = vv_sieve_pass_know(s, ordinal, usable, n_usable);
	if (rc)
		stop(s);
	vv_cuda_leave(before);
	return rc;
}

void vv_gpu_sieve_forget(struct vv_sieve *base, uint32_t ordinal)
{
	struct vv_gpu_sieve *s = sieve_of(base);
	struct vv_cuda_before before;

	vv_numbers_forget(&s->numbers);
	if (!vv_gpu_sieve_looks_up(s))
		return;
	if (vv_mem_room(&s->dead, s->n_dead, &s->cap_dead, sizeof(*s->dead)) == 0) {
		s->dead[s->n_dead++] = ordinal;
		return;
	}
	/* an ordinal that cannot be listed as dead must not be found */
	if (vv_cuda_enter(base->opt.device, &before) == 0) {
		vv_known_map_clear(&s->known);
		vv_known_map_clear(&s->nodes);
		vv_cuda_leave(before);
	}
}
