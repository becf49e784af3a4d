/* The four orders of Islam 2012 against lists of bytes made by the words of the header: random files, groups, kin and blocks. */
#include "base/err.h"
#include "base/mem.h"
#include "core/plan/pack_order.h"
#include "support/gen.h"
#include "vv_test.h"
#include <stdbool.h>

enum { FILES = 9, SPANS = 400, BYTES = 60000 };

struct set {
	struct vv_file_span span[SPANS];
	size_t n;
	uint32_t files;
	size_t bytes;
};

struct place { /* of a byte */
	uint32_t span;
	uint64_t at;
};

static struct place want[BYTES], got[BYTES];

static void make(uint64_t *state, struct set *s)
{
	uint32_t kinds = 1 + (uint32_t)gen_below(state, 8);
	uint64_t longest = 1 + gen_below(state, 60);

	*s = (struct set){ .files = (uint32_t)gen_below(state, FILES + 1) };
	for (uint32_t f = 0; f < s->files; f++) {
		size_t n = gen_below(state, 5) ? (size_t)gen_below(state, SPANS / FILES) : 0;
		uint64_t at = 0;

		for (size_t i = 0; i < n; i++) {
			struct vv_file_span *x = &s->span[s->n++];

			*x = (struct vv_file_span){ .file = f, .at = at, .len = gen_below(state, longest + 1) };
			x->kind_id = (uint32_t)gen_below(state, kinds + 1) * (gen_below(state, 4) ? 7 : 1000003);
			at += x->len;
			s->bytes += (size_t)x->len;
		}
	}
}

static size_t put_span(const struct set *s, size_t i, size_t n)
{
	for (uint64_t k = 0; k < s->span[i].len; k++)
		want[n++] = (struct place){ (uint32_t)i, k };
	return n;
}

/* Bytes `from` .. `from + block` of what file f has of the kin, if it has them. */
static size_t put_block(const struct set *s, uint32_t f, bool any, uint32_t kin, uint64_t from, uint64_t block, size_t n)
{
	uint64_t at = 0;

	for (size_t i = 0; i < s->n; i++)
		for (uint64_t k = 0; s->span[i].file == f && (any || s->span[i].kind_id == kin) && k < s->span[i].len; k++, at++)
			if (at >= from && at - from < block)
				want[n++] = (struct place){ (uint32_t)i, k };
	return n;
}

static size_t put_kin(const struct set *s, uint32_t begin, uint32_t end, bool any, uint32_t kin, uint64_t block, size_t n)
{
	bool more = true;

	for (uint64_t from = 0; more; from += block) {
		size_t before = n;

		for (uint32_t f = begin; f < end; f++)
			n = put_block(s, f, any, kin, from, block, n);
		more = n > before;
	}
	return n;
}

static bool appeared(const struct set *s, size_t i, uint32_t begin)
{
	for (size_t k = 0; k < i; k++)
		if (s->span[k].file >= begin && s->span[k].kind_id == s->span[i].kind_id && s->span[k].len)
			return true;
	return false;
}

static size_t put_aware(const struct set *s, uint32_t begin, uint32_t end, uint64_t block, size_t n)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->span[i].file >= begin && s->span[i].file < end && !s->span[i].kind_id)
			n = put_span(s, i, n);
	for (size_t i = 0; i < s->n; i++)
		if (s->span[i].file >= begin && s->span[i].file < end && s->span[i].kind_id && s->span[i].len && !appeared(s, i, begin))
			n = put_kin(s, begin, end, false, s->span[i].kind_id, block, n);
	return n;
}

static size_t brute(enum vv_pack_order scheme, const struct set *s, uint32_t group, uint64_t block)
{
	uint64_t all = BYTES;
	size_t n = 0;

	group = group ? group : s->files + 1;
	for (uint32_t begin = 0; begin < s->files; begin += group) {
		uint32_t end = group < s->files - begin ? begin + group : s->files;

		if (scheme == VV_PACK_ORDER_AGNOSTIC)
			for (uint32_t f = begin; f < end; f++)
				n = put_kin(s, f, f + 1, true, 0, all, n);
		else if (scheme == VV_PACK_ORDER_AGNOSTIC_BLOCK)
			n = put_kin(s, begin, end, true, 0, block, n);
		else if (scheme == VV_PACK_ORDER_AWARE)
			n = put_aware(s, begin, end, all, n);
		else
			n = put_aware(s, begin, end, block, n);
	}
	return n;
}

static size_t walk(enum vv_pack_order scheme, const struct set *s, uint32_t group, uint64_t block)
{
	struct vv_pack_order_iterator *b = NULL;
	struct vv_pack_order_piece x;
	size_t n = 0;

	CHECK_EQ(vv_pack_order_new(scheme, s->span, s->n, group, block, &b), 0);
	while (vv_pack_order_next(b, &x)) {
		CHECK(x.span < s->n && x.len > 0 && x.len <= s->span[x.span].len && x.from <= s->span[x.span].len - x.len);
		for (uint64_t k = 0; k < x.len; k++) {
			CHECK(n < BYTES);
			got[n++] = (struct place){ x.span, x.from + k };
		}
	}
	CHECK(!vv_pack_order_next(b, &x));
	vv_pack_order_free(b);
	return n;
}

static void test_random(void)
{
	static struct set s;
	uint64_t state = 6;

	for (int round = 0; round < 400; round++) {
		uint32_t group = (uint32_t)gen_below(&state, FILES + 3);
		uint64_t block = 1 + gen_below(&state, gen_below(&state, 2) ? 9 : 300);

		make(&state, &s);
		for (int scheme = VV_PACK_ORDER_AGNOSTIC; scheme <= VV_PACK_ORDER_AWARE_BLOCK; scheme++) {
			size_t n = brute((enum vv_pack_order)scheme, &s, group, block);

			CHECK_EQ(n, s.bytes);
			CHECK_EQ(walk((enum vv_pack_order)scheme, &s, group, block), n);
			for (size_t i = 0; i < n; i++)
				CHECK(want[i].span == got[i].span && want[i].at == got[i].at);
		}
	}
}

/* The paper's figure 4: T and P of two ranks. */
static void test_figure(void)
{
	static const struct vv_file_span span[] = {
		{ 0, 0, 0, 10 }, { 0, 5, 10, 4 }, { 0, 9, 14, 6 }, { 1, 0, 0, 10 }, { 1, 9, 10, 2 }, { 1, 5, 12, 5 },
	};
	static const struct vv_pack_order_piece aware[] = { { 0, 0, 10 }, { 3, 0, 10 }, { 1, 0, 4 }, { 5, 0, 5 }, { 2, 0, 6 }, { 4, 0, 2 } };
	static const struct vv_pack_order_piece block[] = {
		{ 0, 0, 10 }, { 3, 0, 10 }, { 1, 0, 3 }, { 5, 0, 3 }, { 1, 3, 1 }, { 5, 3, 2 }, { 2, 0, 3 }, { 4, 0, 2 }, { 2, 3, 3 },
	};
	struct vv_pack_order_iterator *b = NULL;
	struct vv_pack_order_piece x;

	CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AWARE, span, 6, 0, 0, &b), 0);
	for (size_t i = 0; i < sizeof(aware) / sizeof(aware[0]); i++)
		CHECK(vv_pack_order_next(b, &x) && x.span == aware[i].span && x.from == aware[i].from && x.len == aware[i].len);
	CHECK(!vv_pack_order_next(b, &x));
	vv_pack_order_free(b);
	CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AWARE_BLOCK, span, 6, 2, 3, &b), 0);
	for (size_t i = 0; i < sizeof(block) / sizeof(block[0]); i++)
		CHECK(vv_pack_order_next(b, &x) && x.span == block[i].span && x.from == block[i].from && x.len == block[i].len);
	CHECK(!vv_pack_order_next(b, &x));
	vv_pack_order_free(b);
}

/* Many spans in many files take no longer than sorting them; lengths near the end of 64 bits are no more than others. */
static void test_large(void)
{
	enum { N = 400000 };
	struct vv_file_span *span = malloc(N * sizeof(*span));
	struct vv_pack_order_iterator *b = NULL;
	struct vv_pack_order_piece x;
	uint64_t sum = 0;

	CHECK(span);
	for (uint32_t i = 0; i < N; i++)
		span[i] = (struct vv_file_span){ .file = i / 4, .kind_id = i % 4 ? i % 4 : i, .at = i % 4 * 8192, .len = 8192 };
	CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AWARE_BLOCK, span, N, 0, 4096, &b), 0);
	while (vv_pack_order_next(b, &x))
		sum += x.len;
	CHECK_EQ(sum, (uint64_t)N * 8192);
	vv_pack_order_free(b);

	span[0] = (struct vv_file_span){ .file = 0, .kind_id = 1, .at = 0, .len = UINT64_MAX - 10 };
	span[1] = (struct vv_file_span){ .file = 1, .kind_id = 1, .at = 0, .len = 3 };
	CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AWARE_BLOCK, span, 2, 0, 1ull << 63, &b), 0);
	CHECK(vv_pack_order_next(b, &x) && x.span == 0 && x.from == 0 && x.len == 1ull << 63);
	CHECK(vv_pack_order_next(b, &x) && x.span == 1 && x.len == 3);
	CHECK(vv_pack_order_next(b, &x) && x.span == 0 && x.from == 1ull << 63 && x.len == (1ull << 63) - 11);
	CHECK(!vv_pack_order_next(b, &x));
	vv_pack_order_free(b);
	free(span);
}

static void test_refusals(void)
{
	static const struct vv_file_span span[] = { { 0, 1, 0, 5 } };
	struct vv_pack_order_iterator *b = NULL;
	struct vv_pack_order_piece x;

	CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AWARE_BLOCK, span, 1, 0, 0, &b), VV_EINVAL);
	CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AGNOSTIC_BLOCK, span, 1, 0, 0, &b), VV_EINVAL);
	CHECK(b == NULL);
	for (long i = 1; i <= 3; i++) {
		vv_mem_fail_at(i);
		CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AWARE, span, 1, 0, 0, &b), VV_ENOMEM);
		CHECK(b == NULL);
	}
	vv_mem_fail_at(0);
	CHECK_EQ(vv_pack_order_new(VV_PACK_ORDER_AWARE, NULL, 0, 3, 0, &b), 0);
	CHECK(!vv_pack_order_next(b, &x));
	vv_pack_order_free(b);
	vv_pack_order_free(NULL);
}

int main(void)
{
	test_figure();
	test_random();
	test_large();
	test_refusals();
	return 0;
}
