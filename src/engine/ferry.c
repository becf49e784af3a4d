#include "engine/ferry.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/crate.h"
#include "engine/layerset.h"

enum {
	LEAST = 1 << 20,   /* of a want */
	STRIPE = 4 << 20,  /* of a region: what goes into a room, which has twice as much space */
	LEAST_STRIPE = 256 << 10,
	SPARE = 4,         /* rooms on their way while every thread fills one */
	SCRAPS = 8,        /* more stretches than this are left as one: each has its layers opened anew */
};

struct ferry {
	const struct vv_lineage *lin;
	const struct vv_ferry_way *way;
	const struct vv_inlet_ops *ops;
	const struct vv_want *want;
	struct vv_pool *pool;
	struct vv_layerset layers;
	struct vv_warm warm;
	struct vv_inlet *inlet;
	struct vv_crate **crate; /* per room */
	size_t rooms;
	uint64_t stripe;
	size_t n; /* stripes */
	bool *left;
	bool no_way; /* for want of memory */
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

static uint64_t room_size(const struct ferry *f)
{
	return 2 * f->stripe;
}

/* Every thread has something to do, and all rooms together have the memory that there may be. */
static bool measure(struct ferry *f)
{
	size_t width = vv_pool_width(f->pool);
	uint64_t len = f->want->len;

	f->rooms = width + SPARE;
	f->stripe = STRIPE;
	while (f->stripe > LEAST_STRIPE && (room_size(f) * f->rooms > f->way->memory || 2 * f->stripe * width > len))
		f->stripe /= 2;
	f->n = (size_t)((len + f->stripe - 1) / f->stripe);
	f->rooms = f->rooms < f->n ? f->rooms : f->n;
	return room_size(f) * f->rooms <= f->way->memory;
}

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

static int make_crates(struct ferry *f)
{
	int rc = 0;

	f->crate = vv_mem_new(f->rooms, sizeof(struct vv_crate *));
	if (!f->crate)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < f->rooms; i++)
		rc = vv_crate_new((size_t)room_size(f), &f->crate[i]);
	return rc;
}

/* Rooms, or a layer's digests: both take their time. Where there is no memory for rooms, or digests are damaged, the host knows what to do. */
static void prepare_one(void *arg, size_t i)
{
	struct ferry *f = arg;
	int rc;

	if (i == 0)
		rc = f->ops->open(f->way->device, (size_t)room_size(f), f->rooms, f->pool, &f->inlet);
	else if (i == 1)
		rc = make_crates(f);
	else
		rc = f->warm.file[i - 2]->head.digest_kind == VV_DIGEST_XXH3 ? vv_layerio_load_digests(f->warm.file[i - 2]) : 0;
	if (rc == VV_ENOMEM && i == 0)
		f->no_way = true;
	else if (rc == VV_ENOMEM || (rc && i < 2))
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

/* at..end of the region, a part of stripe i, in one room. *packed: it could be. */
static int carry_part(struct ferry *f, size_t i, uint64_t at, uint64_t end, bool *packed)
{
	struct vv_inlet_room *r = NULL;
	int rc = f->ops->take(f->inlet, &r);

	if (rc)
		return rc;
	note(f, r);
	*packed = vv_crate_pack(f->crate[r->number], &f->warm, f->want, at, end, r);
	r->tag = i;
	return f->ops->send(f->inlet, r);
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

static int cross(struct ferry *f)
{
	vv_pool_each(f->pool, 2 + f->warm.n, prepare_one, f);
	if (!f->no_way && !atomic_load(&f->failed))
		vv_pool_each(f->pool, f->n, carry, f);
	for (size_t i = 0; !f->no_way && i < f->rooms && !atomic_load(&f->failed); i++) {
		struct vv_inlet_room *r = NULL;
		int rc = f->ops->take(f->inlet, &r);

		if (rc)
			fail(f, rc);
		else
			note(f, r);
	}
	if (f->inlet)
		f->ops->close(f->inlet, f->pool);
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
	for (size_t i = 0; f->crate && i < f->rooms; i++)
		vv_crate_free(f->crate[i]);
	vv_mem_free(f->crate);
	vv_mem_free(f->left);
	return rc;
}

/* A store that is asked for all at once, over a network, had better be asked for whole blocks. */
int vv_ferry_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_ferry_way *way, const struct vv_want *want,
		  struct vv_extents *left)
{
	struct ferry *f = vv_mem_new(1, sizeof(*f));
	bool may;
	int rc;

	if (!f)
		return VV_ENOMEM;
	f->lin = lin;
	f->way = way;
	f->ops = way->space->inlet;
	f->want = want;
	f->pool = pool;
	pthread_mutex_init(&f->lock, NULL);
	may = f->ops && want->len >= LEAST && lin->store->read_step && measure(f);
	rc = may ? vv_layerset_find(&f->layers, want, 1) : 0;
	if (rc == 0 && may && f->layers.n <= VV_WARM_LAYERS)
		rc = run(f, left);
	else if (rc == 0)
		rc = vv_payload_extent_add(left, want->at, want->len, 1);
	vv_layerset_fini(&f->layers);
	pthread_mutex_destroy(&f->lock);
	vv_mem_free(f);
	return rc;
}
