/* Names of objects: what is made is read back, one name per object, and nothing else is taken for one. */
#include "base/err.h"
#include "core/format/name.h"
#include "core/format/run.h"
#include "support/gen.h"
#include "vv_test.h"

static const char *last_part(const char *name)
{
	return strrchr(name, '/') + 1;
}

static void check_epoch(uint64_t epoch, uint32_t rank)
{
	char name[VV_NAME_MAX], folder[VV_NAME_MAX];
	uint64_t e = 0;
	uint32_t r = 9;

	vv_name_commit(name, "lin", epoch);
	CHECK_EQ(vv_name_parse(last_part(name), &e, &r), VV_NAME_IS_COMMIT);
	CHECK_EQ(e, epoch);
	vv_name_layer(name, "lin", epoch, rank);
	CHECK_EQ(vv_name_parse(last_part(name), &e, &r), VV_NAME_IS_LAYER);
	CHECK_EQ(e, epoch);
	CHECK_EQ(r, rank);
	vv_name_folder(folder, "lin", epoch / VV_NAME_EPOCHS_PER_FOLDER);
	CHECK(strncmp(name, folder, strlen(folder)) == 0 && name[strlen(folder)] == '/');
	CHECK_EQ(vv_name_parse_folder(last_part(folder)), epoch / VV_NAME_EPOCHS_PER_FOLDER);
}

static void check_bundle(uint64_t epoch, uint32_t first, uint32_t last)
{
	char name[VV_NAME_MAX];
	uint64_t e = 0;
	uint32_t a = 9, b = 9;

	vv_name_bundle(name, "lin", epoch, first, last);
	CHECK_EQ(vv_name_parse(last_part(name), &e, &a), VV_NAME_OTHER);
	CHECK(vv_name_parse_bundle(last_part(name), &e, &a, &b));
	CHECK_EQ(e, epoch);
	CHECK_EQ(a, first);
	CHECK_EQ(b, last);
}

static void test_round_trip(void)
{
	static const uint64_t epochs[] = { 1, 9, 10, 99, 100, 101, 12345, VV_MAX_EPOCH - 1, VV_MAX_EPOCH };
	static const uint32_t ranks[] = { 0, 1, 9, 10, 999999, VV_MAX_RANKS - 1 };
	uint64_t state = 1;

	for (size_t i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++)
		for (size_t k = 0; k < sizeof(ranks) / sizeof(ranks[0]); k++)
			check_epoch(epochs[i], ranks[k]);
	for (int i = 0; i < 5000; i++)
		check_epoch(1 + gen_below(&state, VV_MAX_EPOCH), (uint32_t)gen_below(&state, VV_MAX_RANKS));
	for (int i = 0; i < 5000; i++) {
		uint32_t last = (uint32_t)gen_below(&state, VV_MAX_RANKS);

		check_bundle(1 + gen_below(&state, VV_MAX_EPOCH), (uint32_t)gen_below(&state, last + 1), last);
	}
}

static void test_forms(void)
{
	char name[VV_NAME_MAX];

	vv_name_record(name, "a");
	CHECK_STR(name, "a/lineage");
	vv_name_lock(name, "a");
	CHECK_STR(name, "a/lock");
	vv_name_ended(name, "a");
	CHECK_STR(name, "a/ended");
	vv_name_verified(name, "a");
	CHECK_STR(name, "a/verified");
	vv_name_index(name, "a", 12);
	CHECK_STR(name, "a/index.r12");
	vv_name_folder(name, "a", 3);
	CHECK_STR(name, "a/00000003");
	vv_name_commit(name, "a", 1234);
	CHECK_STR(name, "a/00000012/0000001234.commit");
	vv_name_layer(name, "a", 99, 1048575);
	CHECK_STR(name, "a/00000000/0000000099.r1048575.layer");
	vv_name_bundle(name, "a", 12, 0, 3);
	CHECK_STR(name, "a/00000000/0000000012.r0-3.bundle");
}

static void test_labels(void)
{
	static const char *const good[] = { "a", "step-400", "7a", "_", "a.b", "Latest", "commit", "r0.layer", "x.label", "1e5", "1-2" };
	static const char *const bad[] = { "",        "0000000001.label",    "0000000001..label",   "0000000001.7.label",  "0000000001.latest.label",
					   "0000000000.a.label", "000000001.a.label", "0000000001.-1.label", "0000000001.a..b.label", "0000000001..a.label",
					   "0000000001.a b.label", "0000000001.a.labels", "0000000001.a.Label", "0000000001a.label", "0000000001.\xc3\xa4.label",
					   "0000000001.a\n.label", ".tmp-0000000001.a.label", "0000000001.commit", "0000000001.r0.layer" };
	char name[VV_NAME_MAX], label[VV_NAME_LABEL_MAX + 1], longest[VV_NAME_LABEL_MAX + 2];
	uint64_t e = 0;
	uint32_t r;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_EQ(vv_name_check_label(good[i]), 0);
		vv_name_label(name, "lin", VV_MAX_EPOCH - i, good[i]);
		CHECK(vv_name_parse_label(last_part(name), &e, label));
		CHECK_EQ(e, VV_MAX_EPOCH - i);
		CHECK_STR(label, good[i]);
		CHECK_EQ(vv_name_parse(last_part(name), &e, &r), VV_NAME_OTHER); /* older versions ignore it */
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (vv_name_parse_label(bad[i], &e, label))
			fprintf(stderr, "'%s' was taken\n", bad[i]);
		CHECK(!vv_name_parse_label(bad[i], &e, label));
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK_EQ(vv_name_check_label(longest), VV_EINVAL);
	snprintf(name, sizeof(name), "0000000001.%s.label", longest);
	CHECK(!vv_name_parse_label(name, &e, label));
	CHECK(vv_name_parse_label("0000000001.a.label", &e, label) && e == 1);
	CHECK_EQ(vv_name_check_label(NULL), VV_EINVAL);
}

static void test_longest(void)
{
	char lineage[VV_NAME_LINEAGE_MAX + 1], name[VV_NAME_MAX];

	memset(lineage, 'L', VV_NAME_LINEAGE_MAX);
	lineage[VV_NAME_LINEAGE_MAX] = '\0';
	CHECK_EQ(vv_name_check_lineage(lineage), 0);
	vv_name_layer(name, lineage, VV_MAX_EPOCH, UINT32_MAX);
	CHECK_STR(name + strlen(name) - 6, ".layer");
	vv_name_bundle(name, lineage, VV_MAX_EPOCH, UINT32_MAX, UINT32_MAX);
	CHECK_STR(name + strlen(name) - 7, ".bundle");
	vv_name_index(name, lineage, UINT32_MAX);
	CHECK_STR(name + strlen(name) - 10, "4294967295");
	vv_name_label(name, lineage, VV_MAX_EPOCH, lineage); /* it is as long as a label */
	CHECK_STR(name + strlen(name) - 6, ".label");
}

/* In a store that anyone may write to, only the one form of a name counts. */
static void test_hostile(void)
{
	static const char *const names[] = {
		"", ".", "..", "lineage", "lock", "index.r0", ".tmp-0000000001.commit", "0000000001", "0000000001.",
		"0000000000.commit", "0000000000.r0.layer", "000000001.commit", "00000000001.commit", "0000000001.commits",
		"0000000001.commit ", " 0000000001.commit", "+000000001.commit", "-000000001.commit", "0x00000001.commit",
		"0000000001commit", "0000000001.Commit", "0000000001.r.layer", "0000000001.r0", "0000000001.r0.", "0000000001.r0.laye",
		"0000000001.r0.layers", "0000000001.r0.commit", "0000000001.r-1.layer", "0000000001.r+1.layer",
		"0000000001.r 1.layer", "0000000001.r1048576.layer", "0000000001.r4294967296.layer",
		"0000000001.r18446744073709551616.layer", "0000000001.r00.layer", "0000000001.r01.layer",
		"0000000001.r0000000.layer", "0000000001.r0.r0.layer", "0000000001.r1x.layer", "0000000001.commit/..",
		"99999999999999999999.commit", "\xd9\xa0\xd9\xa1.commit",
	};
	uint64_t e;
	uint32_t r;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (vv_name_parse(names[i], &e, &r) != VV_NAME_OTHER)
			fprintf(stderr, "'%s' was taken\n", names[i]);
		CHECK_EQ(vv_name_parse(names[i], &e, &r), VV_NAME_OTHER);
	}
}

static void test_hostile_bundles(void)
{
	static const char *const names[] = {
		"", "0000000001.r0.bundle", "0000000001.r0-.bundle", "0000000001.r-1.bundle", "0000000001.r0-1",
		"0000000001.r0-1.bundles", "0000000001.r0-1.layer", "0000000000.r0-1.bundle", "000000001.r0-1.bundle",
		"0000000001.r1-0.bundle", "0000000001.r00-1.bundle", "0000000001.r0-01.bundle", "0000000001.r0-1048576.bundle",
		"0000000001.r0--1.bundle", "0000000001.r0-1-2.bundle", "0000000001.r0-+1.bundle", "0000000001.r0 -1.bundle",
		"0000000001.r999999999-1.bundle", ".tmp-0000000001.r0-1.bundle-1-1", "0000000001.r0-1.bundle/x", "0000000001",
		"0000000001.commit", "0000000001.r0.layer", "0000000001.", "0000000001.r", "0000000001.r5",
	};
	uint64_t e;
	uint32_t a, b;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (vv_name_parse_bundle(names[i], &e, &a, &b))
			fprintf(stderr, "'%s' was taken\n", names[i]);
		CHECK(!vv_name_parse_bundle(names[i], &e, &a, &b));
	}
	CHECK(vv_name_parse_bundle("0000000001.r7-7.bundle", &e, &a, &b) && a == 7 && b == 7);
}

/* A valid name with one character changed is another valid name, made from what it parses to, or none. */
static void test_one_changed(void)
{
	char name[VV_NAME_MAX], made[VV_NAME_MAX];
	uint64_t e;
	uint32_t r;

	for (int layer = 0; layer < 2; layer++)
		for (size_t at = 0; at < (size_t)(layer ? 22 : 17); at++)
			for (int c = 1; c < 256; c++) {
				enum vv_name_kind kind;

				strcpy(name, layer ? "0000012045.r1057.layer" : "0000012045.commit");
				name[at] = (char)c;
				kind = vv_name_parse(name, &e, &r);
				if (kind == VV_NAME_OTHER)
					continue;
				if (kind == VV_NAME_IS_COMMIT)
					vv_name_commit(made, "x", e);
				else
					vv_name_layer(made, "x", e, r);
				CHECK_STR(name, last_part(made));
			}
}

static void test_folders(void)
{
	static const char *const bad[] = { "",          "0",         "0000000",   "000000000", "0000000a", "-0000001",
					   "+0000001", " 0000001", "00000001 ", "00000001/", "lineage" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(vv_name_parse_folder(bad[i]), -1);
	CHECK_EQ(vv_name_parse_folder("00000000"), 0);
	CHECK_EQ(vv_name_parse_folder("99999999"), 99999999);
}

static void test_lineages(void)
{
	static const char *const good[] = { "a", "A.b_c-9", "-", "_", "0", "a.", "a..b", "lineage" };
	static const char *const bad[] = { "",    ".",    "..",     ".a",   "a/b", "/",   "a b",
					   "a\n", "a\\b", "\xc3\xa4", "a\x7f", "a:b", "a%b", "a*" };
	char s[100];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK_EQ(vv_name_check_lineage(good[i]), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(vv_name_check_lineage(bad[i]), VV_EINVAL);
	CHECK_EQ(vv_name_check_lineage(NULL), VV_EINVAL);
	for (size_t n = 1; n < sizeof(s) - 1; n++) {
		memset(s, 'x', n);
		s[n] = '\0';
		CHECK_EQ(vv_name_check_lineage(s), n <= 64 ? 0 : VV_EINVAL);
	}
}

int main(void)
{
	test_round_trip();
	test_forms();
	test_labels();
	test_longest();
	test_hostile();
	test_hostile_bundles();
	test_one_changed();
	test_folders();
	test_lineages();
	return 0;
}
