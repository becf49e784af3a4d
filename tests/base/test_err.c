/* Errors: the message belongs to its thread, is cut but never overrun, and travels between threads by save and restore. */
#include "base/err.h"
#include "vv_test.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>

static void test_set(void)
{
	char big[3000];

	CHECK_EQ(vv_err_set(VV_EIO, "disk %d of %s", 3, "x"), VV_EIO);
	CHECK_STR(vv_err_last(), "disk 3 of x");
	memset(big, 'b', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	CHECK_EQ(vv_err_set(VV_EINVAL, "%s", big), VV_EINVAL);
	CHECK_EQ(strlen(vv_err_last()), sizeof(((struct vv_err_state *)0)->message) - 1);
	CHECK_EQ(vv_err_context(VV_EINVAL, "%s", big), VV_EINVAL);
	CHECK_EQ(strlen(vv_err_last()), sizeof(((struct vv_err_state *)0)->message) - 1);
	CHECK_EQ(vv_err_sys(EIO, "%s", big), VV_EIO);
	CHECK_EQ(strlen(vv_err_last()), sizeof(((struct vv_err_state *)0)->message) - 1);
	vv_err_clear();
	CHECK_STR(vv_err_last(), "");
}

/* A sentence with a long name keeps its end, which says what to do; no character is cut. */
static void test_long_names(void)
{
	enum { MOST = sizeof(((struct vv_err_state *)0)->message) - 1 };
	char name[4001];
	const char *last = vv_err_last(), *end;

	memset(name, 'n', 1023);
	name[1023] = '\0';
	vv_err_set(VV_EINVAL, "region '%s' is not mapped; do this", name);
	CHECK(strncmp(last, "region 'nnnn", 12) == 0 && strstr(last, "nnn ... nnn") && strlen(last) == MOST);
	end = strstr(last, "n' is not mapped; do this");
	CHECK(end && end[25] == '\0');
	vv_err_sys(ENOENT, "region '%s'", name);
	end = strstr(last, ": No such file or directory");
	CHECK(end && end[27] == '\0');
	vv_err_set(VV_EIO, "the reason");
	vv_err_context(VV_EIO, "region '%s'", name);
	end = strstr(last, "': the reason");
	CHECK(end && end[13] == '\0');
	for (size_t shift = 0; shift < 3; shift++) {
		for (size_t i = 0; i + 2 < sizeof(name); i += 3)
			memcpy(name + i, "\xe2\x82\xac", 3);
		name[3 * 1300] = '\0';
		vv_err_set(VV_EINVAL, "%.*s%s!", (int)shift, "aa", name);
		CHECK(strlen(last) <= MOST && strlen(last) > MOST - 6);
		end = strstr(last, " ... ");
		CHECK(end && (size_t)(end - last - shift) % 3 == 0 && (strlen(end) - 6) % 3 == 0 && end[strlen(end) - 1] == '!');
	}
	memset(name, 0x80, sizeof(name) - 1); /* no UTF-8 at all */
	name[sizeof(name) - 1] = '\0';
	vv_err_set(VV_EINVAL, "%s", name);
	CHECK(strlen(last) <= MOST);
	for (size_t n = MOST - 2; n < MOST + 8; n++) { /* around the limit */
		memset(name, 'x', n);
		name[n] = '\0';
		vv_err_set(VV_EINVAL, "%s", name);
		CHECK_EQ(strlen(last), n < MOST ? n : MOST);
		CHECK_EQ(strstr(last, " ... ") != NULL, n > MOST);
	}
}

static void test_sys(void)
{
	static const struct {
		int errnum, code;
	} pairs[] = {
		{ ENOENT, VV_ENOENT }, { ENOTDIR, VV_ENOENT }, { ENOMEM, VV_ENOMEM },  { ENOSPC, VV_ENOSPC },
		{ EDQUOT, VV_ENOSPC }, { EFBIG, VV_ENOSPC },   { EACCES, VV_EDENIED }, { EPERM, VV_EDENIED },
		{ EROFS, VV_EDENIED }, { EINVAL, VV_EINVAL },  { EIO, VV_EIO },        { EBADF, VV_EIO },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char want[200];

		CHECK_EQ(vv_err_sys(pairs[i].errnum, "cannot open '%s'", "f"), pairs[i].code);
		snprintf(want, sizeof(want), "cannot open 'f': %s", strerror(pairs[i].errnum));
		CHECK_STR(vv_err_last(), want);
	}
	CHECK_EQ(vv_err_sys(123456, "odd"), VV_EIO);
	CHECK(strncmp(vv_err_last(), "odd: ", 5) == 0);
}

static void test_context(void)
{
	vv_err_set(VV_EIO, "no such wire");
	CHECK_EQ(vv_err_context(VV_EDAMAGED, "epoch %d", 7), VV_EDAMAGED);
	CHECK_STR(vv_err_last(), "epoch 7: no such wire");
	CHECK_EQ(vv_err_context(VV_EDAMAGED, "store"), VV_EDAMAGED);
	CHECK_STR(vv_err_last(), "store: epoch 7: no such wire");
	CHECK_EQ(vv_err_context(VV_EIO, "(%s)", vv_err_last()), VV_EIO);
	CHECK_STR(vv_err_last(), "(store: epoch 7: no such wire): store: epoch 7: no such wire");
}

/* Names from elsewhere cannot make a terminal do anything; text beyond ASCII stays. */
static void test_control(void)
{
	vv_err_set(VV_EIO, "no '%s'", "a\x1b[2Jb\r\tc\x7f\nd \xc3\xa9");
	CHECK_STR(vv_err_last(), "no 'a?[2Jb??c? d \xc3\xa9'");
	vv_err_sys(ENOENT, "cannot open '%s'", "\a");
	CHECK(strncmp(vv_err_last(), "cannot open '?': ", 17) == 0);
	vv_err_set(VV_EIO, "inner");
	vv_err_context(VV_EIO, "%s", "\b");
	CHECK_STR(vv_err_last(), "?: inner");
}

static void *worker(void *arg)
{
	struct vv_err_state *st = arg;

	CHECK_STR(vv_err_last(), "");
	vv_err_save(vv_err_set(VV_ENOSPC, "worker's own"), st);
	vv_err_set(VV_EIO, "something later");
	return NULL;
}

static void test_threads(void)
{
	struct vv_err_state st[8];
	pthread_t t[8];

	vv_err_set(VV_EIO, "mine");
	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&t[i], NULL, worker, &st[i]) == 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	CHECK_STR(vv_err_last(), "mine");
	for (int i = 0; i < 8; i++) {
		vv_err_clear();
		CHECK_EQ(vv_err_restore(&st[i]), VV_ENOSPC);
		CHECK_STR(vv_err_last(), "worker's own");
	}
}

/* Every code has a name of its own; numbers that are no code have none. */
static void test_names(void)
{
	for (int a = 0; a >= VV_EPEER; a--)
		for (int b = 0; b > a; b--)
			CHECK(strcmp(vv_err_name(a), vv_err_name(b)) != 0);
	CHECK_STR(vv_err_name(VV_EDENIED), "permission denied");
	CHECK_STR(vv_err_name(VV_EPEER - 1), "unknown error");
	CHECK_STR(vv_err_name(1), "unknown error");
	CHECK_STR(vv_err_name(INT_MAX), "unknown error");
	CHECK_STR(vv_err_name(INT_MIN), "unknown error");
}

int main(void)
{
	test_set();
	test_long_names();
	test_sys();
	test_context();
	test_control();
	test_threads();
	test_names();
	return 0;
}
