#include "core/dedup/grain.h"
#include "base/err.h"
#include "base/search.h"
#include <inttypes.h>

int vv_grain_number_spans(struct vv_span *span, size_t n, uint32_t chunk, uint32_t *end)
{
	uint64_t next = 0;

	for (size_t k = 0; k < n; k++) {
		uint64_t grains = span[k].len / chunk;

		if (grains > VV_GRAIN_NUMBERS || next + grains > VV_GRAIN_NUMBERS)
			return vv_err_set(VV_EINVAL,
					  "%llu bytes are too much to be deduped together in grains of %u; use larger ones (option grain)",
					  (unsigned long long)(next + grains) * chunk, chunk);
		span[k].first = (uint32_t)next;
		span[k].n = (uint32_t)grains;
		next = (next + grains + VV_GRAIN_TILE - 1) / VV_GRAIN_TILE * VV_GRAIN_TILE;
	}
	*end = (uint32_t)next;
	return 0;
}

/* The last span that begins there or before: a span without grains begins where the next one
 * does. */
size_t vv_grain_span_of(const struct vv_span *span, size_t n, uint32_t number)
{
	size_t i;

	VV_SEARCH(i, 1, n, span[i].first <= number);
	return i - 1;
}

size_t vv_grain_limit(uint64_t memory, uint32_t end, uint32_t states)
{
	enum { PER_NUMBER = 17, PER_SLICE = 64, PER_ENTRY = 64, LEAST = 1024 };
	uint64_t slice = end < VV_GRAIN_SLICE ? end : VV_GRAIN_SLICE;
	uint64_t work = slice * PER_SLICE < memory / 4 ? slice * PER_SLICE : memory / 4;
	uint64_t fixed = (uint64_t)end * PER_NUMBER + work;
	uint64_t limit = memory > fixed ? (memory - fixed) / PER_ENTRY : 0;
	uint64_t most = states ? (uint64_t)end * states + LEAST : VV_GRAIN_LIMIT;

	most = most < VV_GRAIN_LIMIT ? most : VV_GRAIN_LIMIT;
	return (size_t)(limit < LEAST ? LEAST : limit < most ? limit : most);
}

int vv_grain_collide(uint32_t chunk, uint64_t id, uint64_t offset, bool zero, uint64_t other, uint64_t other_offset)
{
	static const char advice[] = "nothing was stored; with digest=sha256 that cannot happen";

	if (zero)
		return vv_err_set(VV_EDAMAGED, "%u bytes at offset %" PRIu64 " of region %" PRIu64 " have the digest of zeros and are not zero: %s",
				  chunk, offset, id, advice);
	return vv_err_set(VV_EDAMAGED,
			  "two contents have the same digest: %u bytes at offset %" PRIu64 " of region %" PRIu64 " and those at offset %" PRIu64
			  " of region %" PRIu64 ": %s",
			  chunk, offset, id, other_offset, other, advice);
}

const char *vv_grain_method_name(enum vv_method method)
{
	static const char *const name[] = { "full", "basic", "list", "tree", "run" };

	return name[method];
}
