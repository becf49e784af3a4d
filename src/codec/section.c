#include "codec/section.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "codec/codec.h"
#include <string.h>

enum {
	LEVEL = 1,
	SMALL = 64 << 10, /* up to this length the level costs a millisecond at most */
	LEVEL_SMALL = 9,
	TINY = 8 << 10,   /* the same */
	LEVEL_TINY = 15,
	LEAST = 128,      /* shorter sections are not worth compressing */
	SHRINKS = 1024,   /* the maximum ratio: a higher one is taken for a decompression bomb */
};

#define MOST (UINT64_C(1) << 32)

/* A table that repeats one step shrinks beyond the limit, and is padded. */
static void fill(struct vv_buf *out, size_t n)
{
	uint8_t *room = vv_buf_room(out, n);

	if (!room)
		return;
	memset(room, 0, n);
	out->n += n;
}

static int level_for(size_t n)
{
	return n <= TINY ? LEVEL_TINY : n <= SMALL ? LEVEL_SMALL : LEVEL;
}

int vv_section_encode(const void *p, size_t n, struct vv_buf *out)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_ZSTD);
	size_t at = out->n, got = 0, least = (n + SHRINKS - 1) / SHRINKS;
	uint8_t *frame;
	int rc;

	if (!c || n < LEAST || n > MOST)
		return 0;
	frame = vv_mem_grow(NULL, n, 1);
	rc = frame ? c->encode(p, n, NULL, frame, n - n / 8, level_for(n), &got) : VV_ENOMEM;
	if (rc == 0 && got) {
		vv_wire_put_var(out, n);
		vv_wire_put_var(out, got);
		vv_buf_add(out, frame, got);
		if (out->n - at < least)
			fill(out, least - (out->n - at));
	}
	vv_mem_free(frame);
	return rc ? rc : vv_buf_check(out);
}

int vv_section_encode_small(const void *p, size_t n, struct vv_buf *out)
{
	return n <= SMALL ? vv_section_encode(p, n, out) : 0;
}

/* Reads the lengths; fails if they are impossible. */
static int get_lengths(struct vv_wire *w, size_t *raw_len, size_t *frame)
{
	size_t n = vv_wire_left(w);
	uint64_t limit = n < MOST / SHRINKS ? n * SHRINKS : MOST;

	*raw_len = (size_t)vv_wire_var_max(w, limit);
	*frame = (size_t)vv_wire_var_max(w, n);
	if (w->bad || *raw_len == 0 || *frame == 0 || *frame > vv_wire_left(w))
		return vv_err_set(VV_EDAMAGED, "impossible lengths of compressed data");
	for (const uint8_t *p = w->p + *frame; p < w->end; p++)
		if (*p)
			return vv_err_set(VV_EDAMAGED, "bytes left over after compressed data");
	return 0;
}

int vv_section_decode(const void *p, size_t n, uint8_t **out, size_t *raw_len)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_ZSTD);
	struct vv_wire w = vv_wire_over(p, n);
	size_t len = 0, frame = 0;
	uint8_t *raw;
	int rc;

	if (!c)
		return vv_err_set(VV_ENOTSUP, "compressed with zstd, which this varve was built without");
	rc = get_lengths(&w, &len, &frame);
	if (rc)
		return rc;
	rc = vv_mem_check_available(len, &(uint64_t){ 0 });
	if (rc)
		return vv_err_context(rc, "a compressed table");
	raw = vv_mem_grow(NULL, len, 1);
	if (!raw)
		return VV_ENOMEM;
	rc = c->decode(vv_wire_bytes(&w, frame), frame, raw, len);
	if (rc) {
		vv_mem_free(raw);
		return rc;
	}
	*out = raw;
	*raw_len = len;
	return 0;
}
