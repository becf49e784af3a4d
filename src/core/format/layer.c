/* The frame around heads and payloads. A file without gaps: each byte is in one part, each part
 * under a check. */
#include "core/format/layer.h"
#include "base/err.h"
#include "core/format/distribution.h"
#include <string.h>

static const char header_magic[8] = { 'V', 'A', 'R', 'V', 'E', 'L', 'Y', 'R' };
static const char trailer_magic[8] = { 'V', 'A', 'R', 'V', 'E', 'E', 'N', 'D' };

enum { VERSION = 1, LAST_FIXED = VV_SECTION_DIGESTS };

const char *vv_layer_section_name(uint32_t kind)
{
	static const char *const names[] = { "?",     "IDENT",  "REGIONS", "SOURCES",
					     "RUNS", "STATS", "BLOCKS", "DIGESTS", "COPIES", "ERAS", "PARTS", "BASES" };

	return kind <= VV_SECTION_BASES ? names[kind] : "?";
}

void vv_layer_put_header(struct vv_buf *b)
{
	size_t at = b->n;

	vv_buf_add(b, header_magic, sizeof(header_magic));
	vv_wire_put_u16(b, VERSION);
	vv_wire_put_u16(b, 0);
	if (!b->failed)
		vv_wire_put_u32(b, (uint32_t)vv_digest_check(b->p + at, 12));
}

int vv_layer_check_header(const uint8_t header[VV_LAYER_HEADER])
{
	struct vv_wire w = vv_wire_over(header, VV_LAYER_HEADER);
	const uint8_t *magic = vv_wire_bytes(&w, 8);
	unsigned version = vv_wire_u16(&w), flags = vv_wire_u16(&w);

	if (memcmp(magic, header_magic, 8) != 0)
		return vv_err_set(VV_EDAMAGED, "header: not a varve layer");
	if (vv_wire_u32(&w) != (uint32_t)vv_digest_check(header, 12))
		return vv_err_set(VV_EDAMAGED, "header: checksum mismatch");
	if (version != VERSION || flags)
		return vv_err_set(VV_EDAMAGED, "header: format version %u, this varve reads %d", version, VERSION);
	return 0;
}

static void put_section(struct vv_frame *f, struct vv_buf *out, uint64_t off, uint32_t kind, uint32_t flags,
			const uint8_t *p, size_t n)
{
	struct vv_section *s = &f->section[f->n++];

	*s = (struct vv_section){ kind, flags, off + out->n, n, vv_digest_check(p, n) };
	vv_buf_add(out, p, n);
}

/* IDENT is read before everything else, and digests are random. */
static bool is_plain(uint32_t kind)
{
	return kind == VV_SECTION_IDENT || kind == VV_SECTION_DIGESTS;
}

/* Puts a section as it is, or compressed if that is much shorter. */
static void put_table(struct vv_frame *f, struct vv_buf *out, uint64_t off, uint32_t kind, uint32_t flags,
		      const struct vv_buf *table, vv_layer_coder code)
{
	size_t at = out->n;

	out->failed |= table->failed;
	if (code && !is_plain(kind) && code(table->p, table->n, out) < 0)
		out->failed = true;
	if (out->failed || out->n == at)
		put_section(f, out, off, kind, flags, table->p, table->n);
	else
		f->section[f->n++] = (struct vv_section){ kind, flags | VV_SECTION_CODED, off + at, out->n - at,
							  vv_digest_check(out->p + at, out->n - at) };
}

/* Puts the section uncompressed; without the digests themselves if there is a gap for them. */
static void put_digests(struct vv_frame *f, const struct vv_digests *d, uint64_t off, struct vv_buf *out, struct vv_layer_gap *gap)
{
	size_t at = out->n, bytes = d->n * sizeof(*d->v);
	struct vv_digest_stream check;

	if (gap)
		vv_payload_put_groups(d, out);
	else
		vv_payload_put_digests(d, out);
	if (out->failed)
		return;
	vv_digest_stream_init(&check);
	vv_digest_stream_add(&check, out->p + at, out->n - at);
	if (gap) {
		vv_digest_stream_add(&check, d->v, bytes);
		*gap = (struct vv_layer_gap){ out->n, bytes };
	}
	f->section[f->n++] = (struct vv_section){ VV_SECTION_DIGESTS, 0, off + at, out->n - at + (gap ? bytes : 0), vv_digest_stream_check(&check) };
}

/* Returns the new `off`, for the parts that follow. */
static uint64_t put_payload_sections(struct vv_frame *f, const struct vv_head *h, const struct vv_blocks *blocks, const struct vv_digests *digests, const struct vv_copies_section *copies,
				     const struct vv_era_table *eras, vv_layer_coder code, uint64_t off, struct vv_buf *out, struct vv_layer_gap *gap)
{
	struct vv_buf b = { 0 };

	vv_payload_put_blocks(blocks, &b);
	put_table(f, out, off, VV_SECTION_BLOCKS, 0, &b, code);
	put_digests(f, digests, off, out, gap);
	off += gap ? gap->n : 0;
	if (copies && copies->n) {
		b.n = 0;
		vv_copies_section_put(copies, &b);
		put_table(f, out, off, VV_SECTION_COPIES, VV_SECTION_SKIPPABLE, &b, code);
	}
	if (eras && eras->n) {
		b.n = 0;
		vv_era_table_put(eras, &b);
		put_table(f, out, off, VV_SECTION_ERAS, VV_SECTION_SKIPPABLE, &b, code);
	}
	if (h && vv_distribution_has_any(h)) {
		b.n = 0;
		vv_distribution_put(h, &b);
		put_table(f, out, off, VV_SECTION_PARTS, VV_SECTION_SKIPPABLE, &b, code);
	}
	if (blocks->bases.n_blocks) {
		b.n = 0;
		vv_delta_bases_put(&blocks->bases, &b);
		put_table(f, out, off, VV_SECTION_BASES, 0, &b, code);
	}
	vv_buf_fini(&b);
	return off;
}

static int put_end(struct vv_frame *f, uint64_t off, struct vv_buf *out)
{
	size_t dir = out->n, trailer;

	for (uint32_t i = 0; i < f->n; i++) {
		vv_wire_put_u32(out, f->section[i].kind);
		vv_wire_put_u32(out, f->section[i].flags);
		vv_wire_put_u64(out, f->section[i].off);
		vv_wire_put_u64(out, f->section[i].len);
		vv_wire_put_u64(out, f->section[i].check);
	}
	trailer = out->n;
	vv_wire_put_u64(out, off + dir);
	vv_wire_put_u32(out, f->n);
	vv_wire_put_u32(out, 0);
	vv_wire_put_u64(out, off + trailer + VV_LAYER_TRAILER);
	if (out->failed)
		return vv_buf_check(out);
	vv_wire_put_u64(out, vv_digest_check(out->p + dir, trailer - dir));
	vv_buf_add(out, trailer_magic, sizeof(trailer_magic));
	if (!out->failed)
		vv_wire_put_u64(out, vv_digest_check(out->p + trailer, VV_LAYER_TRAILER - 8));
	return vv_buf_check(out);
}

int vv_layer_put_tail(const struct vv_head *h, const struct vv_blocks *blocks, const struct vv_digests *digests,
		      const struct vv_copies_section *copies, const struct vv_era_table *eras, vv_layer_coder code, uint64_t off, struct vv_buf *out,
		      struct vv_digest *head_digest, struct vv_layer_gap *gap)
{
	struct vv_buf part[5] = { 0 };
	struct vv_frame f = { 0 };
	size_t start = out->n;
	int rc;

	vv_head_put_ident(h, &part[0]);
	vv_head_put_regions(h, &part[1]);
	rc = vv_head_put_sources_and_runs(h, &part[2], &part[3]);
	vv_head_put_stats(h, &part[4]);
	for (uint32_t i = 0; rc == 0 && i < 5; i++) {
		put_table(&f, out, off - start, VV_SECTION_IDENT + i, VV_SECTION_HEAD, &part[i], code);
		rc = vv_buf_check(out);
	}
	if (rc == 0) {
		vv_digest_xxh3(out->p + start, out->n - start, head_digest);
		rc = put_end(&f, put_payload_sections(&f, h, blocks, digests, copies, eras, code, off - start, out, gap), out);
	}
	for (int i = 0; i < 5; i++)
		vv_buf_fini(&part[i]);
	return rc;
}

int vv_layer_put_tail_kept(const struct vv_frame *was, const uint8_t *head_bytes, const struct vv_head *h, const struct vv_blocks *blocks,
			   const struct vv_digests *digests, const struct vv_copies_section *copies, const struct vv_era_table *eras, vv_layer_coder code, uint64_t off,
			   struct vv_buf *out)
{
	struct vv_frame f = { 0 };
	size_t start = out->n;

	for (uint32_t i = 0; i < was->n; i++) {
		const struct vv_section *s = &was->section[i];

		if (!(s->flags & VV_SECTION_HEAD))
			continue;
		put_section(&f, out, off - start, s->kind, s->flags, head_bytes, s->len);
		head_bytes += s->len;
	}
	return put_end(&f, put_payload_sections(&f, h, blocks, digests, copies, eras, code, off - start, out, NULL), out);
}

uint64_t vv_layer_digests_check(const struct vv_buf *out)
{
	struct vv_wire w = vv_wire_over(out->p + out->n - VV_LAYER_TRAILER + 8, 4);
	/* entries of further sections */
	size_t behind = (size_t)(vv_wire_u32(&w) - VV_SECTION_DIGESTS) * VV_LAYER_ENTRY;

	/* the last field of its entry */
	w = vv_wire_over(out->p + out->n - VV_LAYER_TRAILER - behind - 8, 8);
	return vv_wire_u64(&w);
}

int vv_layer_get_trailer(struct vv_frame *f, const uint8_t trailer[VV_LAYER_TRAILER], uint64_t file_len)
{
	struct vv_wire w = vv_wire_over(trailer, VV_LAYER_TRAILER);
	uint32_t zero;

	if (memcmp(trailer + 32, trailer_magic, 8) != 0)
		return vv_err_set(VV_EDAMAGED, "trailer: not there (the file is cut short, or no layer)");
	f->dir_off = vv_wire_u64(&w);
	f->n = vv_wire_u32(&w);
	zero = vv_wire_u32(&w);
	f->file_len = vv_wire_u64(&w);
	f->dir_check = vv_wire_u64(&w);
	w.p += 8;
	if (vv_wire_u64(&w) != vv_digest_check(trailer, VV_LAYER_TRAILER - 8))
		return vv_err_set(VV_EDAMAGED, "trailer: checksum mismatch");
	if (f->file_len != file_len)
		return vv_err_set(VV_EDAMAGED, "trailer: written as %llu bytes, found %llu",
				  (unsigned long long)f->file_len, (unsigned long long)file_len);
	if (zero || f->n > VV_LAYER_SECTIONS || f->dir_off < VV_LAYER_HEADER || f->dir_off > file_len ||
	    file_len - f->dir_off != (uint64_t)f->n * VV_LAYER_ENTRY + VV_LAYER_TRAILER)
		return vv_err_set(VV_EDAMAGED, "trailer: impossible directory");
	return 0;
}

static int occurs_before(const struct vv_frame *f, uint32_t i)
{
	uint32_t k = 0;

	while (f->section[k].kind != f->section[i].kind)
		k++;
	return k < i;
}

/* Kinds 1 to 7 come in order and with the required flags. Later kinds may follow, each once, if
 * they may be skipped or are known. All but two may be compressed. */
static int check_kinds(const struct vv_frame *f)
{
	if (f->n < LAST_FIXED)
		return vv_err_set(VV_EDAMAGED, "directory: sections are missing");
	for (uint32_t i = 0; i < f->n; i++) {
		const struct vv_section *s = &f->section[i];
		uint32_t want = i < VV_SECTION_STATS ? VV_SECTION_HEAD : 0, further = s->kind == VV_SECTION_BASES ? 0 : VV_SECTION_SKIPPABLE;
		uint32_t flags = is_plain(s->kind) ? s->flags : s->flags & ~(uint32_t)VV_SECTION_CODED;

		if (i < LAST_FIXED && (s->kind != i + 1 || flags != want))
			return vv_err_set(VV_EDAMAGED, "directory: section %u is not the one expected", i);
		if (i >= LAST_FIXED && (s->kind <= LAST_FIXED || flags != further))
			return vv_err_set(VV_EDAMAGED, "directory: section of unknown kind %u (a newer varve wrote it?)",
					  s->kind);
		if (occurs_before(f, i))
			return vv_err_set(VV_EDAMAGED, "directory: two sections of kind %u", s->kind);
	}
	return 0;
}

int vv_layer_get_directory(struct vv_frame *f, const uint8_t *dir)
{
	size_t n = (size_t)f->n * VV_LAYER_ENTRY;
	struct vv_wire w = vv_wire_over(dir, n);
	uint64_t end = 0;

	if (vv_digest_check(dir, n) != f->dir_check)
		return vv_err_set(VV_EDAMAGED, "directory: checksum mismatch");
	for (uint32_t i = 0; i < f->n; i++) {
		struct vv_section *s = &f->section[i];

		s->kind = vv_wire_u32(&w);
		s->flags = vv_wire_u32(&w);
		s->off = vv_wire_u64(&w);
		s->len = vv_wire_u64(&w);
		s->check = vv_wire_u64(&w);
		if ((i && s->off != end) || s->off < VV_LAYER_HEADER || s->off > f->dir_off ||
		    s->len > f->dir_off - s->off)
			return vv_err_set(VV_EDAMAGED, "directory: sections overlap or leave a gap");
		end = s->off + s->len;
	}
	if (f->n && end != f->dir_off)
		return vv_err_set(VV_EDAMAGED, "directory: a gap before it");
	return check_kinds(f);
}

const struct vv_section *vv_layer_section(const struct vv_frame *f, uint32_t kind)
{
	return &f->section[kind - 1];
}

const struct vv_section *vv_layer_find(const struct vv_frame *f, uint32_t kind)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->section[i].kind == kind)
			return &f->section[i];
	return NULL;
}

int vv_layer_check_section(const struct vv_section *s, const void *p)
{
	if (vv_digest_check(p, s->len) != s->check)
		return vv_err_set(VV_EDAMAGED, "section %s: checksum mismatch", vv_layer_section_name(s->kind));
	return 0;
}
