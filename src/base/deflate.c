#include "base/deflate.h"
#include "base/err.h"
#include "vv_config.h"
#include <limits.h>

#if VV_HAVE_ZLIB

#define ZLIB_CONST
#include <zlib.h>

bool vv_deflate_built(void)
{
	return true;
}

int vv_deflate_pack(const void *from, size_t n, int level, void *to, size_t cap, size_t *out)
{
	z_stream z = { .next_in = from, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)cap };
	int rc;

	if (n > UINT_MAX || cap > UINT_MAX)
		return vv_err_set(VV_EINVAL, "deflate: a block of %zu bytes is too large", n);
	rc = deflateInit(&z, level);
	if (rc != Z_OK)
		return vv_err_set(rc == Z_MEM_ERROR ? VV_ENOMEM : VV_EINVAL, "deflate: %s", zError(rc));
	*out = deflate(&z, Z_FINISH) == Z_STREAM_END ? (size_t)z.total_out : 0;
	deflateEnd(&z);
	return 0;
}

int vv_deflate_unpack_some(const void *from, size_t n, void *to, size_t cap, size_t *out)
{
	z_stream z = { .next_in = from, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)cap };
	int rc;

	if (n > UINT_MAX || cap > UINT_MAX)
		return vv_err_set(VV_EDAMAGED, "a zlib stream of %zu bytes for %zu is too large", n, cap);
	rc = inflateInit(&z);
	if (rc == Z_OK) {
		rc = inflate(&z, Z_FINISH);
		inflateEnd(&z);
	}
	if (rc == Z_MEM_ERROR)
		return vv_err_set(VV_ENOMEM, "deflate: out of memory");
	*out = z.total_out;
	if (rc == Z_STREAM_END && !z.avail_in)
		return 0;
	return vv_err_set(VV_EDAMAGED, "a zlib stream does not decode to %zu bytes", cap);
}

int vv_deflate_unpack(const void *from, size_t n, void *to, size_t raw_len)
{
	size_t got = 0;
	int rc = vv_deflate_unpack_some(from, n, to, raw_len, &got);

	if (rc == 0 && got != raw_len)
		return vv_err_set(VV_EDAMAGED, "a zlib stream does not decode to %zu bytes", raw_len);
	return rc;
}

#else

static int missing(void)
{
	return vv_err_set(VV_ENOTSUP, "this varve was built without zlib");
}

bool vv_deflate_built(void)
{
	return false;
}

int vv_deflate_pack(const void *from, size_t n, int level, void *to, size_t cap, size_t *out)
{
	(void)from, (void)n, (void)level, (void)to, (void)cap, (void)out;
	return missing();
}

int vv_deflate_unpack(const void *from, size_t n, void *to, size_t raw_len)
{
	(void)from, (void)n, (void)to, (void)raw_len;
	return missing();
}

int vv_deflate_unpack_some(const void *from, size_t n, void *to, size_t cap, size_t *out)
{
	(void)from, (void)n, (void)to, (void)cap, (void)out;
	return missing();
}

#endif
