// What the kernel says of memory: whole pages, what can be watched, how many more mappings there may be.
#include "track/memory.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t page;

static bool watchable(const char *p, size_t first, size_t end)
{
	return vv_memory_watchable((uintptr_t)p + first * page, (uintptr_t)p + end * page);
}

// Both ranges of pages.
static bool readonly(const char *p, size_t first, size_t end, size_t first2, size_t end2)
{
	struct vv_memory_range r[] = { { (uintptr_t)p + first * page, (uintptr_t)p + end * page, false },
				       { (uintptr_t)p + first2 * page, (uintptr_t)p + end2 * page, false } };

	return vv_memory_are_readonly(r, first == first2 && end == end2 ? 1 : 2);
}

static bool writable(const char *p, size_t first, size_t end)
{
	struct vv_memory_range r = { (uintptr_t)p + first * page, (uintptr_t)p + end * page, false };

	vv_memory_look(&r, 1, vv_memory_is_writable);
	return r.ok;
}

static void test_pages(void)
{
	uintptr_t lo = 1, hi = 1, base = 16 * page;

	CHECK_EQ(vv_memory_page(), page);
	CHECK(!vv_memory_pages((void *)base, 0, &lo, &hi));
	CHECK(!vv_memory_pages((void *)base, page - 1, &lo, &hi));
	CHECK(!vv_memory_pages((void *)(base + 1), 2 * page - 2, &lo, &hi));
	CHECK(!vv_memory_pages((void *)(UINTPTR_MAX - 10), 20, &lo, &hi));
	CHECK(!vv_memory_pages((void *)(UINTPTR_MAX - 10), 5, &lo, &hi));
	CHECK(lo == 1 && hi == 1);
	CHECK(vv_memory_pages((void *)base, page, &lo, &hi));
	CHECK(lo == base && hi == base + page);
	CHECK(vv_memory_pages((void *)(base + 1), 2 * page - 1, &lo, &hi));
	CHECK(lo == base + page && hi == base + 2 * page);
	CHECK(vv_memory_pages((void *)(base - 1), 3 * page, &lo, &hi));
	CHECK(lo == base && hi == base + 2 * page);
}

static void test_watchable(void)
{
	char *p = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *s = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uintptr_t here = (uintptr_t)&p & ~(uintptr_t)(page - 1);

	CHECK(p != MAP_FAILED && s != MAP_FAILED);
	CHECK(watchable(p, 0, 8));
	CHECK(!watchable(s, 0, 1));
	CHECK_EQ(mprotect(p + 2 * page, page, PROT_READ), 0);
	CHECK(!watchable(p, 0, 8) && !watchable(p, 2, 3) && !watchable(p, 1, 3));
	CHECK(watchable(p, 0, 2) && watchable(p, 3, 8));
	CHECK(readonly(p, 2, 3, 2, 3) && !readonly(p, 2, 4, 2, 3) && !readonly(p, 1, 3, 2, 3) && !readonly(p, 2, 3, 6, 7));
	CHECK_EQ(mprotect(p + 3 * page, 2 * page, PROT_READ | PROT_EXEC), 0); /* a mapping of its own */
	CHECK(readonly(p, 2, 5, 2, 5) && readonly(p, 2, 3, 4, 5) && !readonly(p, 2, 3, 4, 6));
	CHECK_EQ(mprotect(p + 3 * page, 2 * page, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(mprotect(p + 2 * page, page, PROT_NONE), 0);
	CHECK(!readonly(p, 2, 3, 2, 3));
	CHECK_EQ(munmap(p + 5 * page, page), 0);
	CHECK(!watchable(p, 5, 6) && !watchable(p, 4, 7) && !watchable(p, 5, 7) && !watchable(p, 4, 6));
	CHECK(watchable(p, 3, 5) && watchable(p, 6, 8));
	CHECK(!vv_memory_watchable(here, here + page));
	munmap(p, 8 * page);
	munmap(s, page);
}

struct seen {
	const char *from;
	char text[200];
	size_t stop; // after so many
};

static bool note(void *arg, uintptr_t lo, uintptr_t hi, const struct vv_memory_map *m)
{
	struct seen *s = arg;
	size_t n = strlen(s->text);

	snprintf(s->text + n, sizeof(s->text) - n, "%zu-%zu%.2s ", (size_t)(lo - (uintptr_t)s->from) / page, (size_t)(hi - (uintptr_t)s->from) / page, m ? m->mode : "");
	return --s->stop > 0;
}

// Ranges in pages, in pairs that end with 0, 0: what is told of them.
static const char *walk(const char *p, const size_t *pages, size_t stop)
{
	static struct seen s;
	struct vv_memory_range r[8];
	size_t n = 0;

	s = (struct seen){ .from = p, .stop = stop };
	for (; pages[1]; pages += 2, n++)
		r[n] = (struct vv_memory_range){ (uintptr_t)p + pages[0] * page + 5, (uintptr_t)p + pages[1] * page - 5, false };
	vv_memory_walk(r, vv_memory_tidy(r, n), note, &s);
	return s.text;
}

#define WALK(p, stop, ...) walk(p, (const size_t[]){ __VA_ARGS__, 0, 0 }, stop)

// Stretches of mappings, and of none, before, between and behind them.
static void test_walk(void)
{
	char *p = mmap((void *)(uintptr_t)0x300000000000, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(p == (void *)(uintptr_t)0x300000000000);
	CHECK_EQ(munmap(p, 2 * page) | munmap(p + 6 * page, 2 * page) | munmap(p + 14 * page, 2 * page), 0);
	CHECK_EQ(mprotect(p + 3 * page, page, PROT_READ) | mprotect(p + 10 * page, page, PROT_NONE), 0);
	CHECK(strcmp(WALK(p, 99, 0, 16), "0-2 2-3rw 3-4r- 4-6rw 6-8 8-10rw 10-11-- 11-14rw 14-16 ") == 0);
	CHECK(strcmp(WALK(p, 3, 0, 16), "0-2 2-3rw 3-4r- ") == 0);
	CHECK(strcmp(WALK(p, 99, 3, 4), "3-4r- ") == 0);
	CHECK(strcmp(WALK(p, 99, 0, 1, 6, 7, 15, 16), "0-1 6-7 15-16 ") == 0);
	CHECK(strcmp(WALK(p, 99, 9, 12, 3, 5, 2, 3), "2-3rw 3-4r- 4-5rw 9-10rw 10-11-- 11-12rw ") == 0);
	CHECK(strcmp(WALK(p, 99, 9, 12, 10, 11, 4, 5, 10, 13), "4-5rw 9-10rw 10-11-- 11-13rw ") == 0);
	vv_memory_walk(NULL, 0, note, NULL);
	CHECK_EQ(munmap(p, 16 * page), 0);
}

static char data[1 << 17] = "of the program's image", zeros[1 << 17];

// The variables of a program are mapped from its file, and can be watched; those of other files cannot.
static void test_image(void)
{
	char path[PLACE_MAX];
	uintptr_t lo, hi;
	char *p;
	int fd;

	CHECK(vv_memory_pages(data, sizeof(data), &lo, &hi) && vv_memory_watchable(lo, hi));
	CHECK(vv_memory_pages(zeros, sizeof(zeros), &lo, &hi) && vv_memory_watchable(lo, hi));
	fd = memfd_create("of a file", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)page) == 0);
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && !watchable(p, 0, 1));
	munmap(p, page);
	close(fd);
	fd = open(place_path(path, "data"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)page) == 0);
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && !watchable(p, 0, 1));
	munmap(p, page);
	close(fd);
	unlink(path);
}

// Large pages have no name that tells: they may be of any file of hugetlbfs, and of none.
static void test_large(void)
{
	size_t len = 2 << 20;
	int fd = memfd_create("ordinary", MFD_CLOEXEC | MFD_HUGETLB);
	char *p = fd < 0 || ftruncate(fd, (off_t)len) < 0 ? MAP_FAILED : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *q = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	CHECK(p == MAP_FAILED || !watchable(p, 0, len / page));
	CHECK(q == MAP_FAILED || !watchable(q, 0, len / page));
	if (p != MAP_FAILED)
		munmap(p, len);
	if (q != MAP_FAILED)
		munmap(q, len);
	if (fd >= 0)
		close(fd);
}

static void *on_a_thread(void *arg)
{
	uintptr_t here = (uintptr_t)&arg & ~(uintptr_t)(page - 1);

	CHECK(!vv_memory_watchable(here, here + page)); // a stack that has no name
	return arg;
}

// A private mapping of a file, whose name is as long as names get.
static void test_long_name(void)
{
	char dir[PLACE_MAX], path[PATH_MAX], name[200];
	size_t deep = 0;
	char *p;
	int fd;

	place_make_dir(place_path(dir, "deep"));
	CHECK(chdir(dir) == 0);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (; deep < 15; deep++)
		CHECK(mkdir(name, 0700) == 0 && chdir(name) == 0);
	fd = open("rw-s 00000", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)(2 * page)) == 0);
	CHECK(getcwd(path, sizeof(path)) && strlen(path) > 3000);
	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(mprotect(p + page, page, PROT_READ), 0);
	CHECK(writable(p, 0, 1) && !writable(p, 0, 2) && !writable(p, 1, 2));
	CHECK(!watchable(p, 0, 1) && !watchable(p, 0, 2)); // it shows what is written to the file
	munmap(p, 2 * page);
	close(fd);
	unlink("rw-s 00000");
	for (; deep > 0; deep--)
		CHECK(chdir("..") == 0 && rmdir(name) == 0);
	CHECK(chdir("/") == 0 && rmdir(dir) == 0);
}

static void test_room(void)
{
	size_t before = vv_memory_map_room(), after;
	char *p = mmap(NULL, 2000 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED && before > 1000);
	for (size_t i = 1; i < 2000; i += 2)
		CHECK_EQ(mprotect(p + i * page, page, PROT_READ), 0);
	after = vv_memory_map_room();
	CHECK(before - after >= 1990 && before - after < 2010);
	CHECK(watchable(p, 0, 1) && !watchable(p, 1999, 2000) && watchable(p, 1998, 1999));
	munmap(p, 2000 * page);
	CHECK(vv_memory_map_room() + 10 > before);
}

int main(void)
{
	pthread_t thread;

	page = (size_t)sysconf(_SC_PAGESIZE);
	test_pages();
	test_watchable();
	CHECK_EQ(pthread_create(&thread, NULL, on_a_thread, NULL), 0);
	pthread_join(thread, NULL);
	test_walk();
	test_image();
	test_large();
	test_long_name();
	test_room();
	return 0;
}
