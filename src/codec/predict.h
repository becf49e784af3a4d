/* Numbers as what a prediction from those before them misses, and back (Lorenzo's predictor, of one to three dimensions): small where a field is
 * smooth, so that the high planes of it are zero. An array is seen as one sequence, in which a row or a plane is a distance: so any stretch of
 * one can be predicted, and rows need not be told apart. Numbers before the beginning count as 0. Exact for every bit pattern. */
#ifndef VV_CODEC_PREDICT_H
#define VV_CODEC_PREDICT_H

#include "core/format/recipe.h"
#include <stddef.h>

enum { VV_PREDICT_TILE = 16 << 10 }; /* bytes that are best done at once */

/* Whether the transform is there for it: width, predictor, strides. */
bool vv_predict_can(const struct vv_recipe *how);
/* Whether it changes anything; a recipe that does not predict leaves the bytes as they lie, swapped or not. */
bool vv_predict_changes(const struct vv_recipe *how);

/* ---- forth: numbers to residuals, from the first to the last. */

struct vv_predict {
	const struct vv_recipe *how;
	const uint8_t *from; /* the numbers */
	uint8_t *room;       /* for as many */
	size_t off[1 << VV_RECIPE_STRIDES];
};

void vv_predict_init(struct vv_predict *p, const struct vv_recipe *how, const void *from, void *room);
/* The residuals of n numbers, the first of which is number `at`: right behind those of the call before. */
void vv_predict_next(struct vv_predict *p, size_t at, size_t n, void *out);

/* ---- back: residuals to numbers, in place. */

struct vv_predict_back {
	const struct vv_recipe *how;
	uint8_t *x;
	size_t count; /* of all numbers */
	size_t off[1 << VV_RECIPE_STRIDES];
	size_t done[3]; /* how far each pass has come */
	uint64_t sum;   /* the number where the second one is, before it is put in order */
};

void vv_predict_back_init(struct vv_predict_back *b, const struct vv_recipe *how, void *x, size_t count);
/* The residuals of the first `have` numbers are there. They are numbers when it has been called with have = count. */
void vv_predict_back_to(struct vv_predict_back *b, size_t have);

#endif
