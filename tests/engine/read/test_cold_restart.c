// ctest: COST 2
/* Restarts from files that are not in memory: single pages of many layers, which are touched where they are mapped, stretches that lie apart, which are read, and
 * layers that are wanted as a whole. Damage is found there, too, and a file that was cut short is an error. Where the page cache cannot be emptied, in memory, the
 * same is done without that. */
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
static void lay_down(const char *store, const char *name, size_t run)
{
	uint64_t state = run;
	varve *v = NULL;

	gen_bytes(&state, memory, SIZE);
	ok(varve_open(store, name, "mode=sync codec=none log=error", &v));
	ok(varve_protect(v, "p", memory, SIZE));
	for (int e = 0; e < EPOCHS; e++) {
		for (size_t i = 0; e && i < PAGES / 16 / run; i++)
			gen_bytes(&state, memory + gen_below(&state, PAGES / run) * run * PAGE, run * PAGE);
		ok(varve_checkpoint(v));
	}
	ok(varve_close(v));
	memcpy(want, memory, SIZE);
}

static void layer_path(char *out, size_t cap, const char *store, const char *name, int epoch)
{
	snprintf(out, cap, "%s/%s/00000000/%010d.r0.layer", store, name, epoch);
}

static bool is_in_memory(int fd, size_t n)
{
	unsigned char there[SIZE / PAGE * 2] = { 0 };
	void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	size_t left = 0;

	CHECK(p != MAP_FAILED && n / PAGE < sizeof(there) && mincore(p, n, there) == 0);
	munmap(p, n);
	for (size_t i = 0; i < (n + PAGE - 1) / PAGE; i++)
		left += there[i] & 1;
	return left > 0;
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
		emptied &= !is_in_memory(fd, (size_t)st.st_size);
		close(fd);
	}
}

static int restart(const char *store, const char *name)
{
	varve *v = NULL;
	int rc;

	memset(memory, 0xa5, SIZE);
	empty_cache(store, name);
	ok(varve_open(store, name, "log=error", &v));
	rc = varve_restart_region(v, EPOCHS, "p", memory, SIZE);
	varve_close(v);
	return rc;
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
	memory = malloc(SIZE);
	want = malloc(SIZE);
	CHECK(memory && want);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		char name[20];

		snprintf(name, sizeof(name), "r%zu", runs[i]);
		lay_down(store, name, runs[i]);
		ok(restart(store, name));
		CHECK(memcmp(memory, want, SIZE) == 0);
		check_damage(store, name);
	}
	place_remove(store);
	free(memory);
	free(want);
	if (!emptied)
		printf("the page cache could not be emptied here\n");
	return 0;
}
