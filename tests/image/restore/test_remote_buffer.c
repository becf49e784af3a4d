/* Images whose bytes come from other ranks, against an array of one letter per page: absent, asked for, there. */
#include "image/restore/remote_buffer.h"
#include "support/dice.h"
#include "vv_test.h"
#include <unistd.h>

enum { MOST = 40, ROUNDS = 400, STEPS = 60 };
enum letter { ABSENT, ASKED, THERE };

static size_t page;

struct model {
	enum letter of[MOST];
	bool heard; /* something new was asked for */
	uint64_t len;
	size_t n;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t count_there(const struct model *m, uint64_t at)
{
	uint64_t end = at;

	while (end < m->len && m->of[end / page] == THERE)
		end = least((end / page + 1) * page, m->len);
	return end - at;
}

static uint64_t find_there(const struct model *m, uint64_t at, uint64_t end)
{
	while (at < end && m->of[at / page] != THERE)
		at = (at / page + 1) * page;
	return least(at, end);
}

static void check_looks(const struct vv_remote_buffer *h, const struct model *m)
{
	for (int i = 0; i < 20; i++) {
		uint64_t at = upto(m->len), end = at + upto(m->len - at);

		if (at < m->len)
			CHECK_EQ(vv_remote_buffer_has(h, at), count_there(m, at));
		CHECK_EQ(vv_remote_buffer_find(h, at, end), find_there(m, at, end));
	}
}

/* All that is wanted, in the stretches that it is told in: each wanted page once, and no other. */
static void check_next(const struct vv_remote_buffer *h, const struct model *m, bool asked)
{
	uint64_t most = 1 + upto(6 * page), at = 0, from, len;
	bool told[MOST] = {false};

	while ((len = vv_remote_buffer_next(h, at, most, asked, &from)) > 0) {
		CHECK(from >= at && from % page == 0 && len <= most + page && from + len <= m->len);
		CHECK(from + len == m->len || len % page == 0);
		for (uint64_t i = from / page; i * page < from + len; i++)
			told[i] = true;
		at = from + len;
	}
	for (size_t i = 0; i < m->n; i++)
		CHECK_EQ(told[i], m->of[i] == (asked ? ASKED : ABSENT));
}

static void step(struct vv_remote_buffer *h, struct model *m)
{
	uint64_t at = upto(m->len), len = upto(m->len - at);
	bool ask = upto(2) > 0;

	if (!ask || upto(1)) /* whole pages come, but for the last */
		at = at / page * page;
	if (upto(1))
		len = len / page * page;
	if (ask)
		vv_remote_buffer_request(h, at, len);
	else
		vv_remote_buffer_put(h, at, len);
	for (uint64_t i = at / page; i * page < at + len; i++) {
		m->heard |= ask && m->of[i] == ABSENT;
		m->of[i] = !ask ? THERE : m->of[i] == ABSENT ? ASKED : m->of[i];
	}
}

static void test_random(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct model m = {.len = upto(MOST * page)};
		struct vv_remote_buffer h;

		m.n = (size_t)((m.len + page - 1) / page);
		CHECK_EQ(vv_remote_buffer_init(&h, m.len), 0);
		CHECK_EQ(h.pages, m.n);
		for (int i = 0; i < STEPS && m.len; i++) {
			step(&h, &m);
			check_looks(&h, &m);
			check_next(&h, &m, true);
			check_next(&h, &m, false);
			if (upto(3) == 0) {
				CHECK_EQ(vv_remote_buffer_take_request(&h), m.heard);
				m.heard = false;
				CHECK(!vv_remote_buffer_take_request(&h));
			}
		}
		vv_remote_buffer_fini(&h);
		vv_remote_buffer_fini(&h);
	}
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	test_random();
	return 0;
}
