/* A stage takes bytes and gives those that a filter had taken. Stages need to be told how many these are: deflate does not say. */
#include "reader/filter.h"
#include "base/deflate.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

enum { SUM = 4 };

typedef int undo_fn(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len);

static int inflate_chunk(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len)
{
	(void)f;
	return vv_deflate_unpack(from, n, to, len);
}

/* First bytes of all elements, second bytes, ...; what is left of an incomplete element stands at the end. */
static int unshuffle(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len)
{
	size_t width = f->n_values && f->value[0] ? f->value[0] : 1, count = n / width;

	if (n != len)
		return vv_err_set(VV_EDAMAGED, "a shuffled chunk has %zu bytes instead of %zu", n, len);
	for (size_t i = 0; count && i < width; i++)
		for (size_t k = 0; k < count; k++)
			to[k * width + i] = from[i * count + k];
	memcpy(to + count * width, from + count * width, n - count * width);
	return 0;
}

/* Fletcher's sum of words of 16 bits, the high byte first. */
static uint32_t sum_of(const uint8_t *p, size_t n)
{
	uint32_t a = 0, b = 0;

	for (size_t i = 0; i < n; i += 2) {
		a = (a + (uint32_t)(p[i] << 8 | (i + 1 < n ? p[i + 1] : 0))) % 65535;
		b = (b + a) % 65535;
	}
	return b << 16 | a;
}

/* 0 and 65535 are the same number to it. */
static uint32_t reduced(uint32_t sum)
{
	return (sum >> 16) % 65535 << 16 | (sum & 0xffff) % 65535;
}

static uint32_t swapped_bytes(uint32_t sum)
{
	return (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
}

/* Some writers before HDF5 1.6.3 stored the sum with its bytes the other way round. */
static int check_sum(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len)
{
	struct vv_wire w;
	uint32_t stored, sum;

	(void)f;
	if (n < SUM || n - SUM != len)
		return vv_err_set(VV_EDAMAGED, "a chunk with a checksum has %zu bytes instead of %zu", n, len + SUM);
	w = vv_wire_over(from + len, SUM);
	stored = vv_wire_u32(&w);
	sum = sum_of(from, len);
	if (reduced(stored) != sum && reduced(swapped_bytes(stored)) != sum)
		return vv_err_set(VV_EDAMAGED, "a chunk does not have the checksum that is stored with it");
	memcpy(to, from, len);
	return 0;
}

static undo_fn *const known[] = {
	[VV_FILTER_DEFLATE] = inflate_chunk,
	[VV_FILTER_SHUFFLE] = unshuffle,
	[VV_FILTER_FLETCHER32] = check_sum,
};

/* Bytes before each filter that was applied, by its place. Behind a deflate only the checksums that come last can be told: from what there is. */
static int measure(const struct vv_variable *v, uint32_t mask, size_t n, size_t len, size_t before[VV_READER_FILTERS + 1])
{
	unsigned last = VV_READER_FILTERS;

	before[0] = len;
	for (unsigned i = 0; i < v->n_filters; i++) {
		unsigned id = v->filter[i].id;
		bool out = mask >> i & 1;

		if (!out && (id >= sizeof(known) / sizeof(*known) || !known[id]))
			return vv_err_set(VV_ENOTSUP, "'%s' went through filter %u, which is not known here", v->name, id);
		if (!out && id == VV_FILTER_DEFLATE && last < VV_READER_FILTERS)
			return vv_err_set(VV_ENOTSUP, "'%s' was deflated twice", v->name);
		last = !out && id == VV_FILTER_DEFLATE ? i : last;
		before[i + 1] = before[i] + (!out && id == VV_FILTER_FLETCHER32 ? SUM : 0);
	}
	if (last == VV_READER_FILTERS)
		return n == before[v->n_filters] ? 0 : vv_err_set(VV_EDAMAGED, "a chunk of '%s' has %zu bytes instead of %zu", v->name, n, before[v->n_filters]);
	for (unsigned i = v->n_filters; i > last; i--) {
		before[i] = n;
		if (!(mask >> (i - 1) & 1) && v->filter[i - 1].id == VV_FILTER_FLETCHER32)
			n = n > SUM ? n - SUM : 0;
	}
	return 0;
}

int vv_filter_undo(const struct vv_variable *v, uint32_t mask, const void *from, size_t n, void *to, size_t len)
{
	size_t size[VV_READER_FILTERS + 1], most = n;
	uint8_t *buf[2];
	const uint8_t *now = from;
	int rc;

	if (v->n_filters > VV_READER_FILTERS)
		return vv_err_set(VV_EINVAL, "'%s' has %u filters", v->name, v->n_filters);
	rc = measure(v, mask, n, len, size);
	if (rc)
		return rc;
	for (unsigned i = 0; i <= v->n_filters; i++)
		most = size[i] > most ? size[i] : most;
	buf[0] = vv_mem_new(most, 1);
	buf[1] = vv_mem_new(most, 1);
	rc = buf[0] && buf[1] ? 0 : VV_ENOMEM;
	for (unsigned i = v->n_filters; rc == 0 && i-- > 0;)
		if (!(mask >> i & 1)) {
			uint8_t *next = buf[now == buf[0]];

			rc = known[v->filter[i].id](&v->filter[i], now, n, next, size[i]);
			now = next;
			n = size[i];
		}
	if (rc == 0)
		memcpy(to, now, len);
	vv_mem_free(buf[0]);
	vv_mem_free(buf[1]);
	return rc;
}
