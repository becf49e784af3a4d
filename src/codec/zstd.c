#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include <pthread.h>
#include <zstd.h>

/* Contexts live as long as their thread: making one costs more than coding a small block. */
struct contexts {
	ZSTD_CCtx *encoder;
	ZSTD_DCtx *decoder;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_failed;

static void drop(void *p)
{
	struct contexts *c = p;

	ZSTD_freeCCtx(c->encoder);
	ZSTD_freeDCtx(c->decoder);
	vv_mem_free(c);
}

static void make_key(void)
{
	key_failed = pthread_key_create(&key, drop);
}

static struct contexts *mine(void)
{
	struct contexts *c;

	pthread_once(&once, make_key);
	if (key_failed)
		return NULL;
	c = pthread_getspecific(key);
	if (c)
		return c;
	c = vv_mem_new(1, sizeof(*c));
	if (!c)
		return NULL;
	c->encoder = ZSTD_createCCtx();
	c->decoder = ZSTD_createDCtx();
	if (!c->encoder || !c->decoder || pthread_setspecific(key, c) != 0) {
		drop(c);
		return NULL;
	}
	return c;
}

static size_t bound(size_t n)
{
	return ZSTD_compressBound(n);
}

static int encode(const void *from, size_t n, void *to, size_t cap, int level, size_t *out)
{
	struct contexts *c = mine();
	size_t got;

	if (!c)
		return vv_err_set(VV_ENOMEM, "zstd: out of memory");
	got = ZSTD_compressCCtx(c->encoder, to, cap, from, n, level);
	*out = !ZSTD_isError(got) && got < n ? got : 0;
	return 0;
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	struct contexts *c = mine();
	size_t got;

	if (!c)
		return vv_err_set(VV_ENOMEM, "zstd: out of memory");
	got = ZSTD_decompressDCtx(c->decoder, to, raw_len, from, n);
	if (ZSTD_isError(got))
		return vv_err_set(VV_EDAMAGED, "a zstd block does not decode: %s", ZSTD_getErrorName(got));
	return got == raw_len ? 0 : vv_err_set(VV_EDAMAGED, "a zstd block decodes to %zu bytes, not %zu", got, raw_len);
}

extern const struct vv_codec vv_codec_zstd;
const struct vv_codec vv_codec_zstd = {
	.name = "zstd",
	.number = 2,
	.min_level = 1,
	.max_level = 19,
	.usual_level = 1,
	.bound = bound,
	.encode = encode,
	.decode = decode,
};
