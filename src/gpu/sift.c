/* The conductor of a pass. The fused pass runs ahead on streams of its own; behind it come batches, each of one slice or of several that have
 * changed little: its kernels, then its data through the outlet while the next batch is under way. The host waits for a batch's counts only. */
#include "gpu/sift.h"
#include <inttypes.h>

static const char purpose[] = "dedup on the device";

struct sift {
	struct vv_gpu_sieve *s;
	const struct vv_sink *sink; /* NULL: the grains only become known */
	uint32_t ordinal;
	uint32_t slices, launched; /* all, and those that the fused pass has been begun for */
	uint64_t n_data;           /* grains so far */
	unsigned turn;             /* of `fresh` */
	bool pending;              /* a batch whose pieces the sink has not got */
};

static int wait_for(cudaEvent_t e)
{
	return vv_cuda_check(cudaEventSynchronize(e), purpose);
}

static int record(cudaEvent_t e, cudaStream_t stream)
{
	return vv_cuda_check(cudaEventRecord(e, stream), purpose);
}

static int fetch(void *to, const void *from, size_t n, cudaStream_t stream)
{
	return n ? vv_cuda_check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, stream), purpose) : 0;
}

/* ---- the fused pass ----------------------------------------------------------------------------------------------------- */

static uint32_t slice_end(const struct vv_gpu_sieve *s, uint32_t slice)
{
	uint64_t end = ((uint64_t)slice + 1) * VV_GRAIN_SLICE;

	return end < s->numbers.end ? (uint32_t)end : s->numbers.end;
}

static bool aligned(const struct vv_gpu_span *span)
{
	return (uintptr_t)span->p % 16 == 0;
}

/* Spans are taken together as long as they are alike. */
static int fuse(struct vv_gpu_sieve *s, uint32_t slice, cudaStream_t stream)
{
	const struct vv_numbers *g = &s->numbers;
	uint32_t begin = slice * VV_GRAIN_SLICE, end = slice_end(s, slice), to;
	size_t i = 0;
	int rc = 0;

	for (; rc == 0 && begin < end; begin = to) {
		bool fast;

		while (i + 1 < g->n && g->region[i + 1].span.first <= begin)
			i++;
		fast = aligned(&g->region[i].span);
		while (i + 1 < g->n && g->region[i + 1].span.first < end && aligned(&g->region[i + 1].span) == fast)
			i++;
		to = i + 1 < g->n && g->region[i + 1].span.first < end ? g->region[i + 1].span.first : end;
		rc = vv_fused_run(&g->of, begin / VV_GRAIN_TILE, (to - begin) / VV_GRAIN_TILE, fast, stream);
	}
	return rc;
}

/* As far ahead of the slice `next` as may be. */
static int fuse_ahead(struct sift *p, uint32_t next)
{
	struct vv_gpu_sieve *s = p->s;
	int rc = 0;

	for (; rc == 0 && p->launched < p->slices && p->launched < next + VV_GPU_AHEAD; p->launched++) {
		cudaStream_t lane = s->lane[p->launched % VV_GPU_LANES];

		if (p->sink)
			rc = fuse(s, p->launched, lane);
		if (rc == 0)
			rc = vv_fused_tally(&s->numbers.of, p->launched, &s->work.host->total[p->launched], lane);
		if (rc == 0)
			rc = record(s->fused[p->launched % VV_GPU_AHEAD], lane);
	}
	return rc;
}

/* ---- a batch ---------------------------------------------------------------------------------------------------------------- */

struct batch {
	struct vv_gpu_batch b;
	uint32_t slice, end; /* slices */
	uint32_t not_zero;   /* items */
};

static uint32_t changed_in(const struct sift *p, uint32_t slice)
{
	return (uint32_t)p->s->work.host->total[slice];
}

static uint32_t not_zero_in(const struct sift *p, uint32_t slice)
{
	return (uint32_t)(p->s->work.host->total[slice] >> 32);
}

/* May the slice be part of the batch too? Not if the maps would have to make room in between, nor with trees, which are those of slices. */
static bool joins(const struct sift *p, const struct batch *x, uint32_t slice)
{
	const struct vv_gpu_sieve *s = p->s;
	uint64_t digests = (uint64_t)x->not_zero + not_zero_in(p, slice);

	if (s->base.opt.method == VV_METHOD_TREE || (uint64_t)x->b.n + changed_in(p, slice) > s->work.cap)
		return false;
	return !vv_gpu_sieve_looks_up(s) || s->known.n_young + digests <= s->known.limit;
}

static void add_slice(const struct sift *p, struct batch *x, uint32_t slice)
{
	x->b.n += changed_in(p, slice);
	x->not_zero += not_zero_in(p, slice);
	x->end = slice + 1;
}

/* The slice `first`, and with it those after it that the fused pass is through with. */
static int collect(struct sift *p, uint32_t first, struct batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	int rc = fuse_ahead(p, first);

	*x = (struct batch){ .b = s->work.batch, .slice = first };
	if (rc == 0)
		rc = wait_for(s->fused[first % VV_GPU_AHEAD]);
	if (rc)
		return rc;
	add_slice(p, x, first);
	while (x->end < p->launched && cudaEventQuery(s->fused[x->end % VV_GPU_AHEAD]) == cudaSuccess && joins(p, x, x->end))
		add_slice(p, x, x->end);
	x->b.of = s->numbers.of;
	x->b.first = first * VV_GRAIN_SLICE;
	x->b.ordinal = p->ordinal;
	x->b.by_number = !p->sink;
	x->b.base = p->n_data;
	x->b.fresh = s->work.fresh[p->turn];
	return 0;
}

/* How much the last batch brought into the map of nodes is known when all its work is done. */
static int count_nodes(struct sift *p)
{
	struct vv_gpu_sieve *s = p->s;
	struct vv_gpu_counts *done = &s->work.host->done;
	int rc = s->base.opt.method == VV_METHOD_TREE ? vv_cuda_check(cudaStreamSynchronize(s->stream), purpose) : 0;

	if (rc == 0)
		vv_memo_end(&s->nodes, done->nodes, done->nodes_promoted);
	done->nodes = done->nodes_promoted = 0;
	return rc;
}

static int make_room_for_nodes(struct sift *p, struct batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	size_t take;
	int rc = count_nodes(p);

	if (rc == 0)
		rc = vv_memo_begin(&s->nodes, x->not_zero, &take, s->stream);
	x->b.young_nodes = s->nodes.young;
	x->b.aged_nodes = s->nodes.aged;
	return rc;
}

static int make_room(struct sift *p, struct batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	size_t take = x->not_zero;
	int rc = 0;

	if (vv_gpu_sieve_looks_up(s))
		rc = vv_memo_begin(&s->known, x->not_zero, &take, s->stream);
	x->b.take = (uint32_t)take;
	x->b.young = s->known.young;
	x->b.aged = s->known.aged;
	return rc || s->base.opt.method != VV_METHOD_TREE ? rc : make_room_for_nodes(p, x);
}

static int expand(struct sift *p, const struct batch *x)
{
	uint32_t at = 0;
	int rc = 0;

	for (uint32_t slice = x->slice; rc == 0 && slice < x->end; slice++) {
		if (changed_in(p, slice))
			rc = vv_kinds_expand(&x->b, slice * VV_GRAIN_SLICE, slice_end(p->s, slice), at, p->s->stream);
		at += changed_in(p, slice);
	}
	return rc;
}

/* To where it is known how many grains are new, and further, to where each comes from. */
static int judge(struct sift *p, struct batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	const struct vv_gpu_batch *b = &x->b;
	bool looks_up = vv_gpu_sieve_looks_up(s);
	int rc = vv_cuda_check(cudaStreamWaitEvent(s->stream, s->gathered[p->turn], 0), purpose);

	if (rc == 0)
		rc = vv_cuda_check(cudaMemsetAsync(b->counts, 0, sizeof(*b->counts), s->stream), purpose);
	if (rc == 0)
		rc = expand(p, x);
	if (rc == 0)
		rc = looks_up ? vv_kinds_claim(b, s->stream) : vv_kinds_plain(b, s->stream);
	if (rc == 0 && looks_up)
		rc = vv_kinds_judge(b, s->stream);
	if (rc == 0)
		rc = fetch(&s->work.host->judged, b->counts, sizeof(*b->counts), s->stream);
	if (rc == 0)
		rc = record(s->judged, s->stream);
	if (rc == 0 && looks_up)
		rc = vv_kinds_place(b, s->stream);
	if (rc == 0)
		rc = record(s->placed, s->stream);
	return rc || !looks_up ? rc : vv_kinds_resolve(b, s->stream);
}

static int cut_tree(struct sift *p, const struct batch *x, bool copies)
{
	int rc = vv_nodes_new(&x->b, p->s->stream);

	if (rc == 0 && copies)
		rc = vv_nodes_copies(&x->b, p->s->stream);
	return rc ? rc : vv_nodes_emit(&x->b, p->s->stream);
}

static int conclude(struct sift *p, const struct batch *x)
{
	int rc = fetch(&p->s->work.host->done, x->b.counts, sizeof(*x->b.counts), p->s->stream);

	return rc ? rc : record(p->s->done, p->s->stream);
}

static int cut(struct sift *p, const struct batch *x, bool copies)
{
	struct vv_gpu_sieve *s = p->s;
	const struct vv_sieve_options *opt = &s->base.opt;
	int rc = 0;

	if (copies && (opt->compare || opt->method == VV_METHOD_RUN))
		rc = vv_repeat_back(&x->b, s->stream);
	if (rc == 0 && opt->compare && vv_gpu_sieve_looks_up(s))
		rc = vv_repeat_compare(&x->b, s->stream);
	if (rc == 0 && copies && opt->method == VV_METHOD_RUN)
		rc = vv_repeat_choose(&x->b, s->stream);
	if (rc == 0)
		rc = opt->method == VV_METHOD_TREE ? cut_tree(p, x, copies) : vv_pieces_emit(&x->b, s->stream);
	p->pending = true;
	return rc ? rc : conclude(p, x);
}

/* ---- to the sink ---------------------------------------------------------------------------------------------------------- */

static const struct vv_numbers_region *region_of(const struct vv_numbers *g, uint32_t number)
{
	size_t i = 0;

	while (i + 1 < g->n && g->region[i + 1].span.first <= number)
		i++;
	return &g->region[i];
}

static int complain(const struct vv_numbers *g, uint32_t number, uint32_t back)
{
	const struct vv_numbers_region *r = region_of(g, number), *other = region_of(g, number - back);
	uint64_t offset = (uint64_t)(number - r->span.first) * g->of.chunk;
	const char *advice = "nothing was stored; with digest=sha256 that cannot happen";

	if (back == 0)
		return vv_err_set(VV_EDAMAGED, "%u bytes at offset %" PRIu64 " of region %" PRIu64 " have the digest of zeros and are not zero: %s",
				  g->of.chunk, offset, r->id, advice);
	return vv_err_set(VV_EDAMAGED,
			  "two contents have the same digest: %u bytes at offset %" PRIu64 " of region %" PRIu64 " and those at offset %" PRIu64
			  " of region %" PRIu64 ": %s",
			  g->of.chunk, offset, r->id, (uint64_t)(number - back - other->span.first) * g->of.chunk, other->id, advice);
}

/* The pieces of the batch before this one begin their way to the host. Its work was done when this one was judged. */
static int bring_pieces(struct sift *p)
{
	struct vv_gpu_sieve *s = p->s;
	const struct vv_gpu_counts *done = &s->work.host->done;
	int rc;

	if (!p->pending)
		return 0;
	s->base.counts.known_here += done->here;
	if (done->differ)
		return complain(&s->numbers, (uint32_t)(~done->differ >> 32), (uint32_t)~done->differ);
	rc = fetch(s->work.piece, s->work.batch.piece, done->pieces * sizeof(*s->work.piece), s->stream);
	return rc ? rc : record(s->brought, s->stream);
}

static int give_pieces(struct sift *p, uint32_t n)
{
	int rc = wait_for(p->s->brought);

	return rc || n == 0 ? rc : p->sink->pieces(p->sink->arg, p->s->work.piece, n);
}

static int give_data(struct sift *p, const struct batch *x, uint32_t fresh)
{
	struct vv_gpu_sieve *s = p->s;
	int rc = vv_cuda_check(cudaStreamWaitEvent(s->outlet.gather, s->placed, 0), purpose);

	vv_outlet_expect(&s->outlet, (uint64_t)fresh * s->base.opt.chunk);
	if (rc == 0)
		rc = vv_outlet_gather(&s->outlet, x->b.fresh, fresh);
	return rc ? rc : record(s->gathered[p->turn], s->outlet.gather);
}

static void count(struct sift *p, const struct batch *x, const struct vv_gpu_counts *judged)
{
	struct vv_sieve_counts *c = &p->s->base.counts;

	vv_memo_end(&p->s->known, judged->entered, judged->promoted);
	if (!p->sink)
		return;
	c->changed += x->b.n;
	c->fresh += judged->fresh;
	c->known += judged->copies;
	c->zero += x->b.n - judged->fresh - judged->copies;
	p->n_data += judged->fresh;
}

static int know_nodes(struct sift *p, const struct batch *x)
{
	int rc;

	if (p->s->base.opt.method != VV_METHOD_TREE)
		return 0;
	rc = vv_nodes_new(&x->b, p->s->stream);
	return rc ? rc : conclude(p, x);
}

static int do_batch(struct sift *p, struct batch *x)
{
	struct vv_gpu_counts judged;
	uint32_t pieces = 0;
	bool pending;
	int rc = make_room(p, x);

	if (rc == 0)
		rc = judge(p, x);
	if (rc == 0)
		rc = wait_for(p->s->judged);
	if (rc)
		return rc;
	judged = p->s->work.host->judged;
	count(p, x, &judged);
	if (!p->sink)
		return know_nodes(p, x);
	pending = p->pending;
	pieces = p->s->work.host->done.pieces;
	rc = bring_pieces(p);
	if (rc == 0)
		rc = cut(p, x, judged.copies > 0);
	if (rc == 0 && pending)
		rc = give_pieces(p, pieces);
	if (rc == 0)
		rc = give_data(p, x, judged.fresh);
	p->turn = (p->turn + 1) % VV_WORK_FRESH;
	return rc;
}

/* The last batch's, and all data. */
static int finish(struct sift *p)
{
	int rc = 0;

	if (p->pending) {
		rc = wait_for(p->s->done);
		if (rc == 0)
			rc = bring_pieces(p);
		if (rc == 0)
			rc = give_pieces(p, p->s->work.host->done.pieces);
	}
	return rc ? rc : vv_outlet_tell(&p->s->outlet, true);
}

static int do_all(struct sift *p)
{
	struct batch x;
	int rc = 0;

	p->s->work.host->done = (struct vv_gpu_counts){ 0 };
	for (uint32_t slice = 0; rc == 0 && slice < p->slices; slice = x.end) {
		rc = collect(p, slice, &x);
		if (rc == 0 && x.b.n)
			rc = do_batch(p, &x);
	}
	return rc ? rc : count_nodes(p);
}

/* ---- what is called ---------------------------------------------------------------------------------------------------------- */

int vv_sift_pass(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_sink *sink)
{
	struct sift p = { .s = s, .sink = sink, .ordinal = ordinal, .slices = vv_numbers_slices(&s->numbers) };
	int rc = vv_numbers_publish(&s->numbers, s->stream);

	if (rc == 0)
		rc = do_all(&p);
	if (rc == 0)
		rc = finish(&p);
	if (rc == 0)
		vv_numbers_seen(&s->numbers);
	return rc;
}

static int settle_lanes(struct vv_gpu_sieve *s)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < VV_GPU_LANES; i++)
		rc = vv_cuda_check(cudaStreamSynchronize(s->lane[i]), purpose);
	return rc;
}

int vv_sift_look(struct vv_gpu_sieve *s)
{
	uint32_t slices = vv_numbers_slices(&s->numbers);
	int rc;

	vv_numbers_forget(&s->numbers);
	rc = vv_numbers_publish(&s->numbers, s->stream);
	for (uint32_t slice = 0; rc == 0 && slice < slices; slice++)
		rc = fuse(s, slice, s->lane[slice % VV_GPU_LANES]);
	if (rc == 0)
		rc = settle_lanes(s);
	if (rc == 0)
		vv_numbers_seen(&s->numbers);
	return rc;
}

static int know(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_range *usable, size_t n)
{
	struct sift p = { .s = s, .ordinal = ordinal, .slices = vv_numbers_slices(&s->numbers) };
	struct vv_range *there = NULL;
	int rc = vv_numbers_publish(&s->numbers, s->stream);

	if (rc == 0)
		rc = vv_cuda_new(&there, n, sizeof(*there), purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaMemcpyAsync(there, usable, n * sizeof(*there), cudaMemcpyHostToDevice, s->stream), purpose);
	if (rc == 0)
		rc = vv_fused_mark(&s->numbers.of, s->numbers.end / VV_GRAIN_TILE, there, (uint32_t)n, s->stream);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamSynchronize(s->stream), purpose);
	if (rc == 0)
		rc = do_all(&p);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamSynchronize(s->stream), purpose);
	vv_cuda_free(there);
	return rc;
}

int vv_sift_know(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_range *usable, size_t n)
{
	vv_memo_clear(&s->known);
	vv_memo_clear(&s->nodes);
	return s->numbers.end && n && vv_gpu_sieve_looks_up(s) ? know(s, ordinal, usable, n) : 0;
}
