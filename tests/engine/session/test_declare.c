/* Declarations: many arrays in one call, all or none of them, also where memory runs out; memory that is not mapped is refused, and the first such page named. */
#include "base/mem.h"
#include "support/place.h"
#include "support/settle.h"
#include "track/memory.h"
#include "support/answer.h"
#include "vv_test.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <varve/varve_read.h>

enum { MANY = 10000 };

static double values[MANY], others[MANY];

/* ---- many arrays -------------------------------------------------------------------------------------------------------------- */

static void check_many(void)
{
	static struct varve_array array[MANY];
	static char name[MANY][24];
	static const size_t one = 1;
	const struct varve_stored_region *const *list;
	varve_reader *r = NULL;
	varve *v = NULL;
	double got;
	size_t n;

	for (size_t i = 0; i < MANY; i++) {
		snprintf(name[i], sizeof(name[i]), "x%zu", i);
		array[i] = (struct varve_array){ name[i], &values[i], VARVE_F64, 1, &one };
		values[i] = (double)i + 0.5;
	}
	ok(varve_open("mem:declare", "many", "log=error", &v));
	ok(varve_protect_arrays(v, array, MANY));
	ok(varve_protect_arrays(v, array, MANY)); /* again: the same */
	ok(varve_protect_arrays(v, NULL, 0));
	ok(settle_checkpoint(v));
	ok(varve_reader_open("mem:declare", "many", "log=error", &r));
	ok(varve_reader_regions(r, 1, 0, &list, &n));
	CHECK_EQ(n, MANY);
	for (size_t i = 0; i < MANY; i++)
		CHECK_STR(list[i]->name, name[i]);
	ok(varve_reader_read(r, 1, 0, "x777", 0, 8, &got));
	CHECK(got == 777.5);
	for (size_t i = 0; i < MANY; i += 2) /* some leave, from all over the list */
		ok(varve_unprotect(v, name[i * 7919 % MANY / 2 * 2]));
	ok(settle_checkpoint(v));
	ok(varve_reader_regions(r, 2, 0, &list, &n));
	CHECK_EQ(n, MANY / 2);
	for (size_t i = 0; i < n; i++)
		CHECK_STR(list[i]->name, name[2 * i + 1]);
	ok(varve_reader_close(r));
	ok(varve_close(v));
}

/* ---- all or none -------------------------------------------------------------------------------------------------------------- */

/* The declared regions, by their content in a new epoch. */
static void expect(varve *v, const char *names, double a, double b)
{
	const struct varve_stored_region *const *list;
	char found[200] = "";
	varve_reader *r = NULL;
	double got = 0;
	size_t n;

	ok(settle_checkpoint(v));
	ok(varve_reader_open("mem:declare", "none", "log=error", &r));
	ok(varve_reader_regions(r, VARVE_LATEST, 0, &list, &n));
	for (size_t i = 0; i < n; i++)
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s:%d:%llu ", list[i]->name, (int)list[i]->type,
			 (unsigned long long)list[i]->bytes);
	CHECK_STR(found, names);
	ok(varve_reader_read(r, VARVE_LATEST, 0, "a", 0, 8, &got));
	CHECK(got == a);
	ok(varve_reader_read(r, VARVE_LATEST, 0, "b", 0, 8, &got));
	CHECK(got == b);
	ok(varve_reader_close(r));
}

#define BEFORE "a:10:32 b:0:20000 "

static void check_all_or_none(void)
{
	static const size_t thousand = 1000, forty = 40, four = 4;
	const struct varve_array good[] = { { "c", others, VARVE_F64, 1, &thousand }, { "a", others, VARVE_F64, 1, &thousand },
					    { "b", others + 2, VARVE_BYTES, 1, &forty }, { "d", others, VARVE_I32, 1, &thousand } };
	struct varve_array bad[] = { good[0], good[1], good[2], good[3] };
	varve *v = NULL;
	long k = 0;
	int rc;

	values[0] = 1;
	values[1] = 2;
	others[0] = 3;
	others[2] = 4;
	ok(varve_open("mem:declare", "none", "log=error keep=2 mode=sync", &v));
	ok(varve_protect_array(v, "a", values, VARVE_F64, 1, &four));
	ok(varve_protect(v, "b", values + 1, 20000));
	expect(v, BEFORE, 1, 2);
	FAILS(varve_protect_arrays(v, NULL, 1), VARVE_EINVAL, "arrays are needed");
	bad[3].name = "";
	FAILS(varve_protect_arrays(v, bad, 4), VARVE_EINVAL, "name");
	bad[3].name = "a";
	FAILS(varve_protect_arrays(v, bad, 4), VARVE_EINVAL, "'a' is there twice");
	bad[3] = good[3];
	bad[3].ndim = 0;
	FAILS(varve_protect_arrays(v, bad, 4), VARVE_EINVAL, "'d'");
	bad[3] = good[3];
	bad[3].p = NULL;
	FAILS(varve_protect_arrays(v, bad, 4), VARVE_EINVAL, "'d': no memory");
	expect(v, BEFORE, 1, 2);
	do { /* mode=sync: no other thread takes memory, which would fail there */
		vv_mem_fail_at(++k);
		rc = varve_protect_arrays(v, good, 4);
		vv_mem_fail_at(0);
		if (rc == 0)
			break;
		CHECK_EQ(rc, VARVE_ENOMEM);
		expect(v, BEFORE, 1, 2);
	} while (k < 1000);
	CHECK(k > 10 && k < 1000);
	expect(v, "a:10:8000 b:0:40 c:10:8000 d:5:4000 ", 3, 4);
	ok(varve_close(v));
}

/* A region that cannot become smaller stays as it was. */
static void check_shrunk(void)
{
	static uint8_t wide[3 << 20];
	varve *v = NULL;
	long k = 0;
	int rc;

	ok(varve_open("mem:declare", "shrunk", "log=error chunk=32", &v)); /* many chunks: their lists are large */
	ok(varve_protect(v, "w", wide, sizeof(wide)));
	do {
		wide[k]++;
		ok(settle_checkpoint(v));
		vv_mem_fail_at(++k);
		rc = varve_protect(v, "w", wide, 64);
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VARVE_ENOMEM);
	} while (rc && k < 1000);
	CHECK(k > 2 && k < 1000);
	ok(settle_checkpoint(v));
	ok(varve_close(v));
}

/* ---- memory that is not there ------------------------------------------------------------------------------------------------- */

static void check_unmapped(void)
{
	size_t page = vv_memory_page(), n = 16 * page;
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *file;
	char words[64], path[PLACE_MAX];
	varve *v = NULL;
	int fd = open(place_path(path, "file"), O_RDWR | O_CREAT, 0600);

	CHECK(p != MAP_FAILED && fd >= 0 && ftruncate(fd, (off_t)n) == 0);
	ok(varve_open("mem:declare", "unmapped", "log=error", &v));
	ok(varve_protect(v, "p", p, n));
	CHECK(munmap(p + 5 * page, page) == 0);
	snprintf(words, sizeof(words), "the page at %p is not mapped", (void *)(p + 5 * page));
	FAILS(varve_protect(v, "q", p, n), VARVE_EINVAL, words);
	CHECK(strstr(varve_last_error(), "'q'"));
	FAILS(varve_protect(v, "q", p + 100, 5 * page), VARVE_EINVAL, words);
	FAILS(varve_protect(v, "q", p + 5 * page, 1), VARVE_EINVAL, words);
	FAILS(varve_protect_array(v, "q", p + 3 * page + 7, VARVE_U8, 1, &(size_t){ 2 * page }), VARVE_EINVAL, words);
	ok(varve_protect(v, "q", p + 100, 5 * page - 100));
	ok(varve_protect(v, "q", p + 6 * page, 10 * page));
	ok(varve_protect(v, "q", p + 5 * page, 0));
	FAILS(varve_protect(v, "q", (void *)(UINTPTR_MAX - 100), 50), VARVE_EINVAL, "is not mapped");
	FAILS(varve_protect(v, "q", p, (size_t)-1), VARVE_EINVAL, "");
	CHECK_EQ(varve_unprotect(v, "p"), 0);
	CHECK(mprotect(p, page, PROT_NONE) == 0); /* a guard page is the program's own business */
	ok(varve_protect(v, "q", p, 4 * page));
	file = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(file != MAP_FAILED);
	ok(varve_protect(v, "q", file, n));
	ok(settle_checkpoint(v));
	ok(varve_close(v));
	munmap(file, n);
	munmap(p, n);
	close(fd);
}

/* The cost does not grow with the pages: only mappings are looked at. */
static void check_large(void)
{
	size_t n = (size_t)1 << 40, page = vv_memory_page();
	uint8_t *p = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return;
	CHECK(!vv_memory_first_unmapped(p, n));
	CHECK(munmap(p + n / 4 * 3, page) == 0);
	CHECK(vv_memory_first_unmapped(p, n) == p + n / 4 * 3);
	CHECK(vv_memory_first_unmapped(p + n / 2, n / 2) == p + n / 4 * 3);
	CHECK(!vv_memory_first_unmapped(p, n / 4 * 3));
	munmap(p, n);
}

int main(void)
{
	check_many();
	check_all_or_none();
	check_shrunk();
	check_unmapped();
	check_large();
	return 0;
}
