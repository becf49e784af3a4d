/* The residuals of a prediction of numbers from those before them, and back (Lorenzo's predictor,
 * of one to three dimensions). Residuals are small where a field is smooth, so that their high
 * planes are zero. An array is treated as one sequence, in which a row or a plane is a distance.
 * Any part of an array can therefore be predicted, and the borders of rows need not be known.
 * Numbers before the beginning are 0. Exact for every bit pattern. */
#ifndef VV_CODEC_PREDICT_H
#define VV_CODEC_PREDICT_H

#include "core/format/recipe.h"
#include <stddef.h>

/* bytes per call for the best speed */
enum { VV_PREDICT_TILE = 16 << 10 };

/* Does the transform support the recipe: its width, predictor and strides? */
bool vv_predict_can(const struct vv_recipe *how);
/* Does the transform change anything? A recipe without a prediction leaves the bytes unchanged,
 * swapped or not. */
bool vv_predict_changes(const struct vv_recipe *how);

/* ---- forth: numbers to residuals, from the first to the last. */

struct vv_predict {
	const struct vv_recipe *how;
	const uint8_t *from; /* the numbers */
	uint8_t *room;       /* for as many numbers */
	size_t off[1 << VV_RECIPE_STRIDES];
};

void vv_predict_init(struct vv_predict *p, const struct vv_recipe *how, const void *from, void *room);
/* The residuals of n numbers from number `at` on, which follow directly those of the call
 * before. */
void vv_predict_next(struct vv_predict *p, size_t at, size_t n, void *out);

/* ---- back: residuals to numbers, in place. */

struct vv_predict_back {
	const struct vv_recipe *how;
	uint8_t *x;
	size_t count; /* of all numbers */
	size_t off[1 << VV_RECIPE_STRIDES];
	size_t done[3]; /* the progress of each pass */
	uint64_t sum;   /* the number at the position of the second pass, as an ordered integer */
};

void vv_predict_back_init(struct vv_predict_back *b, const struct vv_recipe *how, void *x, size_t count);
/* The residuals of the first `have` numbers are available. All are numbers again after a call with
 * have = count. */
void vv_predict_back_to(struct vv_predict_back *b, size_t have);

#endif
