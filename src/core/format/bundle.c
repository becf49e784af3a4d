/* The directory of a bundle. Members given by a writer and members read from a file obey the same
 * rules. They are layers of the bundle's own epoch and ranks, ascending, on pages of their own. */
#include "core/format/bundle.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/wire.h"
#include "core/format/digest.h"
#include "core/format/name.h"
#include <inttypes.h>
#include <string.h>

static const char magic[8] = { 'V', 'A', 'R', 'V', 'E', 'B', 'D', 'L' };

enum { VERSION = 1, NAME_CAP = 64 };

static uint64_t page_up(uint64_t n)
{
	return (n + VV_BUNDLE_PAGE - 1) / VV_BUNDLE_PAGE * VV_BUNDLE_PAGE;
}

void vv_bundle_fini(struct vv_bundle *b)
{
	vv_mem_free(b->v);
	*b = (struct vv_bundle){ 0 };
}

uint64_t vv_bundle_end(const struct vv_bundle *b)
{
	return b->n ? page_up(b->v[b->n - 1].off + b->v[b->n - 1].len) : 0;
}

/* Adds one member, for which there is room, if it fits behind the others; otherwise returns the
 * error `code`. */
static int add(struct vv_bundle *b, const struct vv_member *m, int code)
{
	uint64_t epoch = 0;
	uint32_t rank = 0;

	if (vv_name_parse(m->name, &epoch, &rank) != VV_NAME_IS_LAYER || epoch != b->epoch || rank < b->first ||
	    rank > b->last)
		return vv_err_set(code, "directory: '%.*s' is no layer of epoch %" PRIu64 ", ranks %" PRIu32 " to %" PRIu32,
				  NAME_CAP, m->name, b->epoch, b->first, b->last);
	if (b->n && rank <= b->v[b->n - 1].rank)
		return vv_err_set(code, "directory: '%s' is not in the order of ranks", m->name);
	if (m->off % VV_BUNDLE_PAGE || m->off < vv_bundle_end(b) || m->off > INT64_MAX / 2)
		return vv_err_set(code, "directory: '%s' cannot begin at %" PRIu64, m->name, m->off);
	if (m->len < 1 || m->len > INT64_MAX / 2)
		return vv_err_set(code, "directory: '%s' cannot have %" PRIu64 " bytes", m->name, m->len);
	b->v[b->n++] = (struct vv_bundle_entry){ rank, m->off, m->len };
	return 0;
}

static int make_room(struct vv_bundle *b, size_t n)
{
	vv_mem_free(b->v);
	b->n = 0;
	b->v = vv_mem_new(n, sizeof(*b->v));
	return b->v ? 0 : VV_ENOMEM;
}

int vv_bundle_set(struct vv_bundle *b, const struct vv_member *m, size_t n)
{
	int rc;

	if (n < 1 || n > VV_BUNDLE_MEMBERS)
		return vv_err_set(VV_EINVAL, "directory: a bundle has 1 to %d members, not %zu", VV_BUNDLE_MEMBERS, n);
	rc = make_room(b, n);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = add(b, &m[i], VV_EINVAL);
	return rc;
}

static void put_entry(const struct vv_bundle *b, const struct vv_bundle_entry *e, struct vv_buf *out)
{
	char name[VV_NAME_MAX];

	vv_name_layer(name, "", b->epoch, e->rank);
	vv_wire_put_u64(out, e->off);
	vv_wire_put_u64(out, e->len);
	vv_wire_put_str(out, strrchr(name, '/') + 1);
}

int vv_bundle_put(const struct vv_bundle *b, struct vv_buf *out)
{
	size_t start = out->n, fill, len;
	uint8_t *zero;

	for (size_t i = 0; i < b->n; i++)
		put_entry(b, &b->v[i], out);
	len = (size_t)page_up(out->n - start + VV_BUNDLE_TRAILER);
	fill = len - VV_BUNDLE_TRAILER - (out->n - start);
	zero = vv_buf_room(out, fill + VV_BUNDLE_TRAILER + len);
	if (!zero)
		return vv_buf_check(out);
	memset(zero, 0, fill);
	out->n += fill;
	vv_wire_put_u64(out, vv_bundle_end(b));
	vv_wire_put_u64(out, len);
	vv_wire_put_u64(out, vv_digest_check(out->p + start, len - VV_BUNDLE_TRAILER));
	vv_wire_put_u32(out, (uint32_t)b->n);
	vv_wire_put_u16(out, VERSION);
	vv_wire_put_u16(out, 0);
	vv_buf_add(out, magic, sizeof(magic));
	vv_wire_put_u64(out, vv_digest_check(out->p + start + len - VV_BUNDLE_TRAILER, VV_BUNDLE_TRAILER - 8));
	/* in the room reserved above: the buffer does not move */
	vv_buf_add(out, out->p + start, len);
	return vv_buf_check(out);
}

int vv_bundle_get_trailer(struct vv_bundle_trailer *t, const uint8_t trailer[VV_BUNDLE_TRAILER], uint64_t file_len)
{
	struct vv_wire w = vv_wire_over(trailer, VV_BUNDLE_TRAILER);
	unsigned version, flags;

	t->dir_off = vv_wire_u64(&w);
	t->dir_len = vv_wire_u64(&w);
	t->check = vv_wire_u64(&w);
	t->n = vv_wire_u32(&w);
	version = vv_wire_u16(&w);
	flags = vv_wire_u16(&w);
	if (memcmp(vv_wire_bytes(&w, 8), magic, 8) != 0)
		return vv_err_set(VV_EDAMAGED, "trailer: not a varve bundle");
	if (vv_wire_u64(&w) != vv_digest_check(trailer, VV_BUNDLE_TRAILER - 8))
		return vv_err_set(VV_EDAMAGED, "trailer: checksum mismatch");
	if (version != VERSION || flags)
		return vv_err_set(VV_EDAMAGED, "trailer: format version %u, this varve reads %d", version, VERSION);
	if (t->n < 1 || t->n > VV_BUNDLE_MEMBERS || t->dir_len > VV_BUNDLE_DIR_MAX || t->dir_len % VV_BUNDLE_PAGE ||
	    t->dir_len < VV_BUNDLE_PAGE || file_len < 2 * t->dir_len || t->dir_off != file_len - 2 * t->dir_len)
		return vv_err_set(VV_EDAMAGED, "trailer: %" PRIu32 " members and a directory of %" PRIu64 " bytes at %" PRIu64
				  " are not possible in a file of %" PRIu64, t->n, t->dir_len, t->dir_off, file_len);
	return 0;
}

/* The entries are followed by zeros only, and by no more pages than needed: a directory has one
 * form. */
static bool ends_well(struct vv_wire *w, size_t len)
{
	size_t left = vv_wire_left(w);

	if (page_up(len - left + VV_BUNDLE_TRAILER) != len + VV_BUNDLE_TRAILER)
		return false;
	while (left--)
		if (vv_wire_u8(w))
			return false;
	return true;
}

int vv_bundle_get(struct vv_bundle *b, const struct vv_bundle_trailer *t, const uint8_t *dir)
{
	size_t len = (size_t)t->dir_len - VV_BUNDLE_TRAILER;
	struct vv_wire w = vv_wire_over(dir, len);
	int rc;

	if (vv_digest_check(dir, len) != t->check)
		return vv_err_set(VV_EDAMAGED, "directory: checksum mismatch");
	if (t->n > len / 17) /* two numbers and a name each */
		return vv_err_set(VV_EDAMAGED, "directory: too short for %" PRIu32 " members", t->n);
	rc = make_room(b, t->n);
	for (uint32_t i = 0; rc == 0 && i < t->n; i++) {
		char name[NAME_CAP];
		struct vv_member m = { .name = name };

		m.off = vv_wire_u64(&w);
		m.len = vv_wire_u64(&w);
		vv_wire_str(&w, name, sizeof(name));
		rc = w.bad ? vv_err_set(VV_EDAMAGED, "directory: ends too early") : add(b, &m, VV_EDAMAGED);
	}
	if (rc == 0 && (!ends_well(&w, len) || vv_bundle_end(b) != t->dir_off))
		rc = vv_err_set(VV_EDAMAGED, "directory: does not fit the file");
	return rc;
}

const struct vv_bundle_entry *vv_bundle_find(const struct vv_bundle *b, uint32_t rank)
{
	size_t i;

	VV_SEARCH(i, 0, b->n, b->v[i].rank < rank);
	return i < b->n && b->v[i].rank == rank ? &b->v[i] : NULL;
}
