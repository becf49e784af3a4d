/* One list of all records of the process. A program declares few kinds of records, so the list is
 * short. */
#include "core/format/record.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/head.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 14 }; /* kinds of records in a process: a hostile store may not use up the memory */

static _Atomic(struct vv_record *) newest;

static int by_offset(const void *a, const void *b)
{
	const struct vv_record_field *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool is_name(const char *s)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	return *s && !s[strspn(s, allowed)];
}

static int check_field(const char *region, const struct vv_record *r, size_t i)
{
	const struct vv_record_field *f = &r->field[i];
	size_t size = vv_head_type_size(f->type);

	if (!is_name(f->name))
		return vv_err_set(VV_EINVAL, "region '%s': the name of field %zu of its record is not 1 to %d letters, digits and '_'",
				  region, i, VV_RECORD_NAME);
	if (!size || !f->bytes || f->bytes % size)
		return vv_err_set(VV_EINVAL, "region '%s': field '%s' has type %u and %u bytes; the bytes are a multiple of the type's",
				  region, f->name, f->type, f->bytes);
	if (f->bytes > r->bytes || f->offset > r->bytes - f->bytes)
		return vv_err_set(VV_EINVAL, "region '%s': field '%s' ends after the %u bytes of the record", region, f->name, r->bytes);
	if (i && f->offset < r->field[i - 1].offset + r->field[i - 1].bytes)
		return vv_err_set(VV_EINVAL, "region '%s': the fields '%s' and '%s' overlap", region, r->field[i - 1].name, f->name);
	for (size_t k = 0; k < i; k++)
		if (strcmp(r->field[k].name, f->name) == 0)
			return vv_err_set(VV_EINVAL, "region '%s': two fields have the name '%s'", region, f->name);
	return 0;
}

static bool same(const struct vv_record *a, const struct vv_record *b)
{
	return a->bytes == b->bytes && a->n == b->n && memcmp(a->field, b->field, a->n * sizeof(a->field[0])) == 0;
}

/* Adds the record to the list, or frees it and returns the one that is there. */
static int enter(const char *region, struct vv_record *r, const struct vv_record **out)
{
	struct vv_record *head = atomic_load(&newest), *seen = NULL;

	do {
		for (struct vv_record *x = head; x != seen; x = x->next) {
			if (same(x, r)) {
				vv_mem_free(r);
				*out = x;
				return 0;
			}
		}
		if (head && head->number >= MOST) {
			vv_mem_free(r);
			return vv_err_set(VV_ENOMEM, "region '%s': this process knows %d kinds of records, which is the limit", region, MOST);
		}
		r->number = head ? head->number + 1 : 1;
		r->next = seen = head;
	} while (!atomic_compare_exchange_weak(&newest, &head, r));
	*out = r;
	return 0;
}

static struct vv_record *copy_fields(uint64_t bytes, const struct vv_record_field *field, size_t n)
{
	struct vv_record *r = vv_mem_new(1, sizeof(*r) + n * sizeof(r->field[0]));

	if (!r)
		return NULL;
	r->bytes = (uint32_t)bytes;
	r->n = (uint32_t)n;
	for (size_t i = 0; i < n; i++) { /* no byte after a name, and none between members, may differ */
		struct vv_record_field *f = &r->field[i];

		memset(f, 0, sizeof(*f));
		strncpy(f->name, field[i].name, VV_RECORD_NAME);
		f->type = field[i].type;
		f->offset = field[i].offset;
		f->bytes = field[i].bytes;
	}
	qsort(r->field, n, sizeof(r->field[0]), by_offset);
	return r;
}

int vv_record_find(const char *region, uint64_t bytes, const struct vv_record_field *field, size_t n, const struct vv_record **out)
{
	struct vv_record *r;
	int rc = 0;

	if (bytes < 1 || bytes > VV_RECORD_BYTES || n < 1 || n > VV_RECORD_FIELDS)
		return vv_err_set(VV_EINVAL, "region '%s': a record of %" PRIu64 " bytes with %zu fields; the limits are 1 to %d bytes and 1 to %d fields",
				  region, bytes, n, VV_RECORD_BYTES, VV_RECORD_FIELDS);
	r = copy_fields(bytes, field, n);
	if (!r)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = check_field(region, r, i);
	if (rc)
		vv_mem_free(r);
	return rc ? rc : enter(region, r, out);
}

void vv_record_put(const struct vv_record *r, struct vv_buf *b)
{
	uint32_t end = 0;

	vv_wire_put_var(b, r->bytes);
	vv_wire_put_var(b, r->n);
	for (uint32_t i = 0; i < r->n; i++) {
		const struct vv_record_field *f = &r->field[i];

		vv_wire_put_str(b, f->name);
		vv_wire_put_u8(b, f->type);
		vv_wire_put_var(b, f->offset - end);
		vv_wire_put_var(b, f->bytes);
		end = f->offset + f->bytes;
	}
}

int vv_record_get(const char *region, struct vv_wire *w, const struct vv_record **out)
{
	struct vv_record_field field[VV_RECORD_FIELDS];
	uint64_t bytes = vv_wire_var_max(w, VV_RECORD_BYTES), end = 0;
	size_t n = (size_t)vv_wire_var_max(w, VV_RECORD_FIELDS);

	memset(field, 0, sizeof(field));
	for (size_t i = 0; !w->bad && i < n; i++) {
		vv_wire_str(w, field[i].name, sizeof(field[i].name));
		field[i].type = vv_wire_u8(w);
		field[i].offset = (uint32_t)(end + vv_wire_var_max(w, VV_RECORD_BYTES));
		field[i].bytes = (uint32_t)vv_wire_var_max(w, VV_RECORD_BYTES);
		end = (uint64_t)field[i].offset + field[i].bytes;
		w->bad |= end > bytes;
	}
	return w->bad ? VV_EDAMAGED : vv_record_find(region, bytes, field, n, out);
}
