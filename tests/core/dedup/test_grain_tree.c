// Pieces of tree, by hand; the suite of the spaces has them at random, against a model.
#include "core/dedup/grain_tree.h"
#include "vv_test.h"

enum { N = 64, EPOCH = 9 };

static struct vv_digest digest[N];

static void leaf(uint32_t at, uint64_t what)
{
	vv_digest_xxh3(&what, sizeof(what), &digest[at]);
}

static struct vv_find find(uint32_t at, enum vv_piece_kind kind, uint32_t epoch, uint64_t k)
{
	return (struct vv_find){ .at = at, .from = vv_grain_from(kind, epoch, k) };
}

static size_t pieces(struct vv_find *f, size_t n, size_t take, uint32_t epoch, struct vv_known_grains *nodes, struct vv_piece *out)
{
	struct vv_grain_tree_node node[N];
	uint8_t height[N];
	struct vv_grain_tree_work w = { node, height };
	size_t may;

	CHECK_EQ(vv_known_grains_begin(nodes, n, &may), 0);
	return vv_grain_tree_pieces(f, n, take, digest, epoch, nodes, &w, out);
}

static void expect(const struct vv_piece *got, uint32_t at, uint32_t len, uint64_t from)
{
	CHECK_EQ(got->at, at);
	CHECK_EQ(got->len, len);
	CHECK_EQ(got->from, from);
}

/* 3..13 new: 3, 4..7, 8..11, 12..13. */
static size_t new_range(struct vv_known_grains *nodes, struct vv_piece *p)
{
	struct vv_find f[N];
	size_t n = 0;

	for (uint32_t at = 3; at < 14; at++, n++) {
		leaf(at, at);
		f[n] = find(at, VV_PIECE_NEW, 0, n);
	}
	return pieces(f, n, n, EPOCH, nodes, p);
}

static void by_alignment(void)
{
	struct vv_known_grains nodes = { .limit = 1000 };
	struct vv_piece p[N];
	struct vv_find f[N];

	CHECK_EQ(new_range(&nodes, p), 4);
	expect(&p[0], 3, 1, vv_grain_from(VV_PIECE_NEW, 0, 0));
	expect(&p[1], 4, 4, vv_grain_from(VV_PIECE_NEW, 0, 1));
	expect(&p[2], 8, 4, vv_grain_from(VV_PIECE_NEW, 0, 5));
	expect(&p[3], 12, 2, vv_grain_from(VV_PIECE_NEW, 0, 9));
	CHECK_EQ(nodes.young.n, 7); /* two of four leaves: three nodes each; and one of two */
	for (uint32_t i = 0; i < 8; i++) { /* 4..11 again, 16 further: two pieces, since nothing was known to be all of them */
		leaf(20 + i, 4 + i);
		f[i] = find(20 + i, VV_PIECE_COPY, EPOCH, 1 + i);
	}
	CHECK_EQ(pieces(f, 8, 8, EPOCH + 1, &nodes, p), 2);
	expect(&p[0], 20, 4, vv_grain_from(VV_PIECE_COPY, EPOCH, 1));
	expect(&p[1], 24, 4, vv_grain_from(VV_PIECE_COPY, EPOCH, 5));
	for (uint32_t i = 0; i < 8; i++) { /* one further: each for itself */
		leaf(33 + i, 4 + i);
		f[i] = find(33 + i, VV_PIECE_COPY, EPOCH, 1 + i);
	}
	CHECK_EQ(pieces(f, 8, 8, EPOCH + 2, &nodes, p), 8);
	vv_known_grains_fini(&nodes);
}

/* Kinds do not mix, zeros need no map, and a node over a number without a grain is none. */
static void kinds(void)
{
	struct vv_known_grains nodes = { .limit = 1000 };
	struct vv_find f[] = { find(0, VV_PIECE_ZERO, 0, 0), find(1, VV_PIECE_ZERO, 0, 0), find(2, VV_PIECE_ZERO, 0, 0), find(3, VV_PIECE_ZERO, 0, 0),
			       find(4, VV_PIECE_NEW, 0, 0), find(5, VV_PIECE_ZERO, 0, 0), find(6, VV_PIECE_NEW, 0, 1) };
	struct vv_piece p[N];

	CHECK_EQ(pieces(f, 7, 7, EPOCH, &nodes, p), 4);
	expect(&p[0], 0, 4, 0);
	expect(&p[1], 4, 1, vv_grain_from(VV_PIECE_NEW, 0, 0));
	expect(&p[2], 5, 1, 0);
	expect(&p[3], 6, 1, vv_grain_from(VV_PIECE_NEW, 0, 1));
	CHECK_EQ(nodes.young.n, 0);
	vv_known_grains_fini(&nodes);
}

/* Those that take no part in the map are NEW as before, and not known. */
static void taking_part(void)
{
	struct vv_known_grains nodes = { .limit = 1000 };
	struct vv_find f[16];
	struct vv_piece p[N];

	for (uint32_t at = 0; at < 16; at++) {
		leaf(at, at);
		f[at] = find(at, VV_PIECE_NEW, 0, at);
	}
	CHECK_EQ(pieces(f, 16, 7, EPOCH, &nodes, p), 1);
	expect(&p[0], 0, 16, vv_grain_from(VV_PIECE_NEW, 0, 0));
	CHECK_EQ(nodes.young.n, 4); /* 01 23 45 0123 */
	vv_known_grains_fini(&nodes);
}

/* The whole slice: the root is a piece. */
static void root(void)
{
	enum { ALL = VV_GRAIN_SLICE };
	struct vv_find *f = calloc(ALL, sizeof(*f));
	struct vv_grain_tree_work w = { calloc(ALL, sizeof(*w.node)), calloc(ALL, 1) };
	struct vv_digest *d = calloc(ALL, sizeof(*d));
	struct vv_known_grains nodes = { .limit = ALL };
	struct vv_piece *p = (struct vv_piece *)w.node;
	size_t take;

	CHECK(f && w.node && w.height && d);
	CHECK_EQ(vv_known_grains_begin(&nodes, ALL, &take), 0);
	for (uint32_t i = 0; i < ALL; i++) {
		d[i].w[0] = i + 1;
		f[i] = find(3u * ALL + i, VV_PIECE_NEW, 0, 100 + i);
	}
	CHECK_EQ(vv_grain_tree_pieces(f, ALL, ALL, d, EPOCH, &nodes, &w, p), 1);
	expect(p, 3u * ALL, ALL, vv_grain_from(VV_PIECE_NEW, 0, 100));
	CHECK_EQ(nodes.young.n, ALL - 1);
	CHECK_EQ(vv_known_grains_begin(&nodes, ALL, &take), 0);
	for (uint32_t i = 0; i < ALL; i++)
		f[i] = find(i, VV_PIECE_COPY, EPOCH, 100 + i);
	CHECK_EQ(vv_grain_tree_pieces(f, ALL, ALL, d, EPOCH + 1, &nodes, &w, p), 1);
	expect(p, 0, ALL, vv_grain_from(VV_PIECE_COPY, EPOCH, 100));
	vv_known_grains_fini(&nodes);
	free(d);
	free(w.node);
	free(w.height);
	free(f);
}

/* Heights and leaves are different things. */
static void domains(void)
{
	struct vv_digest two[2], grain, node[3];

	leaf(0, 1);
	leaf(1, 2);
	memcpy(two, digest, sizeof(two));
	vv_digest_xxh3(two, sizeof(two), &grain); /* a grain of 32 bytes that holds what a node is made of */
	for (unsigned h = 1; h <= 3; h++) {
		vv_digest_node(&two[0], &two[1], h, &node[h - 1]);
		CHECK(!vv_digest_equal(&grain, &node[h - 1]));
		CHECK(h == 1 || !vv_digest_equal(&node[0], &node[h - 1]));
	}
	vv_digest_node(&two[1], &two[0], 1, &grain);
	CHECK(!vv_digest_equal(&grain, &node[0]));
}

int main(void)
{
	by_alignment();
	kinds();
	taking_part();
	root();
	domains();
	return 0;
}
