#include "engine/echo.h"
#include "base/mem.h"
#include "track/fence.h"
#include <string.h>

enum { LEAST = 16 * VV_STREAM_PAGE }; /* bytes that are worth it */

static bool is_worth(const struct vv_set *s, const struct vv_piece *x)
{
	uint64_t period = vv_grain_number(x->from) * s->key.grain;

	return vv_grain_kind(x->from) == VV_PIECE_REPEAT && period <= VV_STREAM_PAGE && VV_STREAM_PAGE % period == 0 &&
	       (uint64_t)x->len * s->key.grain >= LEAST;
}

struct reading {
	const struct vv_set *set;
	const uint8_t *from;
	uint8_t *to;
	size_t n;
	int rc;
};

static void read_period(void *arg)
{
	struct reading *r = arg;

	r->rc = r->set->space->copy_out(r->to, r->from, r->n);
}

/* The first period of the piece, as often as a page has room for it. False: it is cut by the end of a region. */
static bool fill_page(const struct vv_set *s, const struct vv_piece *x, uint8_t page[VV_STREAM_PAGE], int *rc)
{
	const struct vv_span *span = &s->span[vv_grain_span_of(s->span, s->n, x->at)];
	uint32_t period = (uint32_t)vv_grain_number(x->from), index = x->at - span->first;
	struct reading r = { s, span->p + (uint64_t)index * s->key.grain, page, (size_t)period * s->key.grain, 0 };

	*rc = 0;
	if (index + period > span->n)
		return false;
	*rc = vv_fence_try(read_period, &r);
	*rc = *rc ? *rc : r.rc;
	for (size_t at = r.n; at < VV_STREAM_PAGE; at += r.n)
		memcpy(page + at, page, r.n);
	return *rc == 0;
}

/* The page begins where one of the stream's does. What is put in before counts like it: it stands for bytes that were found twice. */
static int add_echo(struct vv_pass *p, struct vv_set *s, size_t piece, const uint8_t page[VV_STREAM_PAGE])
{
	static const uint8_t nothing[VV_STREAM_PAGE];
	struct vv_stream *stream = &p->v->grains->stream;
	size_t gap = (size_t)(-stream->len % VV_STREAM_PAGE);
	int rc = vv_mem_room(&s->echo, s->n_echoes, &s->echoes_cap, sizeof(*s->echo));

	if (rc == 0)
		rc = vv_stream_append(stream, nothing, gap);
	if (rc)
		return rc;
	s->echo[s->n_echoes++] = (struct vv_echo){ piece, stream->len };
	p->st.bytes_dup_space -= gap + VV_STREAM_PAGE;
	return vv_stream_append(stream, page, VV_STREAM_PAGE);
}

int vv_echo_take(struct vv_pass *p, struct vv_set *s)
{
	uint8_t page[VV_STREAM_PAGE];
	int rc = 0;

	s->n_echoes = 0;
	for (size_t i = 0; rc == 0 && i < s->n_pieces; i++)
		if (is_worth(s, &s->piece[i]) && fill_page(s, &s->piece[i], page, &rc))
			rc = add_echo(p, s, i, page);
	return rc;
}

int vv_echo_weave(const struct vv_pass *p, const struct vv_set *s, size_t piece, uint64_t at, struct vv_runs *out, uint64_t *done)
{
	uint64_t len = (uint64_t)s->piece[piece].len * s->key.grain;
	size_t lo = 0, hi = s->n_echoes;
	int rc = 0;

	*done = 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->echo[mid].piece < piece)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == s->n_echoes || s->echo[lo].piece != piece)
		return 0;
	for (; rc == 0 && *done + VV_STREAM_PAGE <= len; *done += VV_STREAM_PAGE) {
		struct vv_run run = vv_stream_page(p, s->echo[lo].at);

		run.at = at + *done;
		rc = vv_run_add(out, run);
	}
	return rc;
}
