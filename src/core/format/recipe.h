/* The method of compressing a block of numbers: swap, predict, split into the bytes of equal
 * weight, compress each plane by itself. A recipe is never wrong, only better or worse: any recipe
 * can compress any bytes. The file also has the form, the known properties of bytes to be
 * compressed. */
#ifndef VV_CORE_FORMAT_RECIPE_H
#define VV_CORE_FORMAT_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VV_RECIPE_WIDEST = 16,   /* bytes of a number */
	VV_RECIPE_PLANES = 1024, /* bytes of a record: as many planes */
	VV_RECIPE_STRIDES = 3,
};

enum vv_predictor {
	VV_PREDICT_NONE,
	/* differences over each of the strides in turn, of the numbers as ordered integers */
	VV_PREDICT_LORENZO,
	/* the same neighbours, added up as floating point; for real numbers of 4 or 8 bytes */
	VV_PREDICT_REAL,
	/* Islam 2012's first passes, in codec 5 only */
	VV_PREDICT_FPC,
	VV_PREDICT_FPZIP,
	VV_PREDICT_LZ,
	/* words predicted by earlier words at a distance, in codec 6 only */
	VV_PREDICT_TRAIL,
	/* text in columns of numbers, in codec 8 only */
	VV_PREDICT_TEXT,
};

struct vv_recipe {
	uint8_t width;     /* bytes of a number; 1: not known to be numbers */
	uint16_t record;   /* numbers in a record, each with its own planes; 1: no records */
	uint8_t predictor;
	bool real;         /* floating point with the sign on top: 2, 4 or 8 bytes */
	bool swapped;      /* the high byte comes first */
	uint8_t coder;     /* compressor of the planes: VV_CODEC_NONE, _LZ4, _ZSTD */
	int8_t level;      /* of the compressor */
	uint8_t window;    /* log2 of the compressor's window in bytes; 0: the default */
	uint8_t n_strides;
	uint32_t stride[VV_RECIPE_STRIDES]; /* in numbers, ascending: 1, a row, a plane */
};

/* The known properties of bytes before compression: a type of core/format/head.h, and the layout of
 * an array of that type in memory. */
struct vv_form {
	uint8_t type;    /* enum vv_type; VV_TYPE_BYTES: not known to be numbers */
	bool swapped;
	uint32_t record; /* bytes of a record of several fields; 0: none */
	uint64_t row;    /* numbers in a row, the fastest dimension; 0: not known */
	uint64_t plane;  /* numbers in a plane of rows; 0: not known */
};

/* The form of a type and shape; ndim may be 0. */
struct vv_form vv_recipe_form(unsigned type, bool swapped, unsigned ndim, const uint64_t *dim);
bool vv_recipe_same_form(const struct vv_form *a, const struct vv_form *b);
/* The properties common to both forms: for numbers of one width, that they are such numbers. */
struct vv_form vv_recipe_common_form(const struct vv_form *a, const struct vv_form *b);
bool vv_recipe_same(const struct vv_recipe *a, const struct vv_recipe *b);

/* Readable text: "f64 lorenzo-3d planes zstd:3". Cut to n bytes with its end. */
void vv_recipe_words(const struct vv_recipe *r, char *out, size_t n);

/* Numbers of `width` bytes, split into planes and nothing else. */
static inline struct vv_recipe vv_recipe_plain(unsigned width)
{
	return (struct vv_recipe){ .width = (uint8_t)width, .record = 1 };
}

#endif
