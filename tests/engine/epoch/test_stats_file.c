/* The file of statistics: every line is JSON with all fields, from many processes at once; what cannot be written is said. */
#include "engine/epoch/stats_file.h"
#include "base/err.h"
#include "base/mem.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[PLACE_MAX];

static const struct varve_stats some = {
	.epoch = 7,
	.bytes_memory = UINT64_MAX,
	.bytes_new = 4096,
	.seconds_blocked = 0.25,
	.bytes_dirty = 8192,
	.wait = { 1, 4096 },
	.cow = { 2, 8192 },
	.avoided = { 3, 12288 },
	.after = { 4, 16384 },
	.seconds_flush = 12.000000125,
	.bandwidth = 1e9,
};

static int add(const char *lineage, int rc, const char *error)
{
	return vv_stats_file_add(path, lineage, 3, 1700000000000000042, rc, error, &some);
}

/* ---- a small reader of JSON: is the text one value? ---------------------------------------------------------------- */

static const char *value(const char *s);

static const char *string(const char *s)
{
	if (!s || *s++ != '"')
		return NULL;
	for (; *s != '"'; s++) {
		if ((unsigned char)*s < 0x20)
			return NULL;
		if (*s != '\\')
			continue;
		s++;
		if (!*s || !strchr("\"\\/bfnrtu", *s) || (*s == 'u' && strspn(s + 1, "0123456789abcdef") < 4))
			return NULL;
	}
	return s + 1;
}

static const char *number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	if (n == 0 || (n > 1 && *s == '0'))
		return NULL;
	s += n;
	if (*s == '.') {
		n = strspn(s + 1, "0123456789");
		s = n ? s + 1 + n : NULL;
	}
	return s;
}

static const char *object(const char *s)
{
	do {
		s = string(s + 1);
		s = s && *s == ':' ? value(s + 1) : NULL;
	} while (s && *s == ',');
	return s && *s == '}' ? s + 1 : NULL;
}

static const char *value(const char *s)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < 3; i++)
		if (strncmp(s, words[i], strlen(words[i])) == 0)
			return s + strlen(words[i]);
	return *s == '{' ? object(s) : *s == '"' ? string(s) : number(s);
}

static int is_json(const char *line)
{
	const char *end = line[0] == '{' ? value(line) : NULL;

	return end && *end == '\0';
}

/* The lines of the file, each cut off at its end; returns how many. */
static size_t lines(char *text, size_t cap, char **line, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, cap - 1);
	size_t k = 0;

	CHECK(n >= 0 && (size_t)n < cap - 1);
	close(fd);
	text[n] = '\0';
	for (char *s = text, *end; *s && k < max; s = end + 1) {
		end = strchr(s, '\n');
		line[k++] = s;
		if (!end)
			break;
		*end = '\0';
	}
	return k;
}

static const char *only_line(void)
{
	static char text[100000];
	char *line[2];

	CHECK_EQ(lines(text, sizeof(text), line, 2), 1);
	CHECK_EQ(unlink(path), 0);
	return line[0];
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void test_fields(void)
{
	const char *l;

	CHECK_EQ(add("sim", 0, NULL), 0);
	l = only_line();
	CHECK(is_json(l));
	CHECK(strncmp(l, "{\"time\":1700000000.000000042,\"lineage\":\"sim\",\"rank\":3,\"ok\":true,\"epoch\":7,", 70) == 0);
	CHECK(strstr(l, "\"bytes_memory\":18446744073709551615,") && strstr(l, "\"bytes_zero\":0,"));
	CHECK(strstr(l, "\"seconds_blocked\":0.250000000,") && strstr(l, "\"bandwidth\":1000000000.000000000,"));
	CHECK(strstr(l, "\"seconds_flush\":12.000000125") || strstr(l, "\"seconds_flush\":12.000000124"));
	CHECK(strstr(l, "\"wait\":{\"pages\":1,\"bytes\":4096},\"cow\":{\"pages\":2,\"bytes\":8192},"));
	CHECK(strstr(l, "\"avoided\":{\"pages\":3,\"bytes\":12288},\"after\":{\"pages\":4,\"bytes\":16384},"));
	CHECK(!strstr(l, "error"));
	CHECK(!strchr(l, ' '));
}

/* Each name in the public struct is a key; the struct may grow. */
static void test_all_names(void)
{
	const char *source = getenv("VARVE_SOURCE");
	char header[4200], line[500], key[100];
	int inside = 0, found = 0;
	const char *l;
	FILE *f;

	if (!source)
		return;
	CHECK_EQ(add("sim", 0, NULL), 0);
	l = only_line();
	snprintf(header, sizeof(header), "%s/include/varve/varve.h", source);
	f = fopen(header, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		char name[64];

		if (strncmp(line, "struct varve_stats {", 20) == 0)
			inside = 1;
		else if (line[0] == '}')
			inside = 0;
		else if (inside && (sscanf(line, " struct varve_access %63[a-z_];", name) == 1 ||
				    sscanf(line, " %*[a-z0-9_] %63[a-z_];", name) == 1)) {
			snprintf(key, sizeof(key), "\"%s\":", name);
			CHECK(strstr(l, key));
			found++;
		}
	}
	fclose(f);
	CHECK(found >= 20);
}

static void test_errors_in_lines(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "disk full", "disk full" },
		{ "", "" },
		{ "say \"no\" \\ or", "say \\\"no\\\" \\\\ or" },
		{ "a\nb\tc\x01\x7f", "a\\u000ab\\u0009c\\u0001\\u007f" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8a", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8a" },
		{ "\xff\xfe", "\\ufffd\\ufffd" },
		{ "x\xc3", "x\\ufffd" },                       /* cut off by the end */
		{ "\xe2\x82", "\\ufffd\\ufffd" },
		{ "\xc0\xaf", "\\ufffd\\ufffd" },              /* longer than need be */
		{ "\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd" },   /* half of a surrogate pair */
		{ "\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd" },
		{ NULL, NULL },
	};
	const char *l;

	for (size_t i = 0; cases[i].text; i++) {
		char want[200];

		snprintf(want, sizeof(want), "\"ok\":false,\"error\":\"%s\",", cases[i].want);
		CHECK_EQ(add("sim", VV_ENOSPC, cases[i].text), 0);
		l = only_line();
		CHECK(is_json(l));
		CHECK(strstr(l, want));
	}
	CHECK_EQ(add("a\"b", VV_ENOSPC, NULL), 0);
	l = only_line();
	CHECK(is_json(l) && strstr(l, "\"lineage\":\"a\\\"b\"") && strstr(l, "\"error\":\""));
}

/* Values that JSON cannot say, and a locale that writes numbers with a comma. */
static void test_numbers(void)
{
	struct varve_stats st = { .seconds_blocked = NAN, .seconds_faults = INFINITY, .seconds_waits = -1, .bandwidth = 1e300 };
	const char *l;

	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
		setlocale(LC_NUMERIC, "");
	st.seconds_flush = 0.5;
	CHECK_EQ(vv_stats_file_add(path, "sim", 0, 0, 0, NULL, &st), 0);
	setlocale(LC_NUMERIC, "C");
	l = only_line();
	CHECK(is_json(l));
	CHECK(strstr(l, "\"time\":0.000000000,") && strstr(l, "\"seconds_flush\":0.500000000,"));
	CHECK(strstr(l, "\"seconds_blocked\":null,") && strstr(l, "\"seconds_faults\":null,"));
	CHECK(strstr(l, "\"seconds_waits\":null,") && strstr(l, "\"bandwidth\":null,"));
}

enum { WRITERS = 6, EACH = 200 };

static void test_many_writers(void)
{
	enum { CAP = WRITERS * EACH * 2000 };
	char *text = malloc(CAP), *line[WRITERS * EACH + 1];
	size_t n, of[WRITERS] = { 0 };

	for (int w = 0; w < WRITERS; w++)
		if (fork() == 0) {
			int rc = 0;

			for (int i = 0; rc == 0 && i < EACH; i++)
				rc = vv_stats_file_add(path, "sim", (uint32_t)w, 5, i % 2 ? 0 : VV_EIO, "a \"reason\"", &some);
			_exit(rc ? 1 : 0);
		}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		CHECK(wait(&status) > 0 && status == 0);
	}
	n = lines(text, CAP, line, WRITERS * EACH + 1);
	CHECK_EQ(n, WRITERS * EACH);
	for (size_t i = 0; i < n; i++) {
		const char *rank = strstr(line[i], "\"rank\":");

		CHECK(is_json(line[i]) && rank);
		of[rank[7] - '0']++;
	}
	for (int w = 0; w < WRITERS; w++)
		CHECK_EQ(of[w], EACH);
	CHECK_EQ(unlink(path), 0);
	free(text);
}

/* The disk takes half of a line: that is an error, and the line after it stands on its own. */
static void test_torn(void)
{
	struct rlimit all, little;
	char text[20000], *line[8];

	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &all), 0);
	CHECK_EQ(add("sim", 0, NULL), 0);
	little = all;
	little.rlim_cur = 1000;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
	CHECK_EQ(add("sim", 0, NULL), VV_ENOSPC);
	CHECK(strstr(vv_err_last(), path) && strstr(vv_err_last(), "took only"));
	CHECK_EQ(add("sim", 0, NULL), VV_ENOSPC);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &all), 0);
	CHECK_EQ(add("sim", 0, NULL), 0);
	CHECK_EQ(add("sim", 0, NULL), 0);
	CHECK_EQ(lines(text, sizeof(text), line, 8), 4);
	CHECK(is_json(line[0]) && !is_json(line[1]) && is_json(line[2]) && is_json(line[3]));
	CHECK_EQ(unlink(path), 0);
}

static void test_refused(void)
{
	char saved[PLACE_MAX];

	memcpy(saved, path, sizeof(path));
	snprintf(path, sizeof(path), "%s", place_root());
	CHECK(add("sim", 0, NULL) < 0);
	CHECK(strstr(vv_err_last(), "irectory"));
	place_path(path, "no/such");
	CHECK_EQ(add("sim", 0, NULL), VV_ENOENT);
	place_path(path, "pipe");
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK(add("sim", 0, NULL) < 0); /* nobody reads: an error, no waiting */
	CHECK_EQ(unlink(path), 0);
	snprintf(path, sizeof(path), "/dev/full");
	if (access(path, W_OK) == 0)
		CHECK_EQ(add("sim", 0, NULL), VV_ENOSPC);
	memcpy(path, saved, sizeof(path));
	if (geteuid() == 0)
		return;
	CHECK_EQ(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0400)), 0);
	CHECK_EQ(add("sim", 0, NULL), VV_EDENIED);
	CHECK_EQ(chmod(path, 0200), 0);
	CHECK_EQ(add("sim", 0, NULL), 0); /* only written, never read */
	CHECK_EQ(unlink(path), 0);
}

static void test_no_memory(void)
{
	int rc = VV_ENOMEM;

	for (long k = 1; rc; k++) {
		vv_mem_fail_at(k);
		rc = add("sim", VV_EIO, "reason");
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
	}
	CHECK(is_json(only_line())); /* nothing of the lines that failed */
}

/* The file of a session stays where it was when the session was opened. */
static void test_chdir(void)
{
	char cwd[PLACE_MAX], here[PLACE_MAX], below[PLACE_MAX];
	struct stat st;
	varve *v = NULL;

	place_make_dir(place_path(below, "below"));
	CHECK(getcwd(cwd, sizeof(cwd)) && chdir(place_root()) == 0);
	CHECK_EQ(varve_open("mem:chdir", "run", "stats=rel.jsonl mode=sync", &v), 0);
	CHECK(chdir("below") == 0);
	CHECK_EQ(varve_checkpoint(v), 0);
	CHECK_EQ(varve_close(v), 0);
	CHECK(stat(place_path(here, "rel.jsonl"), &st) == 0 && st.st_size > 0);
	CHECK(stat("rel.jsonl", &st) != 0);
	CHECK(chdir(cwd) == 0);
}

int main(void)
{
	place_path(path, "stats.jsonl");
	test_fields();
	test_all_names();
	test_errors_in_lines();
	test_numbers();
	test_many_writers();
	test_torn();
	test_refused();
	test_no_memory();
	test_chdir();
	return 0;
}
