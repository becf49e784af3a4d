/* The search for the best recipe, by trying several on samples. It runs once per kind of variable,
 * and again when the recipe no longer reaches its expected ratio. */
#ifndef VV_CODEC_RECIPE_SEARCH_H
#define VV_CODEC_RECIPE_SEARCH_H

#include "core/format/recipe.h"
#include <stddef.h>
#include <stdint.h>

enum vv_effort { VV_EFFORT_FAST, VV_EFFORT_DEFAULT, VV_EFFORT_MAX };

enum {
	VV_RECIPE_SEARCH_SAMPLES = 16,
	/* of each; bytes of all samples beyond so much are ignored */
	VV_RECIPE_SEARCH_BYTES = 64 << 10,
};

/* A part of one instance of a variable: complete rows or records of it, from the same place in each
 * instance. Two samples of full length show more than many short ones. A large share of all data
 * costs more than it can gain. */
struct vv_sample {
	const uint8_t *p;
	size_t n;
};

enum { VV_RECIPE_SEARCH_FINALISTS = 3 };

struct vv_recipe_search {
	/* with VV_CODEC_NONE nothing is gained, and the bytes should stay uncompressed */
	struct vv_recipe recipe;
	double ratio; /* the expected one */
	double alike; /* the gain of compressing the samples together; above 1.10 they should be */
	struct { /* candidates tried on all samples, each by itself, and the resulting bytes */
		struct vv_recipe recipe;
		size_t size;
	} finalist[VV_RECIPE_SEARCH_FINALISTS];
	size_t n_finalists, bytes; /* in all samples */
};

/* Chooses a recipe. together: may the instances be compressed together? The same samples give the
 * same result. Fails only for lack of memory. */
int vv_recipe_search_choose(const struct vv_form *form, enum vv_effort effort, bool together, const struct vv_sample *s, size_t n,
		    struct vv_recipe_search *out);

/* The same for instances together, once the best recipe for each apart is known. It tries only that
 * recipe and those that detect similar instances. */
int vv_recipe_search_together(const struct vv_form *form, enum vv_effort effort, const struct vv_recipe_search *apart, const struct vv_sample *s, size_t n,
		      struct vv_recipe_search *out);

/* The codec of a recipe: VV_CODEC_TYPED, VV_CODEC_TRAIL, VV_CODEC_TEXT, or VV_CODEC_NONE. */
uint32_t vv_recipe_search_codec(const struct vv_recipe *r);
/* The factor by which a recipe shortens a sample; 1: it does not. */
int vv_recipe_search_one(const struct vv_recipe *r, const struct vv_sample *s, double *ratio);

#endif
