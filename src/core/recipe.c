#include "core/recipe.h"
#include "core/head.h"

struct vv_form vv_recipe_form(unsigned type, bool swapped, unsigned ndim, const uint64_t *dim)
{
	struct vv_form f = { .type = (uint8_t)type, .swapped = swapped };

	if (ndim > 1)
		f.row = dim[ndim - 1];
	if (ndim > 2 && dim[ndim - 2] < UINT32_MAX && f.row < UINT32_MAX)
		f.plane = f.row * dim[ndim - 2];
	return f;
}

bool vv_recipe_same_form(const struct vv_form *a, const struct vv_form *b)
{
	return a->type == b->type && a->swapped == b->swapped && a->record == b->record && a->row == b->row && a->plane == b->plane;
}

struct vv_form vv_recipe_common_form(const struct vv_form *a, const struct vv_form *b)
{
	static const uint8_t of_width[] = { [2] = VV_TYPE_U16, [4] = VV_TYPE_U32, [8] = VV_TYPE_U64, [16] = VV_TYPE_BYTES };

	if (vv_recipe_same_form(a, b))
		return *a;
	if (a->type == b->type && a->swapped == b->swapped)
		return (struct vv_form){ .type = a->type, .swapped = a->swapped };
	if (a->swapped || b->swapped || vv_head_type_size(a->type) != vv_head_type_size(b->type))
		return (struct vv_form){ 0 };
	return (struct vv_form){ .type = of_width[vv_head_type_size(a->type)] };
}

bool vv_recipe_same(const struct vv_recipe *a, const struct vv_recipe *b)
{
	bool same = a->width == b->width && a->record == b->record && a->predictor == b->predictor && a->real == b->real &&
		    a->swapped == b->swapped && a->coder == b->coder && a->level == b->level && a->window == b->window &&
		    a->n_strides == b->n_strides;

	for (unsigned i = 0; same && i < a->n_strides; i++)
		same = a->stride[i] == b->stride[i];
	return same;
}
