/* The configuration table: every kind, where a value came from, precedence, and text that somebody got wrong. */
#include "base/conf.h"
#include "base/err.h"
#include "base/mem.h"
#include "support/gen.h"
#include "vv_test.h"
#include <sys/stat.h>
#include <unistd.h>

static const struct vv_conf_item items[] = {
	{ .name = "store", .kind = VV_CONF_TEXT, .initial = "here" },
	{ .name = "verify", .kind = VV_CONF_BOOL, .initial = "no" },
	{ .name = "keep-every", .kind = VV_CONF_COUNT, .initial = "3", .min = 1, .max = 1000 },
	{ .name = "any_count", .kind = VV_CONF_COUNT, .initial = "0" },
	{ .name = "block", .kind = VV_CONF_SIZE, .initial = "1MiB", .min = 4096, .max = 1ull << 26 },
	{ .name = "any-size", .kind = VV_CONF_SIZE, .initial = "0" },
	{ .name = "interval", .kind = VV_CONF_DURATION, .initial = "10m" },
	{ .name = "share", .kind = VV_CONF_FRACTION, .initial = "2%" },
	{ .name = "buffer", .kind = VV_CONF_SHARE, .initial = "16MiB" },
	{ .name = "small", .kind = VV_CONF_SHARE, .initial = "4K", .min = 1, .max = 1 << 20 },
	{ .name = "codec", .kind = VV_CONF_CHOICE, .initial = "lz4", .words = "none|lz4|zstd[:N]|auto" },
};
enum { N = sizeof(items) / sizeof(items[0]) };

static void start(struct vv_conf *c)
{
	CHECK_EQ(vv_conf_init(c, items, N), 0);
}

static int parse(struct vv_conf *c, const char *text)
{
	return vv_conf_parse(c, text, strlen(text), "f.conf");
}

static void test_defaults(void)
{
	struct vv_conf c;

	start(&c);
	CHECK_STR(vv_conf_text(&c, "store"), "here");
	CHECK(!vv_conf_bool(&c, "verify"));
	CHECK_EQ(vv_conf_number(&c, "keep-every"), 3);
	CHECK_EQ(vv_conf_number(&c, "block"), 1 << 20);
	CHECK(vv_conf_real(&c, "interval") == 600);
	CHECK(vv_conf_real(&c, "share") == 0.02);
	CHECK_STR(vv_conf_text(&c, "codec"), "lz4");
	for (size_t i = 0; i < N; i++)
		CHECK_STR(vv_conf_origin(&c, items[i].name), "default");
	vv_conf_fini(&c);
}

static void test_numbers(void)
{
	static const struct {
		const char *name, *text;
		double want;
	} good[] = {
		{ "any-count", "0", 0 },
		{ "any-count", "4294967296", 4294967296.0 },
		{ "keep-every", "1", 1 },
		{ "keep-every", "1000", 1000 },
		{ "any-size", "4096", 4096 },
		{ "any-size", "1B", 1 },
		{ "any-size", "64KiB", 65536 },
		{ "any-size", "64k", 65536 },
		{ "any-size", "64 kb", 65536 },
		{ "any-size", "1.5K", 1536 },
		{ "any-size", "2G", 0x1p31 },
		{ "any-size", "3T", 3 * 0x1p40 },
		{ "any-size", "1tib", 0x1p40 },
		{ "block", "64MiB", 0x1p26 },
		{ "interval", "90", 90 },
		{ "interval", "90s", 90 },
		{ "interval", "250ms", 0.25 },
		{ "interval", "10m", 600 },
		{ "interval", "10 min", 600 },
		{ "interval", "2h", 7200 },
		{ "interval", "1.5d", 129600 },
		{ "interval", "2w", 1209600 },
		{ "interval", ".5h", 1800 },
		{ "share", "0", 0 },
		{ "share", "100%", 1 },
		{ "share", "0.25", 0.25 },
		{ "share", "1", 1 },
	};
	struct vv_conf c;

	start(&c);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int real = strcmp(good[i].name, "interval") == 0 || strcmp(good[i].name, "share") == 0;

		CHECK_EQ(vv_conf_set(&c, good[i].name, good[i].text, "call"), 0);
		CHECK_STR(vv_conf_text(&c, good[i].name), good[i].text);
		CHECK(real ? vv_conf_real(&c, good[i].name) == good[i].want
			   : vv_conf_number(&c, good[i].name) == (uint64_t)good[i].want);
	}
	vv_conf_fini(&c);
}

/* A size stands for itself, a share needs to know of what. */
static void test_shares(void)
{
	static const struct {
		const char *text;
		uint64_t whole, want;
	} good[] = {
		{ "0", 1000, 0 },
		{ "4096", 0, 4096 },
		{ "1.5K", 10, 1536 },
		{ "16 MiB", 1 << 20, 16 << 20 },
		{ "2T", 0, 2ull << 40 },
		{ "0%", 1000, 0 },
		{ "5%", 0, 0 },
		{ "5%", 1 << 20, 52429 },
		{ "5 %", 100, 5 },
		{ "29%", 100, 29 },
		{ "0.1%", 1000000, 1000 },
		{ "12.5%", 1ull << 40, 1ull << 37 },
		{ "50%", 7, 4 },
		{ "100%", 12345, 12345 },
		{ "100%", UINT64_MAX, UINT64_MAX },
	};
	struct vv_conf c;

	start(&c);
	CHECK_EQ(vv_conf_share(&c, "buffer", 5), 16 << 20);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_EQ(vv_conf_set(&c, "buffer", good[i].text, "call"), 0);
		CHECK_EQ(vv_conf_share(&c, "buffer", good[i].whole), good[i].want);
	}
	CHECK_EQ(vv_conf_set(&c, "small", "0%", "call"), 0);
	CHECK_EQ(vv_conf_set(&c, "small", "1M", "call"), 0);
	CHECK_EQ(vv_conf_set(&c, "small", "0", "call"), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "5%") && strstr(vv_err_last(), "from 1 to 1048576"));
	vv_conf_fini(&c);
}

static void test_words(void)
{
	static const char *const yes[] = { "yes", "true", "on", "1", "YES", "True" };
	static const char *const no[] = { "no", "false", "off", "0", "NO", "Off" };
	static const char *const codec[] = { "none", "lz4", "zstd", "zstd:3", "zstd:19", "zstd:99999", "auto" };
	struct vv_conf c;

	start(&c);
	for (size_t i = 0; i < 6; i++) {
		CHECK_EQ(vv_conf_set(&c, "verify", yes[i], "call"), 0);
		CHECK(vv_conf_bool(&c, "verify"));
		CHECK_EQ(vv_conf_set(&c, "verify", no[i], "call"), 0);
		CHECK(!vv_conf_bool(&c, "verify"));
	}
	for (size_t i = 0; i < 7; i++)
		CHECK_EQ(vv_conf_set(&c, "codec", codec[i], "call"), 0);
	CHECK_EQ(vv_conf_set(&c, "store", "", "call"), 0);
	CHECK_STR(vv_conf_text(&c, "store"), "");
	vv_conf_fini(&c);
}

/* Each bad value is refused, the message names origin, option and value, and the old value stays. */
static void test_bad_values(void)
{
	static const char *const bad[][2] = {
		{ "verify", "" },          { "verify", "maybe" },     { "verify", "2" },          { "verify", "yesno" },
		{ "keep-every", "" },      { "keep-every", "0" },     { "keep-every", "1001" },   { "keep-every", "-1" },
		{ "keep-every", "+5" },    { "keep-every", "2.5" },   { "keep-every", "3K" },     { "keep-every", "5x" },
		{ "keep-every", "five" },  { "keep-every", "." },     { "keep-every", "1 2" },    { "any_count", "1e400" },
		{ "any_count", "inf" },    { "any_count", "nan" },    { "any_count", "2e19" },    { "block", "4095" },
		{ "block", "65MiB" },      { "block", "4096.5" },     { "block", "1KiBs" },       { "block", "K" },
		{ "block", "99999999T" },  { "interval", "-1" },      { "interval", "5 weeks" },  { "interval", "" },
		{ "interval", "1e308d" },  { "share", "101%" },       { "share", "1.5" },         { "share", "2%%" },
		{ "codec", "" },           { "codec", "zst" },        { "codec", "zstdx" },       { "codec", "zstd:" },
		{ "codec", "zstd:x" },     { "codec", "zstd:1x" },    { "codec", "zstd:123456" }, { "codec", "lz4:1" },
		{ "codec", "none|lz4" },   { "codec", "zstd[:N]" },   { "codec", "|" },           { "codec", " lz4" },
		{ "codec", ":3" },         { "codec", "zstd:-3" },    { "buffer", "" },           { "buffer", "%" },
		{ "buffer", "101%" },      { "buffer", "-5%" },       { "buffer", "5%%" },        { "buffer", "0.05" },
		{ "buffer", "5MiB%" },     { "buffer", "5% of it" },  { "buffer", "nan%" },       { "buffer", "99999999T" },
		{ "small", "0" },          { "small", "2M" },         { "small", "200%" },
	};
	struct vv_conf c;

	start(&c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char quoted[64], *before = strdup(vv_conf_text(&c, bad[i][0]));

		snprintf(quoted, sizeof(quoted), "%s = '%s'", bad[i][0], bad[i][1]);
		if (vv_conf_set(&c, bad[i][0], bad[i][1], "who") != VV_EINVAL)
			fprintf(stderr, "%s was taken\n", quoted);
		CHECK_EQ(vv_conf_set(&c, bad[i][0], bad[i][1], "who"), VV_EINVAL);
		CHECK(strncmp(vv_err_last(), "who: ", 5) == 0);
		CHECK(strstr(vv_err_last(), quoted));
		CHECK_STR(vv_conf_text(&c, bad[i][0]), before);
		CHECK_STR(vv_conf_origin(&c, bad[i][0]), "default");
		free(before);
	}
	vv_conf_fini(&c);
}

static void test_what_is_allowed(void)
{
	struct vv_conf c;

	start(&c);
	vv_conf_set(&c, "codec", "gzip", "x");
	CHECK(strstr(vv_err_last(), "none|lz4|zstd[:N]|auto"));
	vv_conf_set(&c, "keep-every", "0", "x");
	CHECK(strstr(vv_err_last(), "from 1 to 1000"));
	vv_conf_set(&c, "share", "7", "x");
	CHECK(strstr(vv_err_last(), "2%"));
	CHECK_EQ(vv_conf_set(&c, "colour", "red", "x"), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "unknown option 'colour'"));
	vv_conf_fini(&c);
}

static void test_long_text(void)
{
	static char big[10000];
	struct vv_conf c;

	start(&c);
	memset(big, 'x', sizeof(big) - 1);
	CHECK_EQ(vv_conf_set(&c, "store", big, "call"), VV_EINVAL);
	CHECK_EQ(vv_conf_set(&c, big, "1", big), VV_EINVAL);
	big[4095] = '\0';
	CHECK_EQ(vv_conf_set(&c, "store", big, "call"), 0);
	CHECK_STR(vv_conf_text(&c, "store"), big);
	memset(big, '9', 4095);
	CHECK_EQ(vv_conf_set(&c, "any-count", big, "call"), VV_EINVAL);
	vv_conf_fini(&c);
}

/* '-', '_' and case are one in names, wherever they are written. */
static void test_names(void)
{
	static const char *const keep[] = { "keep-every", "keep_every", "KEEP-EVERY", "Keep_Every" };
	static const char *const count[] = { "any_count", "any-count", "ANY_COUNT" };
	static const char *const wrong[] = { "", "keep", "keep-every-", "keepevery", "keep every", "-keep-every" };
	struct vv_conf c;

	start(&c);
	for (size_t i = 0; i < 4; i++) {
		char n[8];

		snprintf(n, sizeof(n), "%zu", i + 10);
		CHECK_EQ(vv_conf_set(&c, keep[i], n, "call"), 0);
		CHECK_EQ(vv_conf_number(&c, keep[3 - i]), i + 10);
	}
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(vv_conf_set(&c, count[i], "1", "call"), 0);
	for (size_t i = 0; i < 6; i++)
		CHECK_EQ(vv_conf_set(&c, wrong[i], "1", "call"), VV_EINVAL);
	vv_conf_fini(&c);
}

static void test_file_text(void)
{
	struct vv_conf c;

	start(&c);
	CHECK_EQ(parse(&c, "# a comment\n; another\n\n[varve]\r\n  store = a b  # why\n\tverify=yes\r\n"
			   "codec = zstd:3 ; note\nkeep_every = 7\n[ other ]\nblock=8K"),
		 0);
	CHECK_STR(vv_conf_text(&c, "store"), "a b");
	CHECK_STR(vv_conf_origin(&c, "store"), "f.conf:5");
	CHECK(vv_conf_bool(&c, "verify"));
	CHECK_STR(vv_conf_text(&c, "codec"), "zstd:3");
	CHECK_EQ(vv_conf_number(&c, "keep-every"), 7);
	CHECK_STR(vv_conf_origin(&c, "keep-every"), "f.conf:8");
	CHECK_EQ(vv_conf_number(&c, "block"), 8192);
	CHECK_STR(vv_conf_origin(&c, "block"), "f.conf:10");
	/* a '#' inside a value belongs to it, a '=' too; the last line of a name counts */
	CHECK_EQ(parse(&c, "store=a#b;c=d\n"), 0);
	CHECK_STR(vv_conf_text(&c, "store"), "a#b;c=d");
	CHECK_EQ(parse(&c, "store=1\nstore=2\n"), 0);
	CHECK_STR(vv_conf_text(&c, "store"), "2");
	CHECK_STR(vv_conf_origin(&c, "store"), "f.conf:2");
	CHECK_EQ(parse(&c, "store = # nothing\n"), 0);
	CHECK_STR(vv_conf_text(&c, "store"), "");
	CHECK_EQ(parse(&c, ""), 0);
	vv_conf_fini(&c);
}

static void refuse(const char *text, size_t n, const char *where)
{
	struct vv_conf c;

	start(&c);
	CHECK_EQ(vv_conf_parse(&c, text, n, "f.conf"), VV_EINVAL);
	CHECK(strncmp(vv_err_last(), where, strlen(where)) == 0);
	vv_conf_fini(&c);
}

#define REFUSE(text, where) refuse(text, sizeof(text) - 1, where)

static void test_bad_lines(void)
{
	static char line[9000];

	REFUSE("store", "f.conf:1: ");
	REFUSE("\n\nverify = perhaps\n", "f.conf:3: verify = 'perhaps'");
	REFUSE("# fine\n[open\n", "f.conf:2: ']'");
	REFUSE("[", "f.conf:1: ");
	REFUSE("= 5\n", "f.conf:1: unknown option ''");
	REFUSE("verify = yes\nnope = 1\n", "f.conf:2: unknown option 'nope'");
	REFUSE("verify = yes\nsto\0re = 1\n", "f.conf:2: not a line of text");
	REFUSE("\0", "f.conf:1: not a line of text");
	REFUSE("verify == yes", "f.conf:1: verify = '= yes'");
	REFUSE("\xff\xfe\n", "f.conf:1: ");
	memset(line, ' ', sizeof(line));
	memcpy(line, "store=x", 7);
	refuse(line, sizeof(line), "f.conf:1: not a line of text");
	refuse(line, 4096, "f.conf:1: not a line of text");
	memset(line, '\n', sizeof(line));
	line[8998] = 'z';
	refuse(line, sizeof(line), "f.conf:8999: ");
}

/* The text needs no NUL at its end, and none is written into it. */
static void test_exact_buffer(void)
{
	static const char text[] = "verify = yes\nstore = abc # tail";
	struct vv_conf c;

	for (size_t n = 0; n < sizeof(text); n++) {
		char *exact = malloc(n ? n : 1);
		int rc;

		CHECK(exact);
		memcpy(exact, text, n);
		start(&c);
		rc = vv_conf_parse(&c, exact, n, "f.conf");
		CHECK(rc == 0 || rc == VV_EINVAL);
		CHECK(memcmp(exact, text, n) == 0);
		CHECK(n < 22 || rc == 0);
		vv_conf_fini(&c);
		free(exact);
	}
}

/* Letters that mean something to the parser, thrown together. */
static void test_random_text(void)
{
	static const char letters[] = "=[]#; \t\n\r-_.:%0159kmzstdverifylz4\0\xff";
	static const char *const names[] = { "store=", "verify=", "block=", "interval=", "share=", "codec=zstd:" };
	uint64_t state = 5;
	long taken = 0;

	for (int i = 0; i < 20000; i++) {
		struct vv_conf c;
		char text[64];
		size_t n = (size_t)gen_below(&state, 40), at = 0;

		if (gen_below(&state, 2))
			at = (size_t)snprintf(text, sizeof(text), "%s", names[gen_below(&state, 6)]);
		for (size_t k = 0; k < n / 4; k++)
			text[at++] = letters[gen_below(&state, sizeof(letters) - 1)];
		start(&c);
		taken += vv_conf_parse(&c, text, at, "f") == 0;
		CHECK(vv_conf_number(&c, "block") >= 4096 && vv_conf_number(&c, "block") <= 1u << 26);
		CHECK(vv_conf_real(&c, "share") >= 0 && vv_conf_real(&c, "share") <= 1);
		CHECK(vv_conf_real(&c, "interval") >= 0);
		vv_conf_fini(&c);
	}
	CHECK(taken > 100 && taken < 19900);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	CHECK(fputs(text, f) >= 0);
	CHECK(fclose(f) == 0);
}

static void make_folder(char *out, size_t cap)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(out, cap, "%s/vv-test-conf-XXXXXX", tmp && *tmp ? tmp : ".");
	CHECK(mkdtemp(out));
}

static void check_origin(const struct vv_conf *c, const char *name, const char *text, const char *origin)
{
	CHECK_STR(vv_conf_text(c, name), text);
	CHECK_STR(vv_conf_origin(c, name), origin);
}

/* default < file < environment < call, each over the one before. */
static void check_precedence(const char *path)
{
	struct vv_conf c;
	char line[4200];

	write_file(path, "\nstore = file\nkeep-every = 5\ncodec = none\n");
	setenv("VVT_KEEP_EVERY", "6", 1);
	setenv("VVT_CODEC", "zstd", 1);
	setenv("VVT_UNKNOWN", "ignored", 1);
	start(&c);
	CHECK_EQ(vv_conf_read_file(&c, path, true), 0);
	CHECK_EQ(vv_conf_read_env(&c, "VVT_"), 0);
	CHECK_EQ(vv_conf_read_string(&c, "codec=auto, verify=on", "call"), 0);
	check_origin(&c, "block", "1MiB", "default");
	snprintf(line, sizeof(line), "%.250s:2", path);
	check_origin(&c, "store", "file", line);
	check_origin(&c, "keep-every", "6", "VVT_KEEP_EVERY");
	check_origin(&c, "codec", "auto", "call");
	check_origin(&c, "verify", "on", "call");
	setenv("VVT_KEEP_EVERY", "many", 1);
	CHECK_EQ(vv_conf_read_env(&c, "VVT_"), VV_EINVAL);
	CHECK(strncmp(vv_err_last(), "VVT_KEEP_EVERY: keep-every = 'many'", 35) == 0);
	unsetenv("VVT_KEEP_EVERY");
	unsetenv("VVT_CODEC");
	vv_conf_fini(&c);
}

static void test_files(void)
{
	char folder[4000], path[4100];
	struct vv_conf c;

	make_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/f.conf", folder);
	check_precedence(path);
	start(&c);
	write_file(path, "\n\n\nblock = tiny\n");
	CHECK_EQ(vv_conf_read_file(&c, path, true), VV_EINVAL);
	CHECK(strstr(vv_err_last(), ":4: block = 'tiny'"));
	CHECK_EQ(vv_conf_read_file(&c, folder, true), VV_EINVAL);
	CHECK_EQ(truncate(path, (1 << 20) + 1), 0);
	CHECK_EQ(vv_conf_read_file(&c, path, true), VV_EINVAL);
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(vv_conf_read_file(&c, path, true), VV_ENOENT);
	CHECK_EQ(vv_conf_read_file(&c, path, false), 0);
	check_origin(&c, "block", "1MiB", "default");
	vv_conf_fini(&c);
	CHECK_EQ(rmdir(folder), 0);
}

static void test_strings(void)
{
	struct vv_conf c;

	start(&c);
	CHECK_EQ(vv_conf_read_string(&c, NULL, "call"), 0);
	CHECK_EQ(vv_conf_read_string(&c, " ,, \t\n", "call"), 0);
	check_origin(&c, "codec", "lz4", "default");
	CHECK_EQ(vv_conf_read_string(&c, "codec=zstd:5\tstore=a=b,keep_every=9", "call"), 0);
	check_origin(&c, "codec", "zstd:5", "call");
	check_origin(&c, "store", "a=b", "call");
	check_origin(&c, "keep-every", "9", "call");
	CHECK_EQ(vv_conf_read_string(&c, "codec", "call"), VV_EINVAL);
	CHECK_STR(vv_err_last(), "call: 'codec' is not of the form name=value; a value with blanks or commas is put in quotes: name=\"a b\"");
	CHECK_EQ(vv_conf_read_string(&c, "verify=yes bogus=1", "call"), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "bogus"));
	vv_conf_fini(&c);
}

/* Blanks, commas, quotes and backslashes in values: of a call, and of a file. */
static void test_quotes(void)
{
	static const struct {
		const char *text, *value, *next; /* next: of keep-every, or NULL */
	} call[] = {
		{ "store=\"/a b/c, d\" keep-every=7", "/a b/c, d", "7" },
		{ "store=/a\\ b\\,c,keep-every=8", "/a b,c", "8" },
		{ "store=\"\"", "", NULL },
		{ "store=a\"b c\"d", "ab cd", NULL },
		{ "store=\"say \\\"x\\\" \\\\\"", "say \"x\" \\", NULL },
		{ "store=\"#;=\",keep-every=9", "#;=", "9" },
		{ "store=it's", "it's", NULL },
		{ "store='a \"b\", c' keep-every=7", "a \"b\", c", "7" },
		{ "store='say \\'x\\''", "say 'x'", NULL },
		{ "store=\"it's\" keep-every=5", "it's", "5" },
		{ "store=end\\", "end\\", NULL },
	}, file[] = {
		{ "store = \"/a b # c\" # comment\nkeep-every = 7", "/a b # c", "7" },
		{ "store = \"  x  \"", "  x  ", NULL },
		{ "store=\"say \\\"x\\\" \\\\\" ; comment", "say \"x\" \\", NULL },
		{ "store = /a b\\ c, d # comment", "/a b\\ c, d", NULL },
		{ "store = it is \"so\"", "it is \"so\"", NULL },
		{ "# store = \"open\nstore = 1", "1", NULL },
		{ "store = \"\"", "", NULL },
		{ "store = '/a b # c' # it's a comment\nkeep-every = 7", "/a b # c", "7" },
		{ "store = it's so", "it's so", NULL },
	};
	struct vv_conf c;

	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		start(&c);
		CHECK_EQ(vv_conf_read_string(&c, call[i].text, "call"), 0);
		CHECK_STR(vv_conf_text(&c, "store"), call[i].value);
		CHECK(!call[i].next || strcmp(vv_conf_text(&c, "keep-every"), call[i].next) == 0);
		vv_conf_fini(&c);
	}
	for (size_t i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
		start(&c);
		CHECK_EQ(vv_conf_parse(&c, file[i].text, strlen(file[i].text), "f"), 0);
		CHECK_STR(vv_conf_text(&c, "store"), file[i].value);
		CHECK(!file[i].next || strcmp(vv_conf_text(&c, "keep-every"), file[i].next) == 0);
		vv_conf_fini(&c);
	}
	start(&c);
	CHECK_EQ(vv_conf_read_string(&c, "store=\"a b keep-every=3", "call"), VV_EINVAL);
	CHECK_STR(vv_err_last(), "call: the quote in 'store=a b keep-every=3' is not closed");
	CHECK_EQ(vv_conf_read_string(&c, "store='a b\" keep-every=3", "call"), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "is not closed"));
	CHECK_EQ(vv_conf_read_string(&c, "\"store=a\"", "call"), VV_EINVAL);
	CHECK_EQ(vv_conf_parse(&c, "\nstore = \"a b\n", 15, "f"), VV_EINVAL);
	CHECK_STR(vv_err_last(), "f:2: the quote in 'store = \"a b' is not closed");
	CHECK_EQ(vv_conf_parse(&c, "store = \"a\" b", 13, "f"), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "f:1: store"));
	check_origin(&c, "store", vv_conf_text(&c, "store"), "default");
	vv_conf_fini(&c);
}

/* An option name far longer than any variable's name. */
static void test_long_item(void)
{
	static char name[1000];
	const struct vv_conf_item item = { .name = name, .kind = VV_CONF_TEXT, .initial = "x" };
	struct vv_conf c;

	memset(name, 'n', sizeof(name) - 1);
	CHECK_EQ(vv_conf_init(&c, &item, 1), 0);
	CHECK_EQ(vv_conf_read_env(&c, "VVT_"), 0);
	CHECK_STR(vv_conf_text(&c, name), "x");
	vv_conf_fini(&c);
}

static int everything(void)
{
	struct vv_conf c;
	int rc = vv_conf_init(&c, items, N);

	if (rc)
		return rc;
	rc = parse(&c, "store=1\nblock=8K\n");
	if (rc == 0)
		rc = vv_conf_read_string(&c, "codec=zstd verify=yes", "call");
	CHECK(vv_conf_text(&c, "store") && vv_conf_origin(&c, "codec"));
	vv_conf_fini(&c);
	return rc;
}

static void test_no_memory(void)
{
	for (long k = 1;; k++) {
		int rc;

		vv_mem_fail_at(k);
		rc = everything();
		if (rc == 0) {
			CHECK_EQ(vv_mem_asked(), k - 1);
			break;
		}
		CHECK_EQ(rc, VV_ENOMEM);
	}
	vv_mem_fail_at(0);
}

int main(void)
{
	test_defaults();
	test_numbers();
	test_shares();
	test_words();
	test_bad_values();
	test_what_is_allowed();
	test_long_text();
	test_names();
	test_file_text();
	test_bad_lines();
	test_exact_buffer();
	test_random_text();
	test_files();
	test_strings();
	test_quotes();
	test_long_item();
	test_no_memory();
	return 0;
}
