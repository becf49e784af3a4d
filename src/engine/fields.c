#include "engine/fields.h"
#include "base/err.h"
#include <string.h>

static int convert(const char *region, const struct varve_field *f, struct vv_record_field *out)
{
	size_t n = f->name ? strlen(f->name) : 0;

	if (n > VV_RECORD_NAME)
		return vv_err_set(VV_EINVAL, "region '%s': the name '%.20s...' of a field has %zu characters, the limit is %d", region, f->name, n, VV_RECORD_NAME);
	if (f->offset > VV_RECORD_BYTES || f->bytes > VV_RECORD_BYTES || (unsigned)f->type > UINT8_MAX)
		return vv_err_set(VV_EINVAL, "region '%s': field '%s' has type %d, offset %zu and %zu bytes; a record has at most %d bytes",
				  region, f->name ? f->name : "", (int)f->type, f->offset, f->bytes, VV_RECORD_BYTES);
	*out = (struct vv_record_field){ .type = (uint8_t)f->type, .offset = (uint32_t)f->offset, .bytes = (uint32_t)f->bytes };
	if (n)
		memcpy(out->name, f->name, n);
	return 0;
}

int vv_fields_record(const char *region, size_t bytes, const struct varve_field *field, size_t n, const struct vv_record **out)
{
	struct vv_record_field list[VV_RECORD_FIELDS];
	int rc = 0;

	if (!field && n)
		return vv_err_set(VV_EINVAL, "region '%s': no fields (NULL) of its records", region);
	for (size_t i = 0; rc == 0 && i < n && i < VV_RECORD_FIELDS; i++)
		rc = convert(region, &field[i], &list[i]);
	return rc ? rc : vv_record_find(region, bytes, list, n, out);
}

void vv_fields_list(const struct vv_record *r, struct varve_field *out)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct vv_record_field *f = &r->field[i];

		out[i] = (struct varve_field){ f->name, (enum varve_type)f->type, f->offset, f->bytes };
	}
}
