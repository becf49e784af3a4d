/* Which recipe is best, found by trying several on samples: per kind of variable, once, and again when it no longer holds what it promised. */
#ifndef VV_CODEC_RECIPE_SEARCH_H
#define VV_CODEC_RECIPE_SEARCH_H

#include "core/format/recipe.h"
#include <stddef.h>
#include <stdint.h>

enum vv_effort { VV_EFFORT_FAST, VV_EFFORT_DEFAULT, VV_EFFORT_MAX };

enum {
	VV_RECIPE_SEARCH_SAMPLES = 16,
	VV_RECIPE_SEARCH_BYTES = 64 << 10, /* of each; what all of them have beyond so much is not looked at */
};

/* A stretch of one instance of a variable: whole rows or records of it, from the same place in each. Two of full length tell more than many
 * short ones; a large share of all there is costs more than it can gain. */
struct vv_sample {
	const uint8_t *p;
	size_t n;
};

enum { VV_RECIPE_SEARCH_FINALISTS = 3 };

struct vv_recipe_search {
	struct vv_recipe recipe; /* coder VV_CODEC_NONE: nothing is gained, the bytes had better stay as they are */
	double ratio; /* that it promises */
	double alike; /* how much smaller the samples are when they are coded together; above 1.10 they had better be */
	struct { /* what was tried on all samples, each by itself, and how many bytes are left */
		struct vv_recipe recipe;
		size_t size;
	} finalist[VV_RECIPE_SEARCH_FINALISTS];
	size_t n_finalists, bytes; /* in all samples */
};

/* together: may the instances be coded together? The same samples give the same answer. Fails only for want of memory. */
int vv_recipe_search_choose(const struct vv_form *form, enum vv_effort effort, bool together, const struct vv_sample *s, size_t n,
		    struct vv_recipe_search *out);

/* The same of instances together, once it is known how each is best coded apart: that, and what can see that they are alike, is all that is tried. */
int vv_recipe_search_together(const struct vv_form *form, enum vv_effort effort, const struct vv_recipe_search *apart, const struct vv_sample *s, size_t n,
		      struct vv_recipe_search *out);

/* The codec of a recipe: VV_CODEC_TYPED, VV_CODEC_TRAIL, or VV_CODEC_NONE. */
uint32_t vv_recipe_search_codec(const struct vv_recipe *r);
/* How many times shorter a recipe makes a sample; 1: it does not. */
int vv_recipe_search_one(const struct vv_recipe *r, const struct vv_sample *s, double *ratio);

#endif
