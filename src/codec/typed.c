/* Numbers by a recipe: predicted from those before them, split into byte planes, each compressed by
 * itself. The work goes tile by tile, so that the output of one step is still in the cache for the
 * next. */
#include "base/err.h"
#include "codec/codec.h"
#include "codec/predict.h"
#include "codec/context_pool.h"
#include "codec/split.h"
#include <string.h>

enum { LONGEST = 64 << 20, WINDOW_MIN = 10, WINDOW_MAX = 27 };

/* The bits of the first two bytes. */
enum { PREDICTOR = 3, REAL = 5, SWAPPED = 6, STRIDES = 2, RECORD = 4, USED = 5 };

static size_t bound(size_t n)
{
	return n + 64 + VV_RECIPE_PLANES * 4;
}

/* Can a block have this recipe? */
static bool is_sound(const struct vv_recipe *r)
{
	return vv_predict_can(r) && r->record >= 1 && r->width * r->record <= VV_RECIPE_PLANES && r->coder <= VV_CODEC_ZSTD &&
	       (r->window == 0 || (r->window >= WINDOW_MIN && r->window <= WINDOW_MAX));
}

static void put_recipe(struct vv_buf *b, const struct vv_recipe *r)
{
	unsigned log = (unsigned)__builtin_ctz(r->width);

	vv_wire_put_u8(b, (uint8_t)(log | (unsigned)r->predictor << PREDICTOR | (unsigned)r->real << REAL | (unsigned)r->swapped << SWAPPED));
	vv_wire_put_u8(b, (uint8_t)(r->coder | r->n_strides << STRIDES | (r->record > 1) << RECORD));
	vv_wire_put_u8(b, (uint8_t)r->level);
	vv_wire_put_u8(b, r->window);
	if (r->record > 1)
		vv_wire_put_var(b, r->record);
	for (unsigned k = 0; k < r->n_strides; k++)
		vv_wire_put_var(b, r->stride[k]);
}

static bool get_recipe(struct vv_wire *w, struct vv_recipe *r)
{
	unsigned a = vv_wire_u8(w), b = vv_wire_u8(w), level = vv_wire_u8(w), window = vv_wire_u8(w);

	*r = (struct vv_recipe){
		.width = (uint8_t)(1u << (a & 7)),
		.record = 1,
		.predictor = a >> PREDICTOR & 3,
		.real = a >> REAL & 1,
		.swapped = a >> SWAPPED & 1,
		.coder = b & 3,
		.n_strides = b >> STRIDES & 3,
		.level = (int8_t)level,
		.window = (uint8_t)window,
	};
	if (b >> RECORD & 1)
		r->record = (uint16_t)vv_wire_var_max(w, VV_RECIPE_PLANES);
	for (unsigned k = 0; k < r->n_strides; k++)
		r->stride[k] = (uint32_t)vv_wire_var_max(w, UINT32_MAX);
	return !w->bad && a >> (SWAPPED + 1) == 0 && b >> USED == 0 && (b >> RECORD & 1) == (r->record > 1) && is_sound(r);
}

/* Records that are processed at once. */
static size_t tile(unsigned bytes)
{
	return VV_PREDICT_TILE / bytes;
}

/* Predicts m records (room is for as many), then splits them into planes. */
static void spread(const struct vv_recipe *r, const uint8_t *from, size_t m, uint8_t *room, uint8_t *planes)
{
	unsigned bytes = r->width * r->record;
	uint8_t residual[VV_PREDICT_TILE];
	struct vv_predict p;

	if (!vv_predict_changes(r)) {
		vv_split_apart(from, m, bytes, planes, m);
		return;
	}
	vv_predict_init(&p, r, from, room);
	for (size_t at = 0, some; at < m; at += some) {
		some = m - at < tile(bytes) ? m - at : tile(bytes);
		vv_predict_next(&p, at * r->record, some * r->record, residual);
		vv_split_apart(residual, some, bytes, planes + at, m);
	}
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	struct vv_recipe r = how ? *how : vv_recipe_plain(1);
	struct vv_buf header = { 0 };
	size_t m, tail;
	uint8_t *room;
	int rc;

	*out = 0;
	r.level = r.level ? r.level : (int8_t)level;
	r.n_strides = r.predictor == VV_PREDICT_NONE ? 0 : r.n_strides;
	if (!how || n > LONGEST || !is_sound(&r) || n < (size_t)r.width * r.record)
		return 0;
	if (r.coder != VV_CODEC_NONE && !vv_codec_numbered(r.coder))
		return 0;
	m = n / (r.width * r.record);
	tail = n % (r.width * r.record);
	room = vv_context_pool_room(vv_predict_changes(&r) ? 2 * n : n);
	if (!room)
		return VV_ENOMEM;
	spread(&r, from, m, room + n, room);
	put_recipe(&header, &r);
	rc = vv_split_encode(room, r.width * r.record, m, &r, &header, (const uint8_t *)from + n - tail, tail, to, cap, out);
	vv_context_pool_room_back(room);
	vv_buf_fini(&header);
	return rc;
}

/* Joins the planes, and turns residuals into numbers. */
static void collect(const struct vv_recipe *r, const struct vv_split *s, size_t m, uint8_t *to)
{
	unsigned bytes = r->width * r->record;
	struct vv_predict_back b;

	if (!vv_predict_changes(r)) {
		vv_split_join(s->plane, 0, m, bytes, to);
		return;
	}
	vv_predict_back_init(&b, r, to, m * r->record);
	for (size_t at = 0, some; at < m; at += some) {
		some = m - at < tile(bytes) ? m - at : tile(bytes);
		vv_split_join(s->plane, at, some, bytes, to + at * bytes);
		vv_predict_back_to(&b, (at + some) * r->record);
	}
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	struct vv_wire w = vv_wire_over(from, n);
	struct vv_recipe r;
	struct vv_split s;
	size_t m, tail;
	int rc;

	if (!get_recipe(&w, &r) || raw_len > LONGEST || raw_len < (size_t)r.width * r.record)
		return vv_err_set(VV_EDAMAGED, "a block of numbers does not decode: its recipe is none");
	m = raw_len / (r.width * r.record);
	tail = raw_len % (r.width * r.record);
	rc = vv_split_decode(&s, &w, r.width * r.record, m, tail, r.coder);
	if (rc == 0) {
		collect(&r, &s, m, to);
		memcpy((uint8_t *)to + raw_len - tail, vv_wire_bytes(&w, tail), tail);
	}
	vv_split_fini(&s);
	return rc;
}

static struct vv_recipe recipe_of(const void *coded, size_t n)
{
	struct vv_wire w = vv_wire_over(coded, n);
	struct vv_recipe r;

	return get_recipe(&w, &r) ? r : vv_recipe_plain(1);
}

extern const struct vv_codec vv_codec_typed;
const struct vv_codec vv_codec_typed = {
	.name = "typed",
	.number = VV_CODEC_TYPED,
	.min_level = 1,
	.max_level = 19,
	.usual_level = 1,
	.bound = bound,
	.encode = encode,
	.decode = decode,
	.decode_takes = vv_split_decode_takes,
	.recipe = recipe_of,
};
