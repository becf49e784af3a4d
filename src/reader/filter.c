/* A stage undoes one filter. The sizes of its results are known for the first filter, and for those
 * behind it up to the first compressing one. Beyond that there is only a bound. */
#include "reader/filter.h"
#include "base/deflate.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/szip.h"
#include "reader/lzf.h"
#include "reader/nbit.h"
#include "reader/scaleoffset.h"
#include <string.h>

enum { SUM = 4, SLACK = 1024 };

/* *len: the room in `to`, then the bytes written. */
typedef int undo_fn(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len);

static int inflate_chunk(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len)
{
	(void)f;
	return vv_deflate_unpack_some(from, n, to, *len, len);
}

static int unlzf(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len)
{
	(void)f;
	return vv_lzf_unpack(from, n, to, *len, len);
}

/* The length of the result precedes the stream. */
static int unszip(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len)
{
	struct vv_szip how = { f->value[0], f->value[1], f->value[2], f->value[3] };
	struct vv_wire w = vv_wire_over(from, n);
	uint32_t got = vv_wire_u32(&w);

	if (w.bad || f->n_values < 4 || got > *len)
		return vv_err_set(VV_EDAMAGED, "a szip chunk of %zu bytes says that it is %u", n, got);
	*len = got;
	return vv_szip_unpack(&how, from + sizeof(got), n - sizeof(got), to, got);
}

static int unnbit(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len)
{
	return vv_nbit_undo(f, from, n, to, *len);
}

static int unscale(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len)
{
	return vv_scaleoffset_undo(f, from, n, to, *len);
}

/* First bytes of all elements, second bytes, and so on; the rest of an incomplete element is at the
 * end. */
static int unshuffle(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len)
{
	size_t width = f->n_values && f->value[0] ? f->value[0] : 1, count = n / width;

	if (n > *len)
		return vv_err_set(VV_EDAMAGED, "a shuffled chunk has %zu bytes instead of %zu", n, *len);
	*len = n;
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

/* 0 and 65535 are equal modulo 65535. */
static uint32_t reduced(uint32_t sum)
{
	return (sum >> 16) % 65535 << 16 | (sum & 0xffff) % 65535;
}

static uint32_t swapped_bytes(uint32_t sum)
{
	return (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
}

/* Some writers before HDF5 1.6.3 stored the sum with swapped bytes. */
static int check_sum(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t *len)
{
	struct vv_wire w;
	uint32_t stored, sum;

	(void)f;
	if (n < SUM || n - SUM > *len)
		return vv_err_set(VV_EDAMAGED, "a chunk with a checksum has %zu bytes instead of %zu", n, *len + SUM);
	*len = n - SUM;
	w = vv_wire_over(from + *len, SUM);
	stored = vv_wire_u32(&w);
	sum = sum_of(from, *len);
	if (reduced(stored) != sum && reduced(swapped_bytes(stored)) != sum)
		return vv_err_set(VV_EDAMAGED, "a chunk does not have the checksum that is stored with it");
	memcpy(to, from, *len);
	return 0;
}

static const struct stage {
	unsigned id;
	undo_fn *undo;
	bool codes;     /* its output length depends on the content */
	bool needs_length; /* the original one */
} known[] = {
	{ VV_FILTER_DEFLATE, inflate_chunk, true, false },
	{ VV_FILTER_SHUFFLE, unshuffle, false, false },
	{ VV_FILTER_FLETCHER32, check_sum, false, false },
	{ VV_FILTER_SZIP, unszip, true, false },
	{ VV_FILTER_NBIT, unnbit, true, true },
	{ VV_FILTER_SCALEOFFSET, unscale, true, true },
	{ VV_FILTER_LZF, unlzf, true, false },
};

static const struct stage *find(unsigned id)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].id == id)
			return &known[i];
	return NULL;
}

/* Room for the bytes before each filter. A compressor's output is at most slightly longer than its
 * input. */
static int measure(const struct vv_variable *v, uint32_t mask, size_t len, const struct stage *stage[VV_READER_FILTERS],
		   size_t room[VV_READER_FILTERS + 1])
{
	bool exact = true;

	room[0] = len;
	for (unsigned i = 0; i < v->n_filters; i++) {
		unsigned id = v->filter[i].id;

		stage[i] = mask >> i & 1 ? NULL : find(id);
		if (!(mask >> i & 1) && !stage[i])
			return vv_err_set(VV_ENOTSUP, "'%s' went through filter %u, which is not known here", v->name, id);
		if (stage[i] && stage[i]->needs_length && !exact)
			return vv_err_set(VV_ENOTSUP, "'%s' was coded before it went through filter %u", v->name, id);
		exact = exact && !(stage[i] && stage[i]->codes);
		room[i + 1] = room[i] + (stage[i] && stage[i]->codes ? room[i] / 8 + SLACK : stage[i] && id == VV_FILTER_FLETCHER32 ? SUM : 0);
	}
	return 0;
}

int vv_filter_undo(const struct vv_variable *v, uint32_t mask, const void *from, size_t n, void *to, size_t len)
{
	const struct stage *stage[VV_READER_FILTERS];
	size_t room[VV_READER_FILTERS + 1];
	uint8_t *buf[2];
	const uint8_t *now = from;
	int rc;

	if (v->n_filters > VV_READER_FILTERS)
		return vv_err_set(VV_EINVAL, "'%s' has %u filters", v->name, v->n_filters);
	rc = measure(v, mask, len, stage, room);
	if (rc)
		return rc;
	buf[0] = vv_mem_new(room[v->n_filters], 1);
	buf[1] = vv_mem_new(room[v->n_filters], 1);
	rc = buf[0] && buf[1] ? 0 : VV_ENOMEM;
	for (unsigned i = v->n_filters; rc == 0 && i-- > 0;)
		if (stage[i]) {
			uint8_t *next = buf[now == buf[0]];
			size_t got = room[i];

			rc = stage[i]->undo(&v->filter[i], now, n, next, &got);
			now = next;
			n = got;
		}
	if (rc == 0 && n != len)
		rc = vv_err_set(VV_EDAMAGED, "a chunk of '%s' has %zu bytes instead of %zu", v->name, n, len);
	if (rc == 0)
		memcpy(to, now, len);
	vv_mem_free(buf[0]);
	vv_mem_free(buf[1]);
	return rc;
}
