/* A session restarts several times, as programs do that find the epoch first and declare its regions then. Between restarts it looks at
 * regions of other epochs, fails, and takes checkpoints. Each restart gives the content of its epoch, and damage in between is found. */
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <sys/stat.h>
#include <varve/varve.h>

enum { LEN = 64 << 10, PAGE = 4096, EPOCHS = 12, STEPS = 400, MOST = 200 };

static uint8_t content[MOST][2][LEN]; /* by epoch */
static size_t length[2] = { LEN, LEN };

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static const char *name(int i)
{
	return i ? "b" : "a";
}

static void declare(varve *v, uint8_t *p[2], bool declared[2], uint64_t *state)
{
	for (int i = 0; i < 2; i++) {
		bool wanted = gen_below(state, 3) > 0;

		if (wanted)
			ok(varve_protect(v, name(i), p[i], length[i]));
		else if (declared[i])
			ok(varve_unprotect(v, name(i)));
		declared[i] = wanted;
	}
}

static void check(uint8_t *p[2], const bool declared[2], uint64_t epoch)
{
	for (int i = 0; i < 2; i++)
		CHECK(!declared[i] || memcmp(p[i], content[epoch][i], LEN) == 0);
}

static uint64_t take(varve *v, uint8_t *p[2], bool declared[2], uint64_t *state)
{
	uint64_t epoch;

	for (int i = 0; i < 2; i++) {
		ok(varve_protect(v, name(i), p[i], LEN));
		declared[i] = true;
		gen_bytes(state, p[i] + gen_below(state, LEN / PAGE) * PAGE, PAGE);
	}
	ok(settle_checkpoint(v));
	epoch = varve_epoch(v);
	CHECK(epoch < MOST);
	for (int i = 0; i < 2; i++)
		memcpy(content[epoch][i], p[i], LEN);
	return epoch;
}

static void look(varve *v, uint64_t epoch)
{
	static uint8_t seen[LEN];
	struct varve_region_info info;

	ok(varve_region(v, epoch, "a", &info));
	CHECK_EQ(info.bytes, LEN);
	ok(varve_restart_region(v, epoch, "b", seen, LEN));
	CHECK(memcmp(seen, content[epoch][1], LEN) == 0);
}

/* A declaration of another size. The session goes on as before. */
static void fail(varve *v, uint8_t *p[2], bool declared[2], uint64_t epoch)
{
	ok(varve_protect(v, "a", p[0], LEN - PAGE));
	CHECK_EQ(varve_restart(v, epoch), VARVE_EMISMATCH);
	ok(varve_unprotect(v, "a"));
	declared[0] = false;
}

static void histories(const char *store, uint8_t *p[2])
{
	bool declared[2] = { false, false };
	uint64_t state = 7, newest = 0, mine = 0;
	varve *v = NULL;

	ok(varve_open(store, "L", "codec=none keep=0", &v));
	for (int i = 0; i < EPOCHS; i++)
		newest = take(v, p, declared, &state);
	for (int step = 0; step < STEPS; step++) {
		uint64_t epoch = 1 + gen_below(&state, newest);

		if (gen_below(&state, 3) && mine)
			epoch = mine; /* again */
		switch (gen_below(&state, 8)) {
		case 0:
			look(v, epoch);
			break;
		case 1:
			fail(v, p, declared, epoch);
			break;
		case 2:
			if (newest + 1 < MOST)
				newest = mine = take(v, p, declared, &state);
			break;
		case 3:
			ok(varve_close(v));
			ok(varve_open(store, "L", "codec=none keep=0", &v));
			declared[0] = declared[1] = false;
			break;
		default:
			declare(v, p, declared, &state);
			memset(p[0], 1, LEN);
			memset(p[1], 1, LEN);
			CHECK_EQ(varve_restart(v, epoch), 1);
			check(p, declared, epoch);
			mine = epoch;
		}
	}
	ok(varve_close(v));
}

/* Changes a byte of its content. */
static void flip(const char *store, uint64_t epoch)
{
	char path[PLACE_MAX + 64];
	uint8_t *layer;
	size_t n;

	snprintf(path, sizeof(path), "%s/M/00000000/%010llu.r0.layer", store, (unsigned long long)epoch);
	layer = place_read(path, &n);
	CHECK(n > 2 * PAGE);
	layer[PAGE + 100] ^= 1;
	CHECK_EQ(chmod(path, 0600), 0);
	place_write(path, layer, n);
	free(layer);
}

/* The first restart finds the epoch, and then its layer is damaged. */
static void damage(const char *store, uint8_t *p[2])
{
	bool declared[2] = { true, true };
	uint64_t state = 9, epoch;
	varve *v = NULL;

	ok(varve_open(store, "M", "codec=none log=error", &v));
	take(v, p, declared, &state);
	take(v, p, declared, &state);
	ok(varve_close(v));
	v = NULL;
	ok(varve_open(store, "M", "codec=none log=error", &v));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	epoch = varve_epoch(v);
	CHECK_EQ(epoch, 2);
	flip(store, epoch);
	for (int i = 0; i < 2; i++)
		ok(varve_protect(v, name(i), p[i], LEN));
	CHECK_EQ(varve_restart(v, epoch), VARVE_EDAMAGED);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK_EQ(varve_epoch(v), 1);
	check(p, declared, 1);
	CHECK_EQ(take(v, p, declared, &state), 3);
	memset(p[0], 1, LEN);
	memset(p[1], 1, LEN);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	check(p, declared, 3);
	ok(varve_close(v));
}

int main(void)
{
	uint8_t *p[2] = { calloc(1, LEN), calloc(1, LEN) };
	char store[PLACE_MAX];

	CHECK(p[0] && p[1]);
	place_path(store, "store");
	histories(store, p);
	damage(store, p);
	place_remove(store);
	free(p[0]);
	free(p[1]);
	return 0;
}
