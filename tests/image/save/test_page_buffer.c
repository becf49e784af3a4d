/* A buffer of pages against a byte per page: no page is lent twice, none is lost, and each file finds its bytes where they were put. */
#include "base/mem.h"
#include "base/err.h"
#include "image/save/page_buffer.h"
#include "support/dice.h"
#include "vv_test.h"
#include <stdbool.h>

enum { PAGE = 4096, PAGES = 96, FILES = 3, ROUNDS = 150, STEPS = 120, LENT = 200 };

struct lent {
	size_t from, n;
};

struct model {
	bool used[PAGES];
	struct lent lent[LENT];
	size_t n_lent;
	size_t n_used;
};

static void use(struct model *m, size_t from, size_t n, bool used)
{
	CHECK(from % PAGE == 0 && n % PAGE == 0 && from + n <= PAGES * PAGE);
	for (size_t i = from / PAGE; i < (from + n) / PAGE; i++) {
		CHECK(m->used[i] != used);
		m->used[i] = used;
	}
	m->n_used += used ? n / PAGE : -(n / PAGE);
}

/* Free pages are in the gaps, each in one of them, and no other page is. */
static void check_gaps(const struct vv_page_buffer *r, const struct model *m)
{
	bool in_gap[PAGES] = {false};

	CHECK(r->n_gaps > 0);
	for (size_t g = 0; g < r->n_gaps; g++)
		for (size_t i = r->gap[g].from / PAGE; i < (r->gap[g].from + r->gap[g].n) / PAGE; i++) {
			CHECK(!in_gap[i]);
			in_gap[i] = true;
		}
	for (size_t i = 0; i < PAGES; i++)
		CHECK(in_gap[i] != m->used[i]);
}

static void borrow(struct vv_page_buffer *r, struct model *m)
{
	const struct vv_page_buffer_gap *g = vv_page_buffer_find(r);
	struct lent x;

	CHECK_EQ(g->n == 0, m->n_used == PAGES);
	if (!g->n || m->n_lent == LENT)
		return;
	x = (struct lent){g->from, (1 + upto(g->n / PAGE - 1)) * PAGE};
	vv_page_buffer_take(r, x.n);
	use(m, x.from, x.n, true);
	memset(r->pages + x.from, (int)(1 + x.from / PAGE), x.n);
	m->lent[m->n_lent++] = x;
}

static void give_back(struct vv_page_buffer *r, struct model *m)
{
	size_t i = upto(m->n_lent - 1);
	struct lent x = m->lent[i];
	size_t n = upto(1) ? x.n : (1 + upto(x.n / PAGE - 1)) * PAGE; /* its first pages */

	for (size_t k = 0; k < x.n; k++)
		CHECK_EQ(r->pages[x.from + k], (uint8_t)(1 + x.from / PAGE));
	CHECK_EQ(vv_page_buffer_give(r, x.from, n), 0);
	use(m, x.from, n, false);
	m->lent[i] = m->lent[--m->n_lent];
	if (n < x.n) {
		m->lent[m->n_lent++] = (struct lent){x.from + n, x.n - n};
		memset(r->pages + x.from + n, (int)(1 + (x.from + n) / PAGE), x.n - n);
	}
}

static void test_gaps(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct model m = {.n_used = 0};
		struct vv_page_buffer r;
		size_t used = upto(PAGES);

		CHECK_EQ(vv_page_buffer_open(&r, PAGES * PAGE, upto(2 * PAGES) * PAGE), 0);
		check_gaps(&r, &m);
		for (int i = 0; i < STEPS; i++) {
			if (m.n_lent && upto(1))
				give_back(&r, &m);
			else
				borrow(&r, &m);
			check_gaps(&r, &m);
		}
		vv_page_buffer_reset(&r, used * PAGE);
		m = (struct model){.n_used = 0};
		use(&m, 0, used * PAGE, true);
		check_gaps(&r, &m);
		vv_page_buffer_close(&r);
		vv_page_buffer_close(&r);
	}
}

/* Bytes of several files, put wherever there is room: each byte of a file is found once, at its place. */
static void test_files(void)
{
	static uint8_t room[1 << 16], want[FILES][1 << 16];

	for (int round = 0; round < ROUNDS; round++) {
		struct vv_page_buffer_file file[FILES] = {{0}};
		size_t len[FILES] = {0}, n;

		noise(room, sizeof(room));
		for (size_t from = 0; from < sizeof(room); from += n) {
			size_t f = upto(FILES - 1);

			n = 1 + upto(2000);
			n = n < sizeof(room) - from ? n : sizeof(room) - from;
			if (upto(4) == 0)
				continue;
			CHECK_EQ(vv_page_buffer_add(&file[f], len[f], from, n), 0);
			memcpy(want[f] + len[f], room + from, n);
			len[f] += n;
		}
		for (size_t f = 0; f < FILES; f++) {
			uint64_t at = 0;

			for (size_t i = 0; i < file[f].n; i++) {
				const struct vv_page_buffer_stretch *x = &file[f].stretch[i];

				CHECK_EQ(x->at, at);
				CHECK(memcmp(room + x->from, want[f] + at, x->n) == 0);
				CHECK(i == 0 || x[-1].from + x[-1].n != x->from);
				at += x->n;
			}
			CHECK_EQ(at, len[f]);
			vv_page_buffer_file_fini(&file[f]);
		}
	}
}

static void test_no_memory(void)
{
	struct vv_page_buffer_file file = {0};
	struct vv_page_buffer r;
	int rc = VV_ENOMEM;

	for (long at = 1; rc; at++) {
		vv_mem_fail_at(at);
		rc = vv_page_buffer_open(&r, PAGES * PAGE, 0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		if (rc)
			vv_page_buffer_close(&r);
	}
	vv_mem_fail_at(1);
	CHECK_EQ(vv_page_buffer_add(&file, 0, 0, PAGE), VV_ENOMEM);
	vv_mem_fail_at(0);
	CHECK_EQ(file.n, 0);
	vv_page_buffer_close(&r);
}

int main(void)
{
	test_gaps();
	test_files();
	test_no_memory();
	return 0;
}
