// ctest: COST 2
/* Restarts from files that are not in memory: single pages of many layers, stretches that lie apart, and layers that are wanted as a whole. These are read past
 * the page cache, and are not in memory afterwards, or touched where they are mapped. Damage is found there, too, and a file that was cut short is an error. Where
 * the page cache cannot be emptied, in memory, the same is done without that. */
#include "support/coded.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <varve/varve.h>

enum { SIZE = 24 << 20, PAGE = 4096, PAGES = SIZE / PAGE, EPOCHS = 12 };

static uint8_t *memory, *want;
static bool emptied = true;

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* `run` pages at a time, 6 % of them between two epochs. */
static void lay_down(const char *store, const char *name, const char *options, size_t run)
{
	void (*fill)(uint64_t *state, void *p, size_t n) = strstr(options, "codec=none") ? gen_bytes : gen_text;
	uint64_t state = run;
	varve *v = NULL;

	fill(&state, memory, SIZE);
	ok(varve_open(store, name, options, &v));
	ok(varve_protect(v, "p", memory, SIZE));
	for (int e = 0; e < EPOCHS; e++) {
		for (size_t i = 0; e && i < PAGES / 16 / run; i++)
			fill(&state, memory + gen_below(&state, PAGES / run) * run * PAGE, run * PAGE);
		ok(varve_checkpoint(v));
	}
	ok(varve_close(v));
	memcpy(want, memory, SIZE);
}

static void layer_path(char *out, size_t cap, const char *store, const char *name, int epoch)
{
	snprintf(out, cap, "%s/%s/00000000/%010d.r0.layer", store, name, epoch);
}

static size_t bytes_in_memory(int fd, size_t n)
{
	unsigned char there[SIZE / PAGE * 2] = { 0 };
	void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	size_t left = 0;

	CHECK(p != MAP_FAILED && n / PAGE < sizeof(there) && mincore(p, n, there) == 0);
	munmap(p, n);
	for (size_t i = 0; i < (n + PAGE - 1) / PAGE; i++)
		left += there[i] & 1;
	return left * PAGE;
}

static void empty_cache(const char *store, const char *name)
{
	for (int e = 1; e <= EPOCHS; e++) {
		char path[PLACE_MAX + 80];
		struct stat st;
		int fd;

		layer_path(path, sizeof(path), store, name, e);
		fd = open(path, O_RDONLY);
		CHECK(fd >= 0 && fstat(fd, &st) == 0 && fsync(fd) == 0);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		emptied &= !bytes_in_memory(fd, (size_t)st.st_size);
		close(fd);
	}
}

static int restart_with(const char *store, const char *name, const char *options)
{
	varve *v = NULL;
	int rc;

	memset(memory, 0xa5, SIZE);
	empty_cache(store, name);
	ok(varve_open(store, name, options, &v));
	rc = varve_restart_region(v, EPOCHS, "p", memory, SIZE);
	varve_close(v);
	return rc;
}

static int restart(const char *store, const char *name)
{
	return restart_with(store, name, "log=error");
}

/* The bytes of the first layer, which is the largest, that a restart leaves in memory. */
static size_t left_in_memory(const char *store, const char *name)
{
	char path[PLACE_MAX + 80];
	size_t left;
	int fd;

	layer_path(path, sizeof(path), store, name, 1);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	left = bytes_in_memory(fd, (size_t)lseek(fd, 0, SEEK_END));
	close(fd);
	return left;
}

static bool has_direct_reads(const char *folder)
{
	char path[PLACE_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/direct", folder);
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	close(fd);
	return fd >= 0;
}

/* To memory at any address, and again when parts of the files are in memory. */
static void check_ways(const char *store, const char *name)
{
	static const char *const ways[] = { "log=error io=auto", "log=error io=direct", "log=error io=buffered threads=1" };
	bool able = emptied && has_direct_reads(store);
	uint8_t *aligned = memory;

	for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(ways[0]); i++) {
		memory = aligned + (i % 2 ? 24 : 0);
		ok(restart_with(store, name, ways[i / 2]));
		CHECK(memcmp(memory, want, SIZE) == 0);
		if (able)
			CHECK((left_in_memory(store, name) < SIZE / 4) == (i / 2 < 2));
	}
	memory = aligned;
}

/* A byte in each eighth of the first layer: in what is used it is found. The layer is then as it was. */
static void check_damage(const char *store, const char *name)
{
	char path[PLACE_MAX + 80];
	int found = 0;
	uint8_t *bytes;
	size_t n;

	layer_path(path, sizeof(path), store, name, 1);
	bytes = place_read(path, &n);
	for (size_t i = 0; i < 8; i++) {
		size_t at = SIZE / 8 * i + 1234;
		int rc;

		bytes[at] ^= 1;
		place_write(path, bytes, n);
		rc = restart(store, name);
		CHECK(rc >= 0 || (rc == VARVE_EDAMAGED && strstr(varve_last_error(), "0000000001.r0.layer")));
		CHECK(rc < 0 || memcmp(memory, want, SIZE) == 0);
		found += rc < 0;
		bytes[at] ^= 1;
	}
	CHECK(found > 0);
	place_write(path, bytes, n);
	CHECK(truncate(path, SIZE / 2) == 0);
	CHECK(restart(store, name) < 0);
	CHECK(strstr(varve_last_error(), "0000000001.r0.layer"));
	place_write(path, bytes, n);
	ok(restart(store, name));
	CHECK(memcmp(memory, want, SIZE) == 0);
	free(bytes);
}

int main(void)
{
	static const size_t runs[] = { 1, 24, 400 };
	char store[] = "cold.XXXXXX"; /* in the build folder, which is on a disk; other folders of tests are in memory */

	CHECK(mkdtemp(store));
	memory = aligned_alloc(PAGE, SIZE + PAGE);
	want = malloc(SIZE);
	CHECK(memory && want);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		char name[20];

		snprintf(name, sizeof(name), "r%zu", runs[i]);
		lay_down(store, name, "mode=sync codec=none log=error", runs[i]);
		ok(restart(store, name));
		CHECK(memcmp(memory, want, SIZE) == 0);
		check_damage(store, name);
		if (i == 0)
			check_ways(store, name);
	}
	lay_down(store, "default", "buffer=1MiB codec=none log=error", 1);
	check_ways(store, "default");
	lay_down(store, "compressed", "mode=sync log=error " CODED_FAST, 1);
	check_ways(store, "compressed");
	place_remove(store);
	free(memory);
	free(want);
	if (!emptied)
		printf("the page cache could not be emptied here\n");
	return 0;
}
