/* How a block of numbers is coded: swapped, predicted, split into the bytes of equal weight, each plane coded by itself. A recipe is never
 * wrong, only better or worse: any bytes can be coded by any of them. And what is known beforehand of bytes that are to be coded. */
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
	VV_PREDICT_LORENZO, /* differences over each of the strides, one after the other, of the numbers as ordered integers */
	VV_PREDICT_REAL,    /* the same neighbours, added up as floating point; for real numbers of 4 or 8 bytes */
	/* Islam 2012's first passes, in codec 5 only */
	VV_PREDICT_FPC,
	VV_PREDICT_FPZIP,
	VV_PREDICT_LZ,
	/* words by those at a distance before them, in codec 6 only */
	VV_PREDICT_TRAIL,
};

struct vv_recipe {
	uint8_t width;     /* bytes of a number; 1: not known to be numbers */
	uint16_t record;   /* numbers that make a record, whose planes are apart; 1: none */
	uint8_t predictor;
	bool real;         /* IEEE floating point: 4 or 8 bytes */
	bool swapped;      /* the high byte comes first */
	uint8_t coder;     /* of the planes: VV_CODEC_NONE, _LZ4, _ZSTD */
	int8_t level;      /* the coder's */
	uint8_t window;    /* log2 of how far back the coder looks; 0: as usual */
	uint8_t n_strides;
	uint32_t stride[VV_RECIPE_STRIDES]; /* in numbers, ascending: 1, a row, a plane */
};

/* What is known of bytes before they are coded: a type of core/format/head.h, and how an array of it lies in memory. */
struct vv_form {
	uint8_t type;    /* enum vv_type; VV_TYPE_BYTES: not known to be numbers */
	bool swapped;
	uint32_t record; /* bytes of a record of several fields; 0: none */
	uint64_t row;    /* numbers in a row, the fastest dimension; 0: not known */
	uint64_t plane;  /* numbers in a plane of rows; 0: not known */
};

/* Of a type and shape; ndim may be 0. */
struct vv_form vv_recipe_form(unsigned type, bool swapped, unsigned ndim, const uint64_t *dim);
bool vv_recipe_same_form(const struct vv_form *a, const struct vv_form *b);
/* What can be said of bytes of both: of numbers of one width that they are such. */
struct vv_form vv_recipe_common_form(const struct vv_form *a, const struct vv_form *b);
bool vv_recipe_same(const struct vv_recipe *a, const struct vv_recipe *b);

/* For people: "f64 lorenzo-3d planes zstd:3". Cut to n bytes with its end. */
void vv_recipe_words(const struct vv_recipe *r, char *out, size_t n);

/* Bytes of `width` each, split into planes and nothing else. */
static inline struct vv_recipe vv_recipe_plain(unsigned width)
{
	return (struct vv_recipe){ .width = (uint8_t)width, .record = 1 };
}

#endif
