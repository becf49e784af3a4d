/* Words that follow a trail: memory often repeats earlier memory, except for a number here and
 * there. A block is taken as words of 8 bytes, and each is described by an earlier word at some
 * distance. The word may be the same, or the same plus one of the last differences. Pointers into
 * memory that lies elsewhere, and counters, differ in that way. The word may also differ by a small
 * number, or be new. The distance is changed only if three words in a row are found again. LZ
 * compressors end a match at each of these differences, so they do badly on images of processes and
 * on records.
 *
 * The descriptions of the words go into streams, and each stream is compressed by itself:
 * docs/packing.md. */
#include "base/err.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "codec/stream.h"
#include "codec/word_history.h"

enum {
	ALIKE = 3,           /* words in a row that a trail begins with */
	TABLE = 20,          /* log2 of the remembered places, at most */
	/* words: the table is larger than the cache, so a place is prefetched so long before it is
	 * needed */
	AHEAD = 16,
	CATCH_UP = 3,        /* places at a time, if none have been prefetched */
	/* one in so many words that are the same is remembered: their earlier places are remembered
	 * already */
	OFTEN = 2,
	PATIENCE = 64,       /* new words in a row, after which only */
	SELDOM = 4,          /* one in so many is searched for */
	SAMPLE = 8 << 10,    /* new words that are tried both ways */
	COLUMN = 512,        /* new words that are split at a time */
	QUICK = 3, SLOW = 9, /* levels */
};

static uint64_t zigzag(uint64_t d)
{
	return (d << 1) ^ (0 - (d >> 63));
}

static unsigned find_difference(const uint64_t *last, uint64_t d)
{
	unsigned k = 0;

	while (k < VV_WORD_HISTORY_DIFFERENCES && last[k] != d)
		k++;
	return k;
}

/* ---- the walk ---- */

struct word_history_walk {
	const uint8_t *p;
	size_t m;          /* words */
	uint8_t *code;     /* one each */
	/* the last place of three words, and some bits of their hash above it, so that wrong places
	 * are not visited */
	uint32_t *table;
	unsigned shift;
	uint32_t tag;      /* these bits */
	uint64_t hash[AHEAD]; /* of the next words, */
	size_t known;         /* up to this one */
	size_t distance;   /* 0: there is no trail yet */
	size_t since;      /* the word where it was changed */
	size_t n_new, misses;
	uint64_t last[VV_WORD_HISTORY_DIFFERENCES];
	struct vv_buf starts, distances, close;
};

static uint64_t hash_of(const uint8_t *p, size_t i)
{
	return vv_word_history_word(p, i) * 0x9e3779b97f4a7c15 + vv_word_history_word(p, i + 1) * 0xc2b2ae3d27d4eb4f + vv_word_history_word(p, i + 2) * 0x165667b19e3779f9;
}

/* The table's entry for word i. */
static uint32_t entry_of(const struct word_history_walk *w, uint64_t hash, size_t i)
{
	return ((uint32_t)(hash >> (w->shift - 32)) & w->tag) | (uint32_t)i;
}

static bool is_looked_for(const struct word_history_walk *w, size_t i)
{
	return i + ALIKE <= w->m && (w->misses < PATIENCE || i % SELDOM == 0);
}

/* Computes the hash of word i, and of some words after it. */
static void look_ahead(struct word_history_walk *w, size_t i)
{
	size_t to;

	if (w->known < i)
		w->known = i;
	to = w->known + CATCH_UP < i + AHEAD ? w->known + CATCH_UP : i + AHEAD;
	for (; w->known < to; w->known++)
		if (is_looked_for(w, w->known)) {
			uint64_t h = hash_of(w->p, w->known);

			w->hash[w->known % AHEAD] = h;
			__builtin_prefetch(&w->table[h >> w->shift], 1);
		}
}

/* The distance to the last place of the next three words; 0: there is none. Remembers their new
 * place. */
static size_t look(struct word_history_walk *w, size_t i)
{
	uint64_t h = w->hash[i % AHEAD];
	uint32_t was, is = entry_of(w, h, i);
	size_t j;

	if (!is_looked_for(w, i))
		return 0;
	was = w->table[h >> w->shift];
	w->table[h >> w->shift] = is;
	j = was & ~w->tag;
	return ((was ^ is) & w->tag) == 0 && j < i && memcmp(w->p + VV_WORD_HISTORY_WORD * j, w->p + VV_WORD_HISTORY_WORD * i, VV_WORD_HISTORY_WORD * ALIKE) == 0 ? i - j : 0;
}

static void remember(struct word_history_walk *w, size_t i)
{
	uint64_t h = w->hash[i % AHEAD];

	if (is_looked_for(w, i))
		w->table[h >> w->shift] = entry_of(w, h, i);
}

/* Word i is on a trail: the words after it are searched for again. */
static void find_way(struct word_history_walk *w, size_t i)
{
	if (w->misses >= PATIENCE)
		w->known = i + 1;
	w->misses = 0;
}

static void turn(struct word_history_walk *w, size_t i, size_t distance)
{
	vv_wire_put_var(&w->starts, i - w->since);
	vv_wire_put_var(&w->distances, distance);
	w->since = i;
	w->distance = distance;
	find_way(w, i);
}

static void put_close(struct word_history_walk *w, uint64_t z)
{
	uint8_t b[VV_WORD_HISTORY_CLOSE];

	for (unsigned k = 0; k < VV_WORD_HISTORY_CLOSE; k++)
		b[k] = (uint8_t)(z >> (8 * k));
	vv_buf_add(&w->close, b, VV_WORD_HISTORY_CLOSE);
}

/* Describes a word that is on no trail. */
static void step_off(struct word_history_walk *w, size_t i, uint64_t difference)
{
	uint64_t z = zigzag(difference);

	if (i > 0 && vv_word_history_word(w->p, i) == vv_word_history_word(w->p, i - 1)) {
		w->code[i] = VV_WORD_HISTORY_AGAIN;
		return;
	}
	w->misses++;
	if (w->distance && z >> (8 * VV_WORD_HISTORY_CLOSE) == 0) {
		w->code[i] = VV_WORD_HISTORY_NEAR;
		put_close(w, z);
	} else {
		w->code[i] = VV_WORD_HISTORY_NEW;
		w->n_new++;
	}
	if (w->distance)
		vv_word_history_push(w->last, VV_WORD_HISTORY_DIFFERENCES, difference);
}

static void step(struct word_history_walk *w, size_t i)
{
	uint64_t v = vv_word_history_word(w->p, i), difference = w->distance ? v - vv_word_history_word(w->p, i - w->distance) : 0;
	unsigned k = w->distance ? find_difference(w->last, difference) : VV_WORD_HISTORY_DIFFERENCES;
	size_t other;

	if (k < VV_WORD_HISTORY_DIFFERENCES) {
		vv_word_history_push(w->last, k, difference);
		remember(w, i);
		find_way(w, i);
		w->code[i] = (uint8_t)(VV_WORD_HISTORY_SAME + 1 + k);
		return;
	}
	other = look(w, i);
	if (!other || other == w->distance) {
		step_off(w, i, difference);
		return;
	}
	turn(w, i, other);
	w->code[i] = VV_WORD_HISTORY_SAME;
}

/* Follows the trail from word i to its end. The place needed there is prefetched while the words
 * are remembered. */
static size_t follow(struct word_history_walk *w, size_t i)
{
	const uint8_t *before = w->p + VV_WORD_HISTORY_WORD * (i - w->distance);
	size_t end = i;

	while (end < w->m && vv_word_history_word(w->p, end) == vv_word_history_word(before, end - i))
		end++;
	if (end == i)
		return i;
	find_way(w, end - 1);
	look_ahead(w, end);
	memset(w->code + i, VV_WORD_HISTORY_SAME, end - i);
	for (; i < end && i + ALIKE <= w->m; i += OFTEN) {
		uint64_t h = hash_of(w->p, i);

		w->table[h >> w->shift] = entry_of(w, h, i);
	}
	return end;
}

static void walk_all(struct word_history_walk *w)
{
	for (size_t i = 0; i < w->m; i++) {
		if (w->distance)
			i = follow(w, i);
		if (i < w->m) {
			look_ahead(w, i);
			step(w, i);
		}
	}
}

/* ---- streams ---- */

/* Gathers new words, one after another, from word *i on; returns their number. */
static size_t gather(const struct word_history_walk *w, size_t *i, uint8_t *to, size_t most)
{
	size_t n = 0;

	for (; *i < w->m && n < most; ++*i)
		if (w->code[*i] == VV_WORD_HISTORY_NEW)
			memcpy(to + VV_WORD_HISTORY_WORD * n++, w->p + VV_WORD_HISTORY_WORD * *i, VV_WORD_HISTORY_WORD);
	return n;
}

/* Are new words shorter in planes than plain? The test takes some of the second half, if there are
 * any. */
static int try_both(const struct word_history_walk *w, const struct vv_stream_out *o, bool *split)
{
	size_t i = w->m / 2, n, apart;
	uint8_t *words = vv_context_pool_room(SAMPLE * VV_WORD_HISTORY_WORD);
	struct vv_stream_out trial = { .cap = SAMPLE * VV_WORD_HISTORY_WORD + VV_STREAM_HEADER, .how = o->how };
	int rc = VV_ENOMEM;

	trial.to = words ? vv_context_pool_room(trial.cap) : NULL;
	if (trial.to) {
		n = gather(w, &i, words, SAMPLE);
		if (n < SAMPLE / 2) {
			i = 0;
			n = gather(w, &i, words, SAMPLE);
		}
		rc = vv_stream_put_items(&trial, words, n * VV_WORD_HISTORY_WORD, VV_WORD_HISTORY_WORD);
		apart = trial.at;
		trial.at = 0;
		if (rc == 0)
			rc = vv_stream_put_planes(&trial, words, 1, n * VV_WORD_HISTORY_WORD);
		*split = apart < trial.at;
	}
	vv_context_pool_room_back(trial.to);
	vv_context_pool_room_back(words);
	return rc;
}

static void gather_planes(const struct word_history_walk *w, uint8_t *plane)
{
	uint8_t words[COLUMN * VV_WORD_HISTORY_WORD];
	size_t i = 0, at = 0, n;

	while ((n = gather(w, &i, words, COLUMN)) > 0) {
		vv_split_apart(words, n, VV_WORD_HISTORY_WORD, plane + at, w->n_new);
		at += n;
	}
}

static int put_new(struct vv_stream_out *o, const struct word_history_walk *w)
{
	uint8_t *room = vv_context_pool_room(w->n_new * VV_WORD_HISTORY_WORD), width;
	bool split = false;
	size_t i = 0;
	int rc = room ? try_both(w, o, &split) : VV_ENOMEM;

	if (rc == 0) {
		width = split ? VV_WORD_HISTORY_WORD : 1;
		vv_stream_put(o, &width, 1);
		if (split)
			gather_planes(w, room);
		else
			gather(w, &i, room, w->n_new);
		rc = vv_stream_put_planes(o, room, width, w->n_new * VV_WORD_HISTORY_WORD / width);
	}
	vv_context_pool_room_back(room);
	return rc;
}

/* If new words take more bytes than the codes, compressing the codes well is not worth the time. A
 * high level does it nevertheless. */
static int put_codes(struct vv_stream_out *o, const struct word_history_walk *w)
{
	int8_t level = o->how.level;
	int rc;

	if (w->n_new * VV_WORD_HISTORY_WORD > w->m && level > QUICK && level < SLOW)
		o->how.level = QUICK;
	rc = vv_stream_put_planes(o, w->code, 1, w->m);
	o->how.level = level;
	return rc;
}

static int put_all(struct vv_stream_out *o, const struct word_history_walk *w, const uint8_t *tail, size_t n_tail)
{
	int rc;

	vv_stream_put(o, &o->how.coder, 1);
	rc = put_codes(o, w);
	if (rc == 0)
		rc = vv_stream_put_planes(o, w->starts.p, 1, w->starts.n);
	if (rc == 0)
		rc = vv_stream_put_planes(o, w->distances.p, 1, w->distances.n);
	if (rc == 0)
		rc = vv_stream_put_items(o, w->close.p, w->close.n, VV_WORD_HISTORY_CLOSE);
	if (rc == 0)
		rc = put_new(o, w);
	vv_stream_put(o, tail, n_tail);
	return rc;
}

static size_t bound(size_t n)
{
	return n + 6 * VV_STREAM_HEADER;
}

static unsigned table_bits(size_t m)
{
	unsigned bits = 10;

	while (bits < TABLE && (size_t)1 << bits < m / 2)
		bits++;
	return bits;
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	struct word_history_walk w = { .p = from, .m = n / VV_WORD_HISTORY_WORD };
	struct vv_stream_out o = { .to = to, .cap = cap };
	unsigned bits = table_bits(w.m), places = 0;
	int rc;

	*out = 0;
	if (!how || how->predictor != VV_PREDICT_TRAIL || w.m < ALIKE || w.m > UINT32_MAX)
		return 0;
	o.how = *how;
	o.how.level = how->level ? how->level : (int8_t)level;
	w.shift = 64 - bits;
	while (w.m >> places)
		places++;
	w.tag = places < 32 ? UINT32_MAX << places : 0;
	w.table = (void *)vv_context_pool_room(sizeof(*w.table) << bits);
	w.code = w.table ? vv_context_pool_room(w.m) : NULL;
	rc = w.code ? 0 : VV_ENOMEM;
	if (rc == 0) {
		memset(w.table, 0, sizeof(*w.table) << bits);
		walk_all(&w);
		rc = vv_buf_check(&w.starts) || vv_buf_check(&w.distances) || vv_buf_check(&w.close) ? VV_ENOMEM : 0;
	}
	if (rc == 0)
		rc = put_all(&o, &w, (const uint8_t *)from + w.m * VV_WORD_HISTORY_WORD, n % VV_WORD_HISTORY_WORD);
	if (rc == 0 && !o.full && o.at < n)
		*out = o.at;
	vv_context_pool_room_back((void *)w.table);
	vv_context_pool_room_back(w.code);
	vv_buf_fini(&w.starts);
	vv_buf_fini(&w.distances);
	vv_buf_fini(&w.close);
	return rc;
}

static struct vv_recipe recipe_of(const void *coded, size_t n)
{
	return (struct vv_recipe){ .width = VV_WORD_HISTORY_WORD, .record = 1, .predictor = VV_PREDICT_TRAIL, .coder = n ? *(const uint8_t *)coded : 0 };
}

extern const struct vv_codec vv_codec_trail;
const struct vv_codec vv_codec_trail = {
	.name = "trail",
	.number = VV_CODEC_TRAIL,
	.min_level = 1,
	.max_level = 19,
	.usual_level = 3,
	.bound = bound,
	.encode = encode,
	.decode = vv_word_history_back_decode,
	.decode_takes = vv_word_history_back_takes,
	.recipe = recipe_of,
};
