/* What a sieve has told, and what the regions hold after it: as plain as can be. */
#include "support/sieve_model.h"
#include "vv_test.h"

void *sieve_need(void *p)
{
	CHECK(p);
	return p;
}

/* ---- records ---------------------------------------------------------------------------------------------------------- */

void sieve_record_fini(struct sieve_record *r)
{
	free(r->piece);
	free(r->data);
	*r = (struct sieve_record){ 0 };
}

void sieve_record_add_pieces(struct sieve_record *r, const struct vv_piece *piece, size_t n)
{
	if (r->n + n > r->cap) {
		r->cap = 2 * (r->n + n);
		r->piece = sieve_need(realloc(r->piece, r->cap * sizeof(*piece)));
	}
	if (n)
		memcpy(r->piece + r->n, piece, n * sizeof(*piece));
	r->n += n;
}

void sieve_record_add_data(struct sieve_record *r, const void *p, size_t len)
{
	if (r->len + len > r->data_cap) {
		r->data_cap = 2 * (r->len + len);
		r->data = sieve_need(realloc(r->data, r->data_cap));
	}
	if (len)
		memcpy(r->data + r->len, p, len);
	r->len += len;
}

/* ---- restoring -------------------------------------------------------------------------------------------------------- */

static void lay_out(struct sieve_state *st, uint32_t chunk, const struct vv_span *span, size_t n)
{
	*st = (struct sieve_state){ .chunk = chunk, .n = n };
	st->span = sieve_need(calloc(n + 1, sizeof(*span)));
	for (size_t i = 0; i < n; i++)
		st->span[i] = span[i];
	CHECK_EQ(vv_grain_number_spans(st->span, n, chunk, &st->end), 0);
	st->bytes = sieve_need(calloc((size_t)st->end + 1, chunk));
	for (size_t i = 0; i < n; i++)
		st->span[i].p = st->bytes + (size_t)st->span[i].first * chunk;
}

void sieve_state_take(struct sieve_state *st, uint32_t chunk, const struct vv_span *span, size_t n)
{
	lay_out(st, chunk, span, n);
	for (size_t i = 0; i < n; i++)
		if (st->span[i].n)
			memcpy(st->span[i].p, span[i].p, (size_t)st->span[i].n * chunk);
}

void sieve_state_fini(struct sieve_state *st)
{
	free(st->span);
	free(st->bytes);
	*st = (struct sieve_state){ 0 };
}

int sieve_state_equal(const struct sieve_state *a, const struct sieve_state *b)
{
	return a->end == b->end && memcmp(a->bytes, b->bytes, (size_t)a->end * a->chunk) == 0;
}

static const uint8_t *data_of(const struct sieve_record *history, size_t n, uint32_t ordinal, uint64_t k, uint32_t chunk)
{
	for (size_t i = 0; i < n; i++)
		if (history[i].ordinal == ordinal) {
			CHECK((k + 1) * chunk <= history[i].len);
			return history[i].data + k * chunk;
		}
	fprintf(stderr, "a piece refers to the data of epoch %u, which are not there\n", ordinal);
	exit(1);
}

static void restore_piece(struct sieve_state *st, const struct vv_piece *p, const struct sieve_record *r,
			  const struct sieve_record *history, size_t n_history)
{
	uint64_t number = vv_grain_number(p->from);
	size_t chunk = st->chunk;

	for (uint32_t i = 0; i < p->len; i++) {
		uint8_t *to = st->bytes + (size_t)(p->at + i) * chunk;

		switch (vv_grain_kind(p->from)) {
		case VV_PIECE_ZERO:
			memset(to, 0, chunk);
			break;
		case VV_PIECE_NEW:
			CHECK((number + i + 1) * chunk <= r->len);
			memcpy(to, r->data + (number + i) * chunk, chunk);
			break;
		case VV_PIECE_COPY:
			memcpy(to, data_of(history, n_history, vv_grain_ordinal(p->from), number + i, st->chunk), chunk);
			break;
		case VV_PIECE_REPEAT:
			CHECK(number >= 1 && number <= p->at + i);
			memcpy(to, to - number * chunk, chunk);
		}
	}
}

/* Ascending, apart, within a slice, and over grains only. */
static void check_pieces(const struct sieve_state *st, const struct sieve_record *r)
{
	uint64_t next = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct vv_piece *p = &r->piece[i];
		uint64_t end = (uint64_t)p->at + p->len;

		CHECK(p->len > 0 && p->at >= next && end <= st->end);
		CHECK_EQ(p->at / VV_GRAIN_SLICE, (end - 1) / VV_GRAIN_SLICE);
		for (uint64_t at = p->at; at < end;) {
			const struct vv_span *s = &st->span[vv_grain_span_of(st->span, st->n, (uint32_t)at)];

			CHECK(at - s->first < s->n);
			at = (uint64_t)s->first + s->n;
		}
		next = end;
	}
}

void sieve_state_restore(struct sieve_state *st, const struct sieve_state *before, const struct vv_span *span, size_t n,
			 uint32_t chunk, const struct sieve_record *r, const struct sieve_record *history, size_t n_history)
{
	lay_out(st, chunk, span, n);
	check_pieces(st, r);
	for (size_t i = 0; i < n; i++) /* what no piece covers shall be noticed */
		memset(st->span[i].p, 0xa5, (size_t)st->span[i].n * chunk);
	for (size_t i = 0; before && i < n; i++)
		for (size_t k = 0; k < before->n; k++)
			if (before->span[k].id == st->span[i].id) {
				uint32_t both = before->span[k].n < st->span[i].n ? before->span[k].n : st->span[i].n;

				memcpy(st->span[i].p, before->span[k].p, (size_t)both * chunk);
			}
	for (size_t i = 0; i < r->n; i++)
		restore_piece(st, &r->piece[i], r, history, n_history);
}
