#include "base/szip.h"
#include "base/err.h"
#include "vv_config.h"

#if VV_HAVE_SZIP

#include <szlib.h>

/* The library pads each scanline to complete blocks in its own memory; with these limits that is
 * less than twice the result. */
static bool is_sound(const struct vv_szip *h)
{
	return h->pixels_per_block >= 2 && h->pixels_per_block <= SZ_MAX_PIXELS_PER_BLOCK &&
	       h->pixels_per_block % 2 == 0 && h->pixels_per_scanline >= h->pixels_per_block &&
	       h->pixels_per_scanline <= SZ_MAX_PIXELS_PER_SCANLINE &&
	       ((h->bits_per_pixel >= 1 && h->bits_per_pixel <= 32) || h->bits_per_pixel == 64);
}

int vv_szip_unpack(const struct vv_szip *how, const void *from, size_t n, void *to, size_t raw_len)
{
	SZ_com_t param = {(int)(how->options & 0xff), (int)how->bits_per_pixel, (int)how->pixels_per_block,
			  (int)how->pixels_per_scanline};
	size_t got = raw_len;
	int rc;

	if (!is_sound(how))
		return vv_err_set(VV_EDAMAGED,
				  "szip with %u bits per pixel, blocks of %u and lines of %u pixels cannot be",
				  how->bits_per_pixel, how->pixels_per_block, how->pixels_per_scanline);
	rc = SZ_BufftoBuffDecompress(to, &got, from, n, &param);
	if (rc == SZ_MEM_ERROR)
		return vv_err_set(VV_ENOMEM, "szip: out of memory");
	if (rc == SZ_OK && got == raw_len)
		return 0;
	return vv_err_set(VV_EDAMAGED, "a szip stream does not decode to %zu bytes", raw_len);
}

#else

int vv_szip_unpack(const struct vv_szip *how, const void *from, size_t n, void *to, size_t raw_len)
{
	(void)how, (void)from, (void)n, (void)to, (void)raw_len;
	return vv_err_set(VV_ENOTSUP, "this varve was built without szip (libaec)");
}

#endif
