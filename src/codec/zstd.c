#include "codec/zstd.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/context_pool.h"

#define ZSTD_STATIC_LINKING_ONLY /* contexts in memory of ours */
#include <zstd.h>

/* Its names have changed: ZSTD_lcm_huffman, ZSTD_ps_enable. */
enum { LITERALS_CODED = 1 };

/* Making a context costs more than compressing a small block. A context that has grown beyond this
 * size, at a high level, is not kept. */
enum { KEPT_CONTEXT = 16 << 20, LITTLE = 128 << 10 };

/* Of bytes that are compressed after others. */
enum { LOW = 4, TABLE_MIN = 17, TABLE_MAX = 22, WINDOW_MIN = 10, WINDOW_MAX = 27 };

static const ZSTD_customMem memory = { vv_mem_lend, vv_mem_take_back, NULL };
static struct vv_context_pool encoders = { .lock = PTHREAD_MUTEX_INITIALIZER }, decoders = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t bound(size_t n)
{
	return ZSTD_compressBound(n);
}

/* One slot for two to four bytes: text of repeated names needs no more. */
static int log_of_table(size_t n)
{
	int log = 0;

	while (n >> log)
		log++;
	return log - 2;
}

/* If zstd rejects a parameter, its own value stays. */
static void set(ZSTD_CCtx *c, size_t n, const struct vv_zstd_how *how)
{
	ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, how->level);
	if (how->little && n <= LITTLE)
		ZSTD_CCtx_setParameter(c, ZSTD_c_hashLog, log_of_table(n));
	if (how->least)
		ZSTD_CCtx_setParameter(c, ZSTD_c_minMatch, (int)how->least);
	if (how->literals) { /* it searches at one byte of a block */
		ZSTD_CCtx_setParameter(c, ZSTD_c_strategy, ZSTD_fast);
		ZSTD_CCtx_setParameter(c, ZSTD_c_targetLength, ZSTD_BLOCKSIZE_MAX);
		ZSTD_CCtx_setParameter(c, ZSTD_c_hashLog, ZSTD_HASHLOG_MIN);
		ZSTD_CCtx_setParameter(c, ZSTD_c_literalCompressionMode, LITERALS_CODED);
	}
	if (how->window) {
		ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, (int)how->window);
		ZSTD_CCtx_setParameter(c, ZSTD_c_enableLongDistanceMatching, 1);
	}
}

static unsigned log_within(size_t n, unsigned least, unsigned most)
{
	unsigned log = least;

	while (log < most && n >> log)
		log++;
	return log;
}

/* Bytes that recur after `before` may be anywhere in it, so the window spans both. The tables of
 * low levels are too small for the positions of a long one. */
static void set_before(ZSTD_CCtx *c, const void *before, size_t n_before, size_t n, int level)
{
	int table = (int)log_within((n_before + n) / 16, TABLE_MIN, TABLE_MAX);

	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, (int)log_within(n_before + n, WINDOW_MIN, WINDOW_MAX));
	if (level <= LOW) {
		ZSTD_CCtx_setParameter(c, ZSTD_c_hashLog, table);
		ZSTD_CCtx_setParameter(c, ZSTD_c_chainLog, table - 1);
	}
	ZSTD_CCtx_refPrefix(c, before, n_before);
}

/* before: bytes that the decoder has; NULL: none. */
static int compress(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t cap, const struct vv_zstd_how *how, size_t *out)
{
	ZSTD_CCtx *c = vv_context_pool_take(&encoders);
	size_t got;

	if (!c)
		c = ZSTD_createCCtx_advanced(memory);
	if (!c)
		return vv_err_set(VV_ENOMEM, "zstd: out of memory");
	set(c, n, how);
	if (before)
		set_before(c, before, n_before, n, how->level);
	got = ZSTD_compress2(c, to, cap, from, n);
	*out = !ZSTD_isError(got) && got < n ? got : 0;
	if (ZSTD_sizeof_CCtx(c) > KEPT_CONTEXT || !vv_context_pool_keep(&encoders, c))
		ZSTD_freeCCtx(c);
	return 0;
}

int vv_zstd_encode(const void *from, size_t n, void *to, size_t cap, const struct vv_zstd_how *how, size_t *out)
{
	return compress(NULL, 0, from, n, to, cap, how, out);
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	(void)how;
	return vv_zstd_encode(from, n, to, cap, &(struct vv_zstd_how){ .level = level }, out);
}

static int encode_after(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t cap, int level, size_t *out)
{
	return compress(before, n_before, from, n, to, cap, &(struct vv_zstd_how){ .level = level }, out);
}

static int decode_after(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t raw_len)
{
	ZSTD_DCtx *c = vv_context_pool_take(&decoders);
	size_t got;

	if (!c)
		c = ZSTD_createDCtx_advanced(memory);
	if (!c)
		return vv_err_set(VV_ENOMEM, "zstd: out of memory");
	ZSTD_DCtx_reset(c, ZSTD_reset_session_and_parameters);
	if (n_before)
		ZSTD_DCtx_refPrefix(c, before, n_before);
	got = ZSTD_decompressDCtx(c, to, raw_len, from, n);
	if (!vv_context_pool_keep(&decoders, c))
		ZSTD_freeDCtx(c);
	if (ZSTD_isError(got))
		return vv_err_set(VV_EDAMAGED, "a zstd block does not decode: %s", ZSTD_getErrorName(got));
	return got == raw_len ? 0 : vv_err_set(VV_EDAMAGED, "a zstd block decodes to %zu bytes, not %zu", got, raw_len);
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	return decode_after(NULL, 0, from, n, to, raw_len);
}

extern const struct vv_codec vv_codec_zstd;
const struct vv_codec vv_codec_zstd = {
	.name = "zstd",
	.number = VV_CODEC_ZSTD,
	.min_level = 1,
	.max_level = 19,
	.usual_level = 1,
	.bound = bound,
	.encode = encode,
	.decode = decode,
	.encode_after = encode_after,
	.decode_after = decode_after,
};
