#include "space/gather.h"
#include "base/err.h"
#include "base/mem.h"
#include "space/hash_pass.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { TASK = 1 << 18 }; /* bytes that a thread takes at a time */

struct gather_copying {
	const struct vv_gather *g;
	const uint32_t *number;
	size_t n, step;
	uint8_t *to;
	size_t before; /* requested grains that are present */
	struct vv_gather_changes *out;
	pthread_mutex_t lock; /* of the output */
	bool failed;
};

/* The bytes of a grain; *left: grains from it on to the end of its region. */
static const uint8_t *bytes_of(const struct vv_gather *g, uint32_t number, uint32_t *left)
{
	const struct vv_span *span = &g->span[vv_grain_span_of(g->span, g->n_spans, number)];

	*left = span->n - (number - span->first);
	return span->p + (size_t)(number - span->first) * g->chunk;
}

static void note_change(struct gather_copying *c, size_t i, const struct vv_digest *was)
{
	struct vv_gather_changes *out = c->out;

	pthread_mutex_lock(&c->lock);
	if (vv_mem_room(&out->v, out->n, &out->cap, sizeof(*out->v)) < 0)
		c->failed = true;
	else
		out->v[out->n++] = (struct vv_gather_change){ c->before + i, *was };
	pthread_mutex_unlock(&c->lock);
}

/* Other threads may write the regions: the stored digest is that of the copy, not the earlier
 * one. */
static void check_copy(struct gather_copying *c, size_t i, uint32_t n)
{
	struct vv_digest now[VV_GRAIN_TILE], *was = c->g->past->digest + c->number[i];

	vv_digest_grains(c->g->opt->digest_kind, c->to + i * c->g->chunk, c->g->chunk, n, now);
	if (memcmp(now, was, n * sizeof(*now)) == 0)
		return;
	for (uint32_t k = 0; k < n; k++)
		if (!vv_digest_equal(&now[k], &was[k])) {
			note_change(c, i + k, &was[k]);
			was[k] = now[k];
		}
}

static void copy_task(void *arg, size_t task)
{
	struct gather_copying *c = arg;
	/* the copy is hashed while it is in the cache */
	size_t most = c->g->past ? VV_GRAIN_TILE : SIZE_MAX;
	size_t i = task * c->step, end = c->n - i < c->step ? c->n : i + c->step, len;

	for (; i < end; i += len) {
		uint32_t left;
		const uint8_t *p = bytes_of(c->g, c->number[i], &left);

		for (len = 1; len < most && i + len < end && len < left && c->number[i + len] == c->number[i] + len;)
			len++;
		memcpy(c->to + i * c->g->chunk, p, len * c->g->chunk);
		if (c->g->past)
			check_copy(c, i, (uint32_t)len);
	}
}

int vv_gather_data(const struct vv_gather *g, const uint32_t *number, size_t n, const struct vv_sink *sink, struct vv_gather_changes *out)
{
	size_t done = 0;

	while (n) {
		struct gather_copying c = { .g = g, .number = number, .step = TASK / g->chunk, .before = done, .out = out, .lock = PTHREAD_MUTEX_INITIALIZER };
		size_t got = 0;
		int rc;

		c.to = sink->room(sink->arg, n * g->chunk, &got);
		if (!c.to)
			return VV_ENOMEM;
		c.n = got / g->chunk < n ? got / g->chunk : n;
		rc = vv_hash_pass_each(g->opt, g->pool, (c.n + c.step - 1) / c.step, copy_task, &c);
		if (rc == 0 && c.failed)
			rc = VV_ENOMEM;
		if (rc == 0)
			rc = sink->data(sink->arg, c.to, c.n * g->chunk);
		if (rc)
			return rc;
		number += c.n;
		done += c.n;
		n -= c.n;
	}
	return 0;
}

struct comparing {
	const struct vv_gather *g;
	const struct vv_find *f;
	size_t n, step;
	atomic_size_t worst; /* the first of the finds that differs from its expected bytes */
};

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static bool as_claimed(const struct vv_gather *g, const struct vv_find *f)
{
	enum vv_piece_kind kind = vv_grain_kind(f->from);
	uint32_t left;

	if (kind == VV_PIECE_ZERO)
		return is_zero(bytes_of(g, f->at, &left), g->chunk);
	if (kind == VV_PIECE_COPY && f->back)
		return memcmp(bytes_of(g, f->at, &left), bytes_of(g, f->at - f->back, &left), g->chunk) == 0;
	return true;
}

/* Does a copy of the grain still have the found digest? */
static bool is_as_found(const struct vv_gather *g, uint32_t number, uint8_t copy[VV_GRAIN_MAX])
{
	struct vv_digest now;
	uint32_t left;

	memcpy(copy, bytes_of(g, number, &left), g->chunk);
	vv_digest_grains(g->opt->digest_kind, copy, g->chunk, 1, &now);
	return vv_digest_equal(&now, &g->past->digest[number]);
}

/* The bytes differ: has a thread written there? */
static bool was_written(const struct vv_gather *g, const struct vv_find *f)
{
	uint8_t a[VV_GRAIN_MAX], b[VV_GRAIN_MAX];

	if (!is_as_found(g, f->at, a))
		return true;
	if (vv_grain_kind(f->from) == VV_PIECE_ZERO)
		return is_zero(a, g->chunk);
	return !is_as_found(g, f->at - f->back, b) || memcmp(a, b, g->chunk) == 0;
}

static void compare_task(void *arg, size_t task)
{
	struct comparing *c = arg;
	size_t i = task * c->step, end = c->n - i < c->step ? c->n : i + c->step, worst;

	while (i < end && (as_claimed(c->g, &c->f[i]) || was_written(c->g, &c->f[i])))
		i++;
	worst = atomic_load(&c->worst);
	while (i < end && i < worst && !atomic_compare_exchange_weak(&c->worst, &worst, i))
		;
}

static int complain(const struct vv_gather *g, const struct vv_find *f)
{
	const struct vv_span *span = &g->span[vv_grain_span_of(g->span, g->n_spans, f->at)];
	const struct vv_span *other = &g->span[vv_grain_span_of(g->span, g->n_spans, f->at - f->back)];

	return vv_grain_collide(g->chunk, span->id, (uint64_t)(f->at - span->first) * g->chunk, vv_grain_kind(f->from) == VV_PIECE_ZERO,
				other->id, (uint64_t)(f->at - f->back - other->first) * g->chunk);
}

int vv_gather_compare(const struct vv_gather *g, const struct vv_find *f, size_t n)
{
	struct comparing c = { .g = g, .f = f, .n = n, .step = TASK / g->chunk, .worst = n };
	int rc = vv_hash_pass_each(g->opt, g->pool, (n + c.step - 1) / c.step, compare_task, &c);

	return rc ? rc : c.worst < n ? complain(g, &f[c.worst]) : 0;
}
