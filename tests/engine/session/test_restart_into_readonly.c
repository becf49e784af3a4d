// ctest: MODES COST 2
/* Memory that the program has shut by mprotect: a restart fills it all the same, and leaves every mapping as it was, whether it succeeds or fails. What cannot be
 * opened is named, page by page, and nothing else is left open. */
#include "support/coded.h"
#include "support/gen.h"
#include "support/hosts.h"
#include "support/settle.h"
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

enum { LEN = 64, A = 3, B = 40, END = 61 }; /* in pages: of the memory; region a is A..B, region b B..END, both beside pages by a few bytes */
enum { TEXT = 16384 };

static size_t page;
static uint8_t *memory, *want;

static uint8_t *at(size_t pages)
{
	return memory + pages * page;
}

static void set(size_t first, size_t n, int rights)
{
	MUST(mprotect(at(first), n * page, rights) == 0);
}

/* The mappings of the memory, as the kernel tells them. */
static void tell(char out[TEXT])
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[600];
	size_t n = 0;

	MUST(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		uintptr_t lo, hi;
		char mode[8];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &lo, &hi, mode) != 3 || hi <= (uintptr_t)memory || lo >= (uintptr_t)at(LEN))
			continue;
		lo = lo < (uintptr_t)memory ? (uintptr_t)memory : lo;
		hi = hi > (uintptr_t)at(LEN) ? (uintptr_t)at(LEN) : hi;
		n += (size_t)snprintf(out + n, TEXT - n, "%" PRIxPTR "-%" PRIxPTR " %s\n", lo, hi, mode);
		MUST(n < TEXT);
	}
	fclose(f);
}

/* Where nobody else maps anything: what is unmapped there stays so. */
static void map(void)
{
	memory = mmap((void *)(uintptr_t)0x300000000000, LEN * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	MUST(memory == (void *)(uintptr_t)0x300000000000);
}

static varve *begin(const char *store, const char *options)
{
	varve *v = NULL;

	MUST(varve_open(store, "L", options, &v) == 0);
	MUST(varve_protect(v, "a", at(A) + 9, (B - A) * page - 8) == 0);
	MUST(varve_protect(v, "b", at(B) + 1, (END - B) * page - 100) == 0);
	return v;
}

/* Some pages are zeros, some are as before. */
static void lay_down(const char *store, const char *options)
{
	uint64_t state = 5;
	varve *v;

	map();
	v = begin(store, options);
	for (int i = 0; i < 3; i++) {
		gen_text(&state, memory, LEN * page / 2);
		gen_bytes(&state, at(LEN / 2 + 5 * (size_t)i), 20 * page - 7);
		memset(at(B + 2), 0, 3 * page);
		MUST(settle_checkpoint(v) == 0);
	}
	memcpy(want, memory, LEN * page);
	MUST(varve_close(v) == 0);
	munmap(memory, LEN * page);
}

static void check(bool whole)
{
	MUST(mprotect(memory, LEN * page, PROT_READ) == 0);
	MUST(memcmp(at(A) + 9, want + A * page + 9, (B - A) * page - 8) == 0);
	MUST(!whole || memcmp(at(B) + 1, want + B * page + 1, (END - B) * page - 100) == 0);
	MUST(*at(A) == 0xee && *(at(END) - 1) == 0xee);
}

/* As programs shut memory, in one way after the other. */
static void shut(int how)
{
	static const int rights[] = { PROT_READ, PROT_NONE, PROT_READ | PROT_EXEC, PROT_READ };
	uint64_t state = 100 + (uint64_t)how;

	memset(memory, 0xee, LEN * page);
	if (how < 4)
		set(10, 7, rights[how]);
	if (how == 3) { /* all of a region, and more */
		set(A, END - A, PROT_READ);
		set(0, 1, PROT_NONE);
	}
	for (int i = 0; how >= 4 && i < 30; i++)
		set((size_t)(gen_next(&state) % LEN), 1, rights[gen_next(&state) % 4]);
}

enum { HOW = 8 };

static void filled(const char *options)
{
	static char before[TEXT], after[TEXT];
	char store[PLACE_MAX];

	place_path(store, "filled");
	lay_down(store, options);
	for (int how = 0; how < HOW; how++)
		for (int by_name = 0; by_name < 2; by_name++) {
			varve *v;

			must_begin("%s: way %d%s", options, how, by_name ? ", a region by its name" : "");
			map();
			v = begin(store, options);
			shut(how);
			tell(before);
			if (by_name)
				MUST(varve_restart_region(v, 3, "a", at(A) + 9, (B - A) * page - 8) == 0);
			else
				MUST(varve_restart(v, how ? 3 : VARVE_LATEST) == 1);
			tell(after);
			MUST(strcmp(before, after) == 0);
			check(!by_name);
			set(0, LEN, PROT_READ | PROT_WRITE);
			memory[LEN / 2 * page] ^= 1;
			MUST(settle_checkpoint(v) == 0); /* and it goes on */
			MUST(varve_restart(v, 3) == 1);
			MUST(varve_close(v) == 0);
			munmap(memory, LEN * page);
		}
	place_remove(store);
}

/* ---- what fails */

static void refused(int rc, const char *region, const uint8_t *lo, size_t pages, const char *why)
{
	char words[200];

	snprintf(words, sizeof(words), ": %zu bytes at %p %s", pages * page, (const void *)lo, why);
	MUST(rc == VARVE_EINVAL && strstr(varve_last_error(), region) && strstr(varve_last_error(), words));
}

static void hopeless(const char *options)
{
	int fd = memfd_create("shared", MFD_CLOEXEC);
	static char before[TEXT], after[TEXT];
	char store[PLACE_MAX];
	varve *v;

	must_begin("%s: what cannot be opened", options);
	place_path(store, "hopeless");
	lay_down(store, options);
	map();
	v = begin(store, options);
	set(10, 7, PROT_READ);
	munmap(at(50), 2 * page);
	tell(before);
	refused(varve_restart(v, VARVE_LATEST), "region 'b'", at(50), 2, "are not mapped");
	refused(varve_restart_region(v, 1, "b", at(B) + 1, (END - B) * page - 100), "region 'b'", at(50), 2, "are not mapped");
	tell(after);
	MUST(strcmp(before, after) == 0);
	MUST(fd >= 0 && ftruncate(fd, (off_t)(2 * page)) == 0);
	MUST(mmap(at(50), 2 * page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == at(50)); /* others see it */
	tell(before);
	refused(varve_restart(v, VARVE_LATEST), "region 'b'", at(50), 2, "may not be written");
	tell(after);
	MUST(strcmp(before, after) == 0);
	MUST(*at(50) == 0);
	MUST(mmap(at(50), 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at(50));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(varve_close(v) == 0);
	munmap(memory, LEN * page);
	close(fd);
	place_remove(store);
}

/* Found when some of it is there already. */
static void damaged(const char *options)
{
	static char before[TEXT], after[TEXT];
	char store[PLACE_MAX], path[PLACE_MAX + 64];
	uint8_t *layer;
	size_t n;
	varve *v;

	must_begin("%s: a layer is damaged", options);
	place_path(store, "damaged");
	lay_down(store, options);
	snprintf(path, sizeof(path), "%s/L/00000000/0000000003.r0.layer", store);
	layer = place_read(path, &n);
	layer[n / 2] ^= 0x10;
	place_write(path, layer, n);
	free(layer);
	map();
	v = begin(store, options);
	set(10, 7, PROT_READ);
	set(45, 9, PROT_NONE);
	tell(before);
	MUST(varve_restart(v, 3) == VARVE_EDAMAGED);
	tell(after);
	MUST(strcmp(before, after) == 0);
	MUST(varve_restart(v, VARVE_LATEST) == 1 && varve_epoch(v) == 2);
	tell(after);
	MUST(strcmp(before, after) == 0);
	MUST(varve_close(v) == 0);
	munmap(memory, LEN * page);
	place_remove(store);
}

/* ---- another session has write-protected what this one fills: its epoch holds what was there before */

static void write_protected(const char *options)
{
	uint8_t *copy = malloc(LEN * page), *got = malloc(LEN * page);
	static char before[TEXT], after[TEXT];
	char store[PLACE_MAX];
	varve *v, *other = NULL;
	uint64_t state = 8;

	must_begin("%s: what another session has fenced", options);
	place_path(store, "fenced");
	lay_down(store, options);
	map();
	v = begin(store, options);
	MUST(varve_open("mem:other", "O", "mode=async tracker=mprotect buffer=0 bandwidth=4MiB codec=none log=error", &other) == 0);
	gen_bytes(&state, memory, LEN * page);
	MUST(varve_protect(other, "p", at(20), 30 * page) == 0);
	set(10, 7, PROT_READ);
	set(55, 2, PROT_READ);
	tell(before);
	memcpy(copy, memory, LEN * page);
	MUST(varve_checkpoint(other) == 0);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(at(A) + 9, want + A * page + 9, (B - A) * page - 8) == 0);
	MUST(varve_wait(other, varve_epoch(other)) == 0);
	MUST(varve_restart_region(other, VARVE_LATEST, "p", got, 30 * page) == 0);
	MUST(memcmp(got, copy + 20 * page, 30 * page) == 0);
	MUST(varve_close(other) == 0);
	tell(after);
	MUST(strcmp(before, after) == 0);
	*at(30) = 1; /* nothing is shut that was open */
	MUST(varve_close(v) == 0);
	munmap(memory, LEN * page);
	place_remove(store);
	free(copy);
	free(got);
}

/* ---- ranks, whose bytes come from other ranks' stores */

static bool has_rights(const uint8_t *p, const char *rights)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[600], mode[8] = "";
	uintptr_t lo = 0, hi = 0;

	MUST(f != NULL);
	while (hi <= (uintptr_t)p && fgets(line, sizeof(line), f))
		MUST(sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &lo, &hi, mode) == 3);
	fclose(f);
	return lo <= (uintptr_t)p && (uintptr_t)p < hi && strncmp(mode, rights, 2) == 0;
}

static void restart_shut(const struct varve_comm *comm, void *arg)
{
	const struct hosts *r = arg;
	size_t len = (size_t)PAGES * PAGE, part = len / 2 / page * page;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	varve *v = hosts_open(r, comm);

	MUST(p != MAP_FAILED);
	MUST(varve_protect(v, "p", p, len) == 0);
	MUST(mprotect(p, part, comm->rank ? PROT_READ : PROT_NONE) == 0);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(has_rights(p, comm->rank ? "r-" : "--") && has_rights(p + part, "rw"));
	MUST(mprotect(p, part, PROT_READ) == 0);
	hosts_check(r, r->want, comm->rank, p);
	MUST(varve_close(v) == 0);
	munmap(p, len);
}

static void ranks(uint32_t turn)
{
	struct hosts *r = hosts_new(3, 33 + turn, "mode=sync");

	hosts_go(r, 0, 1, 4);
	r->turn = turn;
	r->want = 4;
	threadcomm_run(3, restart_shut, r);
	hosts_end(r);
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	want = malloc(LEN * page);
	filled("codec=none");
	filled("codec=auto");
	filled(CODED " tracker=mprotect buffer=64KiB");
	filled("grain=128 log=error");
	hopeless("codec=none");
	hopeless(CODED);
	damaged("codec=none");
	damaged(CODED);
	write_protected("codec=none");
	write_protected(CODED);
	ranks(0);
	ranks(1);
	free(want);
	return 0;
}
