#include "engine/files/parent_files.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "codec/context_pool.h"
#include "codec/recipe_search.h"
#include "engine/context.h"
#include "engine/files/recipes.h"
#include "engine/lineage/base_layers.h"
#include "engine/lineage/layer_file.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAST = 32 << 10,   /* a smaller kind is not worth a look */
	LARGEST = 8 << 20,  /* block: its base takes as much memory, several times */
	LARGEST_MATCH = 32 << 20, /* block, or base; */
	NEAR = 1 << 20,     /* bytes of it to each side, in which a sample is looked for */
	WINDOW = VV_RECIPE_SEARCH_BYTES,
	SAMPLES = 4,        /* of a kind, at most; */
	SHARE = 32,         /* one byte in so many is sampled, */
	TRIES = 16,         /* and so many places are looked at for one that has changed */
	CANDIDATES = 4,
	BLOCKS = 16,        /* of which a base may have parts */
	LITTLE = 16,        /* a block with one byte of so many is dispensable */
	WIDE = 2,           /* they may be longer than the base by this factor */
	ALIKE = 256,        /* files with equal names but for the numbers, among which one is chosen */
};

/* A difference is to have at most this part of the bytes that it replaces. At the level `max` these
 * are fewer by some hundredths, so the part may be larger. A restart reads it and its base: all
 * differences together have at most the part `budget` of the bytes stored without them. */
static const double worth_it[] = { [VV_PARENT_FILES_RESTART] = 0.75, [VV_PARENT_FILES_RESTART_AT_MAX] = 0.8, [VV_PARENT_FILES_SIZE] = 0.9 };
static const double budget[] = { [VV_PARENT_FILES_RESTART] = 0.3, [VV_PARENT_FILES_RESTART_AT_MAX] = 0.32, [VV_PARENT_FILES_SIZE] = 0.3 };
static const double uneven = 1.1;

struct parent_stretch { /* of the payload */
	uint64_t pos, len;
	uint32_t file;
	uint64_t at;
};

struct parent_kind {
	struct vv_delta how;
	double part; /* of the bytes without, in samples */
};

struct vv_parent_files {
	struct varve *v;
	struct vv_run_table table;
	enum vv_parent_files_aim aim;
	int level;               /* of matches */
	struct vv_base_layers *layers;
	struct parent_block {
		const struct vv_layer_file *file;
		size_t block;
		uint64_t len; /* bytes of it that are bases */
	} last;                  /* of the base that was looked up last */
	size_t *region;          /* by file: the former one; table.n: there is none */
	struct parent_kind *kind; /* as in the set of files */
	double credit;           /* bytes that a restart may read for differences, still */
	struct parent_stretch *stretch; /* those that were not asked for yet, from `first` on */
	size_t first, n, cap;
	struct vv_delta_source source;
};

/* ---- bases ----------------------------------------------------------------------------------- */

struct bases { /* the bases of some bytes */
	struct vv_delta_base *v;
	size_t n;
	/* for matches: they are all bytes of the blocks that hold a part of them */
	bool whole;
	struct parent_block block[BLOCKS]; /* those that hold parts of them */
	size_t n_blocks;
	uint64_t at;                      /* where in the blocks the first byte lies, about */
	uint64_t len, zeros, raw; /* bytes; of zero; of the blocks, decoded */
	double part;                      /* of the stored bytes that is the bases' */
};

static bool append(struct bases *b, uint64_t epoch, uint64_t pos, uint64_t len)
{
	struct vv_delta_base *last = b->n ? &b->v[b->n - 1] : NULL;

	if (last && last->epoch == epoch && (!epoch || last->pos + last->len == pos)) {
		last->len += len;
		return true;
	}
	if (b->n == VV_DELTA_BASES_EXTENTS)
		return false;
	b->v[b->n++] = (struct vv_delta_base){ epoch, epoch ? pos : 0, len };
	return true;
}

static bool add_base(struct bases *b, uint64_t epoch, uint64_t pos, uint64_t len)
{
	b->len += len;
	b->zeros += epoch ? 0 : len;
	return b->whole || append(b, epoch, pos, len);
}

static bool append_block(struct bases *b, const struct vv_layer_file *f, const struct vv_block *k)
{
	bool ok = true;

	b->raw += k->raw_len;
	for (size_t i = k->extent; ok && i < k->extent + k->n_extents; i++)
		ok = append(b, vv_run_epoch(f->layer), f->blocks.extent.v[i].pos, f->blocks.extent.v[i].len);
	return ok;
}

/* A block of the base that covers little of the new block is left out. Decoding it takes as long as
 * decoding a full one. */
static bool append_blocks(struct bases *b)
{
	size_t n = b->n_blocks;
	bool ok = true;

	b->n_blocks = 0;
	b->raw = 0;
	for (size_t i = 0; ok && i < n; i++)
		if (b->block[i].len >= b->len / LITTLE) {
			b->block[b->n_blocks++] = b->block[i];
			ok = append_block(b, b->block[i].file, &b->block[i].file->blocks.v[b->block[i].block]);
		}
	return ok;
}

static bool add_block(struct bases *b, const struct vv_layer_file *f, size_t block, uint64_t len)
{
	const struct vv_block *k = &f->blocks.v[block];
	size_t i = 0;

	b->part += (double)k->stored_len * (double)len / k->raw_len;
	while (i < b->n_blocks && (b->block[i].file != f || b->block[i].block != block))
		i++;
	if (i == BLOCKS)
		return false;
	b->block[i].len = len + (i < b->n_blocks ? b->block[i].len : 0);
	if (i < b->n_blocks)
		return true;
	b->block[i].file = f;
	b->block[b->n_blocks++].block = block;
	b->raw += k->raw_len;
	return true;
}

static bool add_positions(struct vv_parent_files *p, struct bases *b, uint64_t epoch, uint64_t pos, uint64_t len, bool again);

/* Does the base of a difference have each byte at the same offset? Not that of a match. */
static bool is_as_long(const struct vv_layer_file *f, size_t block)
{
	size_t n = 0;
	const struct vv_delta_base *v = vv_delta_bases_of(&f->blocks.bases, block, &n);

	return vv_delta_bases_sum(v, n) == f->blocks.v[block].raw_len;
}

/* Part of a block that is a match: its bases may have these bytes anywhere. */
static bool add_former_bases(struct vv_parent_files *p, struct bases *b, const struct vv_layer_file *f, size_t block, uint64_t len)
{
	size_t n = 0;
	const struct vv_delta_base *v = vv_delta_bases_of(&f->blocks.bases, block, &n);
	uint64_t sum = vv_delta_bases_sum(v, n), done = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++) {
		uint64_t some = i + 1 < n ? (uint64_t)((double)len * (double)v[i].len / (double)sum) : len - done;

		done += some;
		if (v[i].epoch && some)
			ok = add_positions(p, b, v[i].epoch, v[i].pos, some < v[i].len ? some : v[i].len, false);
	}
	return ok;
}

/* Part of a block that is a difference: its base, at the same offset, is the base here, too. */
static bool add_former_base(struct vv_parent_files *p, struct bases *b, const struct vv_layer_file *f, size_t block, uint64_t from, uint64_t len)
{
	size_t n = 0;
	const struct vv_delta_base *v = vv_delta_bases_of(&f->blocks.bases, block, &n);
	bool ok = true;

	for (size_t i = 0; ok && len && i < n; i++) {
		uint64_t some = from < v[i].len ? v[i].len - from : 0;

		some = some < len ? some : len;
		if (some && v[i].epoch)
			ok = add_positions(p, b, v[i].epoch, v[i].pos + from, some, false);
		else if (some)
			ok = add_base(b, 0, 0, some);
		from = some ? 0 : from - v[i].len;
		len -= some;
	}
	return ok;
}

static bool add_positions(struct vv_parent_files *p, struct bases *b, uint64_t epoch, uint64_t pos, uint64_t len, bool again)
{
	struct vv_payload_cursor c = { 0 };
	struct vv_layer_file *f = NULL;
	bool ok = vv_base_layers_open(p->layers, epoch, &f) == 0;

	while (ok && len) {
		uint32_t from;
		int64_t n = vv_layer_file_locate(f, pos, len, &c, &from);
		uint64_t some = (uint64_t)n;
		bool first = !b->n_blocks;

		if (n < 0)
			return false;
		if (f->blocks.v[c.block].codec != VV_CODEC_DELTA)
			ok = add_base(b, epoch, pos, some) && add_block(b, f, c.block, some);
		else if (b->whole)
			ok = again && add_former_bases(p, b, f, c.block, some);
		else
			ok = again && is_as_long(f, c.block) && add_former_base(p, b, f, c.block, from, some);
		b->at = first ? from : b->at;
		pos += some;
		len -= some;
	}
	return ok;
}

/* Adds the bases of a stretch of a file. False: there are too many, or they cannot be read. */
static bool add_stretch(struct vv_parent_files *p, struct bases *b, uint32_t file, uint64_t at, uint64_t len)
{
	size_t r = p->region[file], i;
	const struct vv_runs *runs;
	bool ok = true;

	if (r == p->table.n)
		return add_base(b, 0, 0, len);
	runs = &p->table.region[r].runs;
	VV_SEARCH(i, 0, runs->n, runs->v[i].at + runs->v[i].len <= at);
	for (; ok && len && i < runs->n; i++) {
		const struct vv_run *run = &runs->v[i];
		uint64_t from = at - run->at, some = run->len - from < len ? run->len - from : len;

		if (!run->layer)
			ok = add_base(b, 0, 0, some);
		else
			ok = vv_run_rank(run->layer) == p->v->ctx.rank && add_positions(p, b, vv_run_epoch(run->layer), run->pos + from, some, true);
		at += some;
		len -= some;
	}
	return ok && (!len || add_base(b, 0, 0, len));
}

/* May a restart read and decode the blocks of these bases? *more: the stored bytes of the blocks
 * beyond the bases. If little of a block is a base, most of it is other content of this epoch,
 * which is read anyway. */
static bool is_near(const struct bases *b, double *more)
{
	uint64_t raw = 0;

	*more = -b->part;
	for (size_t i = 0; i < b->n_blocks; i++) {
		const struct vv_block *k = &b->block[i].file->blocks.v[b->block[i].block];
		bool shared = b->block[i].len < k->raw_len / 2;

		raw += shared ? 0 : k->raw_len;
		*more += (double)k->stored_len * (shared ? (double)b->block[i].len / k->raw_len : 1);
	}
	return raw <= WIDE * b->len && b->raw <= (b->whole ? VV_DELTA_BASES_TIMES * b->len + VV_DELTA_BASES_MORE : LARGEST_MATCH);
}

/* The longest difference that pays; 0: none. Without it, a restart reads about as many stored bytes
 * as the base has. */
static size_t most_that_pays(struct vv_parent_files *p, const struct parent_kind *k, const struct bases *b)
{
	double more, most = uneven * k->part;

	if (b->zeros >= b->len / 4 || !b->n_blocks || !is_near(b, &more))
		return 0;
	most = (most > budget[p->aim] ? most : budget[p->aim]) * b->part;
	if (p->aim == VV_PARENT_FILES_SIZE)
		return (size_t)(worth_it[p->aim] * b->part);
	p->credit += budget[p->aim] * b->part;
	most = most < p->credit - more ? most : p->credit - more;
	if (most < k->part * b->part)
		return 0;
	p->credit -= most + more;
	return (size_t)most;
}

bool vv_parent_files_begins_block(struct vv_parent_files *p, const struct vv_delta *how, uint32_t file, uint64_t at)
{
	struct vv_delta_base v[VV_DELTA_BASES_EXTENTS];
	struct bases b = { .v = v, .whole = how->op == VV_DELTA_MATCH };
	bool other;

	if (!add_stretch(p, &b, file, at, 1) || !b.n_blocks) {
		vv_err_clear();
		return false;
	}
	other = p->last.file != b.block[0].file || p->last.block != b.block[0].block;
	p->last = b.block[0];
	return other;
}

static size_t find_bases(void *arg, const struct vv_delta *how, uint64_t pos, uint64_t len, struct vv_delta_base *out, size_t *most)
{
	const struct parent_kind *kind = (const struct parent_kind *)(const void *)how;
	struct vv_parent_files *p = arg;
	struct bases b = { .v = out, .whole = how->op == VV_DELTA_MATCH };
	uint64_t end = pos + len;
	bool ok = true;

	for (; p->first < p->n && p->stretch[p->first].pos + p->stretch[p->first].len <= pos; p->first++)
		;
	for (size_t i = p->first; ok && pos < end; i++) {
		const struct parent_stretch *s = &p->stretch[i];
		uint64_t skip, some;

		if (i == p->n || s->pos >= end) { /* padding */
			ok = add_base(&b, 0, 0, end - pos);
			break;
		}
		if (s->pos > pos)
			ok = add_base(&b, 0, 0, s->pos - pos);
		pos = s->pos > pos ? s->pos : pos;
		skip = pos - s->pos;
		some = s->len - skip < end - pos ? s->len - skip : end - pos;
		ok = ok && add_stretch(p, &b, s->file, s->at + skip, some);
		pos += some;
	}
	vv_err_clear();
	ok = ok && (!b.whole || append_blocks(&b));
	*most = ok ? most_that_pays(p, kind, &b) : 0;
	return *most ? b.n : 0;
}

static int read_bases(void *arg, const struct vv_delta_base *v, size_t n, uint8_t *to)
{
	struct vv_parent_files *p = arg;

	return vv_base_layers_read(p->layers, v, n, to);
}

int vv_parent_files_note(struct vv_parent_files *p, uint64_t pos, uint32_t file, uint64_t at, uint64_t len)
{
	struct parent_stretch *last = p->n > p->first ? &p->stretch[p->n - 1] : NULL;

	if (last && last->file == file && last->pos + last->len == pos && last->at + last->len == at) {
		last->len += len;
		return 0;
	}
	if (p->first > p->n / 2 && p->n > 64) {
		p->n -= p->first;
		memmove(p->stretch, p->stretch + p->first, p->n * sizeof(*p->stretch));
		p->first = 0;
	}
	if (vv_mem_room(&p->stretch, p->n, &p->cap, sizeof(*p->stretch)) < 0)
		return VV_ENOMEM;
	p->stretch[p->n++] = (struct parent_stretch){ pos, len, file, at };
	return 0;
}

const struct vv_delta_source *vv_parent_files_source(struct vv_parent_files *p)
{
	p->source = (struct vv_delta_source){ p, find_bases, read_bases };
	return &p->source;
}

/* ---- former files ---------------------------------------------------------------------------- */

/* Compares names in which a number stands for any other. */
static int compare_folded(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			a += strspn(a, "0123456789");
			b += strspn(b, "0123456789");
		} else if (*a == *b) {
			a++;
			b++;
		} else {
			break;
		}
	}
	return (unsigned char)*a - (unsigned char)*b;
}

/* How many numbers are equal in two names that are equal without? */
static unsigned count_equal(const char *a, const char *b)
{
	unsigned n = 0;

	while (*a && *b) {
		size_t i = strspn(a, "0123456789"), k = strspn(b, "0123456789");

		n += i && i == k && memcmp(a, b, i) == 0;
		a += i ? i : 1;
		b += k ? k : 1;
	}
	return n;
}

static int by_folded(const void *a, const void *b)
{
	const struct vv_run_table_region *const *x = a, *const *y = b;
	int order = compare_folded((*x)->name, (*y)->name);

	return order ? order : strcmp((*x)->name, (*y)->name);
}

/* A file of the same name. Else a file whose name has other numbers, such as that of a step. Of
 * these it is the file with the most equal numbers, such as the rank's. */
static size_t find_former(const struct vv_parent_files *p, const struct vv_run_table_region **sorted, const char *name)
{
	size_t at = vv_run_table_find(&p->table, name), first, best = p->table.n;
	unsigned most = 0;

	if (at < p->table.n)
		return at;
	VV_SEARCH(first, 0, p->table.n, compare_folded(sorted[first]->name, name) < 0);
	for (size_t i = first; i < p->table.n && i < first + ALIKE && compare_folded(sorted[i]->name, name) == 0; i++) {
		unsigned equal = 1 + count_equal(sorted[i]->name, name);

		if (equal >= most) {
			most = equal;
			best = (size_t)(sorted[i] - p->table.region);
		}
	}
	return best;
}

static int find_files(struct vv_parent_files *p, const struct vv_file_set *c)
{
	const struct vv_run_table_region **sorted = vv_mem_new(p->table.n, sizeof(struct vv_run_table_region *));

	p->region = vv_mem_new(c->n_files, sizeof(*p->region));
	if (sorted && p->region) {
		for (size_t i = 0; i < p->table.n; i++)
			sorted[i] = &p->table.region[i];
		qsort(sorted, p->table.n, sizeof(struct vv_run_table_region *), by_folded);
		for (size_t i = 0; i < c->n_files; i++)
			p->region[i] = find_former(p, sorted, c->file[i].name);
	}
	vv_mem_free(sorted);
	return sorted && p->region ? 0 : VV_ENOMEM;
}

/* ---- choosing -------------------------------------------------------------------------------- */

struct choosing { /* for one kind */
	struct vv_parent_files *p;
	const struct vv_file_set *file_set;
	struct vv_file_set_kind *kind;
	const uint32_t *span;
	size_t n_spans;
	struct vv_delta candidate[CANDIDATES];
	size_t n_candidates;
	double alone, size[CANDIDATES]; /* of the samples */
	int rc;
	struct vv_err_state error;
};

/* Arrays of numbers seldom move, and the search for a moved one takes longer than a difference. */
static bool may_match(const struct vv_file_set_kind *k)
{
	return vv_delta_has_match() && (k->form.type < VV_TYPE_F32 || k->recipe.predictor == VV_PREDICT_TRAIL);
}

static void list_candidates(struct choosing *x)
{
	const struct vv_file_set_kind *k = x->kind;
	unsigned width = k->form.type ? vv_head_type_size(k->form.type) : k->recipe.width;
	struct vv_recipe planes = { .width = (uint8_t)width, .record = 1, .coder = VV_CODEC_ZSTD, .level = 3 };

	if (k->form.type == VV_TYPE_C64 || k->form.type == VV_TYPE_C128)
		width /= 2;
	if (width != 1 && width != 2 && width != 4 && width != 8)
		width = 1;
	planes.width = (uint8_t)width;
	if (may_match(k))
		x->candidate[x->n_candidates++] = (struct vv_delta){ .op = VV_DELTA_MATCH, .width = 1, .recipe = { .width = 1, .level = (int8_t)x->p->level } };
	if (k->recipe.predictor == VV_PREDICT_TEXT)
		x->candidate[x->n_candidates++] = (struct vv_delta){ .op = VV_DELTA_MATCH, .width = 1, .recipe = k->recipe };
	if (vv_recipes_block(k) > LARGEST)
		return;
	x->candidate[x->n_candidates++] = (struct vv_delta){ .op = VV_DELTA_XOR, .width = 1, .recipe = planes };
	if (width > 1) {
		x->candidate[x->n_candidates++] =
			(struct vv_delta){ .op = VV_DELTA_DIFFERENCE, .width = (uint8_t)width, .swapped = k->form.swapped, .recipe = planes };
		planes.swapped = k->form.swapped;
		x->candidate[x->n_candidates - 2].recipe = planes;
	}
}

static int size_of(const struct vv_recipe *r, const uint8_t *bytes, size_t n, double *sum)
{
	struct vv_sample s = { bytes, n };
	double ratio = 1;
	int rc = vv_recipe_search_one(r, &s, &ratio);

	*sum += (double)n / (ratio > 1 ? ratio : 1);
	return rc;
}

/* room: the sample, its base, and as much for their difference. */
static int try_difference(struct choosing *x, size_t i, uint8_t *room, size_t n, bool has_base)
{
	uint8_t *base = room + n, *difference = base + n;

	if (!has_base) {
		x->size[i] += (double)n;
		return 0;
	}
	memcpy(difference, base, n);
	vv_delta_apart(&x->candidate[i], room, difference, n);
	return size_of(&x->candidate[i].recipe, difference, n, &x->size[i]);
}

static int code_match(const struct vv_delta *how, const uint8_t *bytes, size_t n, uint8_t *base, size_t n_base, double *sum)
{
	size_t cap = vv_delta_bound(n), got = 0;
	uint8_t *to = vv_context_pool_room(cap);
	int rc = to ? vv_delta_encode(how, bytes, n, base, n_base, to, cap, &got) : VV_ENOMEM;

	vv_context_pool_room_back(to);
	*sum += got ? (double)got : (double)n;
	return rc;
}

/* Looks for a sample in the blocks of its base. Decoding these is bounded by the bytes of the
 * kind. */
static int try_match(struct choosing *x, size_t i, const struct vv_file_span *s, uint64_t at, const uint8_t *bytes, size_t n)
{
	struct vv_delta_base v[VV_DELTA_BASES_EXTENTS];
	struct bases b = { .v = v, .whole = true };
	bool ok = add_stretch(x->p, &b, s->file, at, n) && append_blocks(&b) && b.n && b.raw <= LARGEST_MATCH && b.raw <= WIDE * x->kind->raw;
	uint8_t *base = ok ? vv_context_pool_room((size_t)b.raw) : NULL;
	uint64_t from = b.at > NEAR ? b.at - NEAR : 0, to = b.at + NEAR < b.raw ? b.at + NEAR : b.raw;
	int rc = ok && !base ? VV_ENOMEM : 0;

	if (base)
		rc = vv_base_layers_read(x->p->layers, v, b.n, base);
	if (base && rc == 0 && from < to) {
		rc = code_match(&x->candidate[i], bytes, n, base + from, (size_t)(to - from), &x->size[i]);
	} else {
		x->size[i] += (double)n;
		rc = rc == VV_ENOMEM ? rc : 0;
		vv_err_clear();
	}
	vv_context_pool_room_back(base);
	return rc;
}

/* *taken: the sample has changed. Content that is stored already needs no block. */
static int take_sample(struct choosing *x, const struct vv_file_span *s, uint64_t at, uint8_t *room, bool *taken)
{
	struct vv_delta_base v[VV_DELTA_BASES_EXTENTS];
	struct bases b = { .v = v };
	size_t n = s->at + s->len - at < WINDOW ? (size_t)(s->at + s->len - at) : WINDOW;
	bool has_base = add_stretch(x->p, &b, s->file, at, n) && b.zeros < n / 4;
	int rc = vv_file_set_read(x->file_set, s->file, at, room, n);

	if (rc)
		return rc;
	if (has_base) {
		rc = vv_base_layers_read(x->p->layers, v, b.n, room + n);
		if (rc == VV_ENOMEM)
			return rc;
		has_base = rc == 0;
	}
	vv_err_clear();
	*taken = !has_base || memcmp(room, room + n, n) != 0;
	if (!*taken)
		return 0;
	rc = size_of(&x->kind->recipe, room, n, &x->alone);
	for (size_t i = 0; rc == 0 && i < x->n_candidates; i++)
		rc = x->candidate[i].op == VV_DELTA_MATCH ? try_match(x, i, s, at, room, n) : try_difference(x, i, room, n, has_base);
	return rc;
}

/* A window around byte `where` of the kind. */
static int take_sample_near(struct choosing *x, uint64_t where, uint8_t *room, bool *taken)
{
	for (size_t i = 0; i < x->n_spans; i++) {
		const struct vv_file_span *s = &x->file_set->span[x->span[i]];
		uint64_t most = s->len > WINDOW ? s->len - WINDOW : 0, from;

		if (where >= s->len) {
			where -= s->len;
			continue;
		}
		from = where < most ? where : most;
		return take_sample(x, s, s->at + from - from % 16, room, taken);
	}
	return 0;
}

static int take_samples(struct choosing *x)
{
	uint64_t want = x->kind->raw / SHARE / WINDOW;
	uint8_t *room = vv_context_pool_room(3 * WINDOW);
	int rc = room ? 0 : VV_ENOMEM;

	want = want < 1 ? 1 : want > SAMPLES ? SAMPLES : want;
	for (uint64_t i = 0; rc == 0 && i < want; i++) {
		bool taken = false;

		for (uint64_t k = 0; rc == 0 && !taken && k < TRIES; k++)
			rc = take_sample_near(x, x->kind->raw * (2 * i * TRIES + (TRIES + 2 * k) % (2 * TRIES)) / (2 * want * TRIES), room, &taken);
	}
	vv_context_pool_room_back(room);
	return rc;
}

static void run_choosing(void *arg, size_t i)
{
	struct choosing *x = (struct choosing *)arg + i;
	struct parent_kind *mine = &x->p->kind[x->kind - x->file_set->kind];
	size_t best = 0;

	list_candidates(x);
	x->rc = take_samples(x);
	if (x->rc)
		vv_err_save(x->rc, &x->error);
	for (size_t k = 1; k < x->n_candidates; k++)
		best = x->size[k] < x->size[best] ? k : best;
	if (x->rc || !(x->size[best] < worth_it[x->p->aim] * x->alone))
		return;
	*mine = (struct parent_kind){ x->candidate[best], x->size[best] / x->alone };
	x->kind->delta = &mine->how;
}

/* The budget of kinds that are stored without differences goes to the other kinds. */
static void give_credit(struct vv_parent_files *p, const struct vv_file_set *c)
{
	for (size_t i = 0; i < c->n_kinds; i++)
		if (!c->kind[i].delta)
			p->credit += budget[p->aim] * (double)c->kind[i].raw * (c->kind[i].expected_ratio > 1000 ? 1000.0 / c->kind[i].expected_ratio : 1);
}

int vv_parent_files_choose(struct vv_parent_files *p, struct vv_file_set *c)
{
	struct choosing *x = vv_mem_new(c->n_kinds, sizeof(*x));
	uint32_t *order = NULL;
	size_t n = 0;
	int rc = find_files(p, c);

	p->kind = vv_mem_new(c->n_kinds, sizeof(*p->kind));
	if (rc == 0)
		rc = x && p->kind ? vv_file_set_by_kind(c, &order) : VV_ENOMEM;
	for (size_t at = 0, first; rc == 0 && at < c->n_spans;) {
		size_t i = c->span[order[at]].kind_id;
		struct vv_file_set_kind *k = &c->kind[i];

		for (first = at; at < c->n_spans && c->span[order[at]].kind_id == i; at++)
			;
		if (i != VV_FILE_SET_SKELETON && !k->small && k->coded && !k->paper && k->raw >= LEAST && vv_recipes_block(k) <= LARGEST_MATCH)
			x[n++] = (struct choosing){ .p = p, .file_set = c, .kind = k, .span = order + first, .n_spans = at - first };
	}
	if (rc == 0)
		vv_pool_each(p->v->ctx.pool, n, run_choosing, x);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = x[i].rc ? vv_err_restore(&x[i].error) : 0;
	if (rc == 0)
		give_credit(p, c);
	vv_mem_free(order);
	vv_mem_free(x);
	return rc;
}

int vv_parent_files_new(struct varve *v, struct vv_run_table *t, enum vv_parent_files_aim aim, int level, struct vv_parent_files **out)
{
	struct vv_parent_files *p = vv_mem_new(1, sizeof(*p));
	int rc = p ? vv_base_layers_new(&v->ctx.lineage, v->ctx.rank, &p->layers) : VV_ENOMEM;

	if (rc) {
		vv_run_table_fini(t);
		vv_mem_free(p);
		return rc;
	}
	p->v = v;
	p->aim = aim;
	p->level = level;
	p->table = *t;
	*t = (struct vv_run_table){ 0 };
	*out = p;
	return 0;
}

void vv_parent_files_free(struct vv_parent_files *p)
{
	if (!p)
		return;
	vv_base_layers_free(p->layers);
	vv_run_table_fini(&p->table);
	vv_mem_free(p->region);
	vv_mem_free(p->kind);
	vv_mem_free(p->stretch);
	vv_mem_free(p);
}
