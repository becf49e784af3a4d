#include "base/err.h"
#include "codec/codec.h"
#include <pthread.h>
#include <stdbool.h>
#include <zstd.h>

/* Making a context costs more than coding a small block, and each is a megabyte: so a few are kept, and handed to whoever codes next. One
 * per thread would be many on a large machine, of which few code at the same time. */
enum { KEPT = 4 };

struct shelf {
	pthread_mutex_t lock;
	void *idle[KEPT];
	size_t n;
};

static struct shelf encoders = { .lock = PTHREAD_MUTEX_INITIALIZER }, decoders = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* NULL: there is none. */
static void *take(struct shelf *s)
{
	void *c;

	pthread_mutex_lock(&s->lock);
	c = s->n ? s->idle[--s->n] : NULL;
	pthread_mutex_unlock(&s->lock);
	return c;
}

/* false: there are enough. */
static bool keep(struct shelf *s, void *c)
{
	bool kept;

	pthread_mutex_lock(&s->lock);
	kept = s->n < KEPT;
	if (kept)
		s->idle[s->n++] = c;
	pthread_mutex_unlock(&s->lock);
	return kept;
}

static size_t bound(size_t n)
{
	return ZSTD_compressBound(n);
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	ZSTD_CCtx *c = take(&encoders);
	size_t got;

	(void)how;
	if (!c)
		c = ZSTD_createCCtx();
	if (!c)
		return vv_err_set(VV_ENOMEM, "zstd: out of memory");
	got = ZSTD_compressCCtx(c, to, cap, from, n, level);
	*out = !ZSTD_isError(got) && got < n ? got : 0;
	if (!keep(&encoders, c))
		ZSTD_freeCCtx(c);
	return 0;
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	ZSTD_DCtx *c = take(&decoders);
	size_t got;

	if (!c)
		c = ZSTD_createDCtx();
	if (!c)
		return vv_err_set(VV_ENOMEM, "zstd: out of memory");
	got = ZSTD_decompressDCtx(c, to, raw_len, from, n);
	if (!keep(&decoders, c))
		ZSTD_freeDCtx(c);
	if (ZSTD_isError(got))
		return vv_err_set(VV_EDAMAGED, "a zstd block does not decode: %s", ZSTD_getErrorName(got));
	return got == raw_len ? 0 : vv_err_set(VV_EDAMAGED, "a zstd block decodes to %zu bytes, not %zu", got, raw_len);
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
};
