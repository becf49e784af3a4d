/* The parameters are those of H5Pset_nbit: their number, a flag for "nothing done", elements, and
 * the type. The type is a class and a size; then byte order, precision and offset for a number, or
 * the base type for an array. */
#include "reader/nbit.h"
#include "base/err.h"
#include "reader/bits.h"
#include <string.h>

enum { NOT_NEEDED = 1, TYPE = 3, ATOMIC = 1, ARRAY = 2, WHOLE = 4 };

struct number {
	uint32_t size, order, precision, offset;
};

/* The number type at the base; size 0: another type. */
static struct number number_of(const struct vv_reader_filter *f)
{
	unsigned at = f->n_values > TYPE && f->value[TYPE] == ARRAY ? TYPE + 2 : TYPE;
	struct number k = {0};

	if (f->n_values < at + 5u || f->value[at] != ATOMIC)
		return k;
	return (struct number){f->value[at + 1], f->value[at + 2], f->value[at + 3], f->value[at + 4]};
}

int vv_nbit_undo(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len)
{
	struct number k = number_of(f);
	struct vv_bits b = {.p = from};
	bool plain = f->n_values > NOT_NEEDED && f->value[NOT_NEEDED];

	plain |= f->n_values > TYPE && f->value[TYPE] == WHOLE;
	if (plain && n < len)
		return vv_err_set(VV_EDAMAGED, "an n-bit chunk has %zu bytes instead of %zu", n, len);
	if (plain) {
		memcpy(to, from, len);
		return 0;
	}
	if (k.size == 0)
		return vv_err_set(VV_ENOTSUP, "n-bit of records is not known here");
	if (k.size > 8 || k.precision == 0 || k.precision > 8 * k.size || k.offset > 8 * k.size - k.precision ||
	    len % k.size)
		return vv_err_set(VV_EDAMAGED, "n-bit: %u bits from bit %u on of %u bytes cannot be", k.precision,
				  k.offset, k.size);
	if (n < (len / k.size * k.precision + 7) / 8)
		return vv_err_set(VV_EDAMAGED, "an n-bit chunk of %zu bytes is too short for %zu", n, len);
	for (size_t i = 0; i < len; i += k.size)
		vv_bits_put(to + i, k.size, vv_bits_take(&b, k.precision) << k.offset, k.order != 0);
	return 0;
}
