#include "core/dedup/grain_pieces.h"

static bool copies(const struct vv_find *f)
{
	return vv_grain_kind(f->from) == VV_PIECE_COPY;
}

/* Does f[1] continue f[0]? The numbers of NEW always do. */
static bool goes_on(const struct vv_find *f)
{
	return f[1].at == f[0].at + 1 && f[1].from == f[0].from + (vv_grain_kind(f[0].from) != VV_PIECE_ZERO);
}

static bool repeats_on(const struct vv_find *f)
{
	return f[1].at == f[0].at + 1 && f[1].back == f[0].back && copies(&f[0]) && copies(&f[1]);
}

/* The end of the run, of one kind or the other, that begins at i. */
static size_t end_of(const struct vv_find *f, size_t n, size_t i, bool (*on)(const struct vv_find *f))
{
	while (i + 1 < n && on(f + i))
		i++;
	return i + 1;
}

static size_t put(struct vv_piece *out, size_t n_out, const struct vv_find *f, size_t len, uint64_t from)
{
	out[n_out] = (struct vv_piece){ .at = f->at, .len = (uint32_t)len, .from = from };
	return n_out + 1;
}

size_t vv_grain_pieces_list(const struct vv_find *f, size_t n, struct vv_piece *out)
{
	size_t n_out = 0;

	for (size_t i = 0, end; i < n; i = end) {
		end = end_of(f, n, i, goes_on);
		n_out = put(out, n_out, f + i, end - i, f[i].from);
	}
	return n_out;
}

/* One pass through both: A-runs are i..end, the B-run that contains i is b..b_end. */
size_t vv_grain_pieces_run(const struct vv_find *f, size_t n, struct vv_piece *out)
{
	/* the B-run of the last piece, if that is a REPEAT */
	size_t n_out = 0, b = 0, b_end = 0, repeated = SIZE_MAX;

	for (size_t i = 0, end; i < n; i = end) {
		bool repeat;

		end = end_of(f, n, i, goes_on);
		for (; b_end <= i; b_end = end_of(f, n, b, repeats_on))
			b = b_end;
		repeat = f[i].back && copies(f + i) && end <= b_end && end - i < b_end - b;
		if (repeat && repeated == b)
			out[n_out - 1].len += (uint32_t)(end - i);
		else
			n_out = put(out, n_out, f + i, end - i, repeat ? vv_grain_from(VV_PIECE_REPEAT, 0, f[i].back) : f[i].from);
		repeated = repeat ? b : SIZE_MAX;
	}
	return n_out;
}
