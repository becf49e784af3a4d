/* pagemap-PID.img as versions of CRIU write it: which entries have pages in the image, where, and which files make no sense. */
#include "base/err.h"
#include "base/wire.h"
#include "image/criu/pagemap_image.h"
#include "reader/criu_entries.h"
#include "support/proto.h"
#include "vv_test.h"
#include <unistd.h>

enum { ADDRESS = 1, PAGES_32 = 2, IN_PARENT = 3, FLAGS = 4, PAGES = 5, PARENT = 1, LAZY = 2, PRESENT = 4 };

static uint64_t page;

static void begin(struct vv_buf *b, uint32_t magic, uint64_t id)
{
	struct vv_buf m = { 0 };

	proto_magic(b, magic);
	proto_number(&m, 1, id);
	proto_entry(b, &m);
}

/* An entry of 2 pages, with one more field, or none: 0. */
static void put(struct vv_buf *b, uint64_t address, unsigned count_field, unsigned field, uint64_t value)
{
	struct vv_buf m = { 0 };

	proto_number(&m, ADDRESS, address);
	proto_number(&m, count_field, 2);
	if (field)
		proto_number(&m, field, value);
	proto_entry(b, &m);
}

static void read_all_kinds(void)
{
	struct vv_pagemap_image m;
	struct vv_buf b = { 0 };

	begin(&b, VV_CRIU_PAGEMAP, 7);
	put(&b, 10 * page, PAGES_32, 0, 0); /* the oldest: no flags, in the image */
	put(&b, 20 * page, PAGES_32, IN_PARENT, 1);
	put(&b, 30 * page, PAGES_32, FLAGS, PARENT);
	put(&b, 40 * page, PAGES, FLAGS, 0);
	put(&b, 50 * page, PAGES, FLAGS, PRESENT);
	put(&b, 60 * page, PAGES, FLAGS, PRESENT | LAZY);
	CHECK_EQ(vv_pagemap_image_read(b.p, b.n, &m), 0);
	CHECK_EQ(m.pages, 7);
	CHECK_EQ(m.n, 3);
	for (size_t i = 0; i < m.n; i++) {
		CHECK_EQ(m.v[i].len, 2 * page);
		CHECK_EQ(m.v[i].at, i * 2 * page);
		CHECK_EQ(m.v[i].lazy, i == 2);
	}
	CHECK_EQ(m.v[0].addr, 10 * page);
	CHECK_EQ(m.v[1].addr, 50 * page);
	CHECK_EQ(m.v[2].addr, 60 * page);
	vv_pagemap_image_fini(&m);
	for (size_t n = 0; n < b.n; n++) { /* cut short: what is left is whole entries, or an error */
		int rc = vv_pagemap_image_read(b.p, n, &m);

		CHECK(rc == 0 ? m.pages == 7 : rc == VV_EDAMAGED && !m.v);
		vv_pagemap_image_fini(&m);
	}
	vv_buf_fini(&b);
}

static void refuse(uint32_t magic, uint64_t id, uint64_t first, uint64_t second)
{
	struct vv_pagemap_image m;
	struct vv_buf b = { 0 };

	begin(&b, magic, id);
	put(&b, first, PAGES_32, 0, 0);
	put(&b, second, PAGES_32, 0, 0);
	CHECK_EQ(vv_pagemap_image_read(b.p, b.n, &m), VV_EDAMAGED);
	vv_buf_fini(&b);
}

int main(void)
{
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	read_all_kinds();
	refuse(VV_CRIU_PSTREE, 7, page, 8 * page);     /* another image */
	refuse(VV_CRIU_PAGEMAP, 0, page, 8 * page);    /* no number */
	refuse(VV_CRIU_PAGEMAP, 7, page, 2 * page);    /* overlap */
	refuse(VV_CRIU_PAGEMAP, 7, 8 * page, page);    /* descending */
	refuse(VV_CRIU_PAGEMAP, 7, page, 8 * page + 1); /* not a page's address */
	return 0;
}
