/* NumPy's archives: zip files of array files. Stored members are parsed; deflated ones are not. The
 * directory is at the end, as in PKWARE's APPNOTE, 4.3, with the 64-bit extensions. */
#include "base/err.h"
#include "base/mem.h"
#include "reader/npy.h"
#include "reader/peek.h"
#include <string.h>

enum {
	LOCAL = 0x04034b50, LOCAL_BYTES = 30,
	ENTRY = 0x02014b50, ENTRY_BYTES = 46,
	END = 0x06054b50, END_BYTES = 22,
	END64 = 0x06064b50, END64_BYTES = 56,
	LOCATOR64 = 0x07064b50, LOCATOR64_BYTES = 20,
	EXTRA64 = 1,
};

struct npz_member {
	uint64_t at, stored, raw; /* at: of its local header */
	unsigned method;
	char name[256];
};

static uint64_t number(const uint8_t *p, size_t n)
{
	return vv_peek_number(p, n, false);
}

static const uint8_t *find(struct vv_peek *in, uint64_t at, size_t n, uint32_t signature)
{
	const uint8_t *p = vv_peek_at(in, at, n);

	return p && number(p, 4) == signature ? p : NULL;
}

/* Finds the start of the directory and the number of its entries. A comment may follow the end
 * record; NumPy writes none. */
static bool find_directory(struct vv_peek *in, uint64_t *at, uint64_t *n)
{
	uint64_t end = in->f->len < END_BYTES ? 0 : in->f->len - END_BYTES;
	const uint8_t *p = find(in, end, END_BYTES, END);

	if (!p)
		return false;
	*n = number(p + 10, 2);
	*at = number(p + 16, 4);
	if (*n != UINT16_MAX && *at != UINT32_MAX)
		return true;
	p = end < LOCATOR64_BYTES ? NULL : find(in, end - LOCATOR64_BYTES, LOCATOR64_BYTES, LOCATOR64);
	p = p ? find(in, number(p + 8, 8), END64_BYTES, END64) : NULL;
	if (!p)
		return false;
	*n = number(p + 32, 8);
	*at = number(p + 48, 8);
	return true;
}

/* Numbers that do not fit in 32 bits are in an extra field, in this order, and only those. */
static void read_extra(const uint8_t *p, size_t n, struct npz_member *m)
{
	uint64_t *const wide[] = { &m->raw, &m->stored, &m->at };

	while (n >= 4) {
		size_t len = (size_t)number(p + 2, 2), used = 4;

		if (len > n - 4)
			return;
		for (size_t i = 0; number(p, 2) == EXTRA64 && i < 3; i++)
			if (*wide[i] == UINT32_MAX && used + 8 <= 4 + len) {
				*wide[i] = number(p + used, 8);
				used += 8;
			}
		p += 4 + len;
		n -= 4 + len;
	}
}

static bool read_entry(struct vv_peek *in, uint64_t *at, struct npz_member *m)
{
	const uint8_t *p = find(in, *at, ENTRY_BYTES, ENTRY);
	size_t name, extra, comment, kept;

	if (!p)
		return false;
	*m = (struct npz_member){ .method = (unsigned)number(p + 10, 2), .stored = number(p + 20, 4), .raw = number(p + 24, 4), .at = number(p + 42, 4) };
	name = (size_t)number(p + 28, 2);
	extra = (size_t)number(p + 30, 2);
	comment = (size_t)number(p + 32, 2);
	kept = name < sizeof(m->name) - 2 ? name : sizeof(m->name) - 2;
	p = vv_peek_at(in, *at + ENTRY_BYTES, kept);
	if (!p)
		return false;
	m->name[0] = '/';
	memcpy(m->name + 1, p, kept);
	if (kept > 4 && memcmp(m->name + 1 + kept - 4, ".npy", 4) == 0)
		m->name[1 + kept - 4] = 0;
	p = extra <= VV_PEEK_WINDOW ? vv_peek_at(in, *at + ENTRY_BYTES + name, extra) : NULL;
	if (p)
		read_extra(p, extra, m);
	*at += ENTRY_BYTES + name + extra + comment;
	return true;
}

static int add_member(struct vv_peek *in, const struct npz_member *m, struct vv_outline *out)
{
	const uint8_t *p = m->method == 0 ? find(in, m->at, LOCAL_BYTES, LOCAL) : NULL;

	if (!p)
		return in->rc;
	return vv_npy_outline(in->f, m->at + LOCAL_BYTES + number(p + 26, 2) + number(p + 28, 2), m->stored, m->name, out);
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct vv_peek in;
	struct npz_member m;
	uint64_t at = 0, n = 0, from = 0;
	int rc = 0;

	vv_peek_init(&in, f);
	if (find_directory(&in, &at, &n))
		for (; rc == 0 && n && read_entry(&in, &at, &m) && m.at >= from; n--) {
			/* in file order, so that nothing is read many times */
			from = m.at + LOCAL_BYTES;
			rc = add_member(&in, &m, out);
		}
	return rc ? rc : in.rc;
}

static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	(void)f;
	return n >= LOCAL_BYTES && number(head, 4) == LOCAL;
}

extern const struct vv_reader vv_reader_npz;
const struct vv_reader vv_reader_npz = { .name = "npz", .is = is, .outline = outline };
