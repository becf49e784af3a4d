#include "engine/read/device_load.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "core/format/overlay.h"
#include "engine/read/read_many.h"
#include "engine/read/layer_list.h"

enum {
	/* more stretches than this are left as one: each would open its layers again */
	SCRAPS = 8,
	HALVINGS = 2, /* of a stripe that does not fit a room */
	DECODED = 1 << 30, /* most bytes of decoded blocks at a time */
};

struct device_load {
	const struct vv_lineage *lin;
	struct vv_device_buffers *buffers;
	const struct vv_device_inlet_ops *ops;
	const struct vv_device_load_want *want;
	size_t n_wants;
	struct vv_pool *pool;
	struct vv_layer_list layers;
	struct vv_open_layers warm;
	struct vv_decoded_blocks decoded;
	uint64_t stripe;    /* bytes of a want */
	size_t *first;      /* stripe of each want; then their number */
	atomic_size_t next; /* the first stripe that no thread has begun */
	bool *left;         /* per stripe */
	atomic_int failed;
	pthread_mutex_t lock;
	struct vv_err_state error;
};

static void fail(struct device_load *f, int rc)
{
	pthread_mutex_lock(&f->lock);
	if (!atomic_load(&f->failed))
		vv_err_save(rc, &f->error);
	atomic_store(&f->failed, 1);
	pthread_mutex_unlock(&f->lock);
}

static int outcome(struct device_load *f)
{
	return atomic_load(&f->failed) ? vv_err_restore(&f->error) : 0;
}

/* ---- run tables of a stretch ----------------------------------------------------------------- */

struct tables { /* of a stretch: made again for each */
	struct vv_runs *seen; /* per unmerged layer */
	const struct vv_runs **upper;
	struct vv_runs above, all;
};

/* The most unmerged tables that a want has. */
static size_t most_tables(const struct device_load *f)
{
	size_t most = 0;

	for (size_t k = 0; k < f->n_wants; k++)
		if (f->want[k].unmerged && f->want[k].unmerged->n > most)
			most = f->want[k].unmerged->n;
	return most;
}

static int tables_init(struct tables *t, size_t n)
{
	*t = (struct tables){ 0 };
	if (!n)
		return 0;
	t->seen = vv_mem_new(n, sizeof(*t->seen));
	t->upper = vv_mem_new(n, sizeof(*t->upper));
	return t->seen && t->upper ? 0 : VV_ENOMEM;
}

static void tables_fini(struct tables *t)
{
	vv_mem_free(t->seen);
	vv_mem_free(t->upper);
	vv_run_fini(&t->above);
	vv_run_fini(&t->all);
}

/* The runs of layer i in at..end, and no others. */
static bool look(const struct vv_run_table_unmerged *s, size_t i, uint64_t at, uint64_t end, struct vv_runs *out)
{
	size_t from, to;

	if (!vv_run_table_layer_runs(s, i, at, end, out))
		return false;
	from = vv_run_find(out, at);
	to = vv_run_find(out, end);
	to += to < out->n && out->v[to].at < end;
	*out = (struct vv_runs){ out->n ? out->v + from : NULL, to - from, 0 };
	return true;
}

/* Overlays the unmerged tables in at..end. Those of upper layers are short, so they are overlaid
 * first. */
static int stack(const struct vv_run_table_unmerged *s, struct tables *t)
{
	bool gaps;
	int rc;

	for (size_t i = 0; i + 1 < s->n; i++)
		t->upper[i] = &t->seen[i];
	t->above.n = t->all.n = 0;
	rc = vv_overlay_runs(t->upper, s->n - 1, &(struct vv_parallel_for){ 0 }, &t->above, &gaps);
	return rc ? rc : vv_run_overlay(&t->above, &t->seen[s->n - 1], &t->all);
}

/* The runs of at..end, and perhaps of more; *out stays NULL if they are invalid. */
static int find_runs(const struct vv_device_load_want *w, struct tables *t, uint64_t at, uint64_t end, const struct vv_runs **out)
{
	const struct vv_run_table_unmerged *s = w->unmerged;
	int rc = 0;

	if (!s) {
		*out = w->want->runs;
		return 0;
	}
	for (size_t i = 0; i < s->n; i++)
		if (!look(s, i, at, end, &t->seen[i]))
			return 0;
	if (s->n > 1)
		rc = stack(s, t);
	*out = rc ? NULL : s->n > 1 ? &t->all : &t->seen[0];
	return rc;
}

/* ---- before ---------------------------------------------------------------------------------- */

static void open_layer(void *arg, size_t i)
{
	struct device_load *f = arg;
	int rc;

	if (atomic_load(&f->failed))
		return;
	rc = vv_open_layers_open(&f->warm, i, f->lin, f->pool, f->layers.v[i].layer, 0, 0);
	/* perhaps nothing of it is wanted; otherwise the host reports it */
	if (rc && most_tables(f) && rc != VV_ENOMEM)
		vv_err_clear();
	else if (rc)
		fail(f, rc);
}

/* Removes the layers that could not be opened. */
static void close_ranks(struct vv_open_layers *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (!w->file[i])
			continue;
		w->layer[n] = w->layer[i];
		w->file[n] = w->file[i];
		w->window[n++] = w->window[i];
	}
	for (size_t i = n; i < w->n; i++) {
		w->file[i] = NULL;
		w->window[i] = NULL;
	}
	w->n = n;
}

static void close_layer(void *arg, size_t i)
{
	vv_open_layers_close(&((struct device_load *)arg)->warm, i);
}

static int open_layers(struct device_load *f)
{
	f->warm.n = f->layers.n;
	vv_pool_each(f->pool, f->warm.n, open_layer, f);
	close_ranks(&f->warm);
	if (!atomic_load(&f->failed))
		vv_open_layers_build_index(&f->warm);
	return outcome(f);
}

/* Most of the stored bytes have digests that a space supports. */
static bool is_suitable(const struct device_load *f)
{
	uint64_t suitable = 0, all = 0;

	for (size_t i = 0; i < f->warm.n; i++) {
		const struct vv_layer_file *x = f->warm.file[i];

		for (size_t b = 0; b < x->blocks.n; b++) {
			all += x->blocks.v[b].raw_len;
			if (x->head.digest_kind == VV_DIGEST_XXH3)
				suitable += x->blocks.v[b].raw_len;
		}
	}
	return 2 * suitable >= all;
}

/* If digests are damaged, the host handles that. */
static void load_digests(void *arg, size_t i)
{
	struct device_load *f = arg;
	struct vv_layer_file *x = f->warm.file[i];
	int rc;

	x->pool = f->pool;
	rc = x->head.digest_kind == VV_DIGEST_XXH3 ? vv_layer_file_load_digests(x) : 0;

	if (rc == VV_ENOMEM)
		fail(f, rc);
	vv_err_clear();
}

/* ---- transfer -------------------------------------------------------------------------------- */

/* Records the result of a room's transfer. */
static void note(struct device_load *f, struct vv_device_inlet_buffer *r)
{
	if (r->end && r->differs)
		f->left[r->tag] = true;
	r->end = 0;
}

/* Sends at..end of the region, a part of stripe i, in one room. *packed: it fitted. If there is no
 * memory for a room, the host reads it without one. */
static int carry_part(struct device_load *f, struct vv_device_batch *batch, const struct vv_want *want, size_t i, uint64_t at, uint64_t end, bool *packed)
{
	struct vv_device_inlet_buffer *r = NULL;
	int rc = f->ops->take(f->buffers->inlet, &r);

	*packed = false;
	if (rc == VV_ENOMEM) {
		vv_err_clear();
		return 0;
	}
	if (rc)
		return rc;
	note(f, r);
	*packed = vv_device_batch_pack(batch, &f->warm, &f->decoded, want, at, end, r);
	r->tag = i;
	return f->ops->send(f->buffers->inlet, r);
}

/* Bytes scattered over the pages of many layers may take a room for each half, or quarter. Beyond
 * that, the host is as fast. */
static int carry_range(struct device_load *f, struct vv_device_batch *batch, const struct vv_want *want, size_t i, uint64_t at, uint64_t end, unsigned halvings, bool *packed)
{
	uint64_t middle = at + (end - at) / 2;
	int rc = carry_part(f, batch, want, i, at, end, packed);

	if (rc || *packed || !halvings)
		return rc;
	rc = carry_range(f, batch, want, i, at, middle, halvings - 1, packed);
	return rc || !*packed ? rc : carry_range(f, batch, want, i, middle, end, halvings - 1, packed);
}

static int carry_stripe(struct device_load *f, struct vv_device_batch *batch, const struct vv_want *want, size_t i, uint64_t at, uint64_t end)
{
	bool packed = false;
	int rc = carry_range(f, batch, want, i, at, end, HALVINGS, &packed);

	if (!packed)
		f->left[i] = true;
	return rc;
}

static const struct vv_device_load_want *want_of(const struct device_load *f, size_t stripe)
{
	size_t k;

	VV_SEARCH(k, 0, f->n_wants, f->first[k + 1] <= stripe);
	return &f->want[k];
}

static int carry(struct device_load *f, struct vv_device_batch *batch, struct tables *t, size_t i)
{
	const struct vv_device_load_want *w = want_of(f, i);
	struct vv_want want = *w->want;
	uint64_t at = want.at + (i - f->first[w - f->want]) * f->stripe, end = want.at + want.len;
	const struct vv_runs *runs = NULL;
	int rc;

	end = end - at < f->stripe ? end : at + f->stripe;
	rc = find_runs(w, t, at, end, &runs);
	if (rc || !runs)
		return rc;
	f->left[i] = false;
	want.runs = runs;
	return carry_stripe(f, batch, &want, i, at, end);
}

static void carry_some(void *arg, size_t filler)
{
	struct device_load *f = arg;
	struct vv_device_batch *batch = vv_device_buffers_batch(f->buffers, filler);
	struct tables t;
	int rc = tables_init(&t, most_tables(f));
	size_t i;

	if (!batch)
		rc = VV_ENOMEM;
	while (rc == 0 && !atomic_load(&f->failed) && (i = atomic_fetch_add(&f->next, 1)) < f->first[f->n_wants])
		rc = carry(f, batch, &t, i);
	if (rc)
		fail(f, rc);
	tables_fini(&t);
}

/* Waits for transfers in progress; the rooms are empty afterwards. */
static void await_rooms(struct device_load *f)
{
	struct vv_device_inlet_buffer *r = NULL;

	do {
		int rc = f->ops->await(f->buffers->inlet, &r);

		if (rc == 0 && r) {
			note(f, r);
			rc = f->ops->send(f->buffers->inlet, r);
		}
		if (rc)
			fail(f, rc);
	} while (r && !atomic_load(&f->failed));
}

/* Bytes for decoded blocks: at most twice the wanted bytes, and a part of the available memory. */
static uint64_t decoded_bytes(const struct device_load *f)
{
	enum { PART = 8 };
	uint64_t most = 0, available = vv_mem_available() / PART;

	for (size_t k = 0; k < f->n_wants; k++)
		most += 2 * f->want[k].want->len;
	most = most < DECODED ? most : DECODED;
	return available && available < most ? available : most;
}

static int cross(struct device_load *f)
{
	struct vv_device_buffers *b = f->buffers;
	int rc = vv_decoded_blocks_open(&f->decoded, &f->warm, decoded_bytes(f));

	vv_pool_each(f->pool, f->warm.n, load_digests, f);
	if (rc)
		fail(f, rc);
	rc = vv_device_buffers_wait(b);
	if (rc && rc != VV_ENOMEM)
		fail(f, rc);
	if (rc) {
		vv_err_clear();
		return outcome(f);
	}
	/* a thread holds a room: there may be more small wants than rooms */
	if (!atomic_load(&f->failed))
		vv_pool_each(f->pool, b->fillers < b->rooms ? b->fillers : b->rooms, carry_some, f);
	await_rooms(f);
	return outcome(f);
}

/* ---- after ----------------------------------------------------------------------------------- */

static int report_want(const struct device_load *f, size_t k)
{
	const struct vv_want *want = f->want[k].want;
	struct vv_extents *left = f->want[k].left;
	int rc = 0;

	for (size_t i = f->first[k]; rc == 0 && i < f->first[k + 1]; i++) {
		uint64_t at = (i - f->first[k]) * f->stripe, len = want->len - at < f->stripe ? want->len - at : f->stripe;

		if (f->left[i])
			rc = vv_payload_extent_add(left, want->at + at, len, 1);
	}
	if (rc == 0 && left->n > SCRAPS) {
		left->v[0].len = left->v[left->n - 1].pos + left->v[left->n - 1].len - left->v[0].pos;
		left->n = 1;
	}
	return rc;
}

static int run(struct device_load *f)
{
	size_t n = f->first[f->n_wants];
	int rc;

	f->left = vv_mem_new(n, sizeof(*f->left));
	rc = f->left ? open_layers(f) : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		f->left[i] = true;
	if (rc == 0 && is_suitable(f))
		rc = cross(f);
	for (size_t k = 0; rc == 0 && k < f->n_wants; k++)
		rc = report_want(f, k);
	if (f->decoded.layers)
		vv_decoded_blocks_close(&f->decoded);
	vv_pool_each(f->pool, f->warm.n, close_layer, f);
	vv_mem_free(f->left);
	return rc;
}

static int find_layers_of(struct device_load *f, const struct vv_device_load_want *w)
{
	int rc = w->unmerged ? 0 : vv_layer_list_find(&f->layers, f->pool, w->want, 1);

	for (size_t i = 0; w->unmerged && rc == 0 && i < w->unmerged->n; i++) {
		const uint64_t *layer;
		size_t n = vv_run_table_sources(w->unmerged, i, &layer);

		for (size_t k = 0; rc == 0 && k < n && f->layers.n <= VV_OPEN_LAYERS_LAYERS; k++)
			rc = vv_layer_list_add(&f->layers, layer[k]);
	}
	return rc;
}

static int find_layers(struct device_load *f)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < f->n_wants; k++)
		rc = find_layers_of(f, &f->want[k]);
	return rc;
}

/* The host reads all. */
static int leave_all(const struct vv_device_load_want *want, size_t n)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < n; k++)
		rc = vv_payload_extent_add(want[k].left, want[k].want->at, want[k].want->len, 1);
	return rc;
}

static int cut_stripes(struct device_load *f, uint64_t len)
{
	f->first = vv_mem_new(f->n_wants + 1, sizeof(*f->first));
	if (!f->first)
		return VV_ENOMEM;
	f->stripe = vv_device_buffers_stripe(f->buffers, len);
	for (size_t k = 0; k < f->n_wants; k++)
		f->first[k + 1] = f->first[k] + (size_t)((f->want[k].want->len + f->stripe - 1) / f->stripe);
	return 0;
}

static int load(struct device_load *f, uint64_t len)
{
	int rc = find_layers(f);

	if (rc)
		return rc;
	if (f->layers.n > vv_read_many_files(VV_OPEN_LAYERS_LAYERS, 1))
		return most_tables(f) ? VV_DEVICE_LOAD_MERGE_FIRST : leave_all(f->want, f->n_wants);
	rc = cut_stripes(f, len);
	return rc ? rc : run(f);
}

/* A remote store with parallel requests is better read in whole blocks. */
int vv_device_load_read(const struct vv_lineage *lin, struct vv_pool *pool, struct vv_device_buffers *buffers, const struct vv_device_load_want *want, size_t n)
{
	struct device_load *f;
	uint64_t len = 0;
	int rc;

	for (size_t k = 0; k < n; k++)
		len += want[k].want->len;
	if (len < VV_DEVICE_BUFFERS_LEAST || buffers->len < len || !lin->store->read_step)
		return leave_all(want, n);
	f = vv_mem_new(1, sizeof(*f));
	if (!f)
		return VV_ENOMEM;
	f->lin = lin;
	f->buffers = buffers;
	f->ops = buffers->space->inlet;
	f->want = want;
	f->n_wants = n;
	f->pool = pool;
	pthread_mutex_init(&f->lock, NULL);
	rc = load(f, len);
	vv_layer_list_fini(&f->layers);
	pthread_mutex_destroy(&f->lock);
	vv_mem_free(f->first);
	vv_mem_free(f);
	return rc;
}
