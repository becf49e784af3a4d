// Fences leave mappings to the program: of the some 65 thousand that a process may have they use as many as leave it a reserve, and the count of those is right after any
// series of shuts and opens.
#include "base/err.h"
#include "support/gen.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include "track/protected_range.h"
#include "vv_test.h"
#include <sys/mman.h>

enum { SPARE = 3000, MANY = 1 << 20 };

static size_t page;

static void no_ask(void *arg, uintptr_t at)
{
	(void)arg, (void)at;
	CHECK(!"nobody writes");
}

static size_t maps_now(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	size_t n = 0;
	int c;

	CHECK(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void program_maps(void)
{
	static void *p[SPARE];

	for (int i = 0; i < SPARE; i++) { /* neighbours differ, so that they are not one */
		p[i] = mmap(NULL, page, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p[i] != MAP_FAILED);
	}
	for (int i = 0; i < SPARE; i++)
		CHECK_EQ(munmap(p[i], page), 0);
}

/* Every second page opens, until there is no room; the rest can be opened all at once, and then everything begins anew. */
static void test_reserve(void)
{
	size_t room = vv_memory_map_room(), pages = 2 * room, opened[2] = { 0 };
	struct vv_write_protect *f;
	uintptr_t lo;
	void *p;

	if (pages > MANY)
		return; /* that would take long */
	p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(p != MAP_FAILED);
	lo = (uintptr_t)p;
	CHECK_EQ(vv_write_protect_new(VV_WRITE_PROTECT_MPROTECT, no_ask, NULL, &f), 0);
	CHECK_EQ(vv_write_protect_add(f, lo, lo + pages * page), 0);
	for (int round = 0; round < 2; round++) {
		size_t before = maps_now();
		int rc = 0;

		CHECK_EQ(vv_write_protect_enable(f, lo, lo + pages * page), 0);
		for (size_t i = 1; rc == 0 && i < pages; i += 2) {
			rc = vv_write_protect_disable(f, lo + i * page, lo + (i + 1) * page);
			opened[round] += rc == 0;
		}
		CHECK_EQ(rc, VV_ENOMEM);
		CHECK(maps_now() - before > room / 2 && maps_now() - before < room + 8);
		program_maps();
		CHECK_EQ(vv_write_protect_disable(f, lo + page, lo + 2 * page), 0); /* open already */
		CHECK_EQ(vv_write_protect_disable(f, lo, lo + page), 0);            /* makes fewer of them */
		vv_err_clear();
		CHECK_EQ(vv_write_protect_disable(f, lo, lo + pages * page), 0);
		CHECK(maps_now() < before + 8);
	}
	CHECK_EQ(opened[0], opened[1]);
	for (size_t i = 0; i < opened[0] + 1; i++) /* the other way round: what is open is shut here and there */
		if (vv_write_protect_enable(f, lo + 2 * i * page, lo + (2 * i + 1) * page) < 0) {
			CHECK(strstr(vv_err_last(), "vm.max_map_count"));
			program_maps();
			break;
		}
	vv_write_protect_free(f);
	munmap(p, pages * page);
}

/* What vv_protected_range_borders says, against counting. */
static void test_borders(void)
{
	enum { N = 200, ROUNDS = 20000 };
	uintptr_t lo = 1 << 30;
	struct vv_protected_range *r = vv_protected_range_new(lo, lo + N * page, NULL);
	bool on[N + 2] = { false };
	uint64_t state = 3;
	long borders = 0;

	CHECK(r);
	for (int round = 0; round < ROUNDS; round++) {
		size_t a = (size_t)gen_below(&state, N), b = a + 1 + (size_t)gen_below(&state, round % 3 ? 3 : N), n = 0;
		bool what = gen_below(&state, 2);

		b = b < N ? b : N;
		borders += vv_protected_range_borders(r, VV_PROTECTED_RANGE_SET, lo + a * page, lo + b * page, what);
		vv_protected_range_set(r, VV_PROTECTED_RANGE_SET, lo + a * page, lo + b * page, what);
		for (size_t i = a; i < b; i++)
			on[i + 1] = what;
		for (size_t i = 0; i <= N; i++)
			n += on[i] != on[i + 1];
		CHECK_EQ((size_t)borders, n);
	}
	free(r);
}

int main(void)
{
	page = vv_memory_page();
	test_borders();
	test_reserve();
	return 0;
}
