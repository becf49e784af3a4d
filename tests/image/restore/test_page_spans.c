/* Spans of missing pages against an array with one number per page, under random additions, drops, moves and copies. */
#include "base/err.h"
#include "base/mem.h"
#include "image/restore/page_spans.h"
#include "support/dice.h"
#include "vv_test.h"

enum { PAGES = 160, PAGE = 4096, FIRST = 0x10000, ROUNDS = 300, STEPS = 60 };

/* Of each page: one more than its place in the image, in pages; 0: it is not missing. */
struct model {
	uint32_t page[PAGES];
};

static uint64_t address(size_t page)
{
	return FIRST + (uint64_t)page * PAGE;
}

static void check_same(const struct vv_page_spans *s, const struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		CHECK(s->v[i].lo < s->v[i].hi && (i == 0 || s->v[i - 1].hi <= s->v[i].lo));
		n += (size_t)(s->v[i].hi - s->v[i].lo) / PAGE;
	}
	for (size_t i = 0; i < PAGES; i++) {
		uint64_t inside = address(i) + upto(PAGE - 1);
		const struct vv_page_span *x = vv_page_spans_find(s, inside);

		n -= m->page[i] != 0;
		CHECK_EQ(x != NULL, m->page[i] != 0);
		if (x)
			CHECK_EQ((x->at + (address(i) - x->lo)) / PAGE, m->page[i] - 1);
	}
	CHECK_EQ(n, 0);
	CHECK(!vv_page_spans_find(s, FIRST - 1) && !vv_page_spans_find(s, address(PAGES)));
	CHECK(!vv_page_spans_find(s, 0) && !vv_page_spans_find(s, UINT64_MAX));
}

static void fill(struct vv_page_spans *s, struct model *m)
{
	size_t at = 0, image = 1 + upto(1000);

	*m = (struct model){{0}};
	for (size_t len; at < PAGES; at += len) {
		len = 1 + upto(12);
		len = len < PAGES - at ? len : PAGES - at;
		if (upto(2) == 0)
			continue;
		CHECK_EQ(vv_page_spans_add(
				 s, (struct vv_page_span){address(at), address(at + len), (uint64_t)image * PAGE}),
			 0);
		for (size_t i = 0; i < len; i++)
			m->page[at + i] = (uint32_t)(image + i + 1);
		image += len + upto(1);
	}
}

/* What is not behind all others, or has no bytes, is refused, and changes nothing. */
static void test_refused(struct vv_page_spans *s, const struct model *m)
{
	const struct vv_page_span bad[] = {
		{address(3), address(3), 0}, {address(4), address(3), 0}, {FIRST - PAGE, FIRST, 0}};
	size_t n = s->n;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bad[i].lo >= bad[i].hi || n)
			CHECK_EQ(vv_page_spans_add(s, bad[i]), VV_EINVAL);
	if (n)
		CHECK_EQ(vv_page_spans_add(s, (struct vv_page_span){s->v[n - 1].hi - PAGE, s->v[n - 1].hi + PAGE, 0}),
			 VV_EINVAL);
	CHECK_EQ(s->n, n);
	check_same(s, m);
}

static int drop(struct vv_page_spans *s, struct model *m, size_t lo, size_t hi)
{
	int rc = vv_page_spans_drop(s, address(lo), address(hi));

	for (size_t i = lo; rc == 0 && i < hi; i++)
		m->page[i] = 0;
	return rc;
}

static int move(struct vv_page_spans *s, struct model *m, size_t from, size_t to, size_t len)
{
	int rc = vv_page_spans_move(s, address(from), address(to), (uint64_t)len * PAGE);
	struct model was = *m;

	for (size_t i = 0; rc == 0 && i < len; i++)
		m->page[from + i] = 0;
	for (size_t i = 0; rc == 0 && i < len; i++)
		m->page[to + i] = was.page[from + i];
	return rc;
}

static int step(struct vv_page_spans *s, struct model *m)
{
	size_t a = upto(PAGES), b = upto(PAGES), len = upto(PAGES - (a > b ? a : b));

	return upto(1) ? drop(s, m, a < b ? a : b, a < b ? b : a) : move(s, m, a, b, upto(1) ? len : len < 8 ? len : 8);
}

static void test_random(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct vv_page_spans s = {0}, copy;
		struct model m, then;

		fill(&s, &m);
		test_refused(&s, &m);
		CHECK_EQ(vv_page_spans_copy(&s, &copy), 0);
		then = m;
		for (int i = 0; i < STEPS && s.n; i++) {
			CHECK_EQ(step(&s, &m), 0);
			check_same(&s, &m);
		}
		check_same(&copy, &then); /* it is one of its own */
		vv_page_spans_fini(&s);
		vv_page_spans_fini(&copy);
		CHECK(!s.v && !s.n);
	}
}

/* Addresses at both ends of what there can be. */
static void test_ends(void)
{
	struct vv_page_spans s = {0};

	CHECK_EQ(vv_page_spans_add(&s, (struct vv_page_span){0, PAGE, 7 * PAGE}), 0);
	CHECK_EQ(vv_page_spans_add(&s, (struct vv_page_span){UINT64_MAX - PAGE, UINT64_MAX, 0}), 0);
	CHECK(vv_page_spans_find(&s, 0) == &s.v[0] && vv_page_spans_find(&s, UINT64_MAX - 1) == &s.v[1]);
	CHECK_EQ(vv_page_spans_drop(&s, PAGE, UINT64_MAX - PAGE), 0);
	CHECK_EQ(s.n, 2);
	CHECK_EQ(vv_page_spans_drop(&s, 0, UINT64_MAX), 0);
	CHECK_EQ(s.n, 0);
	CHECK_EQ(vv_page_spans_drop(&s, 0, UINT64_MAX), 0);
	CHECK_EQ(vv_page_spans_move(&s, 0, PAGE, PAGE), 0);
	vv_page_spans_fini(&s);
}

/* Whichever allocation fails: a copy comes to nothing, and a drop has dropped nothing. */
static void test_no_memory(void)
{
	for (int round = 0; round < 40; round++) {
		struct vv_page_spans s = {0}, copy;
		struct model m;
		int rc = VV_ENOMEM;

		fill(&s, &m);
		for (long at = 1; rc; at++) {
			vv_mem_fail_at(at);
			rc = vv_page_spans_copy(&s, &copy);
			CHECK(rc == 0 || (rc == VV_ENOMEM && !copy.v && !copy.n));
		}
		vv_page_spans_fini(&copy);
		for (int i = 0; i < 10; i++) {
			size_t lo = upto(PAGES), hi = upto(PAGES);

			vv_mem_fail_at(1 + (long)upto(1));
			rc = lo < hi ? drop(&s, &m, lo, hi) : 0;
			CHECK(rc == 0 || rc == VV_ENOMEM);
			check_same(&s, &m);
		}
		vv_mem_fail_at(0);
		vv_page_spans_fini(&s);
	}
}

int main(void)
{
	test_random();
	test_ends();
	test_no_memory();
	return 0;
}
