/* Candidates come in the order of their cost, and a more expensive one must be clearly smaller. All
 * candidates are tried on a few samples. The best and the plainest are then tried on all samples,
 * together and one by one. Nothing depends on time, so that packing the same files twice gives the
 * same bytes. */
#include "codec/recipe_search.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/period.h"
#include "core/format/head.h"
#include <string.h>

enum {
	MOST = 24,             /* candidates */
	ALL = VV_RECIPE_SEARCH_SAMPLES * VV_RECIPE_SEARCH_BYTES,
	ALL_NUMBERS = ALL / 4, /* enough for numbers of one kind */
	FEW = 2,               /* samples for the trial of all candidates */
	FIRST = 64 << 10,      /* bytes of them; more if planes are large, up to .. */
	FIRST_MOST = 256 << 10,
	FIRST_BYTES = 64 << 10, /* .. and for unknown bytes */
	/* if all samples are at most so many times the first bytes, the first bytes are
	 * sufficient */
	ENOUGH = 2,
	SMALL = 256,           /* bytes: fewer allow no conclusion */
	WINDOW = 24,           /* log2 of a window that spans several instances */
};

/* A more expensive candidate must be smaller by this factor. Bytes that do not shrink by `worth_it`
 * are left uncompressed. */
static const double better[] = { [VV_EFFORT_FAST] = 0.95, [VV_EFFORT_DEFAULT] = 0.99, [VV_EFFORT_MAX] = 0.999 };
static const double worth_it = 0.99, alike_enough = 1.10, quick_enough = 0.90, trail_likely = 0.90, near_best = 1.25;

struct trial {
	struct vv_recipe recipe;
	size_t size; /* on the first samples */
};

struct recipe_search_table {
	const struct vv_form *form;
	enum vv_effort effort;
	bool together;
	/* the only recipe to be tried, besides those that detect similar instances; NULL: all
	 * recipes are tried */
	const struct vv_recipe_search *like;
	struct vv_sample sample[VV_RECIPE_SEARCH_SAMPLES];
	size_t n, total;
	uint8_t *joint;  /* samples one after another */
	size_t len;      /* of the samples in use now, */
	size_t first;    /* and at first */
	size_t part[VV_RECIPE_SEARCH_SAMPLES], n_joint; /* and of each of them */
	uint8_t *room;
	size_t cap;
	struct trial trial[MOST];
	size_t n_dishes;
	size_t best;     /* candidate, */
	size_t planes;   /* and the best one except the trail */
	int rc;
};

uint32_t vv_recipe_search_codec(const struct vv_recipe *r)
{
	if (r->predictor == VV_PREDICT_TRAIL)
		return VV_CODEC_TRAIL;
	if (r->predictor == VV_PREDICT_TEXT)
		return VV_CODEC_TEXT;
	return r->coder == VV_CODEC_NONE ? VV_CODEC_NONE : VV_CODEC_TYPED;
}

/* The compressed size; n if it does not shrink. */
static size_t coded(struct recipe_search_table *t, const struct vv_recipe *r, const uint8_t *p, size_t n)
{
	const struct vv_codec *c = vv_codec_numbered(vv_recipe_search_codec(r));
	size_t got = 0;

	if (t->rc == 0 && c)
		t->rc = c->encode(p, n, r, t->room, t->cap, r->level, &got);
	return got ? got : n;
}

/* Compresses the samples one by one: each may begin at a different place in a record. */
static size_t coded_apart(struct recipe_search_table *t, const struct vv_recipe *r)
{
	size_t sum = 0, at = 0;

	for (size_t i = 0; i < t->n_joint; at += t->part[i++])
		sum += coded(t, r, t->joint + at, t->part[i]);
	return sum;
}

static bool has_phase(const struct recipe_search_table *t, const struct vv_recipe *r)
{
	return r->record > 1 && t->form->type == VV_TYPE_BYTES && t->form->record == 0;
}

static size_t coded_joint(struct recipe_search_table *t, const struct vv_recipe *r)
{
	return !t->together || has_phase(t, r) ? coded_apart(t, r) : coded(t, r, t->joint, t->len);
}

/* ---- candidates ---- */

static int8_t level_of(enum vv_effort effort, const struct vv_recipe *r)
{
	static const int8_t planes[] = { 1, 1, 3 }, bytes[] = { 1, 3, 9 }, trails[] = { 1, 6, 12 };
	bool whole = r->width == 1 && r->record == 1 && r->predictor == VV_PREDICT_NONE;

	return (r->predictor == VV_PREDICT_TRAIL ? trails : whole ? bytes : planes)[effort];
}

/* The required size relative to a cheaper candidate. A trail, text in columns, a prediction in
 * floating point, or bytes at a higher level compress at a third of the others' speed. A trail must
 * gain as much at any effort: its blocks are large, and none of them is stored as a difference. */
static double margin(const struct recipe_search_table *t, const struct vv_recipe *r)
{
	bool trail = r->predictor == VV_PREDICT_TRAIL, slow = trail || r->predictor == VV_PREDICT_TEXT || r->predictor == VV_PREDICT_REAL || r->level > level_of(t->effort, r);

	return trail || (slow && t->effort < VV_EFFORT_MAX) ? better[VV_EFFORT_FAST] : better[t->effort];
}

/* Tries a candidate; returns its size for further trials. */
static size_t try(struct recipe_search_table *t, struct vv_recipe r)
{
	struct trial *d = &t->trial[t->n_dishes];

	if (t->n_dishes == MOST)
		return SIZE_MAX;
	r.coder = r.coder ? r.coder : VV_CODEC_ZSTD;
	r.level = r.level ? r.level : level_of(t->effort, &r);
	*d = (struct trial){ .recipe = r, .size = coded_joint(t, &r) };
	if (d->size < (double)t->trial[t->best].size * margin(t, &r))
		t->best = t->n_dishes;
	if (d->size < (double)t->trial[t->planes].size * margin(t, &r) && r.predictor != VV_PREDICT_TRAIL)
		t->planes = t->n_dishes;
	t->n_dishes++;
	return d->size;
}

/* Whole bytes, such as text, at other levels too: a higher one may find much more. On short blocks
 * it may also find less than a lower one. */
static size_t try_whole(struct recipe_search_table *t)
{
	static const int8_t levels[][3] = { { 1 }, { 1, 6 }, { 3, 9, 15 } };
	size_t first = 0;

	for (size_t i = 0; i < 3 && levels[t->effort][i]; i++) {
		struct vv_recipe r = vv_recipe_plain(1);
		size_t size;

		r.level = levels[t->effort][i];
		size = try(t, r);
		first = i ? first : size;
	}
	return first;
}

static size_t try_strides(struct recipe_search_table *t, struct vv_recipe r, unsigned predictor, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t stride[VV_RECIPE_STRIDES] = { a, b, c };

	r.predictor = (uint8_t)predictor;
	r.n_strides = 0;
	while (r.n_strides < VV_RECIPE_STRIDES && stride[r.n_strides]) {
		if (stride[r.n_strides] > UINT32_MAX || (r.n_strides && stride[r.n_strides] <= r.stride[r.n_strides - 1]))
			return SIZE_MAX;
		r.stride[r.n_strides] = (uint32_t)stride[r.n_strides];
		r.n_strides++;
	}
	return r.n_strides ? try(t, r) : SIZE_MAX;
}

static bool is_hopeless(const struct recipe_search_table *t)
{
	for (size_t i = 0; i < t->n_dishes; i++)
		if ((double)t->trial[i].size < (double)t->len * worth_it)
			return false;
	return true;
}

static size_t try_same_strides(struct recipe_search_table *t, const struct vv_recipe *r, unsigned predictor)
{
	return try_strides(t, *r, predictor, r->stride[0], r->n_strides > 1 ? r->stride[1] : 0, r->n_strides > 2 ? r->stride[2] : 0);
}

/* The best prediction from several neighbours that comes near the best candidate; NULL: none. The
 * difference of neighbours is often a little smaller as integers, and much larger as real
 * numbers. */
static const struct vv_recipe *find_several(const struct recipe_search_table *t)
{
	size_t least = (size_t)((double)t->trial[t->best].size * near_best);
	const struct vv_recipe *found = NULL;

	for (size_t i = 0; i < t->n_dishes; i++) {
		const struct trial *d = &t->trial[i];

		if (d->recipe.predictor == VV_PREDICT_LORENZO && d->recipe.real && d->recipe.n_strides > 1 && d->size <= least) {
			least = d->size;
			found = &d->recipe;
		}
	}
	return found;
}

/* Repeats the best prediction of integers for real numbers. With `known`, it is known whether the
 * numbers are real. */
static void try_real(struct recipe_search_table *t, bool known)
{
	struct vv_recipe r = t->trial[t->best].recipe;
	const struct vv_recipe *several;

	if (r.predictor != VV_PREDICT_LORENZO || r.record > 2 || r.width < 4)
		return;
	if (!known && !r.real) {
		r.real = true;
		try_same_strides(t, &r, VV_PREDICT_LORENZO);
	}
	several = t->effort > VV_EFFORT_FAST ? find_several(t) : NULL;
	if (several)
		try_same_strides(t, several, VV_PREDICT_REAL);
}

/* The trail takes longer than all others together, and needs words that recur. In numbers, `bytes`,
 * the compressed size as plain bytes, shows whether words recur. In memory (0), words recur with
 * changes. */
static void try_trail(struct recipe_search_table *t, size_t bytes)
{
	if (t->effort > VV_EFFORT_FAST && t->form->record % 8 == 0 && t->len >= 64 * SMALL && (double)bytes * trail_likely < (double)t->trial[t->best].size)
		try(t, (struct vv_recipe){ .width = 8, .record = 1, .predictor = VV_PREDICT_TRAIL });
}

/* Tries rows and planes that the form does not give. */
static void find_strides(struct recipe_search_table *t, const struct vv_recipe *r)
{
	struct vv_period_numbers x = {
		.p = t->sample[0].p, .n = t->sample[0].n / r->width, .width = r->width, .real = r->real, .swapped = r->swapped,
	};
	size_t row, plane;

	vv_period_strides(&x, &row, &plane);
	if (!row)
		return;
	try_strides(t, *r, VV_PREDICT_LORENZO, row, 0, 0);
	try_strides(t, *r, VV_PREDICT_LORENZO, 1, row, 0);
	if (!plane)
		return;
	try_strides(t, *r, VV_PREDICT_LORENZO, 1, plane, 0);
	try_strides(t, *r, VV_PREDICT_LORENZO, 1, row, plane);
}

static void try_like(struct recipe_search_table *t)
{
	struct vv_recipe r = t->like->recipe;
	const struct vv_recipe *plain = &t->trial[0].recipe;
	bool same = r.predictor == VV_PREDICT_NONE && r.width == plain->width && r.record == plain->record;

	if (r.coder == VV_CODEC_NONE || r.predictor == VV_PREDICT_TRAIL || same)
		return;
	r.coder = 0;
	try(t, r);
}

/* Tries the rows and planes that the form gives. */
static void try_shape(struct recipe_search_table *t, const struct vv_recipe *r, unsigned parts)
{
	const struct vv_form *f = t->form;
	uint64_t row = f->row > 1 && f->row < UINT32_MAX ? f->row * parts : 0, plane = row && f->plane > f->row ? f->plane * parts : 0;

	if (row) {
		try_strides(t, *r, VV_PREDICT_LORENZO, row, 0, 0);
		try_strides(t, *r, VV_PREDICT_LORENZO, parts, row, 0);
		if (plane)
			try_strides(t, *r, VV_PREDICT_LORENZO, parts, row, plane);
	} else if (parts == 1 && r->width >= 4) {
		find_strides(t, r);
	}
	try_real(t, true);
}

/* Tries numbers of a known type. Complex numbers have two parts, in planes of their own. */
static void try_numbers(struct recipe_search_table *t)
{
	const struct vv_form *f = t->form;
	unsigned parts = f->type == VV_TYPE_C64 || f->type == VV_TYPE_C128 ? 2 : 1;
	unsigned width = (unsigned)vv_head_type_size(f->type) / parts;
	struct vv_recipe r = {
		.width = (uint8_t)width,
		.record = (uint16_t)parts,
		.real = f->type >= VV_TYPE_F32 && width > 1,
		.swapped = f->swapped,
	};
	size_t bytes;

	if (width == 1)
		try_whole(t);
	else
		try(t, r);
	if (t->like)
		try_like(t);
	else
		try_strides(t, r, VV_PREDICT_LORENZO, parts, 0, 0);
	if (is_hopeless(t))
		return;
	if (!t->like)
		try_shape(t, &r, parts);
	/* they may be numbers by name only */
	bytes = try(t, vv_recipe_plain(1));
	if (r.width == 8)
		try_trail(t, bytes);
}

/* Tries records of so many bytes, whose fields are unknown: fields as wide as possible. */
static void try_record(struct recipe_search_table *t, size_t bytes)
{
	unsigned width = 8;
	struct vv_recipe r;

	while (bytes % width)
		width /= 2;
	if (bytes > VV_RECIPE_PLANES)
		return;
	r = (struct vv_recipe){ .width = (uint8_t)width, .record = (uint16_t)(bytes / width) };
	try(t, r);
	try_strides(t, r, VV_PREDICT_LORENZO, r.record, 0, 0);
}

/* Tries differences of numbers of this width: integers or real numbers, low or high byte first. */
static void try_differences(struct recipe_search_table *t, struct vv_recipe r, size_t plain)
{
	if (try_strides(t, r, VV_PREDICT_LORENZO, 1, 0, 0) < plain || r.width < 4)
		return;
	r.real = true;
	if (try_strides(t, r, VV_PREDICT_LORENZO, 1, 0, 0) < plain)
		return;
	r.swapped = true;
	try_strides(t, r, VV_PREDICT_LORENZO, 1, 0, 0);
}

/* Tries planes of each width, and further variants of the best one. */
static void try_widths(struct recipe_search_table *t)
{
	struct vv_recipe r = { .width = 1, .record = 1 };
	size_t least = SIZE_MAX;

	for (unsigned width = 8; width > 1; width /= 2) {
		size_t size = try(t, vv_recipe_plain(width));

		if (size < least) {
			least = size;
			r.width = (uint8_t)width;
		}
	}
	if (is_hopeless(t))
		return;
	try_differences(t, r, least);
	if (t->trial[t->best].recipe.record > 1 || r.width < 4)
		return;
	if (t->trial[t->best].recipe.width == r.width)
		r = t->trial[t->best].recipe;
	r.real = r.real || r.predictor == VV_PREDICT_NONE;
	find_strides(t, &r);
	try_real(t, false);
}

/* Text has hardly any bytes of zero. */
static void try_text(struct recipe_search_table *t)
{
	size_t zeros = 0;

	for (size_t i = 0; i < t->len; i++)
		zeros += t->joint[i] == 0;
	if (t->effort > VV_EFFORT_FAST && zeros <= t->len / 64 && !(t->like && t->like->recipe.predictor == VV_PREDICT_TEXT))
		try(t, (struct vv_recipe){ .width = 1, .record = 1, .predictor = VV_PREDICT_TEXT });
}

static void try_bytes(struct recipe_search_table *t)
{
	size_t record = t->form->record;

	try_whole(t);
	try_text(t);
	if (t->like) {
		try_like(t);
	} else {
		record = record ? record : vv_period_record(t->sample[0].p, t->sample[0].n);
		if (record)
			try_record(t, record);
		if (!t->form->record)
			try_widths(t);
	}
	if (!is_hopeless(t))
		try_trail(t, 0);
}

/* ---- samples ---- */

/* Rounds down to complete rows or records, or else to complete numbers of any type. */
static size_t round_down(const struct vv_form *f, size_t n)
{
	size_t unit = f->record ? f->record : f->row && f->row < ALL ? f->row * vv_head_type_size(f->type) : 4096;

	return n > unit ? n - n % unit : n - n % 16;
}

/* Takes the samples that fit. If their lengths differ, the longest one comes first. */
static void take_samples(struct recipe_search_table *t, const struct vv_sample *s, size_t n)
{
	size_t some = n < VV_RECIPE_SEARCH_SAMPLES ? n : VV_RECIPE_SEARCH_SAMPLES, longest = 0;
	size_t each = round_down(t->form, (t->form->type == VV_TYPE_BYTES ? ALL : ALL_NUMBERS) / (some ? some : 1));

	for (size_t i = 0; i < some; i++) {
		if (!s[i].n)
			continue;
		t->sample[t->n] = (struct vv_sample){ s[i].p, s[i].n > each ? each : s[i].n > SMALL ? s[i].n - s[i].n % 16 : s[i].n };
		if (t->sample[t->n].n > t->sample[longest].n)
			longest = t->n;
		t->total += t->sample[t->n++].n;
	}
	if (longest) {
		struct vv_sample first = t->sample[longest];

		t->sample[longest] = t->sample[0];
		t->sample[0] = first;
	}
}

/* Joins the first n samples, one after another. */
static void join(struct recipe_search_table *t, size_t n, size_t most)
{
	size_t each = n ? round_down(t->form, most / n) : 0;

	t->len = 0;
	for (t->n_joint = 0; t->n_joint < n; t->n_joint++) {
		size_t some = t->sample[t->n_joint].n < each ? t->sample[t->n_joint].n : each;

		memcpy(t->joint + t->len, t->sample[t->n_joint].p, some);
		t->part[t->n_joint] = some;
		t->len += some;
	}
}

/* The bytes for the trial of all candidates: enough to show several planes. For unknown bytes it is
 * all of them if time does not matter. */
static size_t first_bytes(const struct recipe_search_table *t)
{
	size_t planes = t->form->plane < FIRST_MOST ? 4 * (size_t)t->form->plane * vv_head_type_size(t->form->type) : FIRST_MOST;

	if (t->form->type == VV_TYPE_BYTES)
		return t->effort == VV_EFFORT_MAX ? ALL : FIRST_BYTES;
	return planes > FIRST_MOST ? FIRST_MOST : planes > FIRST ? planes : FIRST;
}

/* Joins at least a few samples. */
static void join_few(struct recipe_search_table *t)
{
	size_t most = first_bytes(t), few = 0, sum = 0;

	while (few < t->n && (sum < most || few < FEW))
		sum += t->sample[few++].n;
	join(t, few, most);
}

/* ---- the choice ---- */

/* Noise in numbers may be the same in all instances. Numbers are cut from their beginning on. In
 * bytes the digests would find the noise anywhere. Finding it takes a long window over all data, at
 * a third of the speed: for the effort `max` only. */
static bool may_be_twice(const struct recipe_search_table *t)
{
	return t->effort == VV_EFFORT_MAX && t->together && t->n > 1 && t->form->type != VV_TYPE_BYTES;
}

/* Instances compressed together need a window that spans several of them. */
static struct vv_recipe far_back(struct vv_recipe r)
{
	if (r.predictor != VV_PREDICT_TRAIL && r.coder == VV_CODEC_ZSTD) {
		r.window = WINDOW;
		r.level = r.level < 3 ? 3 : r.level;
	}
	return r;
}

/* The size of a candidate on all samples, compressed apart and together. */
struct candidate_size {
	size_t apart, joint;
};

/* The size may be known from the earlier search. */
static size_t size_apart(struct recipe_search_table *t, const struct vv_recipe *r)
{
	for (size_t i = 0; t->like && t->like->bytes == t->len && i < t->like->n_finalists; i++)
		if (vv_recipe_same(&t->like->finalist[i].recipe, r))
			return t->like->finalist[i].size;
	return coded_apart(t, r);
}

static struct candidate_size judge(struct recipe_search_table *t, const struct vv_recipe *r, size_t first)
{
	bool both = t->together && t->n > 1 && !has_phase(t, r);
	struct vv_recipe far = both && may_be_twice(t) ? far_back(*r) : *r;
	struct candidate_size v = { .joint = first && t->len == t->first && far.window == r->window ? first : coded_joint(t, &far) };

	v.apart = both ? size_apart(t, r) : v.joint;
	return v;
}

static double alike(struct candidate_size v)
{
	return (double)v.apart / (double)v.joint;
}

static size_t size_of(struct candidate_size v)
{
	return alike(v) > alike_enough ? v.joint : v.apart;
}

/* Picks the plainest candidate, which detects similar samples, and the best planes, which gain with
 * length. Also picks the trail if it is best or the bytes are unknown. The order is that of their
 * cost. */
static size_t pick_finalists(const struct recipe_search_table *t, size_t pick[VV_RECIPE_SEARCH_FINALISTS])
{
	size_t last = t->n_dishes - 1, n = 0;

	pick[n++] = 0;
	if (t->planes)
		pick[n++] = t->planes;
	if (t->trial[last].recipe.predictor == VV_PREDICT_TRAIL && (t->best == last || t->form->type == VV_TYPE_BYTES))
		pick[n++] = last;
	return n;
}

static void conclude(const struct recipe_search_table *t, struct vv_recipe r, struct candidate_size v, struct vv_recipe_search *out)
{
	size_t size = size_of(v);

	out->alike = t->n > 1 ? alike(v) : 1;
	if ((double)size >= (double)t->len * worth_it) {
		out->recipe = vv_recipe_plain(r.width);
		out->ratio = 1;
		return;
	}
	out->recipe = out->alike > alike_enough ? far_back(r) : r;
	out->ratio = (double)t->len / (double)size;
}

/* Takes the fastest compressor if it loses little. */
static void try_quick(struct recipe_search_table *t, struct vv_recipe *r, struct candidate_size *v)
{
	struct vv_recipe quick = *r;
	struct candidate_size w;

	if (t->effort > VV_EFFORT_FAST || !vv_codec_numbered(VV_CODEC_LZ4))
		return;
	quick.coder = VV_CODEC_LZ4;
	w = judge(t, &quick, 0);
	if ((double)size_of(w) * quick_enough > (double)size_of(*v))
		return;
	*r = quick;
	*v = w;
}

static void choose(struct recipe_search_table *t, struct vv_recipe_search *out)
{
	size_t pick[VV_RECIPE_SEARCH_FINALISTS], n = pick_finalists(t, pick), best = 0;
	struct candidate_size v[VV_RECIPE_SEARCH_FINALISTS];
	struct vv_recipe r;

	if (is_hopeless(t) && !may_be_twice(t))
		return;
	if (t->total > ENOUGH * t->first)
		join(t, t->n, ALL);
	out->bytes = t->len;
	for (size_t i = 0; i < n; i++) {
		v[i] = judge(t, &t->trial[pick[i]].recipe, t->trial[pick[i]].size);
		out->finalist[out->n_finalists].recipe = t->trial[pick[i]].recipe;
		out->finalist[out->n_finalists++].size = v[i].apart;
		if (i && (double)size_of(v[i]) < (double)size_of(v[best]) * margin(t, &t->trial[pick[i]].recipe))
			best = i;
	}
	r = t->trial[pick[best]].recipe;
	try_quick(t, &r, &v[best]);
	conclude(t, r, v[best], out);
}

/* Without the codec of recipes nothing can be tried. */
static bool can_try(const struct recipe_search_table *t)
{
	return t->total >= SMALL && vv_codec_numbered(VV_CODEC_TYPED);
}

static int try_all(struct recipe_search_table *t, const struct vv_sample *s, size_t n, struct vv_recipe_search *out)
{
	take_samples(t, s, n);
	*out = (struct vv_recipe_search){ .recipe = vv_recipe_plain(1), .ratio = 1, .alike = 1 };
	if (!can_try(t))
		return t->rc;
	t->cap = vv_codec_numbered(VV_CODEC_TYPED)->bound(t->total);
	t->joint = vv_mem_grow(NULL, t->total, 1);
	t->room = t->joint ? vv_mem_grow(NULL, t->cap, 1) : NULL;
	if (!t->room)
		t->rc = VV_ENOMEM;
	if (t->rc == 0) {
		join_few(t);
		t->first = t->len;
		(t->form->type == VV_TYPE_BYTES ? try_bytes : try_numbers)(t);
		choose(t, out);
	}
	vv_mem_free(t->joint);
	vv_mem_free(t->room);
	return t->rc;
}

int vv_recipe_search_choose(const struct vv_form *form, enum vv_effort effort, bool together, const struct vv_sample *s, size_t n,
		    struct vv_recipe_search *out)
{
	return try_all(&(struct recipe_search_table){ .form = form, .effort = effort, .together = together }, s, n, out);
}

int vv_recipe_search_together(const struct vv_form *form, enum vv_effort effort, const struct vv_recipe_search *apart, const struct vv_sample *s, size_t n,
		      struct vv_recipe_search *out)
{
	return try_all(&(struct recipe_search_table){ .form = form, .effort = effort, .together = true, .like = apart }, s, n, out);
}

int vv_recipe_search_one(const struct vv_recipe *r, const struct vv_sample *s, double *ratio)
{
	const struct vv_codec *c = vv_codec_numbered(vv_recipe_search_codec(r));
	struct recipe_search_table t = { .cap = c ? c->bound(s->n) : 0 };

	*ratio = 1;
	if (!c || !s->n)
		return 0;
	t.room = vv_mem_grow(NULL, t.cap, 1);
	if (!t.room)
		return VV_ENOMEM;
	*ratio = (double)s->n / (double)coded(&t, r, s->p, s->n);
	vv_mem_free(t.room);
	return t.rc;
}
