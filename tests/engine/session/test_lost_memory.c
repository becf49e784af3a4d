// ctest: MODES
/* Memory that is not there, or may not be read or written: an error that names the region, and everything goes on once it is mended.
 * No older epoch is taken instead: it is not the store that is at fault. */
#include "base/mem.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <sys/mman.h>
#include <unistd.h>
#include <varve/varve.h>

enum { LEN = 3 << 20 };

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static void refused(int rc, const char *name, const char *word)
{
	char quoted[64];

	snprintf(quoted, sizeof(quoted), "region '%s'", name);
	if (rc == VARVE_EINVAL && strstr(varve_last_error(), quoted) && strstr(varve_last_error(), word))
		return;
	fprintf(stderr, "%d, not %d, or no '%s' and '%s' in: %s\n", rc, VARVE_EINVAL, quoted, word, varve_last_error());
	exit(1);
}

static uint8_t *map(void)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Where nobody else maps anything: what is unmapped there stays so. */
static uint8_t *map_apart(void)
{
	void *far = (void *)(uintptr_t)0x300000000000;
	uint8_t *p = mmap(far, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(p == far);
	return p;
}

/* ---- restarts */

/* Two epochs of two regions; what the newer one holds of the second is in `want`. */
static void lay_down(const char *store, const char *options, uint8_t *want)
{
	uint8_t *a = map(), *b = map();
	uint64_t state = 3;
	varve *v = NULL;

	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "a", a, LEN));
	ok(varve_protect(v, "b", b, LEN));
	for (int i = 0; i < 2; i++) {
		gen_text(&state, a, LEN);
		gen_text(&state, b, LEN);
		memset(b + LEN / 2, 0, 4096 * 5);
		ok(settle_checkpoint(v));
	}
	memcpy(want, b, LEN);
	ok(varve_close(v));
	munmap(a, LEN);
	munmap(b, LEN);
}

static void restarts(const char *options)
{
	uint8_t *a = map(), *b = map_apart(), *want = map();
	char store[PLACE_MAX];
	varve *v = NULL;

	place_path(store, "restarts");
	lay_down(store, options, want);
	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "a", a, LEN));
	ok(varve_protect(v, "b", b, LEN));
	munmap(b, LEN);
	refused(varve_restart(v, VARVE_LATEST), "b", "mapped");
	CHECK_EQ(varve_epoch(v), 2);
	b = map();
	ok(varve_protect(v, "b", b, LEN));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK_EQ(varve_epoch(v), 2);
	CHECK(memcmp(b, want, LEN) == 0);
	ok(varve_close(v));
	munmap(a, LEN);
	munmap(b, LEN);
	munmap(want, LEN);
	place_remove(store);
}

/* Into memory behind a fence, which a read into it does not ask at. */
static void write_protected(const char *options)
{
	char store[PLACE_MAX];
	uint8_t *p = map(), *want = map();
	uint64_t state = 9;
	varve *v = NULL;

	gen_text(&state, p, LEN);
	memcpy(want, p, LEN);
	ok(varve_open(place_path(store, "fenced"), "L", options, &v));
	ok(varve_protect(v, "p", p, LEN));
	for (int i = 0; i < 2; i++) {
		ok(settle_checkpoint(v));
		p[i]++;
	}
	ok(varve_restart_region(v, 1, "p", p, LEN));
	CHECK(memcmp(p, want, LEN) == 0);
	ok(settle_checkpoint(v));
	memset(p, 0, LEN);
	ok(varve_restart_region(v, VARVE_LATEST, "p", p, LEN));
	CHECK(memcmp(p, want, LEN) == 0);
	ok(varve_close(v));
	munmap(p, LEN);
	munmap(want, LEN);
	place_remove(store);
}

/* ---- checkpoints */

static void checkpoints(const char *options)
{
	uint8_t *good = map(), *bad = map_apart();
	char store[PLACE_MAX];
	uint64_t state = 4;
	varve *v = NULL;

	ok(varve_open(place_path(store, "checkpoints"), "L", options, &v));
	gen_text(&state, good, LEN);
	ok(varve_protect(v, "good", good, LEN));
	ok(varve_protect(v, "bad", bad, LEN));
	munmap(bad, LEN);
	CHECK_EQ(varve_protect(v, "bad", bad, LEN), VARVE_EINVAL); /* and the region is as it was */
	refused(settle_checkpoint(v), "bad", "mapped");
	bad = map_apart();
	ok(varve_protect(v, "bad", bad, LEN));
	gen_text(&state, bad, LEN);
	ok(settle_checkpoint(v));
	munmap(bad + LEN / 2, 4096);
	refused(settle_checkpoint(v), "bad", "mapped");
	ok(varve_unprotect(v, "bad"));
	gen_text(&state, good, LEN);
	ok(settle_checkpoint(v));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	ok(varve_close(v));
	munmap(good, LEN);
	munmap(bad, LEN);
	place_remove(store);
}

/* Mapped, but not to be read, and that before the first checkpoint: the call says so, and names the pages. */
static void unreadable(const char *options)
{
	uint8_t *p = map();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t state = 8;
	varve *v = NULL;
	char words[100];

	ok(varve_open("mem:unreadable", "L", options, &v));
	ok(varve_protect(v, "p", p, LEN));
	gen_bytes(&state, p, LEN);
	CHECK_EQ(mprotect(p + LEN / 2 + page, 3 * page, PROT_NONE), 0);
	snprintf(words, sizeof(words), ": %zu bytes at %p, of its %d at %p, may not be read", 3 * page, (void *)(p + LEN / 2 + page), LEN, (void *)p);
	for (int i = 0; i < 3; i++)
		refused(varve_checkpoint(v), "p", words);
	munmap(p + LEN / 2 + page, 2 * page);
	snprintf(words, sizeof(words), ": %zu bytes at %p, of its %d at %p, are not mapped", 2 * page, (void *)(p + LEN / 2 + page), LEN, (void *)p);
	refused(varve_checkpoint(v), "p", words);
	CHECK(mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	ok(settle_checkpoint(v));
	ok(varve_close(v));
	munmap(p, LEN);
}

/* The same of pages that are said to be unchanged, when some of them are compared all the same. */
static void audited(const char *options)
{
	uint8_t *p = map();
	uint64_t state = 6;
	varve *v = NULL;
	int rc = varve_open("mem:audited", "L", options, &v);

	if (rc == VARVE_ENOTSUP)
		return;
	ok(rc);
	ok(varve_protect(v, "p", p, LEN));
	gen_bytes(&state, p, LEN);
	ok(settle_checkpoint(v));
	ok(settle_checkpoint(v));
	CHECK_EQ(mprotect(p, LEN, PROT_NONE), 0);
	alarm(60);
	rc = settle_checkpoint(v); /* a fence may put its own protection in the place of the program's */
	if (rc)
		refused(rc, "p", "may not be read");
	CHECK_EQ(mprotect(p, LEN, PROT_READ | PROT_WRITE), 0);
	ok(settle_checkpoint(v));
	alarm(0);
	ok(varve_close(v));
	munmap(p, LEN);
}

/* A file that has become too short for its mapping, which no fence stands around: found by who stores. */
static void cut_short(const char *options)
{
	int fd = memfd_create("cut", MFD_CLOEXEC);
	uint64_t state = 7;
	varve *v = NULL;
	uint8_t *p;

	CHECK(fd >= 0 && ftruncate(fd, LEN) == 0);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	ok(varve_open("mem:cut", "L", options, &v));
	ok(varve_protect(v, "p", p, LEN));
	gen_bytes(&state, p, LEN);
	ok(settle_checkpoint(v));
	CHECK(ftruncate(fd, LEN / 2) == 0);
	refused(settle_checkpoint(v), "p", "may not be read");
	CHECK(ftruncate(fd, LEN) == 0);
	ok(settle_checkpoint(v));
	ok(varve_close(v));
	munmap(p, LEN);
	close(fd);
}

/* ---- what was looked at last is kept, but not for too long */

static void views(void)
{
	enum { MANY = 2000 };
	struct varve_region_info info;
	uint32_t value[MANY], got;
	varve *v = NULL;
	char name[16];

	ok(varve_open("mem:views", "L", "keep=2", &v));
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		value[i] = i;
		ok(varve_protect(v, name, &value[i], sizeof(value[i])));
	}
	ok(settle_checkpoint(v));
	ok(varve_region(v, VARVE_LATEST, "r7", &info));
	vv_mem_fail_at(0);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		ok(varve_region(v, VARVE_LATEST, name, &info));
		CHECK_EQ(info.bytes, 4);
	}
	CHECK(vv_mem_asked() < 100L * MANY); /* not a table of MANY regions each time */
	value[7] = 70;
	ok(settle_checkpoint(v));
	ok(varve_restart_region(v, VARVE_LATEST, "r7", &got, sizeof(got)));
	CHECK_EQ(got, 70);
	ok(varve_restart_region(v, 1, "r7", &got, sizeof(got)));
	CHECK_EQ(got, 7);
	ok(varve_restart_region(v, VARVE_LATEST, "r7", &got, sizeof(got)));
	CHECK_EQ(got, 70);
	ok(varve_restart_region(v, 1, "r7", &got, sizeof(got)));
	value[7] = 71;
	ok(settle_checkpoint(v));
	settle_idle(v);
	CHECK_EQ(varve_restart_region(v, 1, "r7", &got, sizeof(got)), VARVE_ENOENT); /* dropped by keep=2 */
	CHECK_EQ(varve_region(v, 0, "r7", &info), VARVE_ENOENT);
	CHECK_EQ(varve_restart(v, 2), 1);
	CHECK_EQ(value[7], 70);
	ok(varve_region(v, VARVE_LATEST, "r7", &info));
	ok(varve_close(v));
}

/* Small regions in a row are looked at together. The one without memory is named, wherever it is. */
static void rows(void)
{
	enum { ROW = 40, BYTES = 3000 };
	uint8_t *p = map_apart();
	char store[PLACE_MAX], name[16];
	varve *v;

	ok(varve_open(place_path(store, "rows"), "L", "interpose=no log=error", &v));
	for (size_t i = 0; i < ROW; i++) {
		snprintf(name, sizeof(name), "r%zu", i);
		ok(varve_protect(v, name, p + i * (BYTES + 96), BYTES));
	}
	ok(settle_checkpoint(v));
	for (size_t i = 4; i < ROW; i += 7) {
		uintptr_t page = ((uintptr_t)p + i * (BYTES + 96) + 4095) & ~(uintptr_t)4095;

		CHECK(munmap((void *)page, 4096) == 0);
		snprintf(name, sizeof(name), "r%zu", page >= (uintptr_t)p + i * (BYTES + 96) + BYTES ? i + 1 : i);
		refused(varve_checkpoint(v), name, "");
		CHECK(mmap((void *)page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)page);
		ok(settle_checkpoint(v));
	}
	ok(varve_close(v));
	munmap(p, LEN);
}

int main(void)
{
	rows();
	static const char *const trackers[] = { "tracker=mprotect", "tracker=digest", "tracker=auto buffer=64KiB" };

	restarts("codec=none");
	restarts("codec=auto");
	for (size_t i = 0; i < sizeof(trackers) / sizeof(trackers[0]); i++) {
		write_protected(trackers[i]);
		checkpoints(trackers[i]);
	}
	unreadable("buffer=16MiB tracker=digest");
	unreadable("buffer=16MiB");
	unreadable("buffer=64KiB tracker=digest");
	unreadable("buffer=0");
	unreadable("buffer=64KiB");
	unreadable("buffer=64KiB tracker=mprotect");
	unreadable("grain=128");
	audited("tracker=auto audit=100 buffer=64KiB");
	audited("tracker=wpasync audit=100");
	audited("tracker=sigbus audit=100 buffer=64KiB");
	audited("tracker=mprotect audit=100 buffer=64KiB");
	cut_short("buffer=64KiB");
	cut_short("buffer=100%");
	views();
	return 0;
}
