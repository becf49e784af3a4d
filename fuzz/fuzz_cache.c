/* The input as the cache of a lineage's index, and as the directory of a bundle: as it is, and with a right check. A cache is used or it is damaged; of a directory
 * that is taken, no member lies outside of the file. */
#include "base/err.h"
#include "base/log.h"
#include "base/wire.h"
#include "core/format/bundle.h"
#include "core/format/digest.h"
#include "engine/write/index_cache.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 40 }; /* of a cache: magic, version, kind, lineage, what it covers */

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static struct vv_lineage *lineage(void)
{
	static struct vv_store *store;
	static struct vv_lineage lin;

	if (!store) {
		insist(vv_store_open("mem:fuzz", &(struct vv_store_options){ 0 }, &store) == 0);
		insist(vv_catalog_open(store, "a", true, &lin) == 0);
		memset(lin.id, 7, sizeof(lin.id));
	}
	return &lin;
}

static void look(const uint8_t *p, size_t n)
{
	char object[VV_NAME_MAX];
	int rc;

	vv_name_index(object, lineage()->name, 0);
	insist(vv_store_put(lineage()->store, object, p, n) == 0);
	rc = vv_index_cache_check(lineage(), 0);
	insist(rc == 0 || rc == VV_EDAMAGED || rc == VV_ENOMEM || rc == VV_EINVAL);
}

/* The input is what follows the head. */
static void look_inside(const uint8_t *p, size_t n)
{
	static const char magic[8] = { 'V', 'A', 'R', 'V', 'E', 'I', 'D', 'X' };
	struct vv_buf b = { 0 };

	vv_buf_add(&b, magic, sizeof(magic));
	vv_wire_put_u64(&b, 1); /* version 1, the digest's kind and the rest 0 */
	vv_buf_add(&b, lineage()->id, sizeof(lineage()->id));
	vv_wire_put_u64(&b, 1000);
	insist(b.n == HEAD);
	vv_buf_add(&b, p, n);
	vv_wire_put_u64(&b, vv_digest_check(b.p, b.n));
	insist(vv_buf_check(&b) == 0);
	look(b.p, b.n);
	vv_buf_fini(&b);
}

/* Where the directory begins (u16, in pages), how many members there are (u8), and the entries. */
static void as_bundle(const uint8_t *p, size_t n)
{
	enum { HEAD_OF_DIR = 3 };
	uint8_t dir[VV_BUNDLE_PAGE - VV_BUNDLE_TRAILER] = { 0 };
	struct vv_bundle_trailer t = { .dir_len = VV_BUNDLE_PAGE };
	struct vv_bundle b = { .epoch = 1, .first = 0, .last = 9 };

	if (n < HEAD_OF_DIR || n - HEAD_OF_DIR > sizeof(dir))
		return;
	memcpy(dir, p + HEAD_OF_DIR, n - HEAD_OF_DIR);
	t.dir_off = (uint64_t)(p[0] | p[1] << 8) * VV_BUNDLE_PAGE;
	t.n = p[2] + 1u;
	t.check = vv_digest_check(dir, sizeof(dir));
	if (vv_bundle_get(&b, &t, dir) == 0)
		for (size_t i = 0; i < b.n; i++)
			insist(b.v[i].off <= t.dir_off && b.v[i].len <= t.dir_off - b.v[i].off);
	vv_bundle_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	look(data, size);
	look_inside(data, size);
	as_bundle(data, size);
	return 0;
}
