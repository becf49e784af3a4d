/* Which recipe is best, found by trying several on samples: per kind of variable, once, and again when it no longer holds what it promised. */
#ifndef VV_CODEC_TASTE_H
#define VV_CODEC_TASTE_H

#include "core/recipe.h"
#include <stddef.h>

enum vv_effort { VV_EFFORT_FAST, VV_EFFORT_DEFAULT, VV_EFFORT_MAX };

enum { VV_TASTE_SAMPLES = 16, VV_TASTE_BYTES = 64 << 10 }; /* at most so many, of so many bytes each */

struct vv_sample { /* a stretch of one instance of a variable: whole rows of it where it is an array, from the same place in each */
	const uint8_t *p;
	size_t n;
};

struct vv_taste {
	struct vv_recipe recipe;
	double ratio; /* that it promises */
	double alike; /* how much smaller the samples are when they are coded together; above 1.10 they had better be */
};

/* Fails only for want of memory. */
int vv_taste_choose(const struct vv_form *form, enum vv_effort effort, const struct vv_sample *s, size_t n, struct vv_taste *out);

#endif
