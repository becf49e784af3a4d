#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/stream.h"
#include "codec/word_history.h"

enum {
	COLUMN = 512, /* items that are joined at a time */
	VAR = 5,      /* bytes of a start or a distance, at most */
	FEW = 4,      /* words that are faster to copy than a function is to call */
};

static uint64_t unzigzag(uint64_t z)
{
	return (z >> 1) ^ (0 - (z & 1));
}

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "a block of words on trails does not decode: %s", what);
}

struct word_history_back_stream {
	struct vv_stream_in in;
	size_t at;              /* the next item */
	uint8_t column[COLUMN * VV_WORD_HISTORY_WORD]; /* some of them, joined */
};

/* The next item, low byte first; there must be one. The column has room for words of any width. */
static uint64_t next(struct word_history_back_stream *s)
{
	uint64_t v;

	if (s->at % COLUMN == 0)
		vv_stream_join(&s->in, s->at, s->in.n - s->at < COLUMN ? s->in.n - s->at : COLUMN, s->column);
	memcpy(&v, s->column + s->at % COLUMN * s->in.width, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	s->at++;
	return v & UINT64_MAX >> (64 - 8 * s->in.width);
}

static const uint8_t *bytes_of(const struct word_history_back_stream *s)
{
	return s->in.made ? s->in.split.plane[0] : s->in.as_it_is;
}

enum { CODES, STARTS, DISTANCES, CLOSES, NEWS, STREAMS };

struct back {
	struct word_history_back_stream s[STREAMS];
	struct vv_wire starts, distances;
	uint64_t last[VV_WORD_HISTORY_DIFFERENCES];
	size_t distance;
	size_t new_at; /* the next new word, if new words are not in planes */
};

static bool get_new(struct back *b, uint64_t *v)
{
	struct word_history_back_stream *s = &b->s[NEWS];

	if (s->in.width == 1 && s->in.n - b->new_at < VV_WORD_HISTORY_WORD)
		return false;
	if (s->in.width == 1) {
		memcpy(v, bytes_of(s) + b->new_at, VV_WORD_HISTORY_WORD);
		b->new_at += VV_WORD_HISTORY_WORD;
		return true;
	}
	if (s->at == s->in.n)
		return false;
	*v = next(s);
	return true;
}

static void push_new(uint64_t *last, uint64_t difference)
{
	memmove(last + 1, last, (VV_WORD_HISTORY_DIFFERENCES - 1) * sizeof(*last));
	last[0] = difference;
}

/* Reads one word that is not the same as the one before it on its trail. */
static inline bool get_word(struct back *b, unsigned code, size_t distance, uint8_t *to, size_t i)
{
	unsigned k = code - VV_WORD_HISTORY_SAME - 1;
	uint64_t before = distance ? vv_word_history_word(to, i - distance) : 0, v;

	if (code < VV_WORD_HISTORY_AGAIN && distance) {
		v = before + b->last[k];
		vv_word_history_push(b->last, k, b->last[k]);
	} else if (code == VV_WORD_HISTORY_NEW && get_new(b, &v)) {
		if (distance)
			push_new(b->last, v - before);
	} else if (code == VV_WORD_HISTORY_NEAR && distance && b->s[CLOSES].at < b->s[CLOSES].in.n) {
		v = before + unzigzag(next(&b->s[CLOSES]));
		push_new(b->last, v - before);
	} else if (code == VV_WORD_HISTORY_AGAIN && i > 0) {
		v = vv_word_history_word(to, i - 1);
	} else {
		return false;
	}
	memcpy(to + VV_WORD_HISTORY_WORD * i, &v, VV_WORD_HISTORY_WORD);
	return true;
}

/* Copies n words that are the same as those before them. Source and destination may overlap: then
 * the content repeats, and each copy may be twice as long as the one before. */
static void copy_same(uint8_t *to, size_t i, size_t n, size_t distance)
{
	uint8_t *p = to + VV_WORD_HISTORY_WORD * i;
	const uint8_t *q = p - VV_WORD_HISTORY_WORD * distance;
	size_t left = VV_WORD_HISTORY_WORD * n, some = VV_WORD_HISTORY_WORD * distance;

	if (n <= FEW) {
		for (size_t k = 0; k < left; k += VV_WORD_HISTORY_WORD)
			memcpy(p + k, q + k, VV_WORD_HISTORY_WORD);
		return;
	}
	for (; some < left; left -= some, p += some, some *= 2)
		memcpy(p, q, some);
	memcpy(p, q, left);
}

/* The number of leading bytes in memory that are 0; v is not 0. */
static size_t zeros_first(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (size_t)__builtin_ctzll(v) / 8;
#else
	return (size_t)__builtin_clzll(v) / 8;
#endif
}

/* Counts the codes from the first on that are SAME, up to n; eight at a time. */
static size_t count_same(const uint8_t *code, size_t n)
{
	size_t i = 0;

	for (uint64_t eight; i + sizeof(eight) <= n; i += sizeof(eight)) {
		memcpy(&eight, code + i, sizeof(eight));
		if (eight)
			return i + zeros_first(eight);
	}
	while (i < n && code[i] == VV_WORD_HISTORY_SAME)
		i++;
	return i;
}

/* Reads the words from i up to `end`, all at one distance. */
static bool get_words(struct back *b, uint8_t *to, size_t i, size_t end)
{
	const uint8_t *code = bytes_of(&b->s[CODES]);
	const size_t distance = b->distance;

	while (i < end) {
		size_t n = count_same(code + i, end - i);

		if (n && !distance)
			return false;
		if (n)
			copy_same(to, i, n, distance);
		for (i += n; i < end && code[i] != VV_WORD_HISTORY_SAME; i++)
			if (!get_word(b, code[i], distance, to, i))
				return false;
	}
	return true;
}

static int walk_back(struct back *b, uint8_t *to, size_t m)
{
	size_t at = 0;

	b->starts = vv_wire_over(bytes_of(&b->s[STARTS]), b->s[STARTS].in.n);
	b->distances = vv_wire_over(bytes_of(&b->s[DISTANCES]), b->s[DISTANCES].in.n);
	while (vv_wire_left(&b->starts)) {
		size_t end = at + (size_t)vv_wire_var_max(&b->starts, m - at);

		if (b->starts.bad || !get_words(b, to, at, end))
			return damaged("its trails are none");
		at = end;
		b->distance = (size_t)vv_wire_var_max(&b->distances, at);
		if (b->distances.bad || !b->distance)
			return damaged("a trail begins nowhere");
	}
	if (!get_words(b, to, at, m))
		return damaged("its trails are none");
	if (vv_wire_left(&b->distances) || b->s[CLOSES].at < b->s[CLOSES].in.n ||
	    (b->s[NEWS].in.width == 1 ? b->new_at : b->s[NEWS].at) < b->s[NEWS].in.n)
		return damaged("words are left over");
	return 0;
}

static int get_streams(struct back *b, struct vv_wire *w, size_t m)
{
	uint32_t coder = vv_wire_u8(w);
	uint8_t width;
	int rc;

	if (w->bad || coder > VV_CODEC_ZSTD)
		return damaged("it has no coder");
	rc = vv_stream_get(w, 1, m, coder, &b->s[CODES].in);
	if (rc == 0 && b->s[CODES].in.n != m)
		rc = damaged("it tells of more or fewer words");
	if (rc == 0)
		rc = vv_stream_get(w, 1, m * VAR, coder, &b->s[STARTS].in);
	if (rc == 0)
		rc = vv_stream_get(w, 1, m * VAR, coder, &b->s[DISTANCES].in);
	if (rc == 0)
		rc = vv_stream_get(w, VV_WORD_HISTORY_CLOSE, m, coder, &b->s[CLOSES].in);
	width = vv_wire_u8(w);
	if (rc == 0 && width != 1 && width != VV_WORD_HISTORY_WORD)
		rc = damaged("new words have no width");
	return rc ? rc : vv_stream_get(w, width, width == 1 ? m * VV_WORD_HISTORY_WORD : m, coder, &b->s[NEWS].in);
}

/* The streams at their longest; compression may have shortened each of them to nothing. */
size_t vv_word_history_back_takes(size_t n, size_t raw_len)
{
	size_t of_word = 1 + 2 * VAR + VV_WORD_HISTORY_CLOSE + VV_WORD_HISTORY_WORD;

	(void)n;
	return sizeof(struct back) + raw_len / VV_WORD_HISTORY_WORD * of_word;
}

int vv_word_history_back_decode(const void *from, size_t n, void *to, size_t raw_len)
{
	struct vv_wire w = vv_wire_over(from, n);
	size_t m = raw_len / VV_WORD_HISTORY_WORD, tail = raw_len % VV_WORD_HISTORY_WORD;
	struct back *b = vv_mem_new(1, sizeof(*b));
	int rc;

	if (!b)
		return VV_ENOMEM;
	rc = get_streams(b, &w, m);
	if (rc == 0 && vv_wire_left(&w) != tail)
		rc = damaged("bytes are left over");
	if (rc == 0)
		rc = walk_back(b, to, m);
	if (rc == 0 && tail)
		memcpy((uint8_t *)to + m * VV_WORD_HISTORY_WORD, w.p, tail);
	for (unsigned k = 0; k < STREAMS; k++)
		vv_split_fini(&b->s[k].in.split);
	vv_mem_free(b);
	return rc;
}
