/* Numbers of every kind, and recipes of every kind, for tests of what codes them. Repeatable, the same on every machine: no libm. */
#ifndef VV_TEST_NUMBERS_H
#define VV_TEST_NUMBERS_H

#include "core/format/recipe.h"
#include <stddef.h>

enum numbers {
	NUMBERS_RANDOM,   /* any bits */
	NUMBERS_NAN,      /* with payloads, quiet and signalling, among others */
	NUMBERS_TINY,     /* denormals, 0 and -0 */
	NUMBERS_HUGE,     /* Inf, -Inf and the largest */
	NUMBERS_SMOOTH,   /* a field, with a little noise */
	NUMBERS_CONSTANT,
	NUMBERS_RAMP,
	NUMBERS_COUNTS,   /* small integers */
	NUMBERS_KINDS
};

/* n bytes of numbers of how->width bytes, real and swapped as it says. */
void numbers_fill(uint64_t *state, enum numbers kind, const struct vv_recipe *how, void *p, size_t n);
/* Recipe i of all combinations of width, record, predictor, real, swapped, and some of the strides; false: there are no more. */
bool numbers_recipe(size_t i, struct vv_recipe *out);

#endif
