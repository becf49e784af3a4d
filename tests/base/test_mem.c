/* Memory: zeroed, checked against overflow, and failing exactly where a test asks it to. */
#include "base/err.h"
#include "base/mem.h"
#include "vv_test.h"
#include <stdint.h>

static void test_new(void)
{
	for (size_t n = 0; n < 100; n++) {
		uint64_t *p = vv_mem_new(n, sizeof(*p));

		CHECK(p);
		for (size_t i = 0; i < n; i++) {
			CHECK_EQ(p[i], 0);
			p[i] = UINT64_MAX; /* so that memory used again is not zero by itself */
		}
		vv_mem_free(p);
	}
	vv_mem_free(vv_mem_new(0, 0));
	vv_mem_free(NULL);
}

static void test_grow(void)
{
	uint32_t *p = NULL;

	for (size_t n = 1; n < 2000; n++) {
		p = vv_mem_grow(p, n, sizeof(*p));
		CHECK(p);
		p[n - 1] = (uint32_t)n;
	}
	for (size_t n = 1; n < 2000; n++)
		CHECK_EQ(p[n - 1], n);
	vv_mem_free(p);
	vv_mem_free(vv_mem_grow(NULL, 0, 8));
}

static void test_overflow(void)
{
	char *p = vv_mem_strdup("kept");

	vv_err_clear();
	CHECK(vv_mem_new(SIZE_MAX / 4 + 2, 4) == NULL);
	CHECK(strstr(vv_err_last(), "out of memory"));
	CHECK(vv_mem_new(4, SIZE_MAX / 4 + 2) == NULL);
	CHECK(vv_mem_new(SIZE_MAX, SIZE_MAX) == NULL);
	CHECK(vv_mem_grow(p, SIZE_MAX / 8 + 2, 8) == NULL);
	CHECK_STR(p, "kept");
	vv_mem_free(p);
}

static void test_strings(void)
{
	char *a = vv_mem_strdup(""), *b = vv_mem_strdup("abc"), *c = vv_mem_printf("%s-%05d", "x", 42);
	char *d = vv_mem_printf("%*s", 5000, "end");

	CHECK_STR(a, "");
	CHECK_STR(b, "abc");
	CHECK_STR(c, "x-00042");
	CHECK_EQ(strlen(d), 5000);
	CHECK_STR(d + 4997, "end");
	vv_mem_free(a);
	vv_mem_free(b);
	vv_mem_free(c);
	vv_mem_free(d);
}

/* The k-th allocation fails, once, whichever function asks for it. */
static void test_fail_at(void)
{
	for (long k = 0; k <= 6; k++) {
		void *p[5];

		vv_mem_fail_at(k);
		p[0] = vv_mem_new(1, 1);
		p[1] = vv_mem_grow(NULL, 1, 1);
		p[2] = vv_mem_strdup("x");
		p[3] = vv_mem_printf("x");
		p[4] = vv_mem_new(1, 1);
		CHECK_EQ(vv_mem_asked(), 5);
		vv_mem_fail_at(0);
		CHECK_EQ(vv_mem_asked(), 0);
		for (long i = 0; i < 5; i++) {
			CHECK_EQ(p[i] == NULL, i + 1 == k);
			vv_mem_free(p[i]);
		}
	}
}

/* Pages that are there before they are touched are zero, too; and a machine that runs this has memory left. */
static void test_pages(void)
{
	enum { N = 3 << 20 };
	uint8_t *p = vv_mem_map_wide(N);

	CHECK(p);
	vv_mem_populate(p, N);
	for (size_t i = 0; i < N; i += 512)
		CHECK_EQ(p[i], 0);
	vv_mem_unmap(p, N);
	CHECK(vv_mem_available() > N);
}

int main(void)
{
	test_new();
	test_grow();
	test_overflow();
	test_strings();
	test_fail_at();
	test_pages();
	return 0;
}
