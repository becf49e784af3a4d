/* Wrong arguments, wrong order, wrong sizes: a code, a sentence that helps, and nothing broken. */
#include "support/settle.h"
#include "vv_test.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>
#include <varve/varve.h>

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* The call failed with the code, and the sentence holds the word. */
static void fails(int rc, int code, const char *word, int line)
{
	if (rc == code && strstr(varve_last_error(), word))
		return;
	fprintf(stderr, "line %d: %d, not %d, or no '%s' in: %s\n", line, rc, code, word, varve_last_error());
	exit(1);
}
#define FAILS(call, code, word) fails(call, code, word, __LINE__)

static void opening(void)
{
	char long_name[100];
	varve *v = NULL;

	memset(long_name, 'x', sizeof(long_name));
	long_name[99] = '\0';
	FAILS(varve_open(NULL, "a", NULL, &v), VARVE_EINVAL, "store");
	FAILS(varve_open("mem:m", "a", NULL, NULL), VARVE_EINVAL, "out");
	FAILS(varve_open("", "a", NULL, &v), VARVE_EINVAL, "no store");
	FAILS(varve_open("gopher://x", "a", NULL, &v), VARVE_EINVAL, "gopher://x");
	FAILS(varve_open("mem:m", "", NULL, &v), VARVE_EINVAL, "characters");
	FAILS(varve_open("mem:m", "../up", NULL, &v), VARVE_EINVAL, "../up");
	v = (varve *)&long_name;
	FAILS(varve_open("mem:m", "a/b", NULL, &v), VARVE_EINVAL, "a/b");
	CHECK(v == NULL);
	FAILS(varve_open("mem:m", long_name, NULL, &v), VARVE_EINVAL, "64");
	FAILS(varve_open("mem:m", "a", "codex=zstd", &v), VARVE_EINVAL, "codex");
	FAILS(varve_open("mem:m", "a", "codec=brotli", &v), VARVE_EINVAL, "brotli");
	FAILS(varve_open("mem:m", "a", "codec", &v), VARVE_EINVAL, "name=value");
	FAILS(varve_open("mem:m", "a", "chunk=16", &v), VARVE_EINVAL, "chunk");
	FAILS(varve_open("mem:m", "a", "block=1T", &v), VARVE_EINVAL, "block");
	FAILS(varve_open("/dev/null/x", "a", NULL, &v), VARVE_ENOENT, "/dev/null");
	FAILS(varve_open("/dev/null", "a", NULL, &v), VARVE_EINVAL, "not a directory");
	CHECK(v == NULL);
}

static void null_session(void)
{
	char c = 0;

	FAILS(varve_checkpoint(NULL), VARVE_EINVAL, "NULL");
	FAILS(varve_restart(NULL, 1), VARVE_EINVAL, "NULL");
	FAILS(varve_protect(NULL, "a", &c, 1), VARVE_EINVAL, "NULL");
	FAILS(varve_unprotect(NULL, "a"), VARVE_EINVAL, "NULL");
	FAILS(varve_due(NULL), VARVE_EINVAL, "NULL");
	FAILS(varve_wait(NULL, 1), VARVE_EINVAL, "NULL");
	FAILS(varve_stats(NULL, NULL), VARVE_EINVAL, "session");
	CHECK(varve_alloc(NULL, "a", 1) == NULL);
	FAILS(varve_free(NULL, &c), VARVE_EINVAL, "NULL");
	CHECK_EQ(varve_close(NULL), 0);
	CHECK_EQ(varve_epoch(NULL), 0);
}

static void regions(varve *v)
{
	size_t shape[20] = { 2, 3 }, huge[2] = { (size_t)1 << 40, (size_t)1 << 40 };
	char name[1100], c[64];

	memset(name, 'n', sizeof(name));
	name[1099] = '\0';
	FAILS(varve_protect(v, NULL, c, 1), VARVE_EINVAL, "name");
	FAILS(varve_protect(v, "", c, 1), VARVE_EINVAL, "name");
	FAILS(varve_protect(v, name, c, 1), VARVE_EINVAL, "1023");
	FAILS(varve_protect(v, "a", NULL, 1), VARVE_EINVAL, "NULL");
	FAILS(varve_protect(v, "a", c, ((size_t)1 << 40) + 1), VARVE_EINVAL, "2^40");
	FAILS(varve_protect_array(v, "a", c, VARVE_BYTES, 1, shape), VARVE_EINVAL, "type 0");
	FAILS(varve_protect_array(v, "a", c, (enum varve_type)99, 1, shape), VARVE_EINVAL, "99");
	FAILS(varve_protect_array(v, "a", c, VARVE_F64, 0, shape), VARVE_EINVAL, "0 dimensions");
	FAILS(varve_protect_array(v, "a", c, VARVE_F64, 17, shape), VARVE_EINVAL, "17 dimensions");
	FAILS(varve_protect_array(v, "a", c, VARVE_F64, -1, shape), VARVE_EINVAL, "-1 dimensions");
	FAILS(varve_protect_array(v, "a", c, VARVE_F64, 2, NULL), VARVE_EINVAL, "dimensions");
	FAILS(varve_protect_array(v, "a", c, VARVE_F64, 2, huge), VARVE_EINVAL, "overflow");
	FAILS(varve_unprotect(v, "nobody"), VARVE_ENOENT, "nobody");
	FAILS(varve_free(v, c), VARVE_EINVAL, "varve_alloc");
	CHECK_EQ(varve_free(v, NULL), 0);
	ok(varve_protect(v, "empty", NULL, 0));
	ok(varve_unprotect(v, "empty"));
}

static void owned(varve *v)
{
	char c[8], *p = varve_alloc(v, "mine", 10000);

	CHECK(p && (uintptr_t)p % 4096 == 0);
	for (int i = 0; i < 10000; i++)
		CHECK(p[i] == 0);
	CHECK(varve_alloc(v, "mine", 5) == NULL);
	CHECK(strstr(varve_last_error(), "already"));
	FAILS(varve_protect(v, "mine", c, 8), VARVE_EINVAL, "varve_free");
	FAILS(varve_unprotect(v, "mine"), VARVE_EINVAL, "varve_free");
	memset(p, 7, 10000);
	ok(settle_checkpoint(v));
	memset(p, 8, 10000);
	CHECK_EQ(varve_restart(v, varve_epoch(v)), 1);
	CHECK(p[0] == 7 && p[9999] == 7);
	ok(varve_free(v, p));
	CHECK(varve_alloc(v, "huge", SIZE_MAX / 2) == NULL);
}

static void restarting(varve *v)
{
	struct varve_region_info info;
	size_t shape[2] = { 2, 3 };
	double a[6] = { 1, 2, 3, 4, 5, 6 };
	struct varve_stats st;
	uint64_t e;

	ok(varve_protect_array(v, "a", a, VARVE_F64, 2, shape));
	ok(settle_checkpoint(v));
	e = varve_epoch(v);
	ok(varve_stats(v, &st));
	CHECK_EQ(st.epoch, e);
	CHECK_EQ(varve_test(v, e), 1);
	CHECK_EQ(varve_wait(v, e), 0);
	FAILS(varve_test(v, e + 1), VARVE_ENOENT, "no epoch");
	FAILS(varve_restart(v, e + 1), VARVE_ENOENT, "no epoch");
	FAILS(varve_restart(v, 0), VARVE_ENOENT, "no epoch");
	FAILS(varve_restart_region(v, e, "b", a, 48), VARVE_ENOENT, "'a'");
	FAILS(varve_restart_region(v, e, "a", a, 40), VARVE_EMISMATCH, "48");
	FAILS(varve_restart_region(v, e, NULL, a, 40), VARVE_EINVAL, "name");
	FAILS(varve_region(v, e, "a", NULL), VARVE_EINVAL, "out");
	ok(varve_region(v, VARVE_LATEST, "a", &info));
	CHECK(info.bytes == 48 && info.type == VARVE_F64 && info.ndim == 2 && info.shape[0] == 2 && info.shape[1] == 3);
	ok(varve_protect(v, "a", a, 40));
	FAILS(varve_restart(v, VARVE_LATEST), VARVE_EMISMATCH, "'a'");
	ok(varve_protect_array(v, "a", a, VARVE_F64, 2, shape));
	ok(varve_protect(v, "stranger", &info, sizeof(info)));
	FAILS(varve_restart(v, VARVE_LATEST), VARVE_ENOENT, "stranger");
	ok(varve_unprotect(v, "stranger"));
	memset(a, 0, sizeof(a));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(a[0] == 1 && a[5] == 6);
}

/* Bits that were stored as unsigned integers become numbers; numbers do not become integers. */
static void bits(varve *v)
{
	static const struct {
		enum varve_type stored, declared;
		int rc;
	} cases[] = {
		{ VARVE_U16, VARVE_BF16, 1 },
		{ VARVE_U16, VARVE_F16, 1 },
		{ VARVE_U8, VARVE_F8_E4M3, 1 },
		{ VARVE_BF16, VARVE_BF16, 1 },
		{ VARVE_I16, VARVE_BF16, VARVE_EMISMATCH },
		{ VARVE_BF16, VARVE_F16, VARVE_EMISMATCH },
		{ VARVE_BF16, VARVE_U16, VARVE_EMISMATCH },
		{ VARVE_F8_E5M2, VARVE_U8, VARVE_EMISMATCH },
	};
	uint16_t w[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ok(varve_protect_array(v, "w", w, cases[i].stored, 1, &(size_t){ cases[i].stored == VARVE_U8 || cases[i].stored == VARVE_F8_E5M2 ? 64 : 32 }));
		memset(w, (int)i + 1, sizeof(w));
		ok(settle_checkpoint(v));
		memset(w, 0, sizeof(w));
		ok(varve_protect_array(v, "w", w, cases[i].declared, 1, &(size_t){ cases[i].declared == VARVE_U8 || cases[i].declared == VARVE_F8_E4M3 ? 64 : 32 }));
		CHECK_EQ(varve_restart(v, VARVE_LATEST), cases[i].rc);
		CHECK(cases[i].rc < 0 || w[31] == (i + 1) * 0x101);
		ok(varve_unprotect(v, "w"));
	}
}

static void due(void)
{
	varve *v = NULL;

	ok(varve_open("mem:due", "d", NULL, &v));
	CHECK_EQ(varve_due(v), 1);
	ok(varve_close(v));
	ok(varve_open("mem:due", "d", "interval=1h", &v));
	CHECK_EQ(varve_due(v), 0);
	ok(varve_close(v));
	ok(varve_open("mem:due", "d", "interval=1ms", &v));
	usleep(2000);
	CHECK_EQ(varve_due(v), 1);
	ok(varve_close(v));
}

/* One that fails is not tried again at every step. */
static void due_after_failure(void)
{
	struct timespec from, to;
	varve *v = NULL;
	int again;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	ok(varve_open("mem:due", "d", "interval=1s", &v));
	FAILS(varve_protect(v, "nowhere", (void *)4096, 4096), VARVE_EINVAL, "nowhere");
	ok(varve_protect(v, "nowhere", p, 4096));
	CHECK(mprotect(p, 4096, PROT_NONE) == 0);
	usleep(1100000);
	CHECK_EQ(varve_due(v), 1);
	clock_gettime(CLOCK_MONOTONIC, &from);
	FAILS(varve_checkpoint(v), VARVE_EINVAL, "nowhere");
	again = varve_due(v);
	clock_gettime(CLOCK_MONOTONIC, &to);
	CHECK(again == 0 || to.tv_sec - from.tv_sec >= 1);
	ok(varve_close(v));
	munmap(p, 4096);
}

int main(void)
{
	struct varve_stats st;
	varve *v = NULL;

	opening();
	null_session();
	ok(varve_open("mem:m", "a", NULL, &v));
	FAILS(varve_stats(v, &st), VARVE_ENOENT, "no checkpoint");
	FAILS(varve_restart_region(v, VARVE_LATEST, "a", &st, 1), VARVE_ENOENT, "no epoch yet");
	regions(v);
	ok(settle_checkpoint(v)); /* no region at all is an epoch too */
	owned(v);
	restarting(v);
	bits(v);
	ok(varve_close(v));
	due();
	due_after_failure();
	CHECK_STR(varve_strerror(VARVE_EBUSY), "in use by another");
	CHECK_STR(varve_strerror(-99), "unknown error");
	return 0;
}
