#include "core/format/recipe.h"
#include "core/format/head.h"
#include <stdarg.h>
#include <stdio.h>

struct vv_form vv_recipe_form(unsigned type, bool swapped, unsigned ndim, const uint64_t *dim)
{
	struct vv_form f = { .type = (uint8_t)type, .swapped = swapped };

	if (type == VV_TYPE_RECORD)
		return (struct vv_form){ 0 };
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

struct words {
	char *p;
	size_t n, used;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = w->used < w->n ? vsnprintf(w->p + w->used, w->n - w->used, fmt, ap) : 0;
	va_end(ap);
	w->used += n > 0 ? (size_t)n : 0;
}

static void say_numbers(struct words *w, const struct vv_recipe *r)
{
	if (r->record > 1)
		say(w, "%ux", r->record);
	if (r->width <= 1)
		say(w, "bytes");
	else
		say(w, "%c%u%s", r->real ? 'f' : 'i', 8 * r->width, r->swapped ? "be" : "");
}

static void say_predictor(struct words *w, const struct vv_recipe *r)
{
	static const char *const firsts[] = { [VV_PREDICT_FPC] = "fpc", [VV_PREDICT_FPZIP] = "fpzip", [VV_PREDICT_LZ] = "lz",
						[VV_PREDICT_TRAIL] = "trail", [VV_PREDICT_TEXT] = "columns" };

	if (r->predictor == VV_PREDICT_LORENZO && r->n_strides <= 1 && r->stride[0] <= 1)
		say(w, " delta");
	else if (r->predictor == VV_PREDICT_LORENZO || r->predictor == VV_PREDICT_REAL)
		say(w, " %s-%ud", r->predictor == VV_PREDICT_REAL ? "real" : "lorenzo", r->n_strides);
	else if (r->predictor >= VV_PREDICT_FPC && r->predictor <= VV_PREDICT_TEXT)
		say(w, " %s", firsts[r->predictor]);
}

/* Numbers of the format's codecs, docs/format.md. */
static void say_coder(struct words *w, const struct vv_recipe *r)
{
	static const char *const names[] = { "raw", "lz4", "zstd" };

	if (r->coder < sizeof(names) / sizeof(names[0]))
		say(w, " %s", names[r->coder]);
	else
		say(w, " coder-%u", r->coder);
	if (r->coder > 1 && r->level)
		say(w, ":%d", r->level);
	if (r->window)
		say(w, " window-%u", r->window);
}

void vv_recipe_words(const struct vv_recipe *r, char *out, size_t n)
{
	struct words w = { out, n, 0 };

	if (!r->width) {
		say(&w, "-");
		return;
	}
	say_numbers(&w, r);
	say_predictor(&w, r);
	if (r->predictor < VV_PREDICT_FPC && (size_t)r->width * r->record > 1)
		say(&w, " planes");
	say_coder(&w, r);
}
