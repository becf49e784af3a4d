// ctest: TIMEOUT 120
/* A program that takes rights of a part of its own region away, as guard pages and collectors of garbage do, finds them as it left them after any number of
 * checkpoints, and nothing that it writes is missed. */
#include "support/gen.h"
#include "support/must.h"
#include <inttypes.h>
#include <sys/mman.h>

#pragma weak vv_wrap_find /* a build with a sanitizer has nothing in front of the C library */
extern void *vv_wrap_find(int id);

enum { PAGE = 4096, LEN = 256 * PAGE, FIRST = 100 * PAGE, OWN = 9 * PAGE };

static uint8_t *memory, copy[LEN], got[LEN];
static uint64_t seed = 3;

static void set_rights(int prot)
{
	MUST(mprotect(memory + FIRST, OWN, prot) == 0);
}

static bool has_rights(const char *mode)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t at = (uintptr_t)memory + FIRST, end = at + OWN;
	char line[600];

	MUST(f != NULL);
	while (at < end && fgets(line, sizeof(line), f)) {
		uintptr_t lo, hi;
		char is[8];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &lo, &hi, is) == 3 && lo <= at && at < hi && strncmp(is, mode, 2) == 0)
			at = hi;
	}
	fclose(f);
	return at >= end;
}

static void write_around(void)
{
	for (int i = 0; i < 40; i++) {
		size_t at = (size_t)(gen_next(&seed) % (LEN / PAGE)) * PAGE;

		if (at < FIRST || at >= FIRST + OWN)
			gen_bytes(&seed, memory + at, 64);
	}
}

static void check(varve *v)
{
	MUST(varve_wait(v, varve_epoch(v)) == 0);
	memset(got, 0xee, LEN);
	MUST(varve_restart_region(v, varve_epoch(v), "p", got, LEN) == 0);
	MUST(memcmp(got, copy, LEN) == 0);
}

static void checkpoint(varve *v, const char *mode)
{
	memcpy(copy, memory, LEN);
	MUST(varve_checkpoint(v) == 0);
	write_around(); /* meets the fence, if there is one */
	check(v);
	MUST(!mode || has_rights(mode));
}

static void rights(const char *options)
{
	varve *v = NULL;

	must_begin("rights of its own: %s", options);
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	gen_bytes(&seed, memory, LEN);
	MUST(varve_open("mem:rights", "run", options, &v) == 0);
	MUST(varve_protect(v, "p", memory, LEN) == 0);
	checkpoint(v, NULL);
	for (int round = 0; round < 3; round++) {
		write_around();
		set_rights(PROT_READ);
		for (int epoch = 0; epoch < 3; epoch++)
			checkpoint(v, "r-");
		set_rights(PROT_READ | PROT_WRITE);
		gen_bytes(&seed, memory + FIRST, OWN); /* behind our back, and away again */
		set_rights(PROT_READ);
		checkpoint(v, "r-");
		set_rights(PROT_READ | PROT_WRITE);
		gen_bytes(&seed, memory + FIRST, OWN);
		checkpoint(v, NULL);
		set_rights(PROT_NONE); /* nobody can read it, nor can we */
		MUST(varve_checkpoint(v) < 0 || varve_wait(v, varve_epoch(v)) < 0);
		MUST(has_rights("--"));
		set_rights(PROT_READ | PROT_WRITE);
		checkpoint(v, NULL);
	}
	MUST(varve_close(v) == 0);
	MUST(has_rights("rw"));
	munmap(memory, LEN);
}

int main(void)
{
	static const char *const trackers[] = { "auto", "wpasync", "mprotect", "sigbus", "digest" };
	static const char *const buffers[] = { "0", "64KiB", "100%" };

	if (!vv_wrap_find)
		SKIP("nothing is in front of mprotect here");
	for (size_t t = 0; t < 5; t++)
		for (size_t b = 0; b < 3; b++) {
			char options[200];

			snprintf(options, sizeof(options), "tracker=%s buffer=%s log=error", trackers[t], buffers[b]);
			rights(options);
		}
	rights("tracker=mprotect mode=sync log=error");
	return 0;
}
