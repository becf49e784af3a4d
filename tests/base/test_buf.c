/* A buffer holds what was appended however it grew; a failed growth is remembered and loses nothing. */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MODEL = 100000 };

static uint8_t model[MODEL];

static void test_growth(void)
{
	struct vv_buf b = { 0 };
	uint64_t state = 1;
	size_t n = 0;

	while (n + 300 < MODEL) {
		size_t len = (size_t)gen_below(&state, gen_below(&state, 10) ? 5 : 300);

		gen_bytes(&state, model + n, len);
		vv_buf_add(&b, model + n, len);
		n += len;
		CHECK_EQ(b.n, n);
		CHECK(b.cap >= b.n);
	}
	CHECK(memcmp(b.p, model, n) == 0);
	CHECK_EQ(vv_buf_check(&b), 0);
	vv_buf_fini(&b);
	CHECK(b.p == NULL && b.n == 0 && b.cap == 0);
}

/* Room of every size can be used to its last byte; a sanitizer sees one byte too few. */
static void test_room(void)
{
	for (size_t first = 0; first < 600; first += 7)
		for (size_t n = 0; n < 600; n += 3) {
			struct vv_buf b = { 0 };
			uint8_t *p = vv_buf_room(&b, first);

			CHECK(p);
			memset(p, 1, first);
			b.n += first;
			p = vv_buf_room(&b, n);
			CHECK(p == b.p + first);
			CHECK_EQ(b.n, first);
			memset(p, 2, n);
			b.n += n;
			CHECK(b.cap >= b.n);
			CHECK(first == 0 || b.p[first - 1] == 1);
			vv_buf_fini(&b);
		}
}

/* Into fresh memory, so that the text with its NUL fills it exactly once. */
static void test_printf(void)
{
	char want[700];

	for (int width = 0; width < 600; width++) {
		struct vv_buf b = { 0 };

		vv_buf_printf(&b, "%*d|%s", width, -7, "x");
		snprintf(want, sizeof(want), "%*d|%s", width, -7, "x");
		CHECK_EQ(b.n, strlen(want));
		CHECK(memcmp(b.p, want, b.n) == 0);
		CHECK(b.cap > b.n);
		vv_buf_fini(&b);
	}
}

static void test_failure(void)
{
	for (long k = 1; k <= 4; k++) {
		struct vv_buf b = { 0 };
		size_t kept = 0;

		vv_mem_fail_at(k);
		for (size_t i = 0; i < 4000; i++) {
			uint8_t byte = (uint8_t)(i * 7);

			vv_buf_add(&b, &byte, 1);
			kept += !b.failed;
		}
		vv_mem_fail_at(0);
		CHECK(b.failed);
		CHECK_EQ(b.n, kept);
		for (size_t i = 0; i < b.n; i++)
			CHECK_EQ(b.p[i], (uint8_t)(i * 7));
		CHECK(vv_buf_room(&b, 0) == NULL);
		vv_buf_printf(&b, "more");
		CHECK_EQ(b.n, kept);
		CHECK_EQ(vv_buf_check(&b), VV_ENOMEM);
		CHECK(strstr(vv_err_last(), "out of memory"));
		vv_buf_fini(&b);
		CHECK_EQ(vv_buf_check(&b), 0);
	}
}

int main(void)
{
	test_growth();
	test_room();
	test_printf();
	test_failure();
	return 0;
}
