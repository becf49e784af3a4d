#include "engine/ferry.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/layerset.h"

enum { SCRAPS = 8 }; /* more stretches than this are left as one: each has its layers opened anew */

struct ferry {
	const struct vv_lineage *lin;
	struct vv_dock *dock;
	const struct vv_inlet_ops *ops;
	const struct vv_want *want;
	struct vv_pool *pool;
	struct vv_layerset layers;
	struct vv_warm warm;
	uint64_t stripe; /* of the want */
	size_t n; /* stripes */
	bool *left;
	atomic_int failed;
	pthread_mutex_t lock;
	struct vv_err_state error;
};

static void fail(struct ferry *f, int rc)
{
	pthread_mutex_lock(&f->lock);
	if (!atomic_load(&f->failed))
		vv_err_save(rc, &f->error);
	atomic_store(&f->failed, 1);
	pthread_mutex_unlock(&f->lock);
}

static int outcome(struct ferry *f)
{
	return atomic_load(&f->failed) ? vv_err_restore(&f->error) : 0;
}

/* ---- before --------------------------------------------------------------------------------------------------------------------- */

static void open_layer(void *arg, size_t i)
{
	struct ferry *f = arg;
	int rc;

	if (atomic_load(&f->failed))
		return;
	rc = vv_warm_open(&f->warm, i, f->lin, f->layers.v[i].layer, 0);
	if (rc)
		fail(f, rc);
}

static void close_layer(void *arg, size_t i)
{
	vv_warm_close(&((struct ferry *)arg)->warm, i);
}

static int open_layers(struct ferry *f)
{
	f->warm.n = f->layers.n;
	vv_pool_each(f->pool, f->warm.n, open_layer, f);
	if (!atomic_load(&f->failed))
		vv_warm_number(&f->warm);
	return outcome(f);
}

/* Most of what is stored lies there as it is, with digests that a space knows. */
static bool is_plain(const struct ferry *f)
{
	uint64_t plain = 0, all = 0;

	for (size_t i = 0; i < f->warm.n; i++) {
		const struct vv_layerio *x = f->warm.file[i];

		for (size_t b = 0; b < x->blocks.n; b++) {
			all += x->blocks.v[b].raw_len;
			plain += x->blocks.v[b].codec == 0 && x->head.digest_kind == VV_DIGEST_XXH3 ? x->blocks.v[b].raw_len : 0;
		}
	}
	return 2 * plain >= all;
}

/* Where digests are damaged, the host knows what to do. */
static void load_digests(void *arg, size_t i)
{
	struct ferry *f = arg;
	struct vv_layerio *x = f->warm.file[i];
	int rc;

	x->pool = f->pool;
	rc = x->head.digest_kind == VV_DIGEST_XXH3 ? vv_layerio_load_digests(x) : 0;

	if (rc == VV_ENOMEM)
		fail(f, rc);
	vv_err_clear();
}

/* ---- across --------------------------------------------------------------------------------------------------------------------- */

/* What became of what was in the room. */
static void note(struct ferry *f, struct vv_inlet_room *r)
{
	if (r->end && r->differs)
		f->left[r->tag] = true;
	r->end = 0;
}

/* at..end of the region, a part of stripe i, in one room. *packed: it could be; where there is no memory for a room, the host does without. */
static int carry_part(struct ferry *f, size_t i, uint64_t at, uint64_t end, bool *packed)
{
	struct vv_inlet_room *r = NULL;
	int rc = f->ops->take(f->dock->inlet, &r);

	*packed = false;
	if (rc == VV_ENOMEM) {
		vv_err_clear();
		return 0;
	}
	if (rc)
		return rc;
	note(f, r);
	*packed = vv_crate_pack(f->dock->crate[r->number], &f->warm, f->want, at, end, r);
	r->tag = i;
	return f->ops->send(f->dock->inlet, r);
}

/* What is scattered over the pages of many layers may take two rooms; what takes more the host finds as quickly. */
static void carry(void *arg, size_t i)
{
	struct ferry *f = arg;
	uint64_t at = f->want->at + i * f->stripe, end = f->want->at + f->want->len;
	bool packed = false;
	int rc;

	if (atomic_load(&f->failed))
		return;
	end = end - at < f->stripe ? end : at + f->stripe;
	f->left[i] = false;
	rc = carry_part(f, i, at, end, &packed);
	if (rc == 0 && !packed) {
		uint64_t middle = at + (end - at) / 2;

		rc = carry_part(f, i, at, middle, &packed);
		if (rc == 0 && packed)
			rc = carry_part(f, i, middle, end, &packed);
	}
	if (!packed)
		f->left[i] = true;
	if (rc)
		fail(f, rc);
}

/* What is under way has arrived, and the rooms are as they were. */
static void await_rooms(struct ferry *f)
{
	struct vv_inlet_room *r = NULL;

	do {
		int rc = f->ops->await(f->dock->inlet, &r);

		if (rc == 0 && r) {
			note(f, r);
			rc = f->ops->send(f->dock->inlet, r);
		}
		if (rc)
			fail(f, rc);
	} while (r && !atomic_load(&f->failed));
}

static int cross(struct ferry *f)
{
	int rc;

	vv_pool_each(f->pool, f->warm.n, load_digests, f);
	rc = vv_dock_wait(f->dock);
	if (rc == VV_ENOMEM) {
		vv_err_clear();
		return outcome(f);
	}
	if (rc)
		fail(f, rc);
	if (!atomic_load(&f->failed))
		vv_pool_each(f->pool, f->n, carry, f);
	await_rooms(f);
	return outcome(f);
}

/* ---- after ---------------------------------------------------------------------------------------------------------------------- */

static int tell(const struct ferry *f, struct vv_extents *left)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->n; i++) {
		uint64_t at = i * f->stripe, len = f->want->len - at < f->stripe ? f->want->len - at : f->stripe;

		if (f->left[i])
			rc = vv_payload_extent_add(left, f->want->at + at, len, 1);
	}
	if (rc == 0 && left->n > SCRAPS) {
		left->v[0].len = left->v[left->n - 1].pos + left->v[left->n - 1].len - left->v[0].pos;
		left->n = 1;
	}
	return rc;
}

static int run(struct ferry *f, struct vv_extents *left)
{
	int rc;

	f->left = vv_mem_new(f->n, sizeof(*f->left));
	rc = f->left ? open_layers(f) : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < f->n; i++)
		f->left[i] = true;
	if (rc == 0 && is_plain(f))
		rc = cross(f);
	if (rc == 0)
		rc = tell(f, left);
	vv_pool_each(f->pool, f->warm.n, close_layer, f);
	vv_mem_free(f->left);
	return rc;
}

/* A store that is asked for all at once, over a network, had better be asked for whole blocks. */
int vv_ferry_read(const struct vv_lineage *lin, struct vv_pool *pool, struct vv_dock *dock, const struct vv_want *want, struct vv_extents *left)
{
	struct ferry *f = vv_mem_new(1, sizeof(*f));
	bool may;
	int rc;

	if (!f)
		return VV_ENOMEM;
	f->lin = lin;
	f->dock = dock;
	f->want = want;
	f->pool = pool;
	pthread_mutex_init(&f->lock, NULL);
	may = want->len >= VV_DOCK_LEAST && dock->len >= want->len && lin->store->read_step;
	if (may) {
		f->ops = dock->space->inlet;
		f->stripe = vv_dock_stripe(dock, want->len);
		f->n = (size_t)((want->len + f->stripe - 1) / f->stripe);
	}
	rc = may ? vv_layerset_find(&f->layers, pool, want, 1) : 0;
	if (rc == 0 && may && f->layers.n <= VV_WARM_LAYERS)
		rc = run(f, left);
	else if (rc == 0)
		rc = vv_payload_extent_add(left, want->at, want->len, 1);
	vv_layerset_fini(&f->layers);
	pthread_mutex_destroy(&f->lock);
	vv_mem_free(f);
	return rc;
}
