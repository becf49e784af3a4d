/* Array files made by hand: netCDF classic, Fortran records, NumPy. Everything is appended to a buffer; a want of memory ends the program. */
#ifndef VV_TEST_FORMATS_H
#define VV_TEST_FORMATS_H

#include "base/buf.h"

/* .npy of version 1 to 3; shape as Python writes it: "(3, 4)". */
void formats_npy(struct vv_buf *b, unsigned version, const char *descr, bool fortran_order, const char *shape, const void *data, size_t n);

struct formats_marks {
	unsigned size; /* 4 or 8 */
	bool swapped;
	uint64_t longest; /* records that are longer are split; 0: none are */
};

/* One record of a Fortran unformatted sequential file. */
void formats_record(struct vv_buf *b, const struct formats_marks *m, const void *data, size_t n);

struct formats_dim {
	const char *name;
	uint64_t len; /* 0: the record dimension */
};

struct formats_var {
	const char *name;
	unsigned type; /* NC_BYTE.. = 1.. */
	unsigned ndim;
	unsigned dim[4];
	const uint8_t *data; /* big-endian: all of it, or the slabs of all records one after the other */
	uint64_t at;   /* out: where it begins */
	uint64_t slab; /* out: its bytes, of all or of a record */
};

struct formats_cdf {
	unsigned version; /* 1, 2, 5 */
	uint64_t records;
	bool streaming; /* the header does not tell how many records there are */
	const struct formats_dim *dim;
	unsigned n_dims;
	struct formats_var *var;
	unsigned n_vars;
	uint64_t record_bytes; /* out */
};

/* A netCDF classic file, with an attribute here and there. */
void formats_cdf(struct vv_buf *b, struct formats_cdf *c);

#endif
