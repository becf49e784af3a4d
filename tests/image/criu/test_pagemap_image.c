/* Maps of pages, random ones against the list that they were made of, and damaged ones: cut short at every byte, with every bit flipped, with entries that
 * overlap, run over the end of memory, or claim more than there can be. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include "image/criu/pagemap_image.h"
#include "support/dice.h"
#include "support/proto.h"
#include "vv_test.h"
#include <unistd.h>

enum {
	MAGIC = 0x56084025,
	ADDR = 1,
	COUNT = 2,
	IN_PARENT = 3,
	FLAGS = 4,
	COUNT_WIDE = 5,
	PARENT = 1,
	LAZY = 2,
	PRESENT = 4,
	MOST = 40
};

static uint64_t page;

static void begin(struct vv_buf *b, uint64_t pages)
{
	struct vv_buf head = {0};

	*b = (struct vv_buf){0};
	proto_magic(b, MAGIC);
	proto_number(&head, 1, pages);
	proto_entry(b, &head);
}

static void add(struct vv_buf *b, uint64_t addr, uint64_t count, uint64_t flags)
{
	struct vv_buf e = {0};

	proto_number(&e, ADDR, addr);
	proto_number(&e, COUNT, count);
	proto_number(&e, FLAGS, flags);
	proto_entry(b, &e);
}

/* Whatever is taken for a map has entries of whole pages, ascending, one behind the other in the image. */
static int read_sound(const uint8_t *p, size_t n, struct vv_pagemap_image *m)
{
	uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees who reads beyond the end */
	uint64_t end = 0, len = 0;
	int rc;

	CHECK(exact);
	if (n)
		memcpy(exact, p, n);
	rc = vv_pagemap_image_read(exact, n, m);
	free(exact);
	CHECK(rc == 0 || rc == VV_EDAMAGED);
	CHECK(rc ? !m->v && !m->n && !m->len : m->pages != 0);
	for (size_t i = 0; i < m->n; i++) {
		const struct vv_pagemap_image_entry *e = &m->v[i];

		CHECK(e->len && e->len % page == 0 && e->addr % page == 0 && e->addr >= end &&
		      e->addr <= UINT64_MAX - e->len);
		CHECK_EQ(e->at, len);
		end = e->addr + e->len;
		len += e->len;
	}
	CHECK_EQ(len, m->len);
	CHECK(len <= VV_MAX_REGION_BYTES);
	return rc;
}

static int read_and_drop(const struct vv_buf *b)
{
	struct vv_pagemap_image m;
	int rc = read_sound(b->p, b->n, &m);

	vv_pagemap_image_fini(&m);
	return rc;
}

/* The ways in which versions of criu say how many pages there are, and that they lie in the parent. */
static void add_some_way(struct vv_buf *b, uint64_t addr, uint64_t count, bool present, bool lazy)
{
	struct vv_buf e = {0};
	bool old = !lazy && upto(2) == 0, wide = upto(1), both = upto(1);

	proto_number(&e, ADDR, addr);
	if (!wide || both)
		proto_number(&e, COUNT, wide ? (both ? 1 : 0) : count);
	if (old && (!present || upto(1)))
		proto_number(&e, IN_PARENT, !present);
	if (wide)
		proto_number(&e, COUNT_WIDE, count);
	if (!old)
		proto_number(&e, FLAGS, present ? (uint64_t)PRESENT | (lazy ? (uint64_t)LAZY : 0) : (uint64_t)PARENT);
	if (upto(3) == 0)
		proto_bytes(&e, 9, "later", 5); /* that nobody knows yet */
	proto_entry(b, &e);
}

static void test_random(void)
{
	for (int round = 0; round < 500; round++) {
		struct vv_pagemap_image_entry want[MOST];
		struct vv_pagemap_image m;
		struct vv_buf b;
		uint64_t addr = 0, at = 0, pages = 1 + upto(1 << 20);
		size_t n = 0, all = upto(MOST);

		begin(&b, pages);
		for (size_t i = 0; i < all; i++) {
			uint64_t count = 1 + upto(upto(9) ? 50 : 1 << 20);
			bool present = upto(3) > 0, lazy = present && upto(1);

			addr += upto(2) * page * upto(1000);
			add_some_way(&b, addr, count, present, lazy);
			if (present) {
				want[n++] = (struct vv_pagemap_image_entry){addr, count * page, at, lazy};
				at += count * page;
			}
			addr += count * page;
		}
		CHECK_EQ(read_sound(b.p, b.n, &m), 0);
		CHECK(m.pages == pages && m.n == n && m.len == at);
		for (size_t i = 0; i < n; i++)
			CHECK(m.v[i].addr == want[i].addr && m.v[i].len == want[i].len && m.v[i].at == want[i].at &&
			      m.v[i].lazy == want[i].lazy);
		vv_pagemap_image_fini(&m);
		vv_buf_fini(&b);
	}
}

static void test_damaged(void)
{
	struct vv_buf b;
	size_t end[6], n = 0;

	begin(&b, 3);
	end[n++] = b.n;
	for (uint64_t i = 0; i < 4; i++) {
		add(&b, 0x7f0000000000 + i * 100 * page, 1 + i * 30, PRESENT | (i & 1 ? LAZY : 0));
		end[n++] = b.n;
	}
	for (size_t i = 0; i <= b.n; i++) {
		struct vv_pagemap_image m;
		size_t whole = 0;

		while (whole < n && end[whole] != i)
			whole++;
		CHECK_EQ(read_sound(b.p, i, &m),
			 whole < n ? 0 : VV_EDAMAGED); /* at the end of an entry nobody can tell */
		CHECK_EQ(m.n, whole < n ? whole : 0);
		vv_pagemap_image_fini(&m);
	}
	for (size_t i = 0; i < b.n; i++)
		for (int flip = 1; flip < 256; flip++) {
			b.p[i] ^= (uint8_t)flip;
			read_and_drop(&b);
			b.p[i] ^= (uint8_t)flip;
		}
	vv_buf_fini(&b);
}

static void test_hostile(void)
{
	const uint64_t most = VV_MAX_REGION_BYTES / page;
	const struct {
		uint64_t addr[2], count[2];
		bool good;
	} cases[] = {
		{{0, page}, {1, 1}, true},
		{{0, page}, {2, 1}, false},	    /* they overlap */
		{{page, 0}, {1, 1}, false},	    /* in disorder */
		{{page, page}, {1, 1}, false},	    /* twice the same */
		{{0, page * 8 + 1}, {1, 1}, false}, /* not at a page */
		{{0, page}, {1, 0}, false},	    /* no pages */
		{{0, page}, {1, UINT64_MAX}, false},
		{{0, page}, {1, UINT64_MAX / page}, false},
		{{0, page}, {1, UINT64_MAX / page + 2}, false}, /* one page, modulo 2^64 */
		{{0, page}, {1, most + 1}, false},
		{{0, page}, {1, most}, false}, /* too many together */
		{{0, page}, {1, most - 1}, true},
		{{0, (UINT64_MAX / page) * page}, {1, 1}, false}, /* the last page has no end */
		{{0, (UINT64_MAX / page - 1) * page}, {1, 1}, true},
		{{0, (UINT64_MAX / page - 1) * page}, {1, 2}, false}, /* over the end of memory */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vv_buf b;

		begin(&b, 1);
		add(&b, cases[i].addr[0], cases[i].count[0], PRESENT);
		add(&b, cases[i].addr[1], cases[i].count[1], PRESENT);
		CHECK_EQ(read_and_drop(&b), cases[i].good ? 0 : VV_EDAMAGED);
		vv_buf_fini(&b);
	}
}

static void test_lengths(void)
{
	static const uint32_t lengths[] = {1, 100, 0x7fffffff, 0x80000000, UINT32_MAX - 3, UINT32_MAX};
	struct vv_buf b;

	begin(&b, 0); /* no image has the number 0 */
	CHECK_EQ(read_and_drop(&b), VV_EDAMAGED);
	vv_buf_fini(&b);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		begin(&b, 1);
		vv_wire_put_u32(&b, lengths[i]);
		CHECK_EQ(read_and_drop(&b), VV_EDAMAGED);
		vv_buf_fini(&b);
	}
}

static void test_no_memory(void)
{
	struct vv_pagemap_image m;
	struct vv_buf b;
	int rc = VV_ENOMEM;

	begin(&b, 1);
	for (uint64_t i = 0; i < 100; i++)
		add(&b, 2 * i * page, 1, PRESENT);
	for (long at = 1; rc; at++) {
		vv_mem_fail_at(at);
		rc = vv_pagemap_image_read(b.p, b.n, &m);
		vv_mem_fail_at(0);
		CHECK(rc == 0 || (rc == VV_ENOMEM && !m.v && !m.n));
		CHECK(rc || at > 1);
	}
	CHECK_EQ(m.n, 100);
	vv_pagemap_image_fini(&m);
	vv_buf_fini(&b);
}

int main(void)
{
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	test_random();
	test_damaged();
	test_hostile();
	test_lengths();
	test_no_memory();
	return 0;
}
