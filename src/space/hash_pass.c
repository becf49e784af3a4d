#include "space/hash_pass.h"

/* bytes that a thread takes at a time: whole tiles of the largest grains */
enum { TASK = 1 << 18 };

static uint32_t low_bits(uint32_t n)
{
	return n < 32 ? (1u << n) - 1 : UINT32_MAX;
}

/* Of n grains of a span from `index` on, those in pages that may have changed. */
static uint32_t maybe_changed(const struct vv_span *span, uint32_t chunk, uint32_t index, uint32_t n)
{
	enum { PAGE = 4096 };
	uint32_t per_page = PAGE / chunk, bits = 0;

	if (!span->maybe)
		return UINT32_MAX;
	for (uint32_t i = 0; i < n; i += per_page) {
		uint64_t page = (uint64_t)(index + i) * chunk / PAGE;

		if (span->maybe[page / 64] >> page % 64 & 1)
			bits |= low_bits(per_page) << i;
	}
	return bits;
}

/* Hashes grains i..i+n-1 of a tile; returns the bits of those with a changed digest. */
static uint32_t hash(const struct vv_hash_pass *s, const uint8_t *p, struct vv_digest *old, uint32_t i, uint32_t n)
{
	struct vv_digest now[VV_GRAIN_TILE];
	uint32_t other = 0;

	vv_digest_grains(s->opt->digest_kind, p + (size_t)i * s->opt->chunk, s->opt->chunk, n, now);
	if (memcmp(now, old + i, n * sizeof(*now)) == 0)
		return 0;
	for (uint32_t k = 0; k < n; k++)
		other |= (uint32_t)!vv_digest_equal(&now[k], &old[i + k]) << k;
	memcpy(old + i, now, n * sizeof(*now));
	return other << i;
}

static uint32_t zero_bits(const struct vv_hash_pass *s, const struct vv_digest *digest, uint32_t among)
{
	uint32_t bits = 0;

	for (uint32_t left = among; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		bits |= (uint32_t)vv_digest_equal(&digest[i], &s->zero) << i;
	}
	return bits;
}

static void look_at_tile(struct vv_hash_pass *s, const struct vv_span *span, uint32_t number)
{
	uint32_t index = number - span->first, tile = number / VV_GRAIN_TILE, slot = tile - s->begin / VV_GRAIN_TILE;
	uint32_t n = span->n - index < VV_GRAIN_TILE ? span->n - index : VV_GRAIN_TILE, all = low_bits(n);
	struct vv_digest *digest = s->past->digest + number;
	uint32_t there = s->past->there[tile], look, other = 0;

	if (s->opt->method == VV_METHOD_FULL) {
		s->changed[slot] = all;
		s->zeros[slot] = 0;
		return;
	}
	look = all & (~there | maybe_changed(span, s->opt->chunk, index, n));
	for (uint32_t left = look; left;) {
		uint32_t i = (uint32_t)__builtin_ctz(left), len = (uint32_t)__builtin_ctzll(~((uint64_t)left >> i));

		other |= hash(s, span->p + (size_t)index * s->opt->chunk, digest, i, len);
		left &= ~(low_bits(len) << i);
	}
	s->changed[slot] = (other | ~there) & all;
	s->zeros[slot] = zero_bits(s, digest, s->changed[slot]);
	s->past->there[tile] = all;
}

static void look_at(struct vv_hash_pass *s, uint32_t number, uint32_t end)
{
	size_t k = vv_grain_span_of(s->span, s->n_spans, number);

	for (; number < end; number += VV_GRAIN_TILE) {
		while (k + 1 < s->n_spans && s->span[k + 1].first <= number)
			k++;
		look_at_tile(s, &s->span[k], number);
	}
}

/* Runs until no task is left. */
static void work(struct vv_hash_pass *s)
{
	size_t n = s->end - s->begin, step = n ? TASK / s->opt->chunk : 0, at;

	while (at = atomic_fetch_add(&s->next, 1) * step, at < n)
		look_at(s, s->begin + (uint32_t)at, n - at < step ? s->end : s->begin + (uint32_t)(at + step));
}

/* ---- memory that may not be there ------------------------------------------------------------ */

static void guarded(const struct vv_sieve_options *opt, void (*fn)(void *arg), void *arg, struct vv_hash_pass_fault *fault)
{
	int rc = 0;

	if (opt->guard)
		rc = opt->guard(fn, arg);
	else
		fn(arg);
	if (rc && !atomic_exchange(&fault->has_error, 1))
		vv_err_save(rc, &fault->error);
}

static int take_error(struct vv_hash_pass_fault *fault)
{
	return atomic_exchange(&fault->has_error, 0) ? vv_err_restore(&fault->error) : 0;
}

static void work_guarded(void *arg)
{
	work(arg);
}

static void run_helper(struct vv_task *t)
{
	struct vv_hash_pass *s = ((struct vv_hash_pass_helper *)t)->sweep;

	guarded(s->opt, work_guarded, s, &s->fault);
}

void vv_hash_pass_begin(struct vv_hash_pass *s, uint32_t begin, uint32_t end, uint32_t *changed, uint32_t *zeros)
{
	size_t others = s->pool ? vv_pool_width(s->pool) - 1 : 0;

	s->begin = begin;
	s->end = end;
	s->changed = changed;
	s->zeros = zeros;
	atomic_store(&s->next, 0);
	s->n_helpers = others < VV_HASH_PASS_HELPERS ? others : VV_HASH_PASS_HELPERS;
	for (size_t i = 0; i < s->n_helpers; i++) {
		s->helper[i] = (struct vv_hash_pass_helper){ .task.run = run_helper, .sweep = s };
		vv_pool_submit(s->pool, &s->helper[i].task);
	}
}

int vv_hash_pass_end(struct vv_hash_pass *s)
{
	guarded(s->opt, work_guarded, s, &s->fault);
	for (; s->n_helpers; s->n_helpers--)
		vv_pool_wait(s->pool, &s->helper[s->n_helpers - 1].task);
	return take_error(&s->fault);
}

struct hash_pass_each {
	const struct vv_sieve_options *opt;
	void (*fn)(void *arg, size_t i);
	void *arg;
	struct vv_hash_pass_fault fault;
};

struct hash_pass_step {
	struct hash_pass_each *each;
	size_t i;
};

static void step_guarded(void *arg)
{
	struct hash_pass_step *s = arg;

	s->each->fn(s->each->arg, s->i);
}

static void run_step(void *arg, size_t i)
{
	struct hash_pass_each *e = arg;
	struct hash_pass_step s = { e, i };

	guarded(e->opt, step_guarded, &s, &e->fault);
}

int vv_hash_pass_each(const struct vv_sieve_options *opt, struct vv_pool *pool, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
	struct hash_pass_each e = { .opt = opt, .fn = fn, .arg = arg };

	if (pool)
		vv_pool_each(pool, n, run_step, &e);
	for (size_t i = 0; !pool && i < n; i++)
		run_step(&e, i);
	return take_error(&e.fault);
}
