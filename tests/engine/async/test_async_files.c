// ctest: TIMEOUT 120
/* Regions that are private mappings of a file. What the program has not written itself shows what anybody writes to the file: between epochs, and while one is
 * being stored. No tracker sees that, so such memory is compared. The same of large pages, which are of a file whose name does not tell it. */
#include "support/gen.h"
#include "support/must.h"
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 4096, LEN = 48 * PAGE, LARGE = 2 << 20 };

static uint8_t copy[2 * LARGE], got[2 * LARGE];

static bool begin(const char *options, uint8_t *p, size_t len, varve **v)
{
	int rc = varve_open("mem:files", "run", options, v);

	MUST(rc == 0 || rc == VARVE_ENOTSUP);
	MUST(rc < 0 || varve_protect(*v, "p", p, len) == 0);
	return rc == 0;
}

static void take(varve *v, const uint8_t *p, size_t len)
{
	memcpy(copy, p, len);
	MUST(varve_checkpoint(v) == 0);
}

static void check(varve *v, size_t len)
{
	MUST(varve_wait(v, varve_epoch(v)) == 0);
	memset(got, 0xee, len);
	MUST(varve_restart_region(v, varve_epoch(v), "p", got, len) == 0);
	MUST(memcmp(got, copy, len) == 0);
}

static void write_file(int fd, off_t at, off_t step, char byte)
{
	for (; at < LEN; at += step)
		MUST(pwrite(fd, &byte, 1, at) == 1);
}

static void of_a_file(const char *options)
{
	int fd = memfd_create("varve-test", MFD_CLOEXEC);
	varve *v = NULL;
	uint8_t *p;

	must_begin("a file that is written: %s", options);
	MUST(fd >= 0 && ftruncate(fd, LEN) == 0);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(p != MAP_FAILED);
	if (begin(options, p, LEN, &v)) {
		for (int e = 0; e < 12; e++) {
			p[e * PAGE] = 1; /* this page is the program's from now on */
			write_file(fd, e * PAGE + 9, (off_t)3 * PAGE, (char)(e + 1));
			MUST(p[(e + 3) * PAGE + 9] == e + 1 && p[e * PAGE + 9] != e + 1);
			take(v, p, LEN);
			write_file(fd, e * PAGE + 11, PAGE, (char)(e + 1));
			check(v, LEN);
		}
		MUST(varve_close(v) == 0);
	}
	munmap(p, LEN);
	close(fd);
}

/* Where this system has large pages to spare. */
static void of_large_pages(const char *options)
{
	int fd = memfd_create("varve-test", MFD_CLOEXEC | MFD_HUGETLB);
	uint8_t *p = fd < 0 || ftruncate(fd, 2 * LARGE) < 0 ? MAP_FAILED : mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	size_t len = LARGE + 5 * PAGE; /* a part of the second one */
	uint64_t seed = 5;
	varve *v = NULL;

	must_begin("pages of hugetlbfs: %s", options);
	if (p != MAP_FAILED && begin(options, p, len, &v)) {
		for (int e = 0; e < 5; e++) {
			for (int k = 0; k < (e % 2 ? 3 : 40); k++)
				gen_bytes(&seed, p + gen_below(&seed, len - 16), 16);
			take(v, p, len);
			for (int k = 0; k < 200; k++)
				gen_bytes(&seed, p + gen_below(&seed, len - 16), 16);
			check(v, len);
		}
		MUST(varve_close(v) == 0);
	}
	if (p != MAP_FAILED)
		munmap(p, 2 * LARGE);
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest" };
	static const char *const modes[] = { "buffer=0 granule=4096 block=4096", "buffer=100%", "buffer=64KiB eager=no", "mode=sync" };

	for (size_t t = 0; t < 5; t++)
		for (size_t m = 0; m < 4; m++) {
			char options[200];

			snprintf(options, sizeof(options), "tracker=%s %s log=error", trackers[t], modes[m]);
			of_a_file(options);
			of_large_pages(options);
		}
	return 0;
}
