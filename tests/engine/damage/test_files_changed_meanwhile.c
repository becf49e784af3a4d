// ctest: TIMEOUT 120 COST 9
/* Restarts beside somebody who cuts the layers short, writes over them, and puts back what was there: the program gets the bytes of an epoch, or an error. */
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve.h>

enum { LEN = 6 << 20, EPOCHS = 4, CHANGES = 900, ROUNDS = 400, WIDTH = 64 << 10 };

static char store[PLACE_MAX];
static uint8_t *epoch[EPOCHS + 1], *now;

static void path_of(int e, char out[2 * PLACE_MAX])
{
	snprintf(out, 2 * PLACE_MAX, "%s/L/00000000/%010d.r0.layer", store, e);
}

static void lay_down(const char *options)
{
	uint64_t state = 1;
	varve *v = NULL;

	gen_bytes(&state, now, LEN);
	CHECK_EQ(varve_open(store, "L", options, &v), 0);
	CHECK_EQ(varve_protect(v, "p", now, LEN), 0);
	for (int e = 1; e <= EPOCHS; e++) {
		for (int i = 0; e > 1 && i < CHANGES; i++)
			gen_bytes(&state, now + gen_below(&state, LEN - 64), 64);
		CHECK_EQ(varve_checkpoint(v), 0);
		CHECK(varve_wait(v, (uint64_t)e) >= 0);
		memcpy(epoch[e], now, LEN);
	}
	CHECK_EQ(varve_close(v), 0);
}

/* Until it is killed. What it leaves behind is nobody's concern. */
static void meddle(uint64_t state)
{
	for (;; usleep((useconds_t)gen_below(&state, 200))) {
		char path[2 * PLACE_MAX];
		uint8_t *all, junk[WIDTH];
		size_t n, at;
		int fd;

		path_of(1 + (int)gen_below(&state, EPOCHS), path);
		all = place_read(path, &n);
		at = gen_below(&state, n > WIDTH ? n - WIDTH : 1);
		fd = open(path, O_RDWR);
		gen_bytes(&state, junk, sizeof(junk));
		if (gen_below(&state, 2)) {
			CHECK_EQ(ftruncate(fd, (off_t)at), 0);
			CHECK_EQ(pwrite(fd, all + at, n - at, (off_t)at), n - at);
		} else {
			CHECK_EQ(pwrite(fd, junk, n - at < WIDTH ? n - at : WIDTH, (off_t)at), n - at < WIDTH ? n - at : WIDTH);
			CHECK_EQ(pwrite(fd, all + at, n - at < WIDTH ? n - at : WIDTH, (off_t)at), n - at < WIDTH ? n - at : WIDTH);
		}
		close(fd);
		free(all);
	}
}

/* Is it there? */
static bool restart(const char *options, uint64_t e)
{
	varve *v = NULL;
	int rc;

	memset(now, 0x5a, LEN);
	rc = varve_open(store, "L", options, &v);
	if (rc == 0)
		rc = varve_protect(v, "p", now, LEN);
	if (rc == 0)
		rc = varve_restart(v, e);
	CHECK(rc >= 0 || varve_last_error()[0]);
	CHECK(rc <= 0 || memcmp(now, epoch[e], LEN) == 0);
	if (v)
		varve_close(v);
	return rc > 0;
}

static void race(const char *name, const char *options, int rounds)
{
	uint64_t state = 7;
	size_t there = 0;
	pid_t other;

	lay_down(options);
	for (uint64_t e = 1; e <= EPOCHS; e++)
		CHECK(restart(options, e));
	other = fork();
	CHECK(other >= 0);
	if (other == 0)
		meddle(state);
	for (int i = 0; i < rounds; i++)
		there += restart(options, 1 + gen_below(&state, EPOCHS));
	CHECK_EQ(kill(other, SIGKILL), 0);
	CHECK_EQ(waitpid(other, NULL, 0), other);
	printf("%s: %zu of %d restarts\n", name, there, rounds);
}

static void race_in_memory(const char *name, const char *options)
{
	place_path(store, name);
	race(name, options, ROUNDS);
}

/* In the build folder, which is on a disk. */
static void race_on_disk(void)
{
	char folder[] = "changed-XXXXXX";

	CHECK(mkdtemp(folder) != NULL);
	snprintf(store, sizeof(store), "%s", folder);
	race("direct", "codec=none io=direct", ROUNDS / 8);
	place_remove(folder);
}

int main(void)
{
	for (int e = 1; e <= EPOCHS; e++)
		CHECK((epoch[e] = malloc(LEN)));
	CHECK((now = malloc(LEN)));
	race_in_memory("pages", "codec=none");
	race_in_memory("grains", "codec=none grain=128");
	race_in_memory("odd", "codec=none chunk=1000");
	race_on_disk();
	return 0;
}
