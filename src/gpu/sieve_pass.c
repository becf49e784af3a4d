/* Conducts a pass. The fused pass runs ahead on streams of its own. Batches follow, each of one
 * slice or of several with few changes: first its kernels, then its data through the outlet. The
 * next batch begins during that transfer, or before it if possible, so that the outlet never waits.
 * The host waits for a batch's counts only. */
#include "gpu/sieve_pass.h"

static const char purpose[] = "dedup on the device";

struct sieve_pass_state {
	struct vv_gpu_sieve *s;
	const struct vv_sink *sink; /* NULL: the grains only become known */
	uint32_t ordinal;
	uint32_t slices, launched; /* all, and those whose fused pass has begun */
	uint64_t n_data;           /* grains so far */
	unsigned turn;             /* of the next batch, of VV_WORK_TURNS */
	bool pending;              /* the last batch has pieces that the sink does not have yet */
};

static int wait_for(cudaEvent_t e)
{
	return vv_cuda_check(cudaEventSynchronize(e), purpose);
}

static int record(cudaEvent_t e, cudaStream_t stream)
{
	return vv_cuda_check(cudaEventRecord(e, stream), purpose);
}

/* ---- the fused pass -------------------------------------------------------------------------- */

static uint32_t slice_end(const struct vv_gpu_sieve *s, uint32_t slice)
{
	uint64_t end = ((uint64_t)slice + 1) * VV_GRAIN_SLICE;

	return end < s->numbers.end ? (uint32_t)end : s->numbers.end;
}

static bool aligned(const struct vv_gpu_span *span)
{
	return (uintptr_t)span->p % 16 == 0;
}

/* Takes consecutive similar spans together. */
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

/* Begins as many slices ahead of `next` as allowed. */
static int fuse_ahead(struct sieve_pass_state *p, uint32_t next)
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

/* ---- a batch --------------------------------------------------------------------------------- */

struct sieve_pass_batch {
	struct vv_gpu_batch b;
	uint32_t slice, end; /* slices */
	uint32_t not_zero;   /* items */
	unsigned turn;
	struct vv_gpu_starts starts;
};

static uint32_t changed_in(const struct sieve_pass_state *p, uint32_t slice)
{
	return (uint32_t)p->s->work.host->total[slice];
}

static uint32_t not_zero_in(const struct sieve_pass_state *p, uint32_t slice)
{
	return (uint32_t)(p->s->work.host->total[slice] >> 32);
}

/* May the slice be part of the batch, too? Not if the maps would have to make room in between. Not
 * with trees either: a tree covers one slice. */
static bool joins(const struct sieve_pass_state *p, const struct sieve_pass_batch *x, uint32_t slice)
{
	const struct vv_gpu_sieve *s = p->s;
	uint64_t digests = (uint64_t)x->not_zero + not_zero_in(p, slice);

	if (s->base.opt.method == VV_METHOD_TREE || (uint64_t)x->b.n + changed_in(p, slice) > s->work.cap)
		return false;
	return !vv_gpu_sieve_looks_up(s) || s->known.n_young + digests <= s->known.limit;
}

static void add_slice(const struct sieve_pass_state *p, struct sieve_pass_batch *x, uint32_t slice)
{
	x->starts.item[slice - x->slice] = x->b.n;
	x->b.n += changed_in(p, slice);
	x->not_zero += not_zero_in(p, slice);
	x->end = slice + 1;
}

static bool is_fused(const struct sieve_pass_state *p, uint32_t slice)
{
	return slice < p->launched && cudaEventQuery(p->s->fused[slice % VV_GPU_AHEAD]) == cudaSuccess;
}

/* A few bits for each item, in memory that is not needed yet. */
static struct vv_gpu_filter make_filter(const struct vv_gpu_batch *b)
{
	enum { BITS = 32, MOST = BITS * VV_GRAIN_SLICE };
	struct vv_gpu_filter f = { .once = (uint32_t *)b->piece, .bits = BITS };

	_Static_assert(2 * 2 * BITS / 8 <= sizeof(*b->piece), "both fit");
	while (f.bits < MOST && f.bits / BITS < b->n)
		f.bits *= 2;
	f.twice = f.once + f.bits / 32;
	return f;
}

/* Collects the slice `first`, and the slices after it whose fused pass is done. */
static int collect(struct sieve_pass_state *p, uint32_t first, struct sieve_pass_batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	const struct vv_sieve_options *opt = &s->base.opt;
	int rc = fuse_ahead(p, first);

	*x = (struct sieve_pass_batch){ .b = s->work.batch, .slice = first, .turn = p->turn };
	if (rc == 0)
		rc = wait_for(s->fused[first % VV_GPU_AHEAD]);
	if (rc)
		return rc;
	add_slice(p, x, first);
	while (is_fused(p, x->end) && joins(p, x, x->end))
		add_slice(p, x, x->end);
	x->b.of = s->numbers.of;
	x->b.first = first * VV_GRAIN_SLICE;
	x->b.ordinal = p->ordinal;
	x->b.by_number = !p->sink;
	x->b.base = p->n_data;
	x->b.fresh = s->work.fresh[x->turn];
	if (p->sink && vv_gpu_sieve_looks_up(s) && (opt->compare || opt->method == VV_METHOD_RUN))
		x->b.filter = make_filter(&x->b);
	return 0;
}

/* The entries of the last batch in the map of nodes are known when all its work is done. */
static int count_nodes(struct sieve_pass_state *p)
{
	struct vv_gpu_sieve *s = p->s;
	int rc = s->base.opt.method == VV_METHOD_TREE ? vv_cuda_check(cudaStreamSynchronize(s->stream), purpose) : 0;

	for (int i = 0; i < VV_WORK_TURNS; i++) {
		struct vv_gpu_counts *done = &s->work.host->done[i];

		if (rc == 0)
			vv_known_map_end(&s->nodes, done->nodes, done->nodes_promoted);
		done->nodes = done->nodes_promoted = 0;
	}
	return rc;
}

static int make_room_for_nodes(struct sieve_pass_state *p, struct sieve_pass_batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	size_t take;
	int rc = count_nodes(p);

	if (rc == 0)
		rc = vv_known_map_begin(&s->nodes, x->not_zero, &take, s->stream);
	x->b.young_nodes = s->nodes.young;
	x->b.aged_nodes = s->nodes.aged;
	return rc;
}

static int make_room(struct sieve_pass_state *p, struct sieve_pass_batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	size_t take = x->not_zero;
	int rc = 0;

	if (vv_gpu_sieve_looks_up(s))
		rc = vv_known_map_begin(&s->known, x->not_zero, &take, s->stream);
	x->b.take = (uint32_t)take;
	x->b.young = s->known.young;
	x->b.aged = s->known.aged;
	return rc || s->base.opt.method != VV_METHOD_TREE ? rc : make_room_for_nodes(p, x);
}

/* Counts the new grains, and then finds the origin of each grain. */
static int judge(struct sieve_pass_state *p, struct sieve_pass_batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	const struct vv_gpu_batch *b = &x->b;
	bool looks_up = vv_gpu_sieve_looks_up(s);
	int rc = vv_cuda_check(cudaMemsetAsync(b->counts, 0, sizeof(*b->counts), s->stream), purpose);

	if (rc == 0)
		rc = vv_origins_expand(b, slice_end(s, x->end - 1), &x->starts, s->stream);
	if (rc == 0 && looks_up)
		rc = vv_origins_claim(b, s->stream);
	if (rc == 0 && looks_up)
		rc = vv_origins_judge(b, s->stream);
	if (rc == 0) /* the earlier numbers of this turn have been used */
		rc = vv_cuda_check(cudaStreamWaitEvent(s->stream, s->gathered[x->turn], 0), purpose);
	if (rc == 0 && !looks_up)
		rc = vv_origins_plain(b, s->stream);
	if (rc == 0)
		rc = vv_found_pieces_report(b, &s->work.host->judged, NULL, s->stream);
	if (rc == 0)
		rc = record(s->judged, s->stream);
	if (rc == 0 && looks_up)
		rc = vv_origins_place(b, s->stream);
	if (rc == 0)
		rc = record(s->placed[x->turn], s->stream);
	return rc || !looks_up ? rc : vv_origins_resolve(b, s->stream);
}

/* Begins the next batch with items from this slice on, if there is one. */
static int start(struct sieve_pass_state *p, uint32_t slice, struct sieve_pass_batch *x)
{
	int rc = 0;

	*x = (struct sieve_pass_batch){ .end = slice };
	while (rc == 0 && x->b.n == 0 && x->end < p->slices)
		rc = collect(p, x->end, x);
	if (rc || x->b.n == 0)
		return rc;
	p->turn = (p->turn + 1) % VV_WORK_TURNS;
	rc = make_room(p, x);
	return rc ? rc : judge(p, x);
}

static int cut_tree(struct sieve_pass_state *p, const struct sieve_pass_batch *x, bool copies)
{
	int rc = vv_nodes_new(&x->b, p->s->stream);

	if (rc == 0 && copies)
		rc = vv_nodes_copies(&x->b, p->s->stream);
	return rc ? rc : vv_nodes_emit(&x->b, p->s->stream);
}

static int conclude(struct sieve_pass_state *p, const struct sieve_pass_batch *x)
{
	struct vv_gpu_sieve *s = p->s;
	int rc = vv_found_pieces_report(&x->b, &s->work.host->done[x->turn], p->sink ? s->work.piece[x->turn] : NULL, s->stream);

	return rc ? rc : record(s->done, s->stream);
}

static int cut(struct sieve_pass_state *p, const struct sieve_pass_batch *x, const struct vv_gpu_counts *judged)
{
	struct vv_gpu_sieve *s = p->s;
	const struct vv_sieve_options *opt = &s->base.opt;
	int rc = 0;

	if (judged->shared)
		rc = vv_repeat_back(&x->b, judged->shared, s->stream);
	if (rc == 0 && opt->compare && vv_gpu_sieve_looks_up(s))
		rc = vv_repeat_compare(&x->b, s->stream);
	if (rc == 0 && judged->shared && judged->copies && opt->method == VV_METHOD_RUN)
		rc = vv_repeat_choose(&x->b, s->stream);
	if (rc == 0)
		rc = opt->method == VV_METHOD_TREE ? cut_tree(p, x, judged->copies > 0) : vv_found_pieces_emit(&x->b, s->stream);
	return rc ? rc : conclude(p, x);
}

/* ---- to the sink ----------------------------------------------------------------------------- */

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

	return vv_grain_collide(g->of.chunk, r->id, (uint64_t)(number - r->span.first) * g->of.chunk, back == 0, other->id,
				(uint64_t)(number - back - other->span.first) * g->of.chunk);
}

/* Passes the pieces of a finished batch to the sink. */
static int give_pieces(struct sieve_pass_state *p, unsigned turn)
{
	struct vv_gpu_sieve *s = p->s;
	const struct vv_gpu_counts *done = &s->work.host->done[turn];

	s->base.counts.known_here += done->here;
	if (done->differ)
		return complain(&s->numbers, (uint32_t)(~done->differ >> 32), (uint32_t)~done->differ);
	return done->pieces ? p->sink->pieces(p->sink->arg, s->work.piece[turn], done->pieces) : 0;
}

static int give_data(struct sieve_pass_state *p, const struct sieve_pass_batch *x, uint32_t fresh)
{
	struct vv_gpu_sieve *s = p->s;
	int rc = vv_cuda_check(cudaStreamWaitEvent(s->outlet.gather, s->placed[x->turn], 0), purpose);

	vv_outlet_expect(&s->outlet, (uint64_t)fresh * s->base.opt.chunk);
	if (rc == 0)
		rc = vv_outlet_gather(&s->outlet, x->b.fresh, fresh);
	return rc ? rc : record(s->gathered[x->turn], s->outlet.gather);
}

static void count(struct sieve_pass_state *p, const struct sieve_pass_batch *x, const struct vv_gpu_counts *judged)
{
	struct vv_sieve_counts *c = &p->s->base.counts;

	vv_known_map_end(&p->s->known, judged->entered, judged->promoted);
	if (!p->sink)
		return;
	c->changed += x->b.n;
	c->fresh += judged->fresh;
	c->known += judged->copies;
	c->zero += x->b.n - judged->fresh - judged->copies;
	p->n_data += judged->fresh;
}

static int know_nodes(struct sieve_pass_state *p, const struct sieve_pass_batch *x)
{
	int rc;

	if (p->s->base.opt.method != VV_METHOD_TREE)
		return 0;
	rc = vv_nodes_new(&x->b, p->s->stream);
	return rc ? rc : conclude(p, x);
}

/* Sends the new data and cuts the batch into pieces. Data that fit into the stages are sent
 * first. */
static int give(struct sieve_pass_state *p, const struct sieve_pass_batch *x, const struct vv_gpu_counts *judged, struct sieve_pass_batch *next, bool *begun)
{
	struct vv_gpu_sieve *s = p->s;
	bool little = (uint64_t)judged->fresh * s->base.opt.chunk <= VV_OUTLET_STAGES * s->outlet.stage_len;
	/* cut() runs even if that fails: finds in aged are copied to young */
	int rc = little ? give_data(p, x, judged->fresh) : 0, cutting = cut(p, x, judged);

	rc = rc ? rc : cutting;
	if (rc == 0)
		rc = fuse_ahead(p, x->end);
	*begun = rc == 0 && is_fused(p, x->end);
	if (*begun)
		rc = start(p, x->end, next);
	return rc || little ? rc : give_data(p, x, judged->fresh);
}

/* Does a batch once its counts have arrived, and the next one up to its counts. */
static int do_batch(struct sieve_pass_state *p, const struct sieve_pass_batch *x, struct sieve_pass_batch *next)
{
	struct vv_gpu_counts judged;
	bool begun = false;
	int rc = wait_for(p->s->judged);

	if (rc)
		return rc;
	judged = p->s->work.host->judged;
	count(p, x, &judged);
	if (p->sink)
		rc = give(p, x, &judged, next, &begun);
	else
		rc = know_nodes(p, x);
	if (rc == 0 && p->pending) /* its work was done when this one was judged */
		rc = give_pieces(p, (x->turn + VV_WORK_TURNS - 1) % VV_WORK_TURNS);
	p->pending = p->sink;
	return rc || begun ? rc : start(p, x->end, next);
}

/* Passes on the last batch's pieces, and all data. */
static int finish(struct sieve_pass_state *p)
{
	int rc = 0;

	if (p->pending)
		rc = wait_for(p->s->done);
	if (rc == 0 && p->pending)
		rc = give_pieces(p, (p->turn + VV_WORK_TURNS - 1) % VV_WORK_TURNS);
	return rc ? rc : vv_outlet_deliver(&p->s->outlet, 0);
}

static int do_all(struct sieve_pass_state *p)
{
	struct sieve_pass_batch x, next = { .end = 0 };
	int rc;

	for (int i = 0; i < VV_WORK_TURNS; i++)
		p->s->work.host->done[i] = (struct vv_gpu_counts){ 0 };
	rc = start(p, 0, &next);
	while (rc == 0 && next.b.n) {
		x = next;
		rc = do_batch(p, &x, &next);
	}
	return rc ? rc : count_nodes(p);
}

/* ---- entry points ---------------------------------------------------------------------------- */

int vv_sieve_pass_pass(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_sink *sink)
{
	struct sieve_pass_state p = { .s = s, .sink = sink, .ordinal = ordinal, .slices = vv_numbers_slices(&s->numbers) };
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

int vv_sieve_pass_look(struct vv_gpu_sieve *s)
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

static int know(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_number_range *usable, size_t n)
{
	struct sieve_pass_state p = { .s = s, .ordinal = ordinal, .slices = vv_numbers_slices(&s->numbers) };
	struct vv_number_range *there = NULL;
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

int vv_sieve_pass_know(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_number_range *usable, size_t n)
{
	vv_known_map_clear(&s->known);
	vv_known_map_clear(&s->nodes);
	return s->numbers.end && n && vv_gpu_sieve_looks_up(s) ? know(s, ordinal, usable, n) : 0;
}
