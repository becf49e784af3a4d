#include "space/gather.h"
#include "base/err.h"
#include "space/sweep.h"
#include <stdatomic.h>
#include <string.h>

enum { TASK = 1 << 18 }; /* bytes that a thread takes at a time */

struct copying {
	const struct vv_gather *g;
	const uint32_t *number;
	size_t n, step;
	uint8_t *to;
};

/* The bytes of a grain; *left: grains from it on to the end of its region. */
static const uint8_t *bytes_of(const struct vv_gather *g, uint32_t number, uint32_t *left)
{
	const struct vv_span *span = &g->span[vv_grain_span_of(g->span, g->n_spans, number)];

	*left = span->n - (number - span->first);
	return span->p + (size_t)(number - span->first) * g->chunk;
}

static void copy_task(void *arg, size_t task)
{
	const struct copying *c = arg;
	size_t i = task * c->step, end = c->n - i < c->step ? c->n : i + c->step, len;

	for (; i < end; i += len) {
		uint32_t left;
		const uint8_t *p = bytes_of(c->g, c->number[i], &left);

		for (len = 1; i + len < end && len < left && c->number[i + len] == c->number[i] + len;)
			len++;
		memcpy(c->to + i * c->g->chunk, p, len * c->g->chunk);
	}
}

int vv_gather_data(const struct vv_gather *g, const uint32_t *number, size_t n, const struct vv_sink *sink)
{
	while (n) {
		struct copying c = { .g = g, .number = number, .step = TASK / g->chunk };
		size_t got = 0;
		int rc;

		c.to = sink->room(sink->arg, n * g->chunk, &got);
		if (!c.to)
			return VV_ENOMEM;
		c.n = got / g->chunk < n ? got / g->chunk : n;
		rc = vv_sweep_each(g->opt, g->pool, (c.n + c.step - 1) / c.step, copy_task, &c);
		if (rc == 0)
			rc = sink->data(sink->arg, c.to, c.n * g->chunk);
		if (rc)
			return rc;
		number += c.n;
		n -= c.n;
	}
	return 0;
}

struct comparing {
	const struct vv_gather *g;
	const struct vv_find *f;
	size_t n, step;
	atomic_size_t worst; /* the first of the finds that is not what it should be */
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

static void compare_task(void *arg, size_t task)
{
	struct comparing *c = arg;
	size_t i = task * c->step, end = c->n - i < c->step ? c->n : i + c->step, worst;

	while (i < end && as_claimed(c->g, &c->f[i]))
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
	int rc = vv_sweep_each(g->opt, g->pool, (n + c.step - 1) / c.step, compare_task, &c);

	return rc ? rc : c.worst < n ? complain(g, &f[c.worst]) : 0;
}
