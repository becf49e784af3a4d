/* Text in columns: numbers and rows of every form come back, with and without a base; tokens give the text when they are printed plainly; tables get much smaller; blocks that lie. */
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/text_tokens.h"
#include "support/gen.h"
#include "support/snug.h"
#include "vv_test.h"
#include <inttypes.h>

enum { LARGEST = 300000 };

static const struct vv_codec *text;
static const struct vv_recipe how = { .width = 1, .record = 1, .predictor = VV_PREDICT_TEXT, .coder = VV_CODEC_ZSTD, .level = 1 };

static const char *const pieces[] = {
	"-0", "00012", "1e5", "1E+05", "+3", "NaN", "1.", ".5", "12345678901234567890", "-0.0", "0.50", "-5", "--3", "1.2.3", "007", "-12", "-inf", "a b", "-", "0", "",
	"999999999999999999", "0.12345678901234567890123", "\t", " ", "  ", ",", ";", "|", "\n", "\r\n", "\n\n", "word", "x-7", "-0.5", "1000000000000000000", "  8", "   12", "9.75", "-9.75", "18446744073709551616", "\xc3\xa9", "\x01",
};

static size_t add(char *to, size_t n, const char *piece)
{
	size_t len = strlen(piece);

	memcpy(to + n, piece, len);
	return n + len;
}

/* Pieces in any order; rounds with few different ones have columns. */
static size_t make_pieces(uint64_t *state, char *to, size_t pieces_wanted)
{
	size_t few = 1 + gen_below(state, sizeof(pieces) / sizeof(pieces[0])), first = gen_below(state, sizeof(pieces) / sizeof(pieces[0])), n = 0;

	for (size_t i = 0; i < pieces_wanted; i++)
		n = add(to, n, pieces[(first + gen_below(state, few)) % (sizeof(pieces) / sizeof(pieces[0]))]);
	return n;
}

/* A table of some columns; `epoch` changes a part of the rows. */
static size_t make_table(char *to, size_t rows, unsigned epoch)
{
	size_t n = 0;

	for (size_t i = 0; i < rows; i++) {
		unsigned turn = i % 10 == 3 ? epoch : 0;
		uint64_t noise = (i + 77) * UINT64_C(0x9e3779b97f4a7c15) >> 20;

		if (epoch && i == rows / 3)
			n += (size_t)sprintf(to + n, "a new row %u\n", epoch);
		n += (size_t)sprintf(to + n, "%zu,sensor_%u,%.2f,%8.3f %05u %+.8E,%s\n", i, (unsigned)(noise % 40), (double)(noise % 4000) / 100 + turn,
				     (double)(noise >> 8 & 0xffff) / 77 - 100, (unsigned)(noise >> 3 & 0xffff), (double)(noise & 0xffffff) * 1e-9 - 0.003, turn % 2 ? "late" : "ok");
	}
	return n;
}

/* ---- tokens ---- */

static size_t print_plainly(char *to, const struct vv_text_tokens *t, size_t i)
{
	const struct vv_text_entry *e = &t->entry[t->id[i]];
	char digits[600], number[1300], field[1300];
	size_t n = e->len;

	memcpy(to, t->dictionary.p + e->prefix, n);
	if (!e->number)
		return n;
	snprintf(digits, sizeof(digits), "%0*" PRId64, (e->zeros ? e->zeros : 1) + e->decimals, t->value[i] < 0 ? -t->value[i] : t->value[i]);
	snprintf(number, sizeof(number), "%s%.*s%s%s", t->value[i] < 0 ? "-" : "", (int)strlen(digits) - e->decimals, digits, e->decimals ? "." : "",
		 digits + strlen(digits) - e->decimals);
	snprintf(field, sizeof(field), "%*s", e->field, number);
	return add(to, n, field);
}

static void check_tokens(const char *p, size_t n)
{
	struct vv_text_tokens *t = vv_mem_new(1, sizeof(*t));
	char *back = malloc(n + 1000);
	size_t at = 0;

	CHECK(t && back);
	CHECK_EQ(vv_text_tokens_init(t, n), 0);
	if (vv_text_tokens_scan(t, (const uint8_t *)p, n) == 0) {
		for (size_t i = 0; i < t->n; i++) {
			CHECK(at <= n);
			at += print_plainly(back + at, t, i);
		}
		CHECK_EQ(at, n);
		CHECK(memcmp(back, p, n) == 0);
	}
	vv_text_tokens_fini(t);
	vv_mem_free(t);
	free(back);
}

/* ---- round trips ---- */

static size_t check_round_trip(const char *p, size_t n)
{
	size_t got;
	uint8_t *coded = snug_encode(text, p, n, &how, 1, &got);

	check_tokens(p, n);
	if (got) {
		CHECK_EQ(snug_decode(text, coded, got, p, n), 0);
		CHECK_EQ(snug_decode(text, coded, got, NULL, n + 1), VV_EDAMAGED);
		CHECK_EQ(snug_decode(text, coded, got, NULL, n - 1), VV_EDAMAGED);
		CHECK_EQ(snug_decode(text, coded, got - 1, NULL, n), VV_EDAMAGED);
	}
	free(coded);
	return got;
}

static int decode_after(const char *base, size_t n_base, const uint8_t *coded, size_t got, const char *want, size_t n)
{
	uint8_t *exact = malloc(got), *back = malloc(n), *before = malloc(n_base ? n_base : 1);
	int rc;

	CHECK(exact && back && before);
	memcpy(exact, coded, got);
	memcpy(before, base, n_base);
	rc = text->decode_after(before, n_base, exact, got, back, n);
	CHECK(rc || !want || memcmp(back, want, n) == 0);
	free(exact);
	free(back);
	free(before);
	return rc;
}

static size_t check_after(uint64_t *state, const char *base, size_t n_base, const char *p, size_t n)
{
	size_t cap = text->bound(n), got = 0;
	uint8_t *coded = malloc(cap);

	CHECK(coded);
	CHECK_EQ(text->encode_after(base, n_base, p, n, coded, cap, 1, &got), 0);
	CHECK(got == 0 || got < n);
	if (got) {
		CHECK_EQ(decode_after(base, n_base, coded, got, p, n), 0);
		CHECK_EQ(decode_after(base, n_base, coded, got, NULL, n + 1), VV_EDAMAGED);
		(void)decode_after(base, n_base / 2, coded, got, NULL, n);
	}
	for (unsigned i = 0; got && i < 20; i++) {
		coded[gen_below(state, got)] ^= (uint8_t)(1u << gen_below(state, 8));
		(void)decode_after(base, n_base, coded, got, NULL, n);
	}
	free(coded);
	return got;
}

static char x[LARGEST], base[LARGEST];

static void test_pieces(void)
{
	uint64_t state = 1;

	for (size_t i = 0; i < 150; i++) {
		size_t n = make_pieces(&state, x, gen_below(&state, 3000)), n_base = make_pieces(&state, base, gen_below(&state, 3000));

		check_round_trip(x, n);
		check_after(&state, base, n_base, x, n);
		memcpy(base + n / 3, x, n - n / 3); /* and one that recurs */
		check_after(&state, base, n, x, n);
	}
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t n = 0;

		for (size_t k = 0; k < 1000; k++)
			n = add(x, add(x, n, pieces[i]), k % 5 ? "," : "\n");
		CHECK(check_round_trip(x, n) > 0);
	}
}

static void test_borders(void)
{
	uint64_t state = 2;
	size_t n;

	for (n = 0; n < 600; n++) { /* of a prefix, and of a field */
		memset(x, n % 2 ? ' ' : 'x', n);
		strcpy(x + n, "12\n");
		check_tokens(x, n + 3);
		check_tokens(x, n);
		memset(x + n + 3, ' ', n);
		strcpy(x + 2 * n + 3, "-5.25\n");
		check_round_trip(x, 2 * n + 9);
	}
	for (n = 0; n < 40000; n += 2) /* more columns than there may be */
		memcpy(x + n, n % 1000 ? "7 " : "8\n", 2);
	CHECK(check_round_trip(x, n) > 0);
	memset(x, '\n', 40000); /* more tokens than there may be */
	CHECK(check_round_trip(x, 40000) > 0);
	for (n = 0; n < 65536; n += 8) /* more words than there may be */
		sprintf(x + n, "%c%c%c%c%c%c%c\n", 'a' + (int)(n >> 3 & 15), 'a' + (int)(n >> 7 & 15), 'a' + (int)(n >> 11 & 15), 'a' + (int)(n >> 15 & 15), 'x', 'y', 'z');
	CHECK(check_round_trip(x, n) > 0);
	gen_text(&state, x, LARGEST);
	check_round_trip(x, LARGEST);
	n = make_table(x, 1000, 0);
	x[n / 2] = 0;
	CHECK(check_round_trip(x, n) > 0);
}

static void test_tables(void)
{
	const struct vv_codec *zstd = vv_codec_named("zstd", 4);
	uint64_t state = 3;
	size_t n = make_table(x, 4000, 0), got, plain, after;
	uint8_t *coded;

	memcpy(base, x, n);
	coded = snug_encode(zstd, x, n, NULL, 6, &plain);
	free(coded);
	got = check_round_trip(x, n);
	CHECK(got && got < plain * 2 / 3);
	for (unsigned epoch = 1; epoch < 4; epoch++) {
		size_t m = make_table(x, 4000, epoch);

		after = check_after(&state, base, n, x, m);
		CHECK(after && after < got / 8);
		after = check_after(&state, base + 1000, n - 1000, x, m - 700);
		CHECK(after && after < got / 4);
	}
}

static void test_damage(void)
{
	size_t n = make_table(x, 300, 0), got;
	uint8_t *coded = snug_encode(text, x, n, &how, 1, &got);

	CHECK(got);
	for (size_t i = 0; i < got; i++) {
		CHECK_EQ(snug_decode(text, coded, i, NULL, n), VV_EDAMAGED);
		for (unsigned bit = 0; bit < 8; bit++) {
			coded[i] ^= (uint8_t)(1u << bit);
			(void)snug_decode(text, coded, got, NULL, n);
			coded[i] ^= (uint8_t)(1u << bit);
		}
	}
	CHECK_EQ(decode_after(x, 10, coded, got, NULL, n), VV_EDAMAGED); /* it has no base */
	free(coded);
}

/* Each allocation fails once. */
static void test_memory(void)
{
	size_t n = make_table(x, 300, 0), cap = text->bound(n), got = 0;
	uint8_t *to = malloc(cap), *back = malloc(n);
	int rc = VV_ENOMEM;

	CHECK(to && back);
	for (long k = 1; rc; k++) {
		vv_mem_fail_at(k);
		rc = text->encode_after(x, n / 2, x, n, to, cap, 1, &got);
		CHECK_EQ(rc, vv_mem_asked() < k ? 0 : VV_ENOMEM);
	}
	CHECK(got);
	rc = VV_ENOMEM;
	for (long k = 1; rc; k++) {
		vv_mem_fail_at(k);
		rc = text->decode_after(x, n / 2, to, got, back, n);
		CHECK_EQ(rc, vv_mem_asked() < k ? 0 : VV_ENOMEM);
	}
	vv_mem_fail_at(0);
	free(to);
	free(back);
}

int main(void)
{
	text = vv_codec_named("text", 4);
	CHECK(text && text->number == VV_CODEC_TEXT);
	test_pieces();
	test_borders();
	test_tables();
	test_damage();
	test_memory();
	return 0;
}
