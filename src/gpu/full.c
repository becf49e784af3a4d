#include "gpu/full.h"
#include "base/mem.h"

/* The part of a span in begin..end-1: returns the number of its grains; *at is the first. */
static uint32_t part_of(const struct vv_span *span, uint32_t begin, uint64_t end, uint32_t *at)
{
	uint64_t to = (uint64_t)span->first + span->n < end ? (uint64_t)span->first + span->n : end;

	*at = span->first > begin ? span->first : begin;
	return *at < to ? (uint32_t)(to - *at) : 0;
}

static size_t cut(const struct vv_span *span, size_t n, uint32_t begin, uint64_t end, uint64_t data, struct vv_piece *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t at, len = part_of(&span[i], begin, end, &at);

		if (len && n_out && out[n_out - 1].at + out[n_out - 1].len == at)
			out[n_out - 1].len += len;
		else if (len)
			out[n_out++] = (struct vv_piece){ at, len, vv_grain_from(VV_PIECE_NEW, 0, data) };
		data += len;
	}
	return n_out;
}

static int copy(struct vv_outlet *o, const struct vv_span *span, size_t n, uint32_t begin, uint64_t end)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		uint32_t at, len = part_of(&span[i], begin, end, &at);

		rc = vv_outlet_copy(o, span[i].p + (size_t)(at - span[i].first) * o->of->chunk, (size_t)len * o->of->chunk);
	}
	return rc;
}

int vv_full_pass(struct vv_outlet *o, const struct vv_span *span, size_t n, uint32_t end, struct vv_sieve_counts *counts)
{
	struct vv_piece *piece = vv_mem_new(n, sizeof(*piece));
	int rc = piece ? 0 : VV_ENOMEM;

	for (uint64_t begin = 0; rc == 0 && begin < end; begin += VV_GRAIN_SLICE) {
		size_t n_piece = cut(span, n, (uint32_t)begin, begin + VV_GRAIN_SLICE, counts->fresh, piece);
		uint64_t grains = 0;

		for (size_t i = 0; i < n_piece; i++)
			grains += piece[i].len;
		rc = n_piece ? o->sink->pieces(o->sink->arg, piece, n_piece) : 0;
		vv_outlet_expect(o, grains * o->of->chunk);
		if (rc == 0)
			rc = copy(o, span, n, (uint32_t)begin, begin + VV_GRAIN_SLICE);
		counts->fresh += grains;
	}
	counts->changed = counts->fresh;
	vv_mem_free(piece);
	return rc ? rc : vv_outlet_deliver(o, 0);
}
