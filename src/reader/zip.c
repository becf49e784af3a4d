#include "reader/zip.h"
#include <string.h>

enum {
	LOCAL = 0x04034b50,
	ENTRY = 0x02014b50, ENTRY_BYTES = 46,
	END = 0x06054b50, END_BYTES = 22,
	END64 = 0x06064b50, END64_BYTES = 56,
	LOCATOR64 = 0x07064b50, LOCATOR64_BYTES = 20,
	EXTRA64 = 1,
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

bool vv_zip_is(const uint8_t *head, size_t n, const char **name, size_t *len)
{
	if (n < VV_ZIP_LOCAL_BYTES || number(head, 4) != LOCAL)
		return false;
	*len = (size_t)number(head + 26, 2);
	*len = *len < n - VV_ZIP_LOCAL_BYTES ? *len : n - VV_ZIP_LOCAL_BYTES;
	*name = (const char *)head + VV_ZIP_LOCAL_BYTES;
	return true;
}

/* The directory lies directly before the end records, so its size gives its place in the file, and
 * that the start of the archive. */
static bool place(struct vv_zip *z, uint64_t end, uint64_t size, uint64_t offset)
{
	if (size > end || offset > end - size)
		return false;
	z->end = end;
	z->directory = end - size;
	z->base = z->from = z->directory - offset;
	return true;
}

/* A series of archives is opened from the last to the first, so a window before the end is read. */
static void look_back(struct vv_peek *in, uint64_t end)
{
	uint64_t tail = END_BYTES + LOCATOR64_BYTES + END64_BYTES, n = end < VV_PEEK_WINDOW ? end : VV_PEEK_WINDOW;

	if (end < in->at + tail || end - in->at > in->n)
		vv_peek_at(in, end - n, (size_t)n);
}

bool vv_zip_open(struct vv_peek *in, struct vv_peek *local, uint64_t end, struct vv_zip *out)
{
	uint64_t at = end - END_BYTES, size, offset;
	const uint8_t *p;

	if (end < END_BYTES)
		return false;
	look_back(in, end);
	p = find(in, at, END_BYTES, END);
	if (!p)
		return false;
	*out = (struct vv_zip){ .in = in, .local = local, .n = number(p + 10, 2) };
	size = number(p + 12, 4);
	offset = number(p + 16, 4);
	if (out->n != UINT16_MAX && size != UINT32_MAX && offset != UINT32_MAX &&
	    (at < LOCATOR64_BYTES || !find(in, at - LOCATOR64_BYTES, LOCATOR64_BYTES, LOCATOR64)))
		return place(out, at, size, offset);
	if (at < LOCATOR64_BYTES + END64_BYTES)
		return false;
	at -= LOCATOR64_BYTES + END64_BYTES;
	p = find(in, at + END64_BYTES, LOCATOR64_BYTES, LOCATOR64) ? find(in, at, END64_BYTES, END64) : NULL;
	if (!p)
		return false;
	out->n = number(p + 32, 8);
	size = number(p + 40, 8);
	offset = number(p + 48, 8);
	return place(out, at, size, offset);
}

/* Numbers that do not fit in 32 bits are in an extra field, in this order, and only those. */
static void read_extra(const uint8_t *p, size_t n, struct vv_zip_member *m)
{
	uint64_t *const wide[] = { &m->raw, &m->stored, &m->header };

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

bool vv_zip_next(struct vv_zip *z, struct vv_zip_member *m)
{
	const uint8_t *p = z->n && z->directory < z->end ? find(z->in, z->directory, ENTRY_BYTES, ENTRY) : NULL;
	size_t name, extra, comment, kept;

	if (!p)
		return false;
	m->method = (unsigned)number(p + 10, 2);
	m->stored = number(p + 20, 4);
	m->raw = number(p + 24, 4);
	m->header = number(p + 42, 4);
	name = (size_t)number(p + 28, 2);
	extra = (size_t)number(p + 30, 2);
	comment = (size_t)number(p + 32, 2);
	kept = name < sizeof(m->name) - 1 ? name : sizeof(m->name) - 1;
	p = vv_peek_at(z->in, z->directory + ENTRY_BYTES, kept);
	if (!p)
		return false;
	memcpy(m->name, p, kept);
	m->name[kept] = '\0';
	p = extra <= VV_PEEK_WINDOW ? vv_peek_at(z->in, z->directory + ENTRY_BYTES + name, extra) : NULL;
	if (p)
		read_extra(p, extra, m);
	if (__builtin_add_overflow(m->header, z->base, &m->header))
		return false;
	z->directory += ENTRY_BYTES + name + extra + comment;
	z->n--;
	return true;
}

bool vv_zip_find_bytes(struct vv_zip *z, struct vv_zip_member *m)
{
	const uint8_t *p = m->header >= z->from && m->header < z->end ? find(z->local, m->header, VV_ZIP_LOCAL_BYTES, LOCAL) : NULL;

	if (!p)
		return false;
	z->from = m->header + VV_ZIP_LOCAL_BYTES;
	m->at = z->from + number(p + 26, 2) + number(p + 28, 2);
	return m->at <= z->end && m->stored <= z->end - m->at;
}
