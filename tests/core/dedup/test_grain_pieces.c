// Pieces of list and run, by hand; the suite of the spaces has them at random, against a model.
#include "core/dedup/grain_pieces.h"
#include "vv_test.h"

static struct vv_find zero(uint32_t at)
{
	return (struct vv_find){ .at = at, .from = vv_grain_from(VV_PIECE_ZERO, 0, 0) };
}

static struct vv_find fresh(uint32_t at, uint64_t k)
{
	return (struct vv_find){ .at = at, .from = vv_grain_from(VV_PIECE_NEW, 0, k) };
}

static struct vv_find copy(uint32_t at, uint32_t epoch, uint64_t k, uint32_t back)
{
	return (struct vv_find){ .at = at, .back = back, .from = vv_grain_from(VV_PIECE_COPY, epoch, k) };
}

static void expect(const struct vv_piece *got, uint32_t at, uint32_t len, uint64_t from)
{
	CHECK_EQ(got->at, at);
	CHECK_EQ(got->len, len);
	CHECK_EQ(got->from, from);
}

static void kinds_apart(void)
{
	struct vv_find f[] = { zero(0),          zero(1),          fresh(2, 0),      fresh(3, 1), fresh(5, 2), copy(6, 1, 7, 0),
			       copy(7, 1, 8, 0), copy(8, 2, 9, 0), copy(9, 2, 9, 0), zero(10),    zero(12) };
	struct vv_piece p[11], q[11];
	size_t n = vv_grain_pieces_list(f, 11, p);

	CHECK_EQ(n, 8);
	expect(&p[0], 0, 2, vv_grain_from(VV_PIECE_ZERO, 0, 0));
	expect(&p[1], 2, 2, vv_grain_from(VV_PIECE_NEW, 0, 0));
	expect(&p[2], 5, 1, vv_grain_from(VV_PIECE_NEW, 0, 2));
	expect(&p[3], 6, 2, vv_grain_from(VV_PIECE_COPY, 1, 7));
	expect(&p[4], 8, 1, vv_grain_from(VV_PIECE_COPY, 2, 9));
	expect(&p[5], 9, 1, vv_grain_from(VV_PIECE_COPY, 2, 9));
	expect(&p[6], 10, 1, 0);
	expect(&p[7], 12, 1, 0);
	CHECK_EQ(vv_grain_pieces_run(f, 11, q), n); /* nothing repeats */
	CHECK(memcmp(p, q, n * sizeof(*p)) == 0);
	CHECK_EQ(vv_grain_pieces_list(f, 0, p), 0);
	CHECK_EQ(vv_grain_pieces_run(f, 0, p), 0);
}

/* A B A B A B, both new: what follows the first two repeats them. */
static void period(void)
{
	struct vv_find f[] = { fresh(0, 0), fresh(1, 1), copy(2, 4, 0, 2), copy(3, 4, 1, 2), copy(4, 4, 0, 2), copy(5, 4, 1, 2) };
	struct vv_piece p[6];

	CHECK_EQ(vv_grain_pieces_list(f, 6, p), 3);
	CHECK_EQ(vv_grain_pieces_run(f, 6, p), 2);
	expect(&p[1], 2, 4, vv_grain_from(VV_PIECE_REPEAT, 0, 2));
	CHECK_EQ(vv_grain_pieces_run(f, 4, p), 2); /* as long as one A-run, it stays that */
	expect(&p[1], 2, 2, vv_grain_from(VV_PIECE_COPY, 4, 0));
}

static void constant(void)
{
	struct vv_find f[100];
	struct vv_piece p[100];

	f[0] = copy(50, 1, 3, 0); /* known from before */
	for (uint32_t i = 1; i < 100; i++)
		f[i] = copy(50 + i, 1, 3, 1);
	CHECK_EQ(vv_grain_pieces_run(f, 100, p), 2);
	expect(&p[0], 50, 1, vv_grain_from(VV_PIECE_COPY, 1, 3));
	expect(&p[1], 51, 99, vv_grain_from(VV_PIECE_REPEAT, 0, 1));
}

/* An A-run that is partly in a B-run stays whole; those that are wholly in it are joined, also behind it. */
static void overlap(void)
{
	struct vv_find f[] = {
		copy(10, 1, 0, 0), copy(11, 1, 1, 5), copy(12, 1, 2, 5), /* A-run over the beginning of the B-run */
		copy(13, 1, 8, 5), copy(14, 2, 8, 5), copy(15, 2, 3, 5), /* three in it */
		copy(16, 1, 20, 5), copy(17, 1, 21, 6),                  /* one over its end */
		copy(18, 1, 30, 6), copy(19, 3, 1, 6),                   /* and in the next one */
		copy(21, 3, 1, 6),                                       /* after a gap */
	};
	struct vv_piece p[11];

	CHECK_EQ(vv_grain_pieces_run(f, 11, p), 5);
	expect(&p[0], 10, 3, vv_grain_from(VV_PIECE_COPY, 1, 0));
	expect(&p[1], 13, 3, vv_grain_from(VV_PIECE_REPEAT, 0, 5));
	expect(&p[2], 16, 2, vv_grain_from(VV_PIECE_COPY, 1, 20));
	expect(&p[3], 18, 2, vv_grain_from(VV_PIECE_REPEAT, 0, 6));
	expect(&p[4], 21, 1, vv_grain_from(VV_PIECE_COPY, 3, 1));
}

int main(void)
{
	kinds_apart();
	period();
	constant();
	overlap();
	return 0;
}
