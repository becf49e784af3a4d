#include "engine/files/recipes.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/context_pool.h"
#include "codec/recipe_search.h"
#include "core/dedup/index.h"
#include "engine/context.h"
#include "engine/files/pack_buffer.h"
#include "engine/write/index_cache.h"
#include <string.h>

enum {
	TINY = 4 << 10,           /* kinds with fewer bytes in all files join the skeleton */
	LITTLE = 1 << 20,         /* bytes of memory of all kinds */
	LEAST = 128 << 10,        /* memory of one kind needs so many bytes for its own blocks */
	LEVEL_LITTLE = 19,
	BLOCK = 1 << 20,
	TEXT_BLOCK = 256 << 10,   /* shows whether text is a table */
	BLOCK_PLAIN = 4 << 20,    /* for untyped, incompressible bytes: a slab as it was read */
	BLOCK_MERGED = 8 << 20,
	BLOCK_TRAIL = 32 << 20,   /* similar ranks must share a block */
	OLDEST = 16,              /* epochs before a choice is reconsidered */
	LEVEL_SKELETON = 6,
	LEAST_REPORTED = 64 << 10,    /* fewer compressed bytes show nothing about a recipe */
	/* in thousandths: bytes that hardly shrink alone are noise, and similar to nothing */
	LEAST_RATIO = 1200,
	WINDOW_MEMORY = 25,       /* log2 of bytes: as large as its blocks */
	WINDOW = VV_RECIPE_SEARCH_BYTES,
	FAR = 8,                  /* windows to search for one full of new bytes */
	MAX_SEEN = 1024,
	BOX_ROW = 32,             /* numbers in a row of a box, */
	BOX_ROWS = 16,            /* and rows in a plane of it */
	FEW_SPANS = 64,           /* in which a box is found quickly */
	SHARE = 24,               /* the fraction of the bytes to sample: one in so many, */
	SHARE_PARTIAL = 16,       /* more for kinds that hold several arrays, */
	SHARE_MAX = 4,            /* most for untyped bytes if time does not matter */
	LEAST_SAMPLES = 2, LEAST_SAMPLE = 16 << 10, /* bytes */
	GROWN = 4, /* a choice is repeated if there are so many times more new bytes */
	/* a ratio that only nearly constant bytes reach; they do not predict later ones */
	EASY = 8,
};

static const double MERGE = 1.10;
/* Joint compression must be better by this factor: it takes twice the time, and reading one file
 * reads parts of all. */
static const double pays[] = { [VV_PACK_FAST] = 1.25, [VV_PACK_DEFAULT] = 1.15, [VV_PACK_MAX] = 1.03 };

const struct vv_codec *vv_recipes_codec(const struct vv_file_set_kind *k)
{
	return k->coded ? vv_codec_numbered(k->paper ? VV_CODEC_PAPER : vv_recipe_search_codec(&k->recipe)) : NULL;
}

size_t vv_recipes_block(const struct vv_file_set_kind *k)
{
	if (k->recipe.predictor == VV_PREDICT_TRAIL || (k->segment && k->merged))
		return BLOCK_TRAIL;
	if (k->merged && k->recipe.predictor != VV_PREDICT_TEXT)
		return BLOCK_MERGED;
	return k->opaque && !vv_recipes_codec(k) ? BLOCK_PLAIN : BLOCK;
}

size_t vv_recipes_largest_block(const struct vv_file_set *c)
{
	size_t most = BLOCK;

	for (size_t i = 0; i < c->n_kinds; i++)
		if (vv_recipes_block(&c->kind[i]) > most)
			most = vv_recipes_block(&c->kind[i]);
	return most;
}

/* ---- samples --------------------------------------------------------------------------------- */

struct recipes_source { /* the spans of a kind in one file: one stream */
	const uint32_t *span;
	size_t n;
	uint64_t len;
};

struct pick { /* the choice for one kind */
	const struct varve *v;
	struct vv_file_set *file_set;
	struct vv_file_set_kind *kind;
	/* its recipe in the last epoch; NULL: it did not exist */
	const struct vv_manifest_kind *before;
	const struct vv_pack_options *opt;
	bool little; /* there is little memory in all: the best compression is affordable */
	size_t chunk;
	const uint32_t *span; /* spans of the kind */
	size_t n_spans;
	struct recipes_source *source;
	size_t n_sources;
	uint8_t *bytes; /* room for one window, then for all samples */
	struct vv_sample sample[VV_RECIPE_SEARCH_SAMPLES];
	size_t n_samples;
	struct vv_digest *seen; /* digests of chunks in samples */
	size_t n_seen;
	uint64_t share; /* the fraction to sample: one in so many */
	/* bytes of a sample: sampling a small kind must not cost more than compressing it */
	size_t most;
	bool boxed;
	/* bytes in windows; bytes of these that are in no epoch and no other sample */
	size_t looked, fresh;
	int rc;
	struct vv_err_state error;
};

static int read_stream(const struct vv_file_set *c, const struct recipes_source *s, uint64_t from, uint8_t *to, size_t n)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && n && i < s->n; i++) {
		const struct vv_file_span *x = &c->span[s->span[i]];
		size_t take;

		if (from >= x->len) {
			from -= x->len;
			continue;
		}
		take = x->len - from < n ? (size_t)(x->len - from) : n;
		rc = vv_file_set_read(c, x->file, x->at + from, to, take);
		to += take;
		n -= take;
		from = 0;
	}
	return rc;
}

static bool is_known(struct pick *p, const uint8_t *bytes, size_t n)
{
	struct vv_digest d;

	if (p->n_seen == MAX_SEEN || vv_pack_buffer_is_zero(bytes, n))
		return true;
	p->v->ctx.digest(bytes, n, &d);
	for (size_t i = 0; i < p->n_seen; i++)
		if (vv_digest_equal(&p->seen[i], &d))
			return true;
	p->seen[p->n_seen++] = d;
	return vv_index_find(&p->v->index_cache->index, &d) != VV_INDEX_NONE;
}

/* Appends the new ones of n bytes to the sample, up to its limit. */
static void keep_fresh(struct pick *p, const uint8_t *bytes, size_t n, struct vv_sample *s, uint8_t *to)
{
	for (size_t at = 0, len, some; at < n; at += len) {
		len = vv_file_set_cut(p->file_set, p->kind, p->chunk, bytes + at, n - at);
		p->looked += len;
		if (is_known(p, bytes + at, len))
			continue;
		p->fresh += len;
		some = len < p->most - s->n ? len : p->most - s->n;
		memcpy(to + s->n, bytes + at, some);
		s->n += some;
	}
}

/* Dedup removes known content before compression, so a recipe is chosen by new content only. A
 * sample starts at some offset and takes new content, in payload order, until it is full. */
static int take_sample(struct pick *p, const struct recipes_source *s, double where)
{
	uint8_t *bytes = p->bytes, *to = bytes + (p->n_samples + 1) * WINDOW;
	struct vv_sample *sample = &p->sample[p->n_samples];
	uint64_t from = s->len > WINDOW ? (uint64_t)((double)(s->len - WINDOW) * where) : 0, end;
	int rc = 0;

	from -= from % p->chunk;
	end = s->len - from < (uint64_t)FAR * WINDOW ? s->len : from + (uint64_t)FAR * WINDOW;
	*sample = (struct vv_sample){ to, 0 };
	for (size_t n; rc == 0 && from < end && sample->n < p->most; from += n) {
		n = end - from < WINDOW ? (size_t)(end - from) : WINDOW;
		rc = read_stream(p->file_set, s, from, bytes, n);
		if (rc == 0)
			keep_fresh(p, bytes, n, sample, to);
	}
	p->n_samples += sample->n > 0;
	return rc;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* A window of less than about a plane or a row of an array does not show how planes and rows
 * continue. So a box is taken of such an array, with its own rows and planes. In the recipe the
 * array's rows and planes replace them. */
static bool wants_box(const struct pick *p)
{
	const struct vv_form *f = &p->kind->form;
	size_t width = vv_head_type_size(f->type);

	return width > 1 && f->row && ((f->plane && f->plane > WINDOW / width / 8) || (!f->plane && f->row > WINDOW / width / 64));
}

static struct vv_form box_form(const struct vv_form *f)
{
	struct vv_form box = *f;

	box.row = f->row < BOX_ROW ? f->row : BOX_ROW;
	if (f->plane)
		box.plane = box.row * (f->plane / f->row < BOX_ROWS ? f->plane / f->row : BOX_ROWS);
	return box;
}

static int take_box(struct pick *p, const struct recipes_source *s, double where)
{
	const struct vv_form *f = &p->kind->form;
	struct vv_form box = box_form(f);
	size_t width = vv_head_type_size(f->type), per = f->plane ? (size_t)(box.plane / box.row) : SIZE_MAX, bytes = (size_t)box.row * width;
	uint8_t *to = p->bytes + (p->n_samples + 1) * WINDOW;
	uint64_t all = s->len / width, at = (uint64_t)((double)(all / 2) * where);
	size_t n = 0;
	int rc = 0;

	at -= at % f->row;
	for (size_t i = 0; rc == 0 && n + bytes <= WINDOW; i++) {
		uint64_t from = at + (f->plane ? i / per * f->plane + i % per * f->row : i * f->row);

		if (from + box.row > all)
			break;
		rc = read_stream(p->file_set, s, from * width, to + n, bytes);
		n += bytes;
	}
	p->looked += n;
	p->fresh += n;
	if (rc == 0 && n)
		p->sample[p->n_samples++] = (struct vv_sample){ to, n };
	return rc;
}

static void leave_box(const struct vv_form *f, struct vv_recipe *r)
{
	struct vv_form box = box_form(f);

	for (unsigned i = 0; i < r->n_strides; i++) {
		if (r->stride[i] == box.plane && f->plane)
			r->stride[i] = (uint32_t)f->plane;
		else if (r->stride[i] == box.row)
			r->stride[i] = (uint32_t)f->row;
	}
}

/* ---- sampling -------------------------------------------------------------------------------- */

/* The number of samples for the given fraction of the bytes. */
static size_t samples_wanted(const struct pick *p)
{
	uint64_t each = p->kind->raw / p->n_sources < WINDOW ? p->kind->raw / p->n_sources + 1 : WINDOW;
	size_t want = (size_t)(p->kind->raw / p->share / each);

	return want < LEAST_SAMPLES ? LEAST_SAMPLES : want > VV_RECIPE_SEARCH_SAMPLES ? VV_RECIPE_SEARCH_SAMPLES : want;
}

/* For a variable, samples the same offset in several files. For bytes that are not a single array,
 * samples pairs of files at different offsets, because they vary. Few long samples show more than
 * many short ones. */
static int take_samples(struct pick *p)
{
	size_t want = samples_wanted(p), files = want < p->n_sources ? want : p->n_sources;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < want; i++) {
		size_t per = (p->kind->opaque || p->kind->first.partial) && files > 1 ? 2 : files, turns = (want + per - 1) / per;
		const struct recipes_source *s = &p->source[i % files * p->n_sources / files];
		double where = ((double)(i / per) + 0.5) / (double)turns;

		rc = p->boxed ? take_box(p, s, where) : take_sample(p, s, where);
	}
	return rc;
}

static int find_sources(struct pick *p)
{
	size_t cap = 0;

	for (size_t i = 0; i < p->n_spans; i++) {
		const struct vv_file_span *x = &p->file_set->span[p->span[i]];

		if (i == 0 || p->file_set->span[p->span[i - 1]].file != x->file) {
			if (vv_mem_room(&p->source, p->n_sources, &cap, sizeof(*p->source)) < 0)
				return VV_ENOMEM;
			p->source[p->n_sources++] = (struct recipes_source){ .span = &p->span[i] };
		}
		p->source[p->n_sources - 1].n++;
		p->source[p->n_sources - 1].len += x->len;
	}
	return 0;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static const struct vv_manifest_kind *find_before(const struct vv_manifest *m, const struct vv_file_set_kind *k)
{
	for (size_t i = 0; i < m->n_kinds; i++) {
		const struct vv_manifest_kind *b = &m->kind[i];

		if (strcmp(b->key, k->key) == 0 && b->type == k->first.type && b->segment == k->segment && b->ndim == k->first.ndim &&
		    (k->segment || memcmp(b->dim, k->first.dim, b->ndim * sizeof(b->dim[0])) == 0))
			return b;
	}
	return NULL;
}

/* Does the recipe still perform about as well as when it was chosen, and has the amount of new
 * bytes not grown much? A choice costs several times a compression, so it is not repeated for small
 * changes. */
static bool holds(const struct vv_manifest_kind *b, uint64_t fresh)
{
	return b->expected_ratio && b->age < OLDEST && fresh <= GROWN * b->basis &&
	       (b->fresh < LEAST_REPORTED || !b->stored || b->fresh * 1000 * 20 >= b->stored * (uint64_t)b->expected_ratio * 17);
}

/* A kind that did not gain by joint compression, and now shrinks less, will not gain now either. */
static bool is_worn(const struct vv_manifest_kind *b, uint64_t fresh)
{
	return b->expected_ratio && !b->merged && b->age < OLDEST && fresh <= GROWN * b->basis;
}

/* A recipe chosen for a nearly constant field does not suit the field after it has changed. */
static int is_easy_still(const struct pick *p, const struct vv_manifest_kind *b, bool *still)
{
	double ratio = EASY;
	int rc = b->expected_ratio >= EASY * 1000 && p->n_samples ? vv_recipe_search_one(&b->recipe, &p->sample[0], &ratio) : 0;

	*still = ratio >= (double)EASY / 2;
	return rc;
}

static bool is_large(const struct pick *p)
{
	return p->kind->raw / p->n_sources > BLOCK_MERGED / 4;
}

/* The best recipe if the instance of each file is compressed separately. */
static int try_apart(struct pick *p, struct vv_recipe_search *out)
{
	struct vv_form form = p->boxed ? box_form(&p->kind->form) : p->kind->form;
	int rc = vv_recipe_search_choose(&form, (enum vv_effort)p->opt->effort, false, p->sample, p->n_samples, out);

	if (rc == 0 && p->boxed)
		leave_box(&p->kind->form, &out->recipe);
	return rc;
}

/* ---- the check on a block -------------------------------------------------------------------- */

enum { CANDIDATES = 4 * (VV_RECIPE_SEARCH_FINALISTS + 1) + 2 };

struct recipes_candidates {
	struct vv_recipe recipe[CANDIDATES];
	size_t n;
};

static void add_candidate(struct recipes_candidates *c, struct vv_recipe r)
{
	for (size_t i = 0; i < c->n; i++)
		if (vv_recipe_same(&c->recipe[i], &r))
			return;
	c->recipe[c->n++] = r;
}

/* Planes are tried at a higher level, too: it finds more repetitions, but a plane without any gets
 * larger. */
static void add_levels(struct recipes_candidates *c, struct vv_recipe r)
{
	static const int8_t planes = 3;

	add_candidate(c, r);
	if (r.coder != VV_CODEC_ZSTD || r.predictor == VV_PREDICT_TRAIL || (r.width == 1 && r.record == 1) || r.level >= planes)
		return;
	r.level = planes;
	add_candidate(c, r);
}

static void add_candidates(const struct pick *p, struct recipes_candidates *c, const struct vv_recipe_search *s)
{
	add_levels(c, s->recipe);
	for (size_t i = 0; i < s->n_finalists; i++) {
		struct vv_recipe r = s->finalist[i].recipe;

		if (p->boxed)
			leave_box(&p->kind->form, &r);
		add_levels(c, r);
	}
}

/* Codes a block as it will be stored, with each recipe, and takes the smallest result. A trail or
 * text in columns wins only if it gains as much as the search demands. Keeps the scale of the
 * expected ratio. */
static int choose_smallest(const struct recipes_candidates *c, const struct vv_sample *block, struct vv_recipe_search *apart)
{
	static const double trail_worth = 0.95;
	double first = 1, best = 1, ratio;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n; i++) {
		rc = vv_recipe_search_one(&c->recipe[i], block, &ratio);
		if (i == 0)
			first = best = ratio;
		if (c->recipe[i].predictor == VV_PREDICT_TRAIL || c->recipe[i].predictor == VV_PREDICT_TEXT)
			ratio *= trail_worth;
		if (rc == 0 && ratio > best) {
			best = ratio;
			apart->recipe = c->recipe[i];
		}
	}
	apart->ratio *= best / first;
	return rc;
}

/* Reads a block of the middle file, from its middle, and decides between the candidates by it. */
static int decide_by_block(struct pick *p, const struct recipes_candidates *c, size_t most, struct vv_recipe_search *apart)
{
	const struct recipes_source *s = &p->source[p->n_sources / 2];
	struct vv_sample block = { .n = s->len < most ? (size_t)s->len : most };
	uint64_t from = (s->len - block.n) / 2;
	uint8_t *bytes = vv_context_pool_room(block.n);
	int rc = bytes ? read_stream(p->file_set, s, from - from % p->chunk, bytes, block.n) : VV_ENOMEM;

	block.p = bytes;
	if (rc == 0)
		rc = choose_smallest(c, &block, apart);
	vv_context_pool_room_back(bytes);
	return rc;
}

/* A short sample shows neither columns of text, each of which has tables of codes of its own, nor
 * text that recurs. */
static int check_text(struct pick *p, struct vv_recipe_search *apart)
{
	const struct vv_recipe *r = &apart->recipe;
	struct recipes_candidates c = { .n = 0 };

	if (p->opt->effort == VV_PACK_FAST || !p->kind->opaque || p->kind->segment || r->width * r->record > 1 || r->coder != VV_CODEC_ZSTD ||
	    p->source[p->n_sources / 2].len < TEXT_BLOCK)
		return 0;
	add_candidate(&c, *r);
	add_candidate(&c, (struct vv_recipe){ .width = 1, .record = 1, .coder = VV_CODEC_ZSTD, .level = LEVEL_SKELETON });
	add_candidate(&c, (struct vv_recipe){ .width = 1, .record = 1, .predictor = VV_PREDICT_TEXT, .coder = VV_CODEC_ZSTD,
					      .level = p->opt->effort == VV_PACK_MAX ? 3 : 1 });
	return decide_by_block(p, &c, TEXT_BLOCK, apart);
}

/* A sample of some tens of KB favours some recipes: zstd has other parameters for short inputs, and
 * columns of records are short there. If time does not matter, a block decides between the best
 * recipes of this effort, those of the default effort, and levels for text. So this effort is not
 * worse than the default one. */
static int check_on_block(struct pick *p, struct vv_recipe_search *apart)
{
	struct vv_form form = p->boxed ? box_form(&p->kind->form) : p->kind->form;
	struct vv_recipe_search usual = { 0 };
	struct recipes_candidates c = { .n = 0 };
	struct vv_recipe text = { .width = 1, .record = 1, .coder = VV_CODEC_ZSTD };
	int rc = vv_recipe_search_choose(&form, VV_EFFORT_DEFAULT, false, p->sample, p->n_samples, &usual);

	if (rc || p->n_samples == 0)
		return rc;
	if (p->boxed)
		leave_box(&p->kind->form, &usual.recipe);
	add_candidates(p, &c, apart);
	add_candidates(p, &c, &usual);
	for (text.level = 9; p->kind->opaque && text.level <= 15; text.level = (int8_t)(text.level + 6))
		add_candidate(&c, text);
	return decide_by_block(p, &c, BLOCK, apart);
}

/* The best recipe if the instances of all files are compressed together. Large instances do not fit
 * in one block, only short stretches of them. So distant neighbours of a number are not available
 * to predict it. */
static int try_together(struct pick *p, const struct vv_recipe_search *apart, struct vv_recipe_search *out)
{
	struct vv_form form = p->kind->form;
	bool as_apart;
	int rc = 0;

	if (is_large(p)) {
		form.plane = 0;
		form.row = form.row * vv_head_type_size(form.type) <= VV_RECIPES_INTERLEAVE / 16 ? form.row : 0;
	}
	as_apart = !p->boxed && form.row == p->kind->form.row && form.plane == p->kind->form.plane;
	if (p->boxed) {
		p->boxed = false;
		p->n_samples = p->n_seen = p->looked = p->fresh = 0;
		rc = take_samples(p);
	}
	if (rc == 0 && as_apart)
		return vv_recipe_search_together(&form, (enum vv_effort)p->opt->effort, apart, p->sample, p->n_samples, out);
	return rc ? rc : vv_recipe_search_choose(&form, (enum vv_effort)p->opt->effort, true, p->sample, p->n_samples, out);
}

static bool reuse(struct vv_file_set_kind *k, const struct vv_manifest_kind *b)
{
	k->recipe = b->recipe;
	k->merged = b->merged;
	k->expected_ratio = b->expected_ratio;
	k->basis = b->basis;
	k->age = (uint8_t)(b->age + 1);
	return true;
}

/* The code of the policy. Little memory needs no samples: the trail predictor is best for it. */
static enum vv_segment_policy_code code_of(const struct pick *p)
{
	if (p->kind->joint || (p->kind->segment && p->little && p->file_set->policy.rule[p->kind->segment].code == VV_SEGMENT_POLICY_AUTO))
		return p->opt->effort == VV_PACK_FAST ? VV_SEGMENT_POLICY_ZSTD : VV_SEGMENT_POLICY_TRAIL;
	return (enum vv_segment_policy_code)p->file_set->policy.rule[p->kind->segment].code;
}

/* Memory has near and distant similarities, so it is compressed jointly in large blocks. */
static void apply_policy(const struct pick *p, enum vv_segment_policy_code code)
{
	static const int8_t bytes[] = { 1, 3, 9 }, trails[] = { 1, 6, 12 };
	bool deflate = code == VV_SEGMENT_POLICY_DEFLATE, trail = code == VV_SEGMENT_POLICY_TRAIL;
	struct vv_file_set_kind *k = p->kind;

	k->recipe = (struct vv_recipe){ .width = trail ? 8 : 1, .record = 1, .predictor = trail ? VV_PREDICT_TRAIL : VV_PREDICT_NONE,
					.coder = deflate ? VV_CODEC_PAPER : VV_CODEC_ZSTD,
					.level = deflate ? 0 : p->little && p->opt->effort != VV_PACK_FAST ? LEVEL_LITTLE : (trail ? trails : bytes)[p->opt->effort],
					.window = deflate || trail ? 0 : WINDOW_MEMORY };
	k->paper = deflate;
	k->merged = !deflate;
	k->coded = code != VV_SEGMENT_POLICY_PLAIN;
}

bool vv_recipes_can_join_ranks(const struct vv_file_set *c, const struct vv_file_set_kind *k)
{
	unsigned code = c->policy.rule[k->segment].code;
	bool trail = k->recipe.predictor == VV_PREDICT_TRAIL, bytes = k->recipe.width == 1 && k->recipe.record == 1;
	bool noise = k->expected_ratio && k->expected_ratio < LEAST_RATIO;

	return k->segment && k->decided && k->coded && !k->joint && (trail || bytes) && !noise &&
	       (code == VV_SEGMENT_POLICY_AUTO || code == VV_SEGMENT_POLICY_TRAIL) && !vv_file_set_cuts_by_content(c, k);
}

void vv_recipes_join_ranks(const struct vv_file_set *c, uint32_t kind, const struct vv_pack_options *opt)
{
	struct vv_file_set_kind *k = &c->kind[kind];

	if (kind == VV_FILE_SET_SKELETON)
		return;
	if (!k->decided || (vv_recipes_can_join_ranks(c, k) && k->recipe.predictor != VV_PREDICT_TRAIL))
		apply_policy(&(struct pick){ .kind = k, .opt = opt }, VV_SEGMENT_POLICY_TRAIL);
	k->decided = k->interleaved = true;
}

/* Is the kind interleaved? Numbers are, unless they fit in one block. Memory with the trail
 * predictor always is: nearer similarities are found better. */
static bool is_interleaved(const struct pick *p)
{
	const struct vv_file_set_kind *k = p->kind;
	bool trail = k->recipe.predictor == VV_PREDICT_TRAIL;

	return k->merged && p->n_sources > 1 && (k->segment ? trail : is_large(p) && !trail);
}

static int choose(struct pick *p)
{
	struct vv_file_set_kind *k = p->kind;
	struct vv_recipe_search apart = { 0 }, search = { 0 };
	uint64_t fresh = p->looked ? (uint64_t)((double)k->raw * (double)p->fresh / (double)p->looked) : 0;
	bool good = p->before && holds(p->before, fresh);
	int rc = good ? is_easy_still(p, p->before, &good) : 0;

	if (rc == 0 && good && reuse(k, p->before)) {
		k->interleaved = is_interleaved(p);
		k->coded = true;
		return 0;
	}
	if (rc == 0)
		rc = try_apart(p, &apart);
	if (rc == 0)
		rc = check_text(p, &apart);
	if (rc == 0 && p->opt->effort == VV_PACK_MAX && !p->kind->segment)
		rc = check_on_block(p, &apart);
	if (rc == 0 && p->n_sources > 1 && !(p->before && is_worn(p->before, fresh)))
		rc = try_together(p, &apart, &search);
	if (rc)
		return rc;
	k->merged = p->n_sources > 1 && (search.alike >= MERGE || search.recipe.predictor == VV_PREDICT_TRAIL) &&
		    (search.ratio > apart.ratio * pays[p->opt->effort] || search.recipe.predictor == VV_PREDICT_TRAIL);
	if (!k->merged)
		search = apart;
	k->recipe = search.recipe;
	k->expected_ratio = search.ratio < 4e6 ? (uint32_t)(search.ratio * 1000) : UINT32_MAX;
	k->basis = fresh;
	/* samples of memory show near similarities only: neither the second copy of an array, nor
	 * the same array of another process */
	if (k->segment && k->recipe.coder == VV_CODEC_ZSTD && k->recipe.predictor != VV_PREDICT_TRAIL && (k->recipe.width == 1 || p->opt->effort != VV_PACK_FAST))
		k->recipe.window = WINDOW_MEMORY;
	k->merged |= k->segment != VV_SEGMENT_NONE;
	k->interleaved = is_interleaved(p);
	k->coded = true;
	return 0;
}

static int look_and_choose(struct pick *p)
{
	enum vv_segment_policy_code code = code_of(p);
	int rc;

	if (code != VV_SEGMENT_POLICY_AUTO) {
		apply_policy(p, code);
		return 0;
	}
	p->seen = vv_mem_new(MAX_SEEN, sizeof(*p->seen));
	rc = p->seen ? find_sources(p) : VV_ENOMEM;
	if (rc == 0) {
		p->share = p->kind->opaque && p->opt->effort == VV_PACK_MAX ? SHARE_MAX : p->kind->first.partial ? SHARE_PARTIAL : SHARE;
		p->most = (size_t)(p->kind->raw / p->share / samples_wanted(p));
		p->most = p->most < LEAST_SAMPLE ? LEAST_SAMPLE : p->most > WINDOW ? WINDOW : p->most - p->most % LEAST_SAMPLE;
		p->bytes = vv_context_pool_room((samples_wanted(p) + 1) * WINDOW);
		rc = p->bytes ? 0 : VV_ENOMEM;
	}
	p->boxed = rc == 0 && wants_box(p) && p->n_spans / p->n_sources <= FEW_SPANS;
	if (rc == 0)
		rc = take_samples(p);
	if (rc == 0)
		rc = choose(p);
	vv_mem_free(p->source);
	vv_mem_free(p->seen);
	vv_context_pool_room_back(p->bytes);
	return rc;
}

static void run_choose(void *arg, size_t i)
{
	struct pick *p = (struct pick *)arg + i;

	p->rc = look_and_choose(p);
	if (p->rc)
		vv_err_save(p->rc, &p->error);
}

static int choose_all(struct varve *v, struct vv_file_set *c, const struct vv_manifest *before, const struct vv_pack_options *opt, size_t chunk)
{
	struct pick *pick = vv_mem_new(c->n_kinds, sizeof(*pick));
	uint32_t *order = NULL;
	uint64_t memory = 0;
	size_t n = 0, at = 0;
	int rc = pick ? vv_file_set_by_kind(c, &order) : VV_ENOMEM;

	for (size_t i = 0; i < c->n_kinds; i++)
		memory += c->kind[i].segment ? c->kind[i].raw : 0;
	while (rc == 0 && at < c->n_spans) {
		size_t first = at, i = c->span[order[at]].kind_id;

		while (at < c->n_spans && c->span[order[at]].kind_id == i)
			at++;
		if (i != VV_FILE_SET_SKELETON && !c->kind[i].decided)
			pick[n++] = (struct pick){ .v = v, .file_set = c, .kind = &c->kind[i], .before = find_before(before, &c->kind[i]),
						   .opt = opt, .little = memory <= LITTLE, .chunk = chunk, .span = order + first, .n_spans = at - first };
	}
	if (rc == 0)
		vv_pool_each(v->ctx.pool, n, run_choose, pick);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = pick[i].rc ? vv_err_restore(&pick[i].error) : 0;
		pick[i].kind->decided = true;
	}
	vv_mem_free(order);
	vv_mem_free(pick);
	return rc;
}

static void fold_tiny(struct vv_file_set *c)
{
	struct vv_file_set_kind *skeleton = &c->kind[VV_FILE_SET_SKELETON];

	for (size_t i = 0; i < c->n_spans; i++) {
		struct vv_file_set_kind *k = &c->kind[c->span[i].kind_id];

		if (k != skeleton && k->raw < TINY && !k->small)
			c->span[i].kind_id = VV_FILE_SET_SKELETON;
	}
	for (size_t i = 1; i < c->n_kinds; i++)
		if (c->kind[i].raw < TINY && !c->kind[i].small) {
			skeleton->raw += c->kind[i].raw;
			c->kind[i].raw = c->kind[i].instances = 0;
		}
}

/* Little memory of one kind does not justify its own block, and resembles that of another kind. */
static void join_little(struct vv_file_set *c)
{
	for (size_t i = 1; i < c->n_kinds; i++) {
		struct vv_file_set_kind *k = &c->kind[i];

		if (!k->decided)
			k->joint = k->segment && k->raw < LEAST && c->policy.rule[k->segment].code == VV_SEGMENT_POLICY_AUTO;
	}
}

/* ---- Islam 2012 ------------------------------------------------------------------------------ */

/* The codecs of Islam 2012: FPC for doubles, fpzip for floats, an LZ for all else; then deflate.
 * With a single pass: deflate for untyped bytes, else the first codec. */
static struct vv_recipe paper_recipe(const struct vv_file_set_kind *k, bool variable, bool single)
{
	struct vv_recipe r = { .width = 1, .record = 1, .predictor = VV_PREDICT_LZ, .coder = single && variable ? VV_CODEC_NONE : VV_CODEC_PAPER };

	if (!variable && single)
		r.predictor = VV_PREDICT_NONE;
	if (!variable || (k->form.type != VV_TYPE_F64 && k->form.type != VV_TYPE_F32))
		return r;
	r.predictor = k->form.type == VV_TYPE_F64 ? VV_PREDICT_FPC : VV_PREDICT_FPZIP;
	r.width = k->form.type == VV_TYPE_F64 ? 8 : 4;
	r.level = k->form.type == VV_TYPE_F64 ? 2 : 0;
	r.real = true;
	r.swapped = k->form.swapped;
	return r;
}

static int as_in_paper(struct vv_file_set *c, const struct vv_pack_options *opt)
{
	bool aware = opt->scheme == VV_PACK_AWARE || opt->scheme == VV_PACK_AWARE_BLOCK;

	if (!vv_codec_numbered(VV_CODEC_PAPER))
		return vv_err_set(VV_ENOTSUP, "the schemes of the paper need zlib, which this varve was built without; --scheme auto does not");
	for (size_t i = 0; i < c->n_kinds; i++) {
		struct vv_file_set_kind *k = &c->kind[i];

		k->recipe = paper_recipe(k, aware && i != VV_FILE_SET_SKELETON && !k->opaque, opt->single);
		k->merged = k->coded = k->paper = true;
	}
	return 0;
}

/* The skeleton and small files: bytes of all files together, without samples. */
static void code_as_bytes(struct vv_file_set *c, enum vv_pack_effort effort, bool coding)
{
	int level = effort == VV_PACK_FAST ? 1 : effort == VV_PACK_MAX ? 19 : LEVEL_SKELETON;

	for (size_t i = 0; i < c->n_kinds; i++) {
		struct vv_file_set_kind *k = &c->kind[i];

		if (i != VV_FILE_SET_SKELETON && !k->small)
			continue;
		k->recipe = (struct vv_recipe){ .width = 1, .record = 1, .coder = VV_CODEC_ZSTD, .level = (int8_t)level };
		k->merged = k->decided = true;
		k->coded = coding;
	}
}

int vv_recipes_decide(struct varve *v, struct vv_file_set *c, const struct vv_manifest *before, const struct vv_pack_options *opt, size_t chunk,
		    bool coding)
{
	if (opt->scheme != VV_PACK_AUTO)
		return as_in_paper(c, opt);
	fold_tiny(c);
	code_as_bytes(c, opt->effort, coding);
	if (!coding || !vv_codec_numbered(VV_CODEC_TYPED))
		return 0;
	join_little(c);
	return choose_all(v, c, before, opt, chunk);
}
