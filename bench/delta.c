#include "delta.h"
#include "vv_config.h"

#if VV_HAVE_ZSTD

#include "base/clock.h"
#include "base/mem.h"
#include <string.h>
#include <zstd.h>

enum { LEVEL = 3, WORKERS = 1 }; /* WORKERS: the command's default; a thread that encodes beside one that reads */

static size_t must(size_t rc, const char *what)
{
	if (ZSTD_isError(rc))
		bench_die("zstd: %s: %s", what, ZSTD_getErrorName(rc));
	return rc;
}

static void set(ZSTD_CCtx *c, ZSTD_cParameter name, int value)
{
	must(ZSTD_CCtx_setParameter(c, name, value), "a parameter");
}

/* With a dictionary the command makes the window as large as the file, and searches far if that is more than it looks at otherwise. */
static ZSTD_CCtx *encoder(size_t bytes, bool patch)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();

	if (!c)
		bench_die("zstd: no memory");
	set(c, ZSTD_c_compressionLevel, LEVEL);
	set(c, ZSTD_c_checksumFlag, 1);
	set(c, ZSTD_c_nbWorkers, WORKERS);
	if (patch) {
		int log = 64 - __builtin_clzll(bytes);

		set(c, ZSTD_c_windowLog, log < 10 ? 10 : log);
		set(c, ZSTD_c_enableLongDistanceMatching, 1);
	}
	return c;
}

static void verify(const uint8_t *code, size_t len, const uint8_t *old, const uint8_t *state, uint8_t *to, size_t bytes, const char *name)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();

	must(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, 31), "a parameter");
	if (old)
		must(ZSTD_DCtx_refPrefix(d, old, bytes), "a prefix");
	if (must(ZSTD_decompressDCtx(d, to, bytes, code, len), "decoding") != bytes || memcmp(to, state, bytes) != 0)
		bench_die("zstd: %s does not come back as it was", name);
	ZSTD_freeDCtx(d);
}

static double once(const struct bench_series *s, int n, bool patch, uint8_t *code, uint8_t *to, struct bench_delta *out)
{
	ZSTD_CCtx *c = encoder(s->bytes, patch);
	double seconds = 0;

	out->original = out->bytes = 0;
	for (int i = 1; i < n; i++) {
		const uint8_t *state = bench_series_state(s, n, i), *old = patch ? bench_series_state(s, n, i - 1) : NULL;
		double start = vv_clock_s();
		size_t len;

		if (old)
			must(ZSTD_CCtx_refPrefix(c, old, s->bytes), "a prefix");
		len = must(ZSTD_compress2(c, code, ZSTD_compressBound(s->bytes), state, s->bytes), "encoding");
		seconds += vv_clock_s() - start;
		out->bytes += len;
		out->original += s->bytes;
		verify(code, len, old, state, to, s->bytes, s->name);
	}
	ZSTD_freeCCtx(c);
	return seconds;
}

bool bench_delta(const struct bench_series *s, int n, bool patch, int rounds, struct bench_delta *out)
{
	size_t bound = ZSTD_compressBound(s->bytes);
	uint8_t *code = vv_mem_map(bound), *to = vv_mem_map(s->bytes);

	if (!code || !to)
		bench_die("zstd: no memory");
	memset(code, 1, bound); /* touched */
	for (int i = 0; i < rounds; i++) {
		double seconds = once(s, n, patch, code, to, out);

		out->seconds = i && out->seconds < seconds ? out->seconds : seconds;
	}
	vv_mem_unmap(code, bound);
	vv_mem_unmap(to, s->bytes);
	return true;
}

#else

bool bench_delta(const struct bench_series *s, int n, bool patch, int rounds, struct bench_delta *out)
{
	(void)s;
	(void)n;
	(void)patch;
	(void)rounds;
	(void)out;
	return false;
}

#endif
