#include "space/learn.h"
#include "base/mem.h"
#include "base/search.h"
#include "space/hash_pass.h"

enum { TASK = 1 << 18 }; /* bytes that a thread takes at a time */

struct learning {
	const struct vv_sieve_options *opt;
	struct vv_last_digests *past;
	const struct vv_grain_bytes *lesson;
	size_t n, *first; /* first task of each lesson; the last entry is the number of tasks */
	uint32_t step;    /* grains of a task */
};

/* Atomic: the same word has bits of other threads' grains. */
static void note(uint32_t *word, uint32_t first, uint32_t n, bool there)
{
	uint32_t bits = (n < VV_GRAIN_TILE ? (1u << n) - 1 : UINT32_MAX) << first;

	if (there)
		__atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
}

static void learn(const struct learning *l, uint32_t at, uint32_t len, const uint8_t *bytes)
{
	uint32_t n;

	for (; len; at += n, len -= n) {
		uint32_t first = at % VV_GRAIN_TILE;

		n = len < VV_GRAIN_TILE - first ? len : VV_GRAIN_TILE - first;
		if (bytes) {
			vv_digest_grains(l->opt->digest_kind, bytes, l->opt->chunk, n, l->past->digest + at);
			bytes += (size_t)n * l->opt->chunk;
		}
		note(&l->past->there[at / VV_GRAIN_TILE], first, n, bytes);
	}
}

/* The lesson of a task. */
static size_t find(const struct learning *l, size_t task)
{
	size_t i;

	VV_SEARCH(i, 1, l->n, l->first[i] <= task);
	return i - 1;
}

static void run_task(void *arg, size_t task)
{
	const struct learning *l = arg;
	size_t i = find(l, task);
	const struct vv_grain_bytes *x = &l->lesson[i];
	uint32_t skip = (uint32_t)(task - l->first[i]) * l->step, left = x->len - skip;

	learn(l, x->at + skip, left < l->step ? left : l->step, x->bytes ? x->bytes + (size_t)skip * l->opt->chunk : NULL);
}

int vv_learn_all(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_last_digests *past, const struct vv_grain_bytes *lesson, size_t n)
{
	struct learning l = { .opt = opt, .past = past, .lesson = lesson, .n = n, .first = vv_mem_new(n + 1, sizeof(*l.first)), .step = TASK / opt->chunk };
	int rc = l.first ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		l.first[i + 1] = l.first[i] + (lesson[i].len + l.step - 1) / l.step;
	if (rc == 0)
		rc = vv_hash_pass_each(opt, pool, l.first[n], run_task, &l);
	vv_mem_free(l.first);
	return rc;
}

int vv_learn_regions(struct vv_sieve *s, struct vv_span *span, size_t n)
{
	struct vv_grain_bytes *lesson = vv_mem_new(n, sizeof(*lesson));
	int rc = lesson ? s->space->begin(s, span, n) : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		lesson[i] = (struct vv_grain_bytes){ span[i].first, span[i].n, span[i].p };
	if (rc == 0)
		rc = s->space->learn(s, lesson, n);
	vv_mem_free(lesson);
	return rc;
}
