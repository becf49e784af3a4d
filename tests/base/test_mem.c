/* Memory: zeroed, checked against overflow, and failing exactly where a test asks it to. */
#include "base/err.h"
#include "base/mem.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/status.h"
#include "vv_test.h"
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* A block that becomes large, larger, and small again holds what it held; new ones are zero, whatever was there before. */
static void test_large(void)
{
	enum { MOST = 3 << 20, ROUNDS = 200 };
	uint64_t state = 5;
	uint8_t *p = NULL;
	size_t n = 0;

	for (int round = 0; round < ROUNDS; round++) {
		size_t more = (size_t)gen_below(&state, round % 3 ? MOST : 4096), both = more < n ? more : n;
		uint8_t *q = vv_mem_grow(p, more, 1), *fresh = vv_mem_new(more, 1);

		CHECK(q && fresh && (uintptr_t)q % 16 == 0 && (uintptr_t)fresh % 16 == 0);
		for (size_t i = 0; i < both; i++)
			CHECK_EQ(q[i], (uint8_t)(i * 7 + i / 255));
		for (size_t i = 0; i < more; i++) {
			CHECK_EQ(fresh[i], 0);
			q[i] = (uint8_t)(i * 7 + i / 255);
		}
		memset(fresh, 0xff, more);
		vv_mem_free(fresh);
		p = q;
		n = more;
	}
	vv_mem_fail_at(1);
	CHECK(vv_mem_grow(p, 2 * (size_t)MOST, 1) == NULL);
	vv_mem_fail_at(0);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(p[i], (uint8_t)(i * 7 + i / 255));
	vv_mem_free(p);
}

/* Advice to the kernel, about all of a block or about a part, does not keep it from growing and shrinking. */
static void test_advised(void)
{
	enum { FEW = 5 << 20, MANY = 11 << 20 };

	for (int part = 0; part < 2; part++) {
		uint8_t *p = vv_mem_grow(NULL, FEW, 1);

		CHECK(p);
		vv_mem_widen(p, FEW);
		memset(p, 7, FEW);
		if (part)
			vv_mem_discard(p + FEW / 2, 1 << 20);
		if (part)
			CHECK_EQ(madvise((void *)(((uintptr_t)p + (1 << 20)) & ~(uintptr_t)0xffff), 1 << 20, MADV_DONTFORK), 0);
		p = vv_mem_grow(p, MANY, 1);
		CHECK(p && p[0] == 7 && p[FEW - 1] == 7);
		memset(p + FEW, 8, MANY - FEW);
		p = vv_mem_grow(p, FEW, 1);
		CHECK(p && p[0] == 7 && p[FEW - 1] == 7);
		p = vv_mem_grow(p, MANY, 1);
		CHECK(p && p[0] == 7 && p[FEW - 1] == 7);
		vv_mem_free(p);
	}
}

/* What is freed is nobody's: also between blocks that stay. Room that is not used costs nothing. */
static void test_goes_back(void)
{
	enum { N = 64, LEN = 2 << 20, RESERVE = 1 << 30 };
	long before = status_kib("VmRSS");
	void *p[N], *reserve;

	must_begin("what is freed goes back");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return; /* their allocator keeps what is freed */
#endif
	for (int i = 0; i < N; i++) {
		p[i] = vv_mem_grow(NULL, LEN, 1);
		memset(p[i], 1, LEN);
	}
	CHECK(status_kib("VmRSS") - before > N * 2000);
	for (int i = 0; i < N; i++)
		if (i % 8)
			vv_mem_free(p[i]);
	reserve = vv_mem_new(RESERVE, 1);
	CHECK(reserve && status_kib("VmRSS") - before < N / 4 * 2048);
	vv_mem_free(reserve);
	for (int i = 0; i < N; i += 8)
		vv_mem_free(p[i]);
}

/* Mappings until there may be no more: every other page of an area is another one than its neighbours. */
static void *crowd(size_t page, size_t *len)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	size_t most = 0;
	char *p;

	CHECK(f && fscanf(f, "%zu", &most) == 1);
	fclose(f);
	if (most > 1 << 20)
		return NULL; /* that would take long */
	*len = 2 * most * page;
	p = mmap(NULL, *len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(p != MAP_FAILED);
	for (size_t at = 0; at < *len && mprotect(p + at, page, PROT_READ) == 0; at += 2 * page)
		;
	return p;
}

/* The same in a process that has as many mappings as it may have, where the kernel takes nothing back that lies in the midst of one. It is used again. */
static void test_goes_back_crowded(void)
{
	enum { N = 64, LEN = 1 << 20, ROUNDS = 3 };
	size_t len = 0;
	long before, all;
	uint8_t *p[N];
	void *area;

	must_begin("what is freed among too many mappings");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return;
#endif
	before = status_kib("VmRSS");
	for (int i = 0; i < N; i++) {
		p[i] = i % 2 ? vv_mem_grow(NULL, LEN, 1) : vv_mem_map(LEN);
		memset(p[i], 1, LEN);
	}
	all = status_kib("VmSize");
	area = crowd((size_t)sysconf(_SC_PAGESIZE), &len);
	if (!area)
		return;
	for (int i = 1; i < N - 1; i++) {
		if (i % 2)
			vv_mem_free(p[i]);
		else
			vv_mem_unmap(p[i], LEN);
	}
	CHECK(status_kib("VmRSS") - before < N / 4 * 1024);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 1; i < N / 2; i++) {
			p[i] = vv_mem_new(LEN / 2, 1);
			CHECK(p[i]);
			for (size_t k = 0; k < LEN / 2; k++)
				CHECK_EQ(p[i][k], 0);
			memset(p[i], 0xff, LEN / 2);
		}
		for (int i = 1; i < N / 2; i++)
			vv_mem_free(p[i]);
	}
	CHECK_EQ(munmap(area, len), 0);
	vv_mem_free(vv_mem_new(LEN, 1)); /* the kernel is asked again */
	CHECK(status_kib("VmSize") < all - N / 2 * 1024);
	vv_mem_unmap(p[0], LEN);
	vv_mem_free(p[N - 1]);
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

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[PLACE_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	place_write(path, text, strlen(text));
}

/* Memory that the kernel can take back is left; a group without any is not one without a limit. */
static void test_group(void)
{
	char folder[PLACE_MAX];

	place_path(folder, "group");
	place_make_dir(folder);
	CHECK(vv_mem_left_in_group(folder) == UINT64_MAX);
	write_file(folder, "memory.max", "max\n");
	write_file(folder, "memory.current", "1000\n");
	write_file(folder, "memory.stat", "anon 100\ninactive_file 300\nactive_file 400\nslab_reclaimable 50\n");
	CHECK(vv_mem_left_in_group(folder) == UINT64_MAX);
	write_file(folder, "memory.max", "1000\n");
	CHECK_EQ(vv_mem_left_in_group(folder), 750);
	write_file(folder, "memory.stat", "anon 1000\n");
	CHECK_EQ(vv_mem_left_in_group(folder), 1);
}

int main(void)
{
	test_new();
	test_grow();
	test_overflow();
	test_strings();
	test_fail_at();
	test_large();
	test_advised();
	test_goes_back();
	test_goes_back_crowded();
	test_pages();
	test_group();
	return 0;
}
