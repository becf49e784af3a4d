// ctest: TIMEOUT 120
/* mremap of memory of which regions have a part: they begin and end inside pages. The kernel refuses more than one mapping, and watching or fencing the whole pages of
 * a region makes several of one. So the program must find one mapping, as without varve, and the epochs before and after must be exact. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 1 << 16 /* of any system */, LEN = 16 * PAGE };

static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest", NULL };
static const char *const buffers[] = { "buffer=32KiB", "buffer=100%", "mode=sync", NULL };

/* Two regions in one mapping; the second is compared, never watched, so that its fence is of another kind. */
static const struct area {
	const char *name;
	size_t at, len;
} areas[] = { { "a", 100, 6 * PAGE }, { "b", LEN / 2 + 8, LEN / 2 - PAGE / 3 } };
enum { AREAS = sizeof(areas) / sizeof(areas[0]) };

struct run {
	varve *v;
	char store[PLACE_MAX];
	uint8_t *p, copy[LEN], read[LEN];
	uint64_t epoch, seed;
};

/* ---- ways to call mremap: where the bytes are then */

static uint8_t *reserve(size_t n)
{
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

static uint8_t *grow(uint8_t *p)
{
	return mremap(p, LEN, 2 * LEN, MREMAP_MAYMOVE);
}

static uint8_t *grow_in_place(uint8_t *p)
{
	return mremap(p, LEN, 2 * LEN, 0);
}

static uint8_t *move(uint8_t *p)
{
	return mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, reserve(LEN));
}

static uint8_t *move_to_more(uint8_t *p)
{
	return mremap(p, LEN, 2 * LEN, MREMAP_MAYMOVE | MREMAP_FIXED, reserve(2 * LEN));
}

/* And back again: each step is a part of the mapping, with a border of a region in it. */
static uint8_t *move_parts(uint8_t *p)
{
	enum { LOW = 5 * PAGE, HIGH = LEN - LOW };
	uint8_t *to = reserve(2 * LEN);

	MUST(mremap(p + LOW, HIGH, HIGH + PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + LOW) == to + LOW);
	return mremap(p, LOW, LOW, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to ? to : MAP_FAILED;
}

/* Nobody takes the addresses behind it, where it is to grow. */
static uint8_t *get(void)
{
	uint8_t *p = reserve(2 * LEN);

	MUST(mmap(p + LEN, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + LEN);
	return p;
}

static const struct way {
	const char *name;
	uint8_t *(*call)(uint8_t *p);
} ways[] = { { "grown", grow },		     { "grown in place", grow_in_place }, { "moved", move },
	     { "moved and grown", move_to_more }, { "moved in parts", move_parts } };

/* ---- epochs */

static void take(struct run *u, bool wait)
{
	memcpy(u->copy, u->p, LEN);
	MUST(varve_checkpoint(u->v) == 0);
	u->epoch++;
	if (wait)
		MUST(varve_wait(u->v, u->epoch) == 0);
}

static void check(struct run *u)
{
	MUST(varve_wait(u->v, u->epoch) == 0);
	for (size_t i = 0; i < AREAS; i++) {
		MUST(varve_restart_region(u->v, u->epoch, areas[i].name, u->read, areas[i].len) == 0);
		MUST(memcmp(u->read, u->copy + areas[i].at, areas[i].len) == 0);
	}
}

static void protect(struct run *u)
{
	for (size_t i = 0; i < AREAS; i++)
		MUST(varve_protect(u->v, areas[i].name, u->p + areas[i].at, areas[i].len) == 0);
	MUST(varve_untrack(u->v, "b") == 0);
}

static bool begin(struct run *u, const char *tracker, const char *more)
{
	char options[200];
	int rc;

	*u = (struct run){ .p = get(), .seed = 3 };
	snprintf(options, sizeof(options), "tracker=%s log=warn codec=none %s", tracker, more);
	rc = varve_open(place_path(u->store, "store"), "run", options, &u->v);
	MUST(rc == 0 || rc == VARVE_ENOTSUP);
	return rc == 0;
}

/* A few bytes here and there, the ends among them. */
static void scribble(struct run *u)
{
	for (size_t at = 0; at < LEN; at += 3 * PAGE)
		u->p[at + 200] ^= 0x5a;
	u->p[LEN - 1]++;
	u->p[LEN - PAGE / 3]++;
}

/* fresh: the first checkpoint comes before the first write. */
static void remapped(const struct way *w, const char *tracker, const char *more, bool fresh, bool wait)
{
	static struct run u;

	must_begin("%s, %s, %s, %s, %s", w->name, tracker, more, fresh ? "fresh" : "written", wait ? "stored" : "being stored");
	if (begin(&u, tracker, more)) {
		protect(&u);
		for (int e = 0; e < 3; e++) {
			if (e == 0 && !fresh)
				gen_bytes(&u.seed, u.p, LEN);
			take(&u, true);
			scribble(&u);
		}
		if (fresh)
			gen_bytes(&u.seed, u.p, LEN);
		take(&u, wait);
		MUST(munmap(u.p + LEN, LEN) == 0);
		u.p = w->call(u.p);
		MUST(u.p != MAP_FAILED && memcmp(u.p, u.copy, LEN) == 0);
		check(&u);
		if (w->call != grow_in_place)
			protect(&u);
		for (int e = 0; e < 3; e++) {
			scribble(&u);
			take(&u, false);
			check(&u);
		}
		MUST(varve_close(u.v) == 0);
	}
	munmap(u.p, LEN);
	place_remove(u.store);
}

int main(void)
{
	if (dlsym(RTLD_DEFAULT, "mremap") == dlsym(RTLD_NEXT, "mremap"))
		SKIP("this build does not stand in front of the C library");
	for (const char *const *t = trackers; *t; t++)
		for (const char *const *b = buffers; *b; b++)
			for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
				for (int k = 0; k < 4; k++)
					remapped(&ways[i], *t, *b, k & 1, k & 2);
	return 0;
}
