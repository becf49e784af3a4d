#include "codec/fpc.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdbool.h>
#include <string.h>

/* Four bits for each number: the predictor, and the number of leading zero bytes. There is no code
 * for four zero bytes, which are rare: they are stored as three. */
enum { BY_DFCM = 8 };

struct predictor {
	uint64_t *fcm, *dfcm;
	uint64_t mask, fcm_at, dfcm_at;
	uint64_t last;
};

static int predictor_init(struct predictor *p, unsigned log)
{
	*p = (struct predictor){ .mask = ((uint64_t)1 << log) - 1 };
	p->fcm = vv_mem_new((size_t)2 << log, sizeof(*p->fcm));
	p->dfcm = p->fcm ? p->fcm + p->mask + 1 : NULL;
	return p->fcm ? 0 : VV_ENOMEM;
}

static void learn(struct predictor *p, uint64_t v)
{
	uint64_t step = v - p->last;

	p->fcm[p->fcm_at] = v;
	p->fcm_at = (p->fcm_at << 6 ^ v >> 48) & p->mask;
	p->dfcm[p->dfcm_at] = step;
	p->dfcm_at = (p->dfcm_at << 2 ^ step >> 40) & p->mask;
	p->last = v;
}

static uint64_t predict(const struct predictor *p, bool by_dfcm)
{
	return by_dfcm ? p->last + p->dfcm[p->dfcm_at] : p->fcm[p->fcm_at];
}

size_t vv_fpc_bound(size_t count)
{
	return (count + 1) / 2 + count * 8;
}

int vv_fpc_encode(const void *from, size_t count, unsigned log, uint8_t *to, size_t *out)
{
	uint8_t *rest = to + (count + 1) / 2;
	struct predictor p;
	int rc = predictor_init(&p, log);

	if (rc)
		return rc;
	memset(to, 0, (count + 1) / 2);
	for (size_t i = 0; i < count; i++) {
		uint64_t v, x, y;
		unsigned zeros, code;

		memcpy(&v, (const uint8_t *)from + i * 8, 8);
		x = v ^ predict(&p, false);
		y = v ^ predict(&p, true);
		code = y < x ? BY_DFCM : 0;
		x = y < x ? y : x;
		zeros = x ? (unsigned)__builtin_clzll(x) / 8 : 8;
		zeros = zeros == 4 ? 3 : zeros;
		code |= zeros > 4 ? zeros - 1 : zeros;
		to[i / 2] |= (uint8_t)(code << i % 2 * 4);
		memcpy(rest, &x, 8 - zeros);
		rest += 8 - zeros;
		learn(&p, v);
	}
	*out = (size_t)(rest - to);
	vv_mem_free(p.fcm);
	return 0;
}

static unsigned zeros_of(unsigned code)
{
	return (code & 7) + ((code & 7) > 3);
}

/* Do the codes require exactly the bytes that are present? */
static bool fills(const uint8_t *from, size_t n, size_t count)
{
	size_t want = (count + 1) / 2;

	if (n < want)
		return false;
	for (size_t i = 0; i < count; i++)
		want += 8 - zeros_of(from[i / 2] >> i % 2 * 4);
	return want == n && (count % 2 == 0 || from[count / 2] >> 4 == 0);
}

int vv_fpc_decode(const uint8_t *from, size_t n, unsigned log, void *to, size_t count)
{
	const uint8_t *rest = from + (count + 1) / 2;
	struct predictor p;
	int rc;

	if (log < VV_FPC_MIN_LOG || log > VV_FPC_MAX_LOG || !fills(from, n, count))
		return vv_err_set(VV_EDAMAGED, "a block of FPC does not decode");
	rc = predictor_init(&p, log);
	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++) {
		unsigned code = from[i / 2] >> i % 2 * 4 & 15, zeros = zeros_of(code);
		uint64_t x = 0;

		memcpy(&x, rest, 8 - zeros);
		rest += 8 - zeros;
		x ^= predict(&p, code & BY_DFCM);
		learn(&p, x);
		memcpy((uint8_t *)to + i * 8, &x, 8);
	}
	vv_mem_free(p.fcm);
	return 0;
}
