/* Islam 2012's compressors. A first pass depends on the type: FPC for doubles, fpzip for floats, an
 * LZ for other types. The second pass is deflate; either pass may be used alone. They serve
 * comparisons, and users who ask for them; docs/format.md, codec 5. */
#include "base/deflate.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "codec/codec.h"
#include "codec/fpc.h"
#include "codec/fpzip.h"
#include <string.h>

enum {
	HEADER = 4 + 5 + 5, /* at most */
	DEFLATED = 1,       /* flags */
	SWAPPED = 2,
	USUAL_LOG = 2,      /* Islam 2012, section 6 */
};

struct paper_plan { /* the first bytes of a block */
	uint8_t first; /* enum vv_predictor */
	uint8_t flags;
	uint8_t width;
	uint8_t log;   /* of FPC's tables */
};

static size_t bound(size_t n)
{
	return n + HEADER;
}

/* The maximum length of the output of a first pass. */
static size_t first_bound(size_t n)
{
	return n + n / 16 + 64;
}

static bool by_numbers(const struct paper_plan *p)
{
	return p->first == VV_PREDICT_FPC || p->first == VV_PREDICT_FPZIP;
}

static void swap(uint8_t *p, size_t count, unsigned width)
{
	for (; count; count--, p += width)
		for (unsigned k = 0; k < width / 2; k++) {
			uint8_t low = p[k];

			p[k] = p[width - 1 - k];
			p[width - 1 - k] = low;
		}
}

/* ---- encode ---------------------------------------------------------------------------------- */

static struct paper_plan plan_for(const struct vv_recipe *how)
{
	struct paper_plan p = { .first = VV_PREDICT_NONE, .flags = DEFLATED, .width = 1 };

	if (!how)
		return p;
	p.width = how->width ? how->width : 1;
	p.flags = how->coder == VV_CODEC_NONE ? 0 : DEFLATED;
	p.first = how->predictor;
	if (p.first == VV_PREDICT_LORENZO || p.first == VV_PREDICT_REAL)
		p.first = VV_PREDICT_NONE;
	if ((p.first == VV_PREDICT_FPC && p.width != 8) || (p.first == VV_PREDICT_FPZIP && p.width != 4 && p.width != 8))
		p.first = VV_PREDICT_LZ;
	if (p.first == VV_PREDICT_FPC)
		p.log = (uint8_t)(how->level < VV_FPC_MIN_LOG ? USUAL_LOG : how->level < VV_FPC_MAX_LOG ? how->level : VV_FPC_MAX_LOG);
	if (by_numbers(&p) && how->swapped)
		p.flags |= SWAPPED;
	return p;
}

static int encode_numbers(const uint8_t *from, size_t n, const struct paper_plan *p, uint8_t *to, size_t cap, size_t *out)
{
	size_t count = n / p->width, tail = n % p->width, got = 0;
	uint8_t *turned = NULL;
	int rc = 0;

	if (p->flags & SWAPPED) {
		turned = vv_mem_grow(NULL, n ? n : 1, 1);
		if (!turned)
			return VV_ENOMEM;
		memcpy(turned, from, n);
		swap(turned, count, p->width);
		from = turned;
	}
	if (p->first == VV_PREDICT_FPC)
		rc = vv_fpc_encode(from, count, p->log, to, &got);
	else
		got = vv_fpzip_encode(from, count, p->width, to, cap - tail);
	if (rc == 0 && got) {
		memcpy(to + got, from + n - tail, tail);
		*out = got + tail;
	}
	vv_mem_free(turned);
	return rc;
}

/* *out = 0: the pass does not apply, or its output is longer than its input. */
static int encode_first(const void *from, size_t n, const struct paper_plan *p, uint8_t *to, size_t cap, size_t *out)
{
	const struct vv_codec *lz = vv_codec_numbered(VV_CODEC_LZ4);

	*out = 0;
	if (by_numbers(p))
		return n < p->width ? 0 : encode_numbers(from, n, p, to, cap, out);
	if (p->first == VV_PREDICT_LZ && lz)
		return lz->encode(from, n, NULL, to, cap, lz->usual_level, out);
	return 0;
}

/* Takes the n bytes that a first pass made of raw_len. */
static int encode_second(const struct paper_plan *p, const void *from, size_t n, size_t raw_len, uint8_t *to, size_t cap, int level, size_t *out)
{
	struct vv_buf header = { 0 };
	size_t got = 0;
	int rc;

	vv_wire_put_u8(&header, p->first);
	vv_wire_put_u8(&header, p->flags);
	vv_wire_put_u8(&header, p->width);
	vv_wire_put_u8(&header, p->log);
	vv_wire_put_var(&header, raw_len);
	if (p->flags & DEFLATED && p->first != VV_PREDICT_NONE)
		vv_wire_put_var(&header, n);
	rc = vv_buf_check(&header);
	if (rc == 0 && header.n < cap) {
		if (p->flags & DEFLATED) {
			rc = vv_deflate_pack(from, n, level, to + header.n, cap - header.n, &got);
		} else if (n <= cap - header.n) {
			memcpy(to + header.n, from, n);
			got = n;
		}
	}
	if (rc == 0 && got) {
		memcpy(to, header.p, header.n);
		*out = header.n + got;
	}
	vv_buf_fini(&header);
	return rc;
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	struct paper_plan p = plan_for(how);
	size_t room = first_bound(n), first = 0, got = 0;
	uint8_t *between = NULL;
	int rc = 0;

	*out = 0;
	if (p.first != VV_PREDICT_NONE) {
		between = vv_mem_grow(NULL, room, 1);
		rc = between ? encode_first(from, n, &p, between, room, &first) : VV_ENOMEM;
	}
	if (!first) {
		p.first = VV_PREDICT_NONE;
		p.flags &= DEFLATED;
		p.log = 0;
	}
	if (rc == 0 && n && (first || p.flags & DEFLATED))
		rc = encode_second(&p, first ? between : from, first ? first : n, n, to, cap < n ? cap : n - 1, level, &got);
	if (rc == 0)
		*out = got;
	vv_mem_free(between);
	return rc;
}

/* ---- decode ---------------------------------------------------------------------------------- */

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "a block of Islam 2012's coders does not decode: %s", what);
}

static int get_plan(struct vv_wire *w, struct paper_plan *p)
{
	bool numbers;

	p->first = vv_wire_u8(w);
	p->flags = vv_wire_u8(w);
	p->width = vv_wire_u8(w);
	p->log = vv_wire_u8(w);
	numbers = by_numbers(p);
	if (w->bad || (!numbers && p->first != VV_PREDICT_LZ && p->first != VV_PREDICT_NONE))
		return damaged("there is no such first pass");
	if (p->flags & ~(DEFLATED | SWAPPED) || (p->flags & SWAPPED && !numbers) || (p->first == VV_PREDICT_NONE && !p->flags))
		return damaged("its flags are none");
	if (!p->width || (p->first == VV_PREDICT_FPC && p->width != 8) || (p->first == VV_PREDICT_FPZIP && p->width != 4 && p->width != 8))
		return damaged("its width is none");
	return p->first == VV_PREDICT_FPC || !p->log ? 0 : damaged("it has tables without FPC");
}

static int decode_numbers(const struct paper_plan *p, const uint8_t *from, size_t n, uint8_t *to, size_t raw_len)
{
	size_t count = raw_len / p->width, tail = raw_len % p->width;
	int rc;

	if (n < tail)
		return damaged("it is cut");
	rc = p->first == VV_PREDICT_FPC ? vv_fpc_decode(from, n - tail, p->log, to, count) :
					  vv_fpzip_decode(from, n - tail, p->width, to, count);
	if (rc)
		return rc;
	if (p->flags & SWAPPED)
		swap(to, count, p->width);
	memcpy(to + raw_len - tail, from + n - tail, tail);
	return 0;
}

static int decode_first(const struct paper_plan *p, const uint8_t *from, size_t n, void *to, size_t raw_len)
{
	if (by_numbers(p))
		return decode_numbers(p, from, n, to, raw_len);
	return vv_codec_decode(VV_CODEC_LZ4, from, n, to, raw_len);
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	struct vv_wire w = vv_wire_over(from, n);
	uint8_t *between;
	struct paper_plan p;
	size_t first;
	int rc = get_plan(&w, &p);

	if (rc)
		return rc;
	if (vv_wire_var(&w) != raw_len || w.bad)
		return damaged("its length is another");
	if (!(p.flags & DEFLATED))
		return decode_first(&p, w.p, vv_wire_left(&w), to, raw_len);
	if (p.first == VV_PREDICT_NONE)
		return vv_deflate_unpack(w.p, vv_wire_left(&w), to, raw_len);
	first = (size_t)vv_wire_var_max(&w, first_bound(raw_len));
	if (w.bad)
		return damaged("its first pass left more than it can");
	between = vv_mem_grow(NULL, first ? first : 1, 1);
	if (!between)
		return VV_ENOMEM;
	rc = vv_deflate_unpack(w.p, vv_wire_left(&w), between, first);
	if (rc == 0)
		rc = decode_first(&p, between, first, to, raw_len);
	vv_mem_free(between);
	return rc;
}

static struct vv_recipe recipe_of(const void *coded, size_t n)
{
	struct vv_wire w = vv_wire_over(coded, n);
	struct paper_plan p;

	if (get_plan(&w, &p))
		return vv_recipe_plain(1);
	return (struct vv_recipe){
		.width = p.width,
		.record = 1,
		.predictor = p.first,
		.real = by_numbers(&p),
		.swapped = p.flags & SWAPPED,
		.coder = p.flags & DEFLATED ? VV_CODEC_PAPER : VV_CODEC_NONE,
		.level = (int8_t)p.log,
	};
}

/* The memory for the bytes between the two passes. */
static size_t decode_takes(size_t n, size_t raw_len)
{
	(void)n;
	return raw_len;
}

extern const struct vv_codec vv_codec_paper;
const struct vv_codec vv_codec_paper = {
	.name = "paper",
	.number = VV_CODEC_PAPER,
	.min_level = 1,
	.max_level = 9,
	.usual_level = 6,
	.bound = bound,
	.encode = encode,
	.decode = decode,
	.decode_takes = decode_takes,
	.recipe = recipe_of,
};
