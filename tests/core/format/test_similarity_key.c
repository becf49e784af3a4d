/* Keys of variables: the paper's own example, digits, expressions, and names that nobody should have. */
#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/format/head.h"
#include "core/format/similarity_key.h"
#include "support/gen.h"
#include "vv_test.h"

static char key[VV_SIMILARITY_KEY_MAX];

static const char *key_by(const char *rule, const char *name)
{
	struct vv_similarity_key *k = NULL;

	CHECK_EQ(vv_similarity_key_new(rule, &k), 0);
	memset(key, 'x', sizeof(key));
	vv_similarity_key_key(k, name, VV_TYPE_F64, 8, false, 3, key);
	vv_similarity_key_free(k);
	return key;
}

static void test_types(void)
{
	static const struct {
		unsigned type, width, ndim;
		bool swapped;
		const char *want;
	} rows[] = {
		{ VV_TYPE_F32, 4, 1, false, "ToyGrp/Temperature_F32LE_Array1D" },
		{ VV_TYPE_F32, 4, 1, true, "ToyGrp/Temperature_F32BE_Array1D" },
		{ VV_TYPE_F64, 8, 0, false, "ToyGrp/Temperature_F64LE_Scalar" },
		{ VV_TYPE_I8, 1, 2, true, "ToyGrp/Temperature_I8_Array2D" },
		{ VV_TYPE_U8, 1, 2, false, "ToyGrp/Temperature_U8_Array2D" },
		{ VV_TYPE_I16, 2, 16, false, "ToyGrp/Temperature_I16LE_Array16D" },
		{ VV_TYPE_U64, 8, 3, false, "ToyGrp/Temperature_U64LE_Array3D" },
		{ VV_TYPE_C128, 16, 3, true, "ToyGrp/Temperature_C128BE_Array3D" },
		{ VV_TYPE_BYTES, 24, 1, false, "ToyGrp/Temperature_Bytes24_Array1D" },
		{ 4711, UINT32_MAX, UINT32_MAX, false, "ToyGrp/Temperature_Bytes4294967295_Array4294967295D" },
	};
	struct vv_similarity_key *k = NULL;

	CHECK_EQ(vv_similarity_key_new(NULL, &k), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		vv_similarity_key_key(k, "/ToyGrp/Temperature", rows[i].type, rows[i].width, rows[i].swapped, rows[i].ndim, key);
		CHECK_STR(key, rows[i].want);
	}
	vv_similarity_key_free(k);
}

static void test_digits(void)
{
	CHECK_STR(key_by(NULL, "/Grid00000042/Density"), "Grid#/Density_F64LE_Array3D");
	CHECK_STR(key_by(NULL, "Grid7/x-velocity"), "Grid7/x-velocity_F64LE_Array3D");
	CHECK_STR(key_by(NULL, "10a2b33"), "#a2b#_F64LE_Array3D");
	CHECK_STR(key_by(NULL, ""), "_F64LE_Array3D");
	CHECK_STR(key_by(NULL, "9"), "9_F64LE_Array3D");
	CHECK_STR(key_by("none", "/Grid00000042/Density"), "Grid00000042/Density_F64LE_Array3D");
}

static void test_rules(void)
{
	CHECK_STR(key_by("Grid([0-9]+)=G", "/Grid00000042/Density"), "G/Density_F64LE_Array3D");
	CHECK_STR(key_by("([a-z]+)_([0-9]+)=\\2-\\1", "rho_12/p_3"), "12-rho/3-p_F64LE_Array3D");
	CHECK_STR(key_by("[0-9]=", "a1b22"), "ab_F64LE_Array3D");
	CHECK_STR(key_by("^a=b", "aaa"), "baa_F64LE_Array3D");
	CHECK_STR(key_by("a\\=b=c\\=d", "xa=b"), "xc=d_F64LE_Array3D");
	CHECK_STR(key_by("a=b=c", "xa=b"), "xc_F64LE_Array3D");
	CHECK_STR(key_by("a=\\\\1", "a"), "\\1_F64LE_Array3D");
	CHECK_STR(key_by("x*=y", "axxb"), "ayb_F64LE_Array3D");
	CHECK_STR(key_by("$=y", "ab"), "ab_F64LE_Array3D");
	CHECK_STR(key_by("(a)|b=<\\1>", "ab"), "<a><>_F64LE_Array3D");
	CHECK_STR(key_by("a=\x01", "a"), "\\x01_F64LE_Array3D");
}

static void refused(const char *rule, const char *word)
{
	struct vv_similarity_key *k = NULL;

	CHECK_EQ(vv_similarity_key_new(rule, &k), VV_EINVAL);
	CHECK(k == NULL);
	if (!strstr(vv_err_last(), word) || !strstr(vv_err_last(), rule)) {
		fprintf(stderr, "'%s' is not in: %s\n", word, vv_err_last());
		exit(1);
	}
}

static void test_bad_rules(void)
{
	struct vv_similarity_key *k = NULL;

	refused("", "want REGEX=TEXT");
	refused("Grid", "want REGEX=TEXT");
	refused("Grid\\=x", "want REGEX=TEXT");
	refused("=x", "no expression");
	refused("(=x", "no extended regular expression");
	refused("[a=x", "no extended regular expression");
	refused("a{2,1}=x", "no extended regular expression");
	refused("a=\\1", "has 0 groups");
	refused("(a)=\\2", "has 1 groups");
	refused("a=\\q", "behind a backslash");
	refused("a=\\0", "behind a backslash");
	refused("a=b\\", "behind a backslash");
	for (long i = 1; i <= 3; i++) {
		vv_mem_fail_at(i);
		CHECK_EQ(vv_similarity_key_new("a=b", &k), VV_ENOMEM);
		CHECK(k == NULL);
	}
	vv_mem_fail_at(0);
	vv_similarity_key_free(NULL);
}

/* Characters, none of them a control character, that end inside the key; and the type is there. */
static void check_printable(void)
{
	size_t n = strnlen(key, sizeof(key));

	CHECK(n < sizeof(key));
	for (const char *p = key; *p;) {
		size_t len = vv_utf8_len(p);

		CHECK(len > 0 && (unsigned char)*p >= 0x20 && *p != 0x7f);
		CHECK(len != 2 || (unsigned char)p[0] != 0xc2 || (unsigned char)p[1] >= 0xa0);
		p += len;
	}
	CHECK(n >= 14 && strcmp(key + n - 14, "_F64LE_Array3D") == 0);
}

static void test_hostile_names(void)
{
	static const char *const rules[] = { NULL, "none", "[0-9]+=#", "(.)(.)=\\2\\1" };
	static char name[20001];
	uint64_t state = 5;

	CHECK_STR(key_by(NULL, "a\nb\x1b[3m\x7f\xc2\x85\xff\xc3\xa4"), "a\\x0ab\\x1b[3m\\x7f\\xc2\\x85\\xff\xc3\xa4_F64LE_Array3D");
	for (int round = 0; round < 300; round++) {
		size_t n = (size_t)gen_below(&state, round % 10 ? 700 : sizeof(name));

		gen_bytes(&state, name, n);
		for (size_t i = 0; i < n; i++)
			name[i] = (char)(name[i] ? name[i] : 1);
		name[n] = '\0';
		for (size_t r = 0; r < 4; r++) {
			key_by(rules[r], name);
			check_printable();
		}
	}
}

/* However long: names that differ have keys that differ, names that are the same when folded have the same one. */
static void test_long_names(void)
{
	static char a[9000], b[9000];
	char of_a[VV_SIMILARITY_KEY_MAX];

	for (size_t n = 400; n < sizeof(a); n = n < 600 ? n + 1 : n * 2) {
		memset(a, 'n', n);
		memcpy(a + n - 5, "_0001", 6);
		memcpy(b, a, n + 1);
		b[n - 1] = '2';
		strcpy(of_a, key_by(NULL, a));
		check_printable();
		CHECK_STR(key_by(NULL, b), of_a);
		b[n - 5] = 'm';
		CHECK(strcmp(key_by(NULL, b), of_a) != 0);
		check_printable();
		for (size_t i = 0; i + 1 < n; i += 2)
			memcpy(a + i, "\xc3\xa4", 2);
		a[n / 2 * 2] = '\0';
		key_by("none", a);
		check_printable();
	}
}

int main(void)
{
	test_types();
	test_digits();
	test_rules();
	test_bad_rules();
	test_hostile_names();
	test_long_names();
	return 0;
}
