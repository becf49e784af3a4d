/* Whole layer files: read back as docs/format.md says, and no byte of one can change unnoticed. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/layer.h"
#include "support/gen.h"
#include "vv_test.h"

struct parsed {
	struct vv_frame frame;
	struct vv_head head;
	struct vv_blocks blocks;
	struct vv_digests digests;
	struct vv_digest head_digest;
};

static void parsed_fini(struct parsed *l)
{
	vv_head_fini(&l->head);
	vv_payload_blocks_fini(&l->blocks);
	vv_payload_digests_fini(&l->digests);
}

static int parse_head(struct parsed *l, const uint8_t *p)
{
	const struct vv_section *s = l->frame.section;
	uint64_t len = s[4].off + s[4].len - s[0].off;
	int rc = vv_head_get_ident(&l->head, p + s[0].off, s[0].len);

	if (rc == 0)
		rc = vv_head_get_regions(&l->head, p + s[1].off, s[1].len);
	if (rc == 0)
		rc = vv_head_get_runs(&l->head, p + s[2].off, s[2].len, p + s[3].off, s[3].len);
	if (rc == 0)
		rc = vv_head_get_stats(&l->head, p + s[4].off, s[4].len);
	if (rc == 0)
		vv_digest_xxh3(p + s[0].off, len, &l->head_digest);
	return rc;
}

static int parse_payload(struct parsed *l, const uint8_t *p)
{
	const struct vv_section *b = vv_layer_section(&l->frame, VV_SECTION_BLOCKS);
	const struct vv_section *d = vv_layer_section(&l->frame, VV_SECTION_DIGESTS);
	int rc = vv_payload_get_blocks(&l->blocks, p + b->off, b->len, l->head.payload, VV_LAYER_HEADER,
				       l->frame.section[0].off);

	if (rc == 0)
		rc = vv_payload_get_digests(&l->digests, p + d->off, d->len, l->head.payload);
	for (size_t i = 0; rc == 0 && i < l->blocks.n; i++)
		if (vv_digest_check(p + l->blocks.v[i].off, l->blocks.v[i].stored_len) != l->blocks.v[i].check)
			rc = vv_err_set(VV_EDAMAGED, "block: checksum mismatch");
	return rc;
}

/* A complete file in memory. l must be freed whatever comes back. */
static int parse(struct parsed *l, const uint8_t *p, size_t n)
{
	int rc;

	*l = (struct parsed){ 0 };
	if (n < VV_LAYER_HEADER + VV_LAYER_TRAILER)
		return vv_err_set(VV_EDAMAGED, "too short");
	rc = vv_layer_check_header(p);
	if (rc == 0)
		rc = vv_layer_get_trailer(&l->frame, p + n - VV_LAYER_TRAILER, n);
	if (rc == 0)
		rc = vv_layer_get_directory(&l->frame, p + l->frame.dir_off);
	for (uint32_t i = 0; rc == 0 && i < l->frame.n; i++)
		rc = vv_layer_check_section(&l->frame.section[i], p + l->frame.section[i].off);
	if (rc == 0)
		rc = parse_head(l, p);
	return rc ? rc : parse_payload(l, p);
}

/* From an exact copy, so that a sanitizer sees a read beyond the file. */
static int parses(const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct parsed l;
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	rc = parse(&l, copy, n);
	parsed_fini(&l);
	free(copy);
	return rc;
}

static void test_round_trip(void)
{
	uint64_t state = 1;

	for (int round = 0; round < 500; round++) {
		struct vv_buf image = { 0 };
		struct vv_digest digest;
		struct parsed l;

		gen_image(&state, 5, &image, &digest);
		CHECK_EQ(parse(&l, image.p, image.n), 0);
		CHECK(vv_digest_equal(&digest, &l.head_digest));
		CHECK_EQ(l.frame.n, 8);
		CHECK(vv_layer_find(&l.frame, VV_SECTION_ERAS));
		CHECK_EQ(l.frame.file_len, image.n);
		for (uint32_t kind = 1; kind <= 7; kind++) {
			CHECK_EQ(vv_layer_section(&l.frame, kind)->kind, kind);
			CHECK_EQ(vv_layer_section(&l.frame, kind)->flags, kind <= 5 ? VV_SECTION_HEAD : 0);
		}
		parsed_fini(&l);
		vv_buf_fini(&image);
	}
}

static void test_every_flip(void)
{
	uint64_t state = 2;

	for (int round = 0; round < 12; round++) {
		struct vv_buf image = { 0 };

		gen_image(&state, 3, &image, NULL);
		for (size_t i = 0; i < image.n; i++)
			for (unsigned bit = 0; bit < 9; bit++) {
				uint8_t change = bit < 8 ? (uint8_t)(1 << bit) : 0xff;

				image.p[i] ^= change;
				CHECK_EQ(parses(image.p, image.n), VV_EDAMAGED);
				image.p[i] ^= change;
			}
		CHECK_EQ(parses(image.p, image.n), 0);
		vv_buf_fini(&image);
	}
}

static void test_every_cut(void)
{
	uint64_t state = 3;

	for (int round = 0; round < 12; round++) {
		struct vv_buf image = { 0 };

		gen_image(&state, 3, &image, NULL);
		for (size_t n = 0; n < image.n; n++)
			CHECK_EQ(parses(image.p, n), VV_EDAMAGED);
		for (size_t from = 1; from < image.n; from++)
			CHECK_EQ(parses(image.p + from, image.n - from), VV_EDAMAGED);
		vv_wire_put_u8(&image, 0);
		CHECK_EQ(parses(image.p, image.n), VV_EDAMAGED);
		vv_buf_fini(&image);
	}
}

/* Two files, one after another, are not one; nor are the front of one and the end of another. */
static void test_splices(void)
{
	uint64_t state = 4;
	struct vv_buf a = { 0 }, b = { 0 };

	gen_image(&state, 3, &a, NULL);
	gen_image(&state, 3, &b, NULL);
	for (size_t keep = 1; keep <= a.n; keep++) {
		struct vv_buf both = { 0 };

		vv_buf_add(&both, a.p, keep);
		vv_buf_add(&both, b.p, b.n);
		CHECK_EQ(parses(both.p, both.n), VV_EDAMAGED);
		vv_buf_fini(&both);
	}
	vv_buf_fini(&a);
	vv_buf_fini(&b);
}

/* gc: the same head around fewer blocks. */
static void test_kept_head(void)
{
	uint64_t state = 5;

	for (int round = 0; round < 300; round++) {
		struct vv_buf image = { 0 }, smaller = { 0 };
		struct vv_blocks blocks = { 0 };
		struct vv_digests digests = { 0 };
		struct parsed was, is;

		gen_image(&state, 4, &image, NULL);
		CHECK_EQ(parse(&was, image.p, image.n), 0);
		vv_layer_put_header(&smaller);
		gen_blocks(&state, was.head.payload, 0, &blocks, &smaller);
		gen_digests(&state, was.head.payload, &digests);
		CHECK_EQ(vv_layer_put_tail_kept(&was.frame, image.p + was.frame.section[0].off, NULL, &blocks, &digests, NULL, NULL, NULL,
						smaller.n, &smaller),
			 0);
		CHECK_EQ(parse(&is, smaller.p, smaller.n), 0);
		CHECK(vv_digest_equal(&was.head_digest, &is.head_digest));
		CHECK_EQ(is.blocks.n, blocks.n);
		CHECK_EQ(is.digests.n, digests.n);
		CHECK_EQ(is.head.payload, was.head.payload);
		parsed_fini(&was);
		parsed_fini(&is);
		vv_payload_blocks_fini(&blocks);
		vv_payload_digests_fini(&digests);
		vv_buf_fini(&image);
		vv_buf_fini(&smaller);
	}
}

/* The tail alone, into a buffer that holds something else already, for a file whose blocks lie elsewhere. */
static void test_tail_elsewhere(void)
{
	struct vv_buf alone = { 0 }, behind = { 0 };
	struct vv_blocks blocks = { 0 };
	struct vv_digests digests = { 0 };
	struct vv_digest a, b;
	struct vv_head head;
	uint64_t state = 6;

	gen_head(&state, &head, 3);
	CHECK_EQ(vv_layer_put_tail(&head, &blocks, &digests, NULL, NULL, NULL, 5000, &alone, &a, NULL), 0);
	vv_buf_add(&behind, "something", 9);
	CHECK_EQ(vv_layer_put_tail(&head, &blocks, &digests, NULL, NULL, NULL, 5000, &behind, &b, NULL), 0);
	CHECK_EQ(alone.n + 9, behind.n);
	CHECK(memcmp(alone.p, behind.p + 9, alone.n) == 0);
	CHECK(vv_digest_equal(&a, &b));
	vv_head_fini(&head);
	vv_buf_fini(&alone);
	vv_buf_fini(&behind);
}

/* The digests left out: with them, where they belong, it is the same. */
static void test_gap(void)
{
	uint64_t state = 12;

	for (int round = 0; round < 200; round++) {
		struct vv_buf whole = { 0 }, parts = { 0 }, joined = { 0 };
		struct vv_blocks blocks = { 0 };
		struct vv_digests digests = { 0 };
		struct vv_era era = { 1, 1, 77 };
		struct vv_era_table eras = { &era, 1, 1 };
		struct vv_layer_gap gap = { 0 };
		struct vv_digest a, b;
		struct vv_head head;

		gen_head(&state, &head, 3);
		era.last = head.epoch;
		if (round % 4)
			gen_digests(&state, head.payload, &digests);
		vv_buf_add(&whole, "before", 6);
		vv_buf_add(&parts, "before", 6);
		CHECK_EQ(vv_layer_put_tail(&head, &blocks, &digests, NULL, &eras, NULL, 700, &whole, &a, NULL), 0);
		CHECK_EQ(vv_layer_put_tail(&head, &blocks, &digests, NULL, &eras, NULL, 700, &parts, &b, &gap), 0);
		CHECK_EQ(gap.n, digests.n * sizeof(*digests.v));
		CHECK(vv_digest_equal(&a, &b));
		CHECK_EQ(vv_layer_digests_check(&whole), vv_layer_digests_check(&parts));
		vv_buf_add(&joined, parts.p, gap.at);
		vv_buf_add(&joined, digests.v, gap.n);
		vv_buf_add(&joined, parts.p + gap.at, parts.n - gap.at);
		CHECK(joined.n == whole.n && memcmp(joined.p, whole.p, whole.n) == 0);
		vv_head_fini(&head);
		vv_payload_digests_fini(&digests);
		vv_buf_fini(&whole);
		vv_buf_fini(&parts);
		vv_buf_fini(&joined);
	}
}

/* A coder of a test's own: bytes upside down, and a mark. */
static int upside_down(const void *p, size_t n, struct vv_buf *out)
{
	const uint8_t *from = p;

	if (n < 20)
		return 0;
	vv_wire_put_u8(out, 0xaa);
	for (size_t i = n; i > 0; i--)
		vv_wire_put_u8(out, (uint8_t)~from[i - 1]);
	return 0;
}

static void check_coded(const struct vv_section *plain, const struct vv_section *coded, const uint8_t *p, const uint8_t *q)
{
	bool want = plain->len >= 20 && plain->kind != VV_SECTION_IDENT && plain->kind != VV_SECTION_DIGESTS;

	CHECK_EQ(coded->kind, plain->kind);
	CHECK_EQ(coded->flags, plain->flags | (want ? VV_SECTION_CODED : 0));
	CHECK_EQ(coded->len, plain->len + want);
	CHECK_EQ(vv_layer_check_section(coded, q), 0);
	for (uint64_t i = 0; i < plain->len; i++)
		CHECK_EQ(want ? (uint8_t)~q[coded->len - 1 - i] : q[i], p[i]);
}

/* The same layer, its tables coded; then what gc makes of it: its head stays, byte for byte. */
static void test_coded(void)
{
	uint64_t state = 7;
	int coded = 0;

	for (int round = 0; round < 300; round++) {
		struct vv_buf plain = { 0 }, upside = { 0 }, kept = { 0 };
		struct vv_blocks blocks = { 0 };
		struct vv_digests digests = { 0 };
		struct vv_frame f[3] = { 0 };
		struct vv_digest a, b, c;
		struct vv_head head;
		size_t n;

		gen_head(&state, &head, 4);
		CHECK_EQ(vv_layer_put_tail(&head, &blocks, &digests, NULL, NULL, NULL, 16, &plain, &a, NULL), 0);
		CHECK_EQ(vv_layer_put_tail(&head, &blocks, &digests, NULL, NULL, upside_down, 16, &upside, &b, NULL), 0);
		CHECK_EQ(vv_layer_get_trailer(&f[0], plain.p + plain.n - VV_LAYER_TRAILER, plain.n + 16), 0);
		CHECK_EQ(vv_layer_get_directory(&f[0], plain.p + f[0].dir_off - 16), 0);
		CHECK_EQ(vv_layer_get_trailer(&f[1], upside.p + upside.n - VV_LAYER_TRAILER, upside.n + 16), 0);
		CHECK_EQ(vv_layer_get_directory(&f[1], upside.p + f[1].dir_off - 16), 0);
		CHECK_EQ(f[0].n, f[1].n);
		for (uint32_t i = 0; i < f[0].n; i++) {
			const struct vv_section *s = &f[0].section[i], *t = &f[1].section[i];

			check_coded(s, t, plain.p + s->off - 16, upside.p + t->off - 16);
			coded += (t->flags & VV_SECTION_CODED) != 0;
		}
		n = f[1].section[4].off + f[1].section[4].len - 16;
		vv_digest_xxh3(upside.p, n, &c);
		CHECK(vv_digest_equal(&b, &c));
		CHECK_EQ(vv_layer_put_tail_kept(&f[1], upside.p, NULL, &blocks, &digests, NULL, NULL, NULL, 16, &kept), 0);
		CHECK_EQ(vv_layer_get_trailer(&f[2], kept.p + kept.n - VV_LAYER_TRAILER, kept.n + 16), 0);
		CHECK_EQ(vv_layer_get_directory(&f[2], kept.p + f[2].dir_off - 16), 0);
		CHECK(memcmp(kept.p, upside.p, n) == 0);
		for (uint32_t i = 0; i < 5; i++)
			CHECK_EQ(f[2].section[i].flags, f[1].section[i].flags);
		vv_head_fini(&head);
		vv_buf_fini(&plain);
		vv_buf_fini(&upside);
		vv_buf_fini(&kept);
	}
	CHECK(coded > 300);
}

/* A frame whose checks are right but whose directory breaks a rule: edited, then checked anew. */
struct forged {
	struct vv_section section[VV_LAYER_SECTIONS];
	uint32_t n, zero;
	uint64_t dir_off, file_len;
};

static struct forged fair(void)
{
	struct forged f = { .n = 7 };

	for (uint32_t i = 0; i < VV_LAYER_SECTIONS; i++)
		f.section[i] = (struct vv_section){ i + 1, i < 5 ? 1 : i < 7 || i + 1 == VV_SECTION_BASES ? 0 : 2, 16 + 10 * i, 10, 1 };
	f.dir_off = 16 + 70;
	f.file_len = f.dir_off + 7 * VV_LAYER_ENTRY + VV_LAYER_TRAILER;
	return f;
}

static int read_forged(const struct forged *f)
{
	struct vv_buf b = { 0 };
	struct vv_frame frame;
	size_t dir_len;
	int rc;

	for (uint32_t i = 0; i < f->n; i++) {
		vv_wire_put_u32(&b, f->section[i].kind);
		vv_wire_put_u32(&b, f->section[i].flags);
		vv_wire_put_u64(&b, f->section[i].off);
		vv_wire_put_u64(&b, f->section[i].len);
		vv_wire_put_u64(&b, f->section[i].check);
	}
	dir_len = b.n;
	vv_wire_put_u64(&b, f->dir_off);
	vv_wire_put_u32(&b, f->n);
	vv_wire_put_u32(&b, f->zero);
	vv_wire_put_u64(&b, f->file_len);
	vv_wire_put_u64(&b, vv_digest_check(b.p, dir_len));
	vv_buf_add(&b, "VARVEEND", 8);
	vv_wire_put_u64(&b, vv_digest_check(b.p + dir_len, 40));
	rc = vv_layer_get_trailer(&frame, b.p + dir_len, f->file_len);
	if (rc == 0)
		rc = vv_layer_get_directory(&frame, b.p);
	vv_buf_fini(&b);
	return rc;
}

/* n sections, the tail of them of unknown kinds */
static struct forged longer(uint32_t n)
{
	struct forged f = fair();

	f.n = n;
	f.dir_off = 16 + 10 * (uint64_t)n;
	f.file_len = f.dir_off + (uint64_t)n * VV_LAYER_ENTRY + VV_LAYER_TRAILER;
	return f;
}

#define FORGED(want, start, change)                                                                \
	do {                                                                                       \
		struct forged f = start;                                                           \
		change;                                                                            \
		CHECK_EQ(read_forged(&f), want);                                                   \
	} while (0)

static void test_geometry(void)
{
	FORGED(0, fair(), (void)f);
	FORGED(VV_EDAMAGED, fair(), f.zero = 1);
	FORGED(VV_EDAMAGED, fair(), f.dir_off++);
	FORGED(VV_EDAMAGED, fair(), f.file_len++);
	FORGED(VV_EDAMAGED, fair(), f.dir_off = UINT64_MAX);
	FORGED(VV_EDAMAGED, fair(), (f.dir_off = 8, f.file_len = 8 + 7 * 32 + 48));
	FORGED(VV_EDAMAGED, fair(), f.section[0].off--);
	FORGED(VV_EDAMAGED, fair(), f.section[3].off++);
	FORGED(VV_EDAMAGED, fair(), f.section[3].len++);
	FORGED(VV_EDAMAGED, fair(), (f.section[3].off++, f.section[3].len--));
	FORGED(VV_EDAMAGED, fair(), f.section[3].len = UINT64_MAX);
	FORGED(VV_EDAMAGED, fair(), f.section[6].len--);
	FORGED(VV_EDAMAGED, fair(), f.section[6].len++);
	FORGED(VV_EDAMAGED, fair(), (f.section[0].off = 6, f.section[0].len = 20));
	FORGED(0, fair(), (f.section[0].off = 20, f.section[0].len = 6));
}

static void test_kinds(void)
{
	FORGED(VV_EDAMAGED, longer(0), (void)f);
	FORGED(VV_EDAMAGED, longer(6), (void)f);
	FORGED(VV_EDAMAGED, fair(), (f.section[2].kind = 4, f.section[3].kind = 3));
	FORGED(VV_EDAMAGED, fair(), f.section[6].kind = 6);
	FORGED(VV_EDAMAGED, fair(), f.section[6].kind = 8);
	FORGED(VV_EDAMAGED, fair(), f.section[0].flags = 0);
	FORGED(VV_EDAMAGED, fair(), f.section[5].flags = 1);
	FORGED(VV_EDAMAGED, fair(), f.section[5].flags = 8);
	FORGED(VV_EDAMAGED, fair(), f.section[5].flags = 5);
	FORGED(VV_EDAMAGED, fair(), f.section[0].flags = 5);
	FORGED(VV_EDAMAGED, fair(), f.section[6].flags = 4);
	FORGED(VV_EDAMAGED, fair(), f.section[3].flags = 4);
	FORGED(VV_EDAMAGED, longer(8), f.section[7].flags = 4);
	FORGED(0, fair(), f.section[5].flags = 4);
	FORGED(0, fair(), (f.section[1].flags = 5, f.section[2].flags = 5, f.section[3].flags = 5, f.section[4].flags = 5));
	FORGED(0, longer(8), f.section[7].flags = 6);
	FORGED(0, longer(8), (void)f);
	FORGED(0, longer(64), (void)f);
	FORGED(VV_EDAMAGED, longer(8), f.section[7].flags = 0);
	FORGED(VV_EDAMAGED, longer(11), f.section[10].flags = 2);
	FORGED(VV_EDAMAGED, longer(11), f.section[10].flags = 1);
	FORGED(VV_EDAMAGED, longer(8), f.section[7].kind = 3);
	FORGED(VV_EDAMAGED, longer(8), f.section[7].kind = 0);
	FORGED(VV_EDAMAGED, longer(9), f.section[8].kind = 8);
}

static void test_names(void)
{
	CHECK_STR(vv_layer_section_name(VV_SECTION_IDENT), "IDENT");
	CHECK_STR(vv_layer_section_name(VV_SECTION_DIGESTS), "DIGESTS");
	CHECK_STR(vv_layer_section_name(0), "?");
	CHECK_STR(vv_layer_section_name(VV_SECTION_COPIES), "COPIES");
	CHECK_STR(vv_layer_section_name(VV_SECTION_ERAS), "ERAS");
	CHECK_STR(vv_layer_section_name(VV_SECTION_PARTS), "PARTS");
	CHECK_STR(vv_layer_section_name(VV_SECTION_BASES), "BASES");
	CHECK_STR(vv_layer_section_name(12), "?");
	CHECK_STR(vv_layer_section_name(UINT32_MAX), "?");
}

static void test_no_memory(void)
{
	struct vv_blocks blocks = { 0 };
	struct vv_digests digests = { 0 };
	struct vv_buf bytes = { 0 };
	struct vv_digest digest;
	struct vv_head head;
	uint64_t state = 11;
	int rc = -1;

	gen_head(&state, &head, 6);
	gen_blocks(&state, head.payload, 0, &blocks, &bytes);
	gen_digests(&state, head.payload, &digests);
	for (long k = 1; rc != 0; k++) {
		struct vv_buf out = { 0 };

		vv_mem_fail_at(k);
		vv_layer_put_header(&out);
		rc = vv_layer_put_tail(&head, &blocks, &digests, NULL, NULL, NULL, 16, &out, &digest, NULL);
		CHECK(rc == 0 ? vv_mem_asked() == k - 1 && k > 8 : rc == VV_ENOMEM);
		vv_buf_fini(&out);
	}
	vv_mem_fail_at(0);
	vv_head_fini(&head);
	vv_payload_blocks_fini(&blocks);
	vv_payload_digests_fini(&digests);
	vv_buf_fini(&bytes);
}

int main(void)
{
	test_round_trip();
	test_every_flip();
	test_every_cut();
	test_splices();
	test_kept_head();
	test_tail_elsewhere();
	test_gap();
	test_coded();
	test_geometry();
	test_kinds();
	test_names();
	test_no_memory();
	return 0;
}
