/* Without a descriptor for the files of an epoch a restart says so: it does not go back to an older one that needs fewer. With one or
 * two it succeeds: it opens no more layers at once than it may. */
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <sys/resource.h>
#include <unistd.h>
#include <varve/varve.h>

enum { LEN = 1 << 20, PAGE = 4096, EPOCHS = 60, CHANGES = 6 };

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* The lowest number that no descriptor has: with this as the limit none can be opened. */
static rlim_t lowest_free(void)
{
	int fd = dup(0);

	CHECK(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

static void lay_down(const char *store, uint8_t *p)
{
	uint64_t state = 3;
	varve *v = NULL;

	gen_bytes(&state, p, LEN);
	ok(varve_open(store, "L", "codec=none", &v));
	ok(varve_protect(v, "p", p, LEN));
	for (int e = 0; e < EPOCHS; e++) {
		ok(settle_checkpoint(v));
		for (int i = 0; e + 1 < EPOCHS && i < CHANGES; i++)
			gen_bytes(&state, p + gen_below(&state, LEN / PAGE) * PAGE, PAGE);
	}
	ok(varve_close(v));
}

/* Returns what varve_restart does, with descriptors below a limit that allows so many more. */
static int restart(const char *store, rlim_t more, uint8_t *to)
{
	struct rlimit all, few;
	varve *v = NULL;
	int rc;

	ok(varve_open(store, "L", "", &v));
	ok(varve_protect(v, "p", to, LEN));
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = (struct rlimit){ lowest_free() + more, all.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	rc = varve_restart(v, VARVE_LATEST);
	if (rc == 1)
		CHECK_EQ(varve_epoch(v), EPOCHS);
	else if (rc != VARVE_ENOMEM || !strstr(varve_last_error(), "open files"))
		ok(rc < 0 ? rc : -1);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &all), 0);
	if (rc < 0)
		CHECK_EQ(varve_restart(v, VARVE_LATEST), 1); /* the same session, once there are enough */
	ok(varve_close(v));
	return rc;
}

int main(void)
{
	uint8_t *p = malloc(LEN), *to = malloc(LEN);
	char store[PLACE_MAX];
	size_t refused = 0;

	CHECK(p && to);
	place_path(store, "store");
	lay_down(store, p);
	for (rlim_t more = 0; more <= 160; more += more < 24 ? 1 : 8) {
		memset(to, 1, LEN);
		refused += restart(store, more, to) < 0;
		CHECK(memcmp(to, p, LEN) == 0);
	}
	CHECK(refused > 0);
	place_remove(store);
	free(p);
	free(to);
	return 0;
}
