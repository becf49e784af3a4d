#include "engine/grains/repeats.h"
#include "base/mem.h"
#include "base/search.h"
#include "track/write_protect.h"
#include <string.h>

enum { LONGEST = 16 * VV_NEW_DATA_PAGE }; /* bytes of a repeat */

/* The length of a repeat, in complete pages and complete periods; 0: the piece is no repeat, or its
 * period is too long. */
static uint64_t length(const struct vv_set *s, const struct vv_piece *x)
{
	uint64_t period = vv_grain_number(x->from) * s->key.grain, len = VV_NEW_DATA_PAGE;

	if (vv_grain_kind(x->from) != VV_PIECE_REPEAT || period > LONGEST)
		return 0;
	while (len % period && len <= LONGEST)
		len += VV_NEW_DATA_PAGE;
	return len <= LONGEST ? len : 0;
}

/* The number of pieces in the period before this one. The period has at least one run for each. */
static uint64_t parts(const struct vv_set *s, size_t piece)
{
	const struct vv_piece *x = &s->now.piece[piece];
	uint64_t begin = x->at - vv_grain_number(x->from), n = 0;

	for (; piece > 0 && (uint64_t)s->now.piece[piece - 1].at + s->now.piece[piece - 1].len > begin; piece--)
		n++;
	return n;
}

/* The bytes of a number in a table of runs. */
static uint64_t digits(uint64_t n)
{
	return n < 1 << 7 ? 1 : n < 1 << 14 ? 2 : 3;
}

/* Is the repeat smaller than the runs that it saves, both uncompressed? Compressed, both are very
 * small. */
static bool pays(const struct vv_set *s, size_t piece, uint64_t len, uint64_t gap)
{
	enum { RUN_LEAST = 4, RUN_MOST = 8, DIGEST = 32 }; /* bytes; DIGEST is for a page */
	const struct vv_piece *x = &s->now.piece[piece];
	uint64_t all = (uint64_t)x->len * s->key.grain, period = vv_grain_number(x->from) * s->key.grain, n = parts(s, piece);
	uint64_t each = n == 1 ? 2 + digits(period) + digits(2 * period - 1) : n * RUN_LEAST;

	return all / period * each > gap + len + (len / VV_NEW_DATA_PAGE + 1) * DIGEST + all / len * RUN_MOST;
}

struct repeats_reading {
	const struct vv_set *set;
	const uint8_t *from;
	uint8_t *to;
	size_t n;
	int rc;
};

static void read_period(void *arg)
{
	struct repeats_reading *r = arg;

	r->rc = r->set->space->copy_out(r->to, r->from, r->n);
}

/* Fills the repeat with copies of the piece's first period. Returns false if the end of a region
 * cuts the period, or another thread has written there since. */
static bool fill(const struct vv_set *s, const struct vv_piece *x, uint8_t *repeat, uint64_t len, int *rc)
{
	const struct vv_span *span = &s->span[vv_grain_span_of(s->span, s->n, x->at)];
	uint32_t period = (uint32_t)vv_grain_number(x->from), index = x->at - span->first;
	struct repeats_reading r = { s, span->p + (uint64_t)index * s->key.grain, repeat, (size_t)period * s->key.grain, 0 };

	*rc = 0;
	if (index + period > span->n)
		return false;
	*rc = vv_write_protect_try_read(read_period, &r);
	*rc = *rc ? *rc : r.rc;
	if (*rc == 0 && s->space->holds && !s->space->holds(s->sieve, x->at, period, repeat))
		return false;
	for (size_t at = r.n; at < len; at += r.n)
		memcpy(repeat + at, repeat, r.n);
	return *rc == 0;
}

/* The bytes to the next page of the new data, where the repeat begins. */
static uint64_t gap_before(const struct vv_layer_writer *p)
{
	return -p->v->grains->new_data.len % VV_NEW_DATA_PAGE;
}

/* These bytes of the new data replace bytes that were already counted as duplicates. They are
 * subtracted from the duplicates of this epoch and, if these are too few, from those of older
 * epochs. */
static void uncount(struct varve_stats *st, uint64_t bytes)
{
	uint64_t here = bytes < st->bytes_dup_space ? bytes : st->bytes_dup_space;

	st->bytes_dup_space -= here;
	st->bytes_dup_time -= bytes - here;
}

static int add(struct vv_layer_writer *p, struct vv_set *s, size_t piece, const uint8_t *repeat, uint64_t len)
{
	static const uint8_t nothing[VV_NEW_DATA_PAGE];
	struct vv_new_data *stream = &p->v->grains->new_data;
	size_t gap = (size_t)gap_before(p);
	int rc = vv_mem_room(&s->now.repeat, s->now.n_repeats, &s->now.repeats_cap, sizeof(*s->now.repeat));

	if (rc == 0)
		rc = vv_new_data_append(stream, nothing, gap);
	if (rc)
		return rc;
	s->now.repeat[s->now.n_repeats++] = (struct vv_repeat){ piece, stream->len, len };
	uncount(&p->st, gap + len);
	return vv_new_data_append(stream, repeat, (size_t)len);
}

int vv_repeats_find(struct vv_layer_writer *p, struct vv_set *s)
{
	uint8_t *repeat = NULL;
	int rc = 0;

	s->now.n_repeats = 0;
	for (size_t i = 0; rc == 0 && i < s->now.n_pieces; i++) {
		uint64_t len = length(s, &s->now.piece[i]);

		if (!len || !pays(s, i, len, gap_before(p)))
			continue;
		if (!repeat)
			repeat = vv_mem_new(LONGEST, 1);
		if (!repeat)
			return VV_ENOMEM;
		if (fill(s, &s->now.piece[i], repeat, len, &rc))
			rc = add(p, s, i, repeat, len);
	}
	vv_mem_free(repeat);
	return rc;
}

static const struct vv_repeat *find(const struct vv_set *s, size_t piece)
{
	size_t i;

	VV_SEARCH(i, 0, s->now.n_repeats, s->now.repeat[i].piece < piece);
	return i < s->now.n_repeats && s->now.repeat[i].piece == piece ? &s->now.repeat[i] : NULL;
}

int vv_repeats_emit(const struct vv_layer_writer *p, const struct vv_set *s, size_t piece, uint64_t at, struct vv_runs *out, uint64_t *done)
{
	uint64_t len = (uint64_t)s->now.piece[piece].len * s->key.grain;
	const struct vv_repeat *e = find(s, piece);
	struct vv_runs once = { 0 };
	int rc = e ? vv_new_data_runs(p, e->at, e->at + e->len, &once) : 0;

	for (*done = 0; e && rc == 0 && *done + e->len <= len; *done += e->len)
		for (size_t i = 0; rc == 0 && i < once.n; i++) {
			struct vv_run run = once.v[i];

			run.at += at + *done - e->at;
			rc = vv_run_add(out, run);
		}
	vv_run_fini(&once);
	return rc;
}
