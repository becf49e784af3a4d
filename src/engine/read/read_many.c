/* Runs of all regions -> pieces, by layer and position -> cut at block borders -> one job per
 * block. */
#include "engine/read/read_many.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/block_plan.h"
#include "base/budget.h"
#include "engine/read/holes.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
	MEMORY = 208 << 20, /* of the blocks in progress and of decoding them */
	LAYERS = 64,        /* open at a time */
	LEAST_LAYERS = 4,
	DESCRIPTORS_USUAL = 32, /* in use, if that cannot be determined */
};

struct one {
	const struct vv_runs *runs;
	atomic_uint_least64_t left; /* bytes not delivered yet */
	atomic_bool lost;
};

struct read_many_piece {
	uint64_t layer, pos, len;
	uint64_t at; /* in the region */
	size_t region;
};

struct read_many_job { /* a block */
	struct vv_layer_file *file;
	size_t block;
	struct vv_part *part; /* ascending by position, until it is delivered */
	size_t n;
	bool again; /* it is damaged, but parts of it may be intact */
};

struct read_many_source { /* a layer */
	const struct read_many_piece *piece;
	size_t n_pieces;
	struct vv_block_plan plan;
};

struct read_many_group {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	const struct vv_read_many *to;
	struct one *one;
	size_t n;
	struct read_many_piece *piece;
	size_t n_pieces;
	struct read_many_source source[LAYERS];
	size_t n_sources, most_sources;
	struct read_many_job *job; /* of all sources */
	size_t n_jobs, jobs_cap;
	struct vv_budget rooms;
	atomic_bool no_memory;
	pthread_mutex_t lock; /* of the members below */
	size_t *whole;        /* delivered regions that were not reported yet */
	size_t n_whole;
};

/* ---- descriptors ----------------------------------------------------------------------------- */

/* From Linux 6.2 on, the folder's size is the number. */
static size_t count_open(void)
{
	struct stat st;
	size_t n = 0;
	DIR *d;

	if (stat("/proc/thread-self/fd", &st) == 0 && st.st_size > 0)
		return (size_t)st.st_size;
	d = opendir("/proc/thread-self/fd");
	if (!d)
		return DESCRIPTORS_USUAL;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static size_t free_descriptors(void)
{
	size_t used = count_open();
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return limit.rlim_cur > used ? (size_t)limit.rlim_cur - used : 0;
}

/* A quarter is left for layers and other files, up to the need of the layers. */
size_t vv_read_many_files(size_t most, size_t descriptors_each)
{
	size_t n = free_descriptors(), spare = n / 4 < 2 * LAYERS ? n / 4 : 2 * LAYERS;

	spare = spare < 2 * LEAST_LAYERS ? 2 * LEAST_LAYERS : spare;
	n = n > spare ? (n - spare) / descriptors_each : 1;
	n = n ? n : 1;
	return n < most ? n : most;
}

/* A layer with bases keeps one more descriptor (engine/lineage/base_layers.c), and opens another
 * one for the time of a read. */
static size_t layers_at_once(void)
{
	size_t n = free_descriptors() / 4;

	return n < 1 ? 1 : n < LAYERS ? n : LAYERS;
}

/* ---- results of regions ---------------------------------------------------------------------- */

static bool is_wanted(const struct read_many_group *g, size_t region)
{
	return !atomic_load(&g->one[region].lost) && g->to->is_wanted(g->to->arg, region);
}

static void fail_region(struct read_many_group *g, size_t region, int rc)
{
	if (!atomic_exchange(&g->one[region].lost, true))
		g->to->on_error(g->to->arg, region, rc);
}

static void fail_regions(struct read_many_group *g, const struct vv_part *c, size_t n, int rc)
{
	for (size_t i = 0; i < n; i++)
		fail_region(g, c[i].region, rc);
}

/* The list has room for all. */
static void handed_over(struct read_many_group *g, size_t region, uint64_t n)
{
	if (n && atomic_fetch_sub(&g->one[region].left, n) != n)
		return;
	pthread_mutex_lock(&g->lock);
	g->whole[g->n_whole++] = region;
	pthread_mutex_unlock(&g->lock);
}

static bool report_complete(struct read_many_group *g)
{
	size_t region = g->n;

	pthread_mutex_lock(&g->lock);
	if (g->n_whole)
		region = g->whole[--g->n_whole];
	pthread_mutex_unlock(&g->lock);
	if (region < g->n && !atomic_load(&g->one[region].lost))
		g->to->on_complete(g->to->arg, region);
	return region < g->n;
}

static void report_complete_task(void *arg, size_t i)
{
	(void)i;
	report_complete(arg);
}

/* ---- one block ------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct vv_part *x = a, *y = b;

	if (x->region != y->region)
		return x->region < y->region ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int by_source(const void *a, const void *b)
{
	const struct vv_part *x = a, *y = b;

	if (x->region != y->region)
		return x->region < y->region ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

/* Parts that are contiguous in a region are delivered together, wherever they are in the block. */
static void hand_over(struct read_many_group *g, struct vv_part *c, size_t n, uint8_t *raw)
{
	struct iovec v[VV_READ_MANY_PARTS];
	size_t k;

	vv_block_plan_sort(c, n, by_place);
	for (size_t i = 0; i < n; i += k) {
		uint64_t at = c[i].at, end = at;

		for (k = 0; i + k < n && k < VV_READ_MANY_PARTS && c[i + k].region == c[i].region && c[i + k].at == end; k++) {
			v[k] = (struct iovec){ raw + c[i + k].from, c[i + k].len };
			end += c[i + k].len;
		}
		if (is_wanted(g, c[i].region))
			g->to->on_bytes(g->to->arg, c[i].region, at, v, (int)k);
		handed_over(g, c[i].region, end - at);
	}
}

static uint64_t count_used(const struct read_many_job *j)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < j->n; i++)
		sum += j->part[i].len;
	return sum;
}

/* Reads only these parts of a plain block, each with its own digests. They are stored consecutively
 * after the block's own place. */
static int read_parts(const struct read_many_job *j, struct vv_part *c, size_t n, uint8_t *room, size_t block_len)
{
	struct vv_part *part = vv_mem_new(n, sizeof(*part));
	size_t used = 0;
	int rc;

	if (!part)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		part[i] = (struct vv_part){ c[i].pos, { room + block_len + used }, c[i].from, c[i].len, VV_PART_MEMORY };
		c[i].from = (uint32_t)used;
		used += c[i].len;
	}
	rc = vv_layer_file_read_parts(j->file, j->block, part, n, room);
	for (size_t i = 0; rc && i < n; i++)
		c[i].from = part[i].from;
	vv_mem_free(part);
	return rc;
}

static int run_cuts(struct read_many_group *g, const struct read_many_job *j, struct vv_part *c, size_t n, bool by_parts)
{
	const struct vv_block *b = &j->file->blocks.v[j->block];
	size_t more = b->codec ? b->stored_len : by_parts ? (size_t)count_used(j) : 0;
	struct vv_budget_buffer *room = vv_budget_take(&g->rooms, b->raw_len + more, vv_layer_file_decode_takes(j->file, j->block));
	int rc;

	if (!room)
		return VV_ENOMEM;
	if (g->to->blocks)
		atomic_fetch_add(g->to->blocks, 1);
	rc = by_parts ? read_parts(j, c, n, room->bytes, b->raw_len) :
			vv_layer_file_read_block(j->file, j->block, room->bytes, room->bytes + b->raw_len);
	if (rc == 0)
		hand_over(g, c, n, by_parts ? room->bytes + b->raw_len : room->bytes);
	vv_budget_give(&g->rooms, room);
	return rc;
}

static void run_job(void *arg, size_t i)
{
	struct read_many_group *g = arg;
	struct read_many_job *j = &g->job[i];
	const struct vv_block *b = &j->file->blocks.v[j->block];
	bool wanted = false;
	int rc;

	for (size_t k = 0; k < j->n && !wanted; k++)
		wanted = is_wanted(g, j->part[k].region);
	if (!wanted || atomic_load(&g->no_memory))
		return;
	rc = run_cuts(g, j, j->part, j->n, b->codec == 0 && j->file->digests.n && count_used(j) < b->raw_len / 2);
	if (rc == VV_EDAMAGED && b->codec == 0)
		j->again = true;
	else if (rc == VV_ENOMEM)
		atomic_store(&g->no_memory, true);
	else if (rc)
		fail_regions(g, j->part, j->n, rc);
	report_complete(g);
}

/* A plain block is damaged: regions that need intact parts of it get them. */
static void run_again(struct read_many_group *g, struct read_many_job *j)
{
	if (j->file->head.digest_kind == VV_DIGEST_XXH3 && vv_layer_file_load_digests(j->file) < 0)
		vv_err_clear();
	vv_block_plan_sort(j->part, j->n, by_source);
	for (size_t i = 0, k; i < j->n; i += k) {
		struct read_many_job part = *j;
		int rc;

		for (k = 1; i + k < j->n && j->part[i + k].region == j->part[i].region; k++)
			;
		part.part = j->part + i;
		part.n = k;
		rc = run_cuts(g, &part, part.part, k, count_used(&part) <= j->file->blocks.v[j->block].raw_len);
		if (rc)
			fail_region(g, part.part->region, rc);
	}
}

/* ---- layers ---------------------------------------------------------------------------------- */

static int plan(struct read_many_group *g, struct read_many_source *s)
{
	int rc = 0;

	for (size_t i = 0; rc != VV_ENOMEM && i < s->n_pieces; i++) {
		const struct read_many_piece *p = &s->piece[i];

		rc = vv_block_plan_add(&s->plan, p->pos, p->len, (struct vv_part){ .at = p->at, .region = p->region });
		if (rc && rc != VV_ENOMEM)
			fail_region(g, p->region, rc);
	}
	if (rc != VV_ENOMEM)
		rc = vv_block_plan_group(&s->plan);
	return rc ? rc : vv_block_plan_digests(&s->plan);
}

static void open_one(void *arg, size_t i)
{
	struct read_many_group *g = arg;
	struct read_many_source *s = &g->source[i];
	int rc = vv_layer_file_open(g->lin, s->piece->layer, VV_LAYER_FILE_BLOCKS, &s->plan.file);

	for (size_t k = 0; rc && rc != VV_ENOMEM && k < s->n_pieces; k++)
		fail_region(g, s->piece[k].region, rc);
	if (rc == 0)
		rc = plan(g, s);
	if (rc == VV_ENOMEM)
		atomic_store(&g->no_memory, true);
}

static void close_one(void *arg, size_t i)
{
	struct read_many_source *s = &((struct read_many_group *)arg)->source[i];

	vv_layer_file_close(s->plan.file);
	vv_block_plan_fini(&s->plan);
}

/* One job for each block, however many regions share it. */
static int make_jobs(struct read_many_group *g, const struct vv_block_plan *p)
{
	for (size_t k = 0, first = 0; p->end && k < p->file->blocks.n; first = p->end[k++]) {
		if (p->end[k] == first)
			continue;
		if (vv_mem_room(&g->job, g->n_jobs, &g->jobs_cap, sizeof(*g->job)) < 0)
			return VV_ENOMEM;
		g->job[g->n_jobs++] = (struct read_many_job){ p->file, k, p->part + first, p->end[k] - first, false };
	}
	return 0;
}

/* As many layers as can be open together, from piece `first` on; returns the beginning of the next
 * ones. */
static size_t next_sources(struct read_many_group *g, size_t first)
{
	size_t i = first;

	for (g->n_sources = 0; i < g->n_pieces && g->n_sources < g->most_sources; g->n_sources++) {
		struct read_many_source *s = &g->source[g->n_sources];

		*s = (struct read_many_source){ .piece = &g->piece[i] };
		for (; i < g->n_pieces && g->piece[i].layer == s->piece->layer; i++)
			s->n_pieces++;
	}
	return i;
}

static int run_sources(struct read_many_group *g)
{
	int rc;

	g->n_jobs = 0;
	vv_store_each(g->lin->store, g->pool, false, g->n_sources, open_one, g);
	rc = atomic_load(&g->no_memory) ? VV_ENOMEM : 0;
	for (size_t i = 0; rc == 0 && i < g->n_sources; i++)
		rc = make_jobs(g, &g->source[i].plan);
	if (rc == 0) {
		vv_store_each(g->lin->store, g->pool, false, g->n_jobs, run_job, g);
		for (size_t i = 0; i < g->n_jobs; i++)
			if (g->job[i].again)
				run_again(g, &g->job[i]);
		rc = atomic_load(&g->no_memory) ? VV_ENOMEM : 0;
	}
	vv_pool_each(g->pool, g->n_whole, report_complete_task, g);
	vv_pool_each(g->pool, g->n_sources, close_one, g);
	return rc;
}

/* ---- regions --------------------------------------------------------------------------------- */

static int by_layer(const void *a, const void *b)
{
	const struct read_many_piece *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

static int list_pieces(struct read_many_group *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->one[i].runs->n; k++)
			n += g->one[i].runs->v[k].layer != 0;
	g->piece = vv_mem_new(n, sizeof(*g->piece));
	if (!g->piece)
		return VV_ENOMEM;
	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->one[i].runs->n; k++) {
			const struct vv_run *r = &g->one[i].runs->v[k];

			if (!r->layer)
				continue;
			g->piece[g->n_pieces++] = (struct read_many_piece){ r->layer, r->pos, r->len, r->at, i };
			atomic_fetch_add(&g->one[i].left, r->len);
		}
	qsort(g->piece, g->n_pieces, sizeof(*g->piece), by_layer);
	return 0;
}

/* Short runs of zeros. Regions without other bytes are then complete. */
static void fill_zeros(void *arg, size_t i)
{
	static const uint8_t zeros[VV_HOLES_HOLE];
	struct read_many_group *g = arg;
	const struct vv_runs *r = g->one[i].runs;

	for (size_t k = 0; k < r->n; k++) {
		const struct iovec v = { (void *)(uintptr_t)zeros, (size_t)r->v[k].len };

		if (r->v[k].layer == 0 && r->v[k].len < VV_HOLES_HOLE && is_wanted(g, i))
			g->to->on_bytes(g->to->arg, i, r->v[k].at, &v, 1);
	}
	if (atomic_load(&g->one[i].left) == 0)
		handed_over(g, i, 0);
}

static int run(struct read_many_group *g)
{
	int rc = list_pieces(g);

	if (rc == 0)
		vv_pool_each(g->pool, g->n, fill_zeros, g);
	for (size_t i = 0; rc == 0 && i < g->n_pieces;) {
		i = next_sources(g, i);
		rc = run_sources(g);
	}
	vv_pool_each(g->pool, g->n_whole, report_complete_task, g);
	return rc == VV_ENOMEM ? vv_err_set(VV_ENOMEM, "no memory to read %zu regions", g->n) : rc;
}

int vv_read_many_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, size_t n, const struct vv_read_many *to)
{
	struct read_many_group *g = vv_mem_new(1, sizeof(*g));
	int rc;

	if (!g)
		return VV_ENOMEM;
	*g = (struct read_many_group){ .lin = lin, .pool = pool, .to = to, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER, .most_sources = layers_at_once() };
	vv_budget_init(&g->rooms, MEMORY);
	g->one = vv_mem_new(n, sizeof(*g->one));
	g->whole = vv_mem_new(n, sizeof(*g->whole));
	rc = g->one && g->whole ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		g->one[i].runs = runs[i];
	if (rc == 0)
		rc = run(g);
	vv_budget_fini(&g->rooms);
	vv_mem_free(g->one);
	vv_mem_free(g->whole);
	vv_mem_free(g->piece);
	vv_mem_free(g->job);
	vv_mem_free(g);
	return rc;
}
