/* The fields of a record as varve.h and varve_read.h have them. */
#ifndef VV_ENGINE_FIELDS_H
#define VV_ENGINE_FIELDS_H

#include "core/format/record.h"
#include "varve/varve.h"

/* The record that a program declares. */
int vv_fields_record(const char *region, size_t bytes, const struct varve_field *field, size_t n, const struct vv_record **out);
/* Fills r->n fields. Their names belong to the record. */
void vv_fields_list(const struct vv_record *r, struct varve_field *out);

#endif
