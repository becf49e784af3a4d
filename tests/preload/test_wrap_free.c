// ctest: TIMEOUT 120
/* Memory that is given back or moved while its checkpoint is being stored: every way that the C library has. The epoch is stored, and exact. What comes to
 * lie there afterwards keeps the rights that it has. Past the C library the epoch is lost, and one sentence says so. A name of VV_WRAP_FREES without a case here
 * does not compile. */
#include "preload/wrap/wrap_names.h"
#include "store/dir/dir.h"
#include "support/gatefs.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { LEN = 1 << 20, LARGE = 32 << 20 };

static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest", NULL };
static const char *const buffers[] = { "buffer=32KiB", "buffer=64KiB eager=no", "buffer=100%", NULL };

/* ---- ways to get memory, and to lose it */

static uint8_t *by_malloc(void)
{
	return malloc(LEN);
}

static uint8_t *by_memalign(void)
{
	void *p = NULL;

	return posix_memalign(&p, 1 << 16, LEN) == 0 ? p : NULL;
}

static uint8_t *by_mmap(void)
{
	void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Where the kernel maps nothing by itself. */
static uint8_t *by_mmap_apart(void)
{
	void *p = mmap((void *)((uintptr_t)1 << 40), LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void *end_free(uint8_t *p)
{
	errno = EXDEV;
	free(p);
	MUST(errno == EXDEV);
	return NULL;
}

static void *end_realloc(uint8_t *p)
{
	return realloc(p, LARGE);
}

static void *end_reallocarray(uint8_t *p)
{
	return reallocarray(p, LARGE / 8, 8);
}

static void *end_shrink(uint8_t *p)
{
	return realloc(p, 100);
}

static void *end_munmap(uint8_t *p)
{
	MUST(munmap(p, LEN) == 0);
	return NULL;
}

static void *end_mremap(uint8_t *p)
{
	void *to = mremap(p, LEN, LARGE, MREMAP_MAYMOVE);

	MUST(to != MAP_FAILED && munmap(to, LARGE) == 0);
	return NULL;
}

static void *end_madvise(uint8_t *p)
{
	MUST(madvise(p, LEN, MADV_DONTNEED) == 0 && munmap(p, LEN) == 0);
	return NULL;
}

#define CASE_OF(name) case_##name,
enum { VV_WRAP_FREES(CASE_OF) CASES };
#undef CASE_OF

struct way {
	const char *name;
	uint8_t *(*get)(void);
	void *(*end)(uint8_t *p); /* what is left to be freed */
	bool in_heap;             /* of a block that does not have a mapping of its own */
};

static const struct way ways[] = {
	[case_free] = { "free", by_malloc, end_free, false },
	[case_realloc] = { "realloc", by_malloc, end_realloc, false },
	{ "free, in the heap", by_malloc, end_free, true },
	{ "realloc, in the heap", by_malloc, end_realloc, true },
	{ "realloc to less", by_malloc, end_shrink, false },
	{ "realloc to less, in the heap", by_malloc, end_shrink, true },
	{ "reallocarray", by_malloc, end_reallocarray, false },
	{ "free of aligned memory", by_memalign, end_free, false },
	{ "munmap", by_mmap, end_munmap, false },
	{ "mremap", by_mmap, end_mremap, false },
	{ "madvise", by_mmap, end_madvise, false },
};
_Static_assert(case_free == 0 && case_realloc == 1 && CASES == 2, "a case for each");

/* ---- an epoch that is being stored meanwhile */

struct run {
	varve *v;
	char store[PLACE_MAX];
	uint8_t *p, *copy, *read;
	pthread_t opener;
};

static void *open_gate(void *arg)
{
	(void)arg;
	must_nap(20);
	gatefs_pass();
	return NULL;
}

/* Two epochs; the second is being stored when it returns. */
static bool begin(struct run *u, const char *tracker, const char *more, uint8_t *p)
{
	uint64_t seed = 5;
	char options[200];
	int rc;

	*u = (struct run){ .p = p, .copy = malloc(LEN), .read = malloc(LEN) };
	MUST(p && u->copy && u->read);
	snprintf(options, sizeof(options), "tracker=%s log=warn codec=none %s", tracker, more);
	gatefs_pass();
	rc = varve_open(place_path(u->store, "store"), "run", options, &u->v);
	if (rc == VARVE_ENOTSUP)
		return false;
	MUST(rc == 0 && varve_protect(u->v, "field", p, LEN) == 0);
	gen_bytes(&seed, p, LEN);
	MUST(varve_checkpoint(u->v) == 0 && varve_wait(u->v, 1) == 0);
	gen_bytes(&seed, p, LEN);
	memcpy(u->copy, p, LEN);
	gatefs_hold(GATE_WRITE);
	MUST(varve_checkpoint(u->v) == 0);
	gatefs_await();
	MUST(pthread_create(&u->opener, NULL, open_gate, NULL) == 0);
	return true;
}

static void end(struct run *u)
{
	free(u->copy);
	free(u->read);
	place_remove(u->store);
}

static void check(struct run *u)
{
	pthread_join(u->opener, NULL);
	MUST(varve_wait(u->v, 2) == 0);
	MUST(varve_restart_region(u->v, 2, "field", u->read, LEN) == 0);
	MUST(memcmp(u->read, u->copy, LEN) == 0);
	MUST(varve_close(u->v) == 0);
}

static void saved(const struct way *w, const char *tracker, const char *more)
{
	struct run u;
	void *left;

	must_begin("%s, %s, %s", w->name, tracker, more);
	mallopt(M_MMAP_THRESHOLD, w->in_heap ? LARGE : 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 0); /* what is free at the heap's end goes at once */
	if (begin(&u, tracker, more, w->get())) {
		left = w->end(u.p);
		check(&u);
		free(left);
	} else {
		w->end(u.p);
	}
	end(&u);
}

/* As VELOC's heatdis_mem ends: the memory first, the session then, and nobody looks at what it returns. */
static void freed_then_closed(const char *tracker)
{
	struct run u;
	int rc;

	must_begin("freed, then closed, %s", tracker);
	if (!begin(&u, tracker, buffers[0], by_malloc())) {
		free(u.p);
		end(&u);
		return;
	}
	free(u.p);
	rc = varve_close(u.v);
	pthread_join(u.opener, NULL);
	MUST(rc == 0 && varve_open(u.store, "run", "", &u.v) == 0);
	MUST(varve_epoch(u.v) == 2 && varve_restart_region(u.v, 2, "field", u.read, LEN) == 0);
	MUST(memcmp(u.read, u.copy, LEN) == 0);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

static bool is_closed_to_all(const struct vv_memory_map *m)
{
	return memcmp(m->mode, "---", 3) == 0;
}

/* Another mapping takes the place of a region's memory: its rights stay as they are. False: a thread of the library took the place first. */
static bool inherited(const char *tracker, bool unmap)
{
	uint8_t *p = unmap ? by_mmap_apart() : by_malloc();
	struct vv_memory_range there;
	struct run u;
	bool taken;

	must_begin("somebody else's memory, %s, %s", unmap ? "munmap" : "free", tracker);
	if (!begin(&u, tracker, buffers[0], p)) {
		end(&u);
		return true;
	}
	MUST(vv_memory_pages(p, LEN, &there.lo, &there.hi));
	if (unmap)
		munmap(p, LEN);
	else
		free(p);
	taken = mmap((void *)there.lo, there.hi - there.lo, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)there.lo;
	MUST(taken || errno == EEXIST);
	pthread_join(u.opener, NULL);
	MUST(varve_wait(u.v, 2) == 0);
	if (!taken) {
		MUST(varve_close(u.v) == 0);
		end(&u);
		return false;
	}
	vv_memory_look(&there, 1, is_closed_to_all);
	MUST(there.ok && varve_close(u.v) == 0);
	vv_memory_look(&there, 1, is_closed_to_all);
	MUST(there.ok && munmap((void *)there.lo, there.hi - there.lo) == 0);
	end(&u);
	return true;
}

/* On many cores threads of the library nearly always map memory where a freed block was. */
static void inherited_at_last(const char *tracker, bool unmap)
{
	int tries = 20;

	while (tries > 0 && !inherited(tracker, unmap))
		tries--;
	MUST(tries > 0 || !unmap);
}

/* ---- where it cannot be seen coming */

static void count_lines(const char *text, const char *word, int *all, int *with)
{
	for (*all = *with = 0; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t n = strcspn(text, "\n");

		++*all;
		*with += memmem(text, n, word, strlen(word)) != NULL;
	}
}

/* One sentence, of region and epoch: returned and logged. The epoch before is whole. */
static void lost(const char *tracker)
{
	static const char word[] = "epoch 2 is lost: the memory of region 'field' was freed, unmapped or moved before it was stored; call varve_wait, ";
	int err = dup(2), fd = memfd_create("log", MFD_CLOEXEC), rc, all, with;
	char text[4000] = "";
	struct run u;

	must_begin("past the C library, %s", tracker);
	if (begin(&u, tracker, buffers[0], by_mmap())) {
		MUST(dup2(fd, 2) == 2 && syscall(SYS_munmap, u.p, (size_t)LEN) == 0);
		pthread_join(u.opener, NULL);
		rc = varve_wait(u.v, VARVE_LATEST);
		MUST(dup2(err, 2) == 2 && rc == VARVE_EINVAL && strstr(varve_last_error(), word));
		MUST(varve_restart_region(u.v, VARVE_LATEST, "field", u.read, LEN) == 0 && memcmp(u.read, u.copy, LEN) != 0);
		MUST(dup2(fd, 2) == 2 && varve_close(u.v) == 0);
		MUST(dup2(err, 2) == 2 && pread(fd, text, sizeof(text) - 1, 0) > 0);
		count_lines(text, word, &all, &with);
		if (all != 1 || with != 1)
			fputs(text, stderr);
		MUST(all == 1 && with == 1);
	}
	end(&u);
	close(err);
	close(fd);
}

int main(void)
{
	vv_dir_set_fs(gatefs());
	for (const char *const *t = trackers; *t; t++)
		lost(*t);
	if (dlsym(RTLD_DEFAULT, "free") == dlsym(RTLD_NEXT, "free"))
		SKIP("this build does not stand in front of the C library");
	for (const char *const *t = trackers; *t; t++) {
		for (const char *const *b = buffers; *b; b++)
			for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
				saved(&ways[i], *t, *b);
		freed_then_closed(*t);
		inherited_at_last(*t, false);
		inherited_at_last(*t, true);
	}
	MUST(!vv_write_protect_is_active());
	return 0;
}
