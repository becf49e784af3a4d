// ctest: TIMEOUT 300 RUN_SERIAL
/* Device memory as regions, through the public calls: beside the host's in one session; restarts, streams, want of memory and
 * failures do no harm. */
#include "gpu/regions.h"
#include <fcntl.h>
#include <sys/wait.h>

/* ---- only what is new --------------------------------------------------------------------------------------------------------------- */

static void only_new(void)
{
	enum { LEN = 2 << 20, GRAIN = 256 };
	struct buf b;
	uint8_t *first = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("only what is new");
	place_path(store, "new");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	memcpy(first, b.mirror, LEN);
	push(&b);
	OK(varve_open(store, "job", NULL, &v)); /* nobody said anything of grains */
	OK(varve_protect(v, "p", b.p, LEN));
	MUST(new_bytes(v) == LEN);
	MUST(new_bytes(v) == 0);
	b.mirror[77777]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	noise(b.mirror, LEN);
	push(&b);
	MUST(new_bytes(v) == LEN);
	memcpy(b.mirror, first, LEN); /* A, B, A */
	memmove(b.mirror + GRAIN, b.mirror, LEN / 2);
	push(&b);
	MUST(new_bytes(v) == 0);
	OK(varve_close(v));

	scramble(&b);
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "p", b.p, LEN));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	MUST(new_bytes(v) == 0);
	b.mirror[5]++;
	b.mirror[LEN - 1]++;
	push(&b);
	MUST(new_bytes(v) == 2 * GRAIN);
	memmove(b.mirror + LEN / 2, b.mirror, LEN / 2);
	push(&b);
	MUST(new_bytes(v) == 0);
	check_stored(v, "p", b.mirror, LEN);
	MUST(varve_refine(v, "p", "tree", 0) == 0); /* device memory has grains whatever is asked for */
	b.mirror[9]++;
	push(&b);
	OK(varve_checkpoint(v));
	check_stored(v, "p", b.mirror, LEN);
	MUST(varve_restart_region(v, varve_epoch(v), "p", b.p, LEN - 1) == VARVE_EMISMATCH);
	OK(varve_close(v));
	place_remove(store);
	put(&b);
	free(first);
}

/* Old epochs go and are collected; what later ones need of them stays. */
static void kept(const char *options)
{
	enum { LEN = 100000 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("kept: %s", options);
	place_path(store, "kept");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	OK(varve_open(store, "job", options, &v));
	OK(varve_protect(v, "p", b.p, LEN));
	for (int e = 1; e <= 40; e++) {
		size_t at = upto(LEN - 20000);

		if (e % 3)
			noise(b.mirror + at, 20000);
		else
			memmove(b.mirror + at / 64 * 64, b.mirror + upto(1000) * 64, 10000);
		push(&b);
		OK(varve_checkpoint(v));
		if (e % 5 == 0)
			check_stored(v, "p", b.mirror, LEN);
	}
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* ---- when things go wrong -------------------------------------------------------------------------------------------------------------- */

/* A store that takes no more: the epoch does not count, and the next one has all of it. */
static void failed(const char *options)
{
	enum { LEN = (1 << 20) - 3 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;
	int rc;

	must_begin("failed: %s", options);
	place_path(store, "failed");
	signal(SIGXFSZ, SIG_IGN);
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	push(&b);
	OK(varve_open(store, "job", options, &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	for (int k = 0; k < 3; k++) {
		noise(b.mirror + k * 1000, LEN / 2);
		push(&b);
		must_limit_files(100000);
		rc = varve_checkpoint(v);
		rc = rc ? rc : varve_wait(v, varve_epoch(v));
		must_limit_files(RLIM_INFINITY);
		MUST(rc < 0);
		b.mirror[LEN - 1]++;
		push(&b);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		check_stored(v, "p", b.mirror, LEN);
	}
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* More new bytes than may be held, over more than one slice and one window: they are stored meanwhile; and if that fails, nothing of it
 * counts. */
static void much(size_t len)
{
	enum { LIMIT = 70 << 20 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("%zu bytes, more than the stage holds", len);
	place_path(store, "much");
	get(&b, len, true);
	for (size_t i = 0; i + 8 <= len; i += 8)
		memcpy(b.mirror + i, &(uint64_t){ rng() }, 8);
	push(&b);
	OK(varve_open(store, "job", "grain=128 stage=1MiB codec=none", &v));
	OK(varve_protect(v, "p", b.p, len));
	must_limit_files(LIMIT);
	MUST(varve_checkpoint(v) < 0);
	MUST(varve_checkpoint(v) < 0);
	must_limit_files(RLIM_INFINITY);
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	b.mirror[len / 2]++;
	push(&b);
	MUST(new_bytes(v) == 128);
	check_stored(v, "p", b.mirror, len);
	scramble(&b);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	MUST(new_bytes(v) == 0);
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* What the library says on stderr while fn runs. */
static void listen(int *kept_fd, const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);

	fflush(stderr);
	*kept_fd = dup(2);
	CHECK(fd >= 0 && dup2(fd, 2) == 2);
	close(fd);
}

static bool was_said(int kept_fd, const char *path, const char *word)
{
	size_t n;
	char *said;
	bool found;

	fflush(stderr);
	CHECK(dup2(kept_fd, 2) == 2);
	close(kept_fd);
	said = (char *)place_read(path, &n);
	said = realloc(said, n + 1);
	said[n] = 0;
	found = strstr(said, word);
	free(said);
	return found;
}

static void want_of_memory(void)
{
	enum { LEN = 64 << 20, GRAIN = 128 };
	struct buf b;
	char store[PLACE_MAX], said[PLACE_MAX];
	void *hoard;
	varve *v = NULL;
	int fd;

	must_begin("want of memory");
	place_path(store, "want");
	place_path(said, "said");
	get(&b, LEN, true);
	for (size_t i = 0; i < LEN; i += 8)
		memcpy(b.mirror + i, &(uint64_t){ rng() }, 8);
	push(&b);
	OK(varve_open(store, "job", "grain=128 codec=none", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	hoard = device_hoard(4 << 20);
	MUST(hoard);
	listen(&fd, said);
	OK(varve_checkpoint(v));
	MUST(was_said(fd, said, "copied to the host whole"));
	b.mirror[LEN / 3]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	device_put(hoard);
	b.mirror[LEN / 2]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	check_stored(v, "p", b.mirror, LEN);
	scramble(&b);
	listen(&fd, said); /* from here on there is memory enough */
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	b.mirror[LEN / 4]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	MUST(!was_said(fd, said, "copied to the host whole"));
	hoard = device_hoard(4 << 20); /* what is there is enough */
	MUST(hoard);
	b.mirror[LEN / 5]++;
	push(&b);
	MUST(new_bytes(v) == GRAIN);
	scramble(&b);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	OK(varve_close(v));
	device_put(hoard);
	hoard = device_hoard(4 << 20);
	scramble(&b);
	listen(&fd, said); /* and a session that finds none to begin with */
	OK(varve_open(store, "job", "grain=128 codec=none", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(was_said(fd, said, "copied to the host whole"));
	MUST(holds(&b, b.mirror));
	MUST(new_bytes(v) == 0);
	device_put(hoard);
	check_stored(v, "p", b.mirror, LEN);
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* ---- streams ------------------------------------------------------------------------------------------------------------------------- */

static void streams(void)
{
	enum { LEN = (1 << 20) + 77 };
	struct device_gate gate = { .seconds = 0.2 }, busy = { .seconds = 20 }, also = { .seconds = 20 };
	void *work = device_stream(), *other = device_stream();
	struct buf b, from;
	uint8_t *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("streams");
	place_path(store, "streams");
	get(&b, LEN, true);
	get(&from, LEN, true);
	noise(from.mirror, LEN);
	push(&from);
	push(&b);
	OK(varve_open(store, "job", "grain=128", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	device_copy_on(work, b.p, from.p, LEN);
	OK(varve_checkpoint_on_stream(v, work)); /* the history has its full size now; while it grows, the device may have to be waited for */
	/* a chain that begins late: the epoch has what is there at its end */
	device_gate_on(work, &gate);
	device_set_on(work, b.p + 5000, 7, 20000);
	device_copy_on(work, b.p + 9001, from.p, 7000);
	device_copy_on(work, b.p + LEN - 500, from.p + 3, 500);
	device_gate_on(other, &busy);
	device_gate_on(NULL, &also);
	OK(varve_checkpoint_on_stream(v, work));
	MUST(gate.passed && !busy.passed && !also.passed); /* nobody waited for the others */
	memcpy(b.mirror, from.mirror, LEN);
	memset(b.mirror + 5000, 7, 20000);
	memcpy(b.mirror + 9001, from.mirror, 7000);
	memcpy(b.mirror + LEN - 500, from.mirror + 3, 500);
	device_set_on(work, b.p + 5000, 9, 5000); /* it may be changed */
	OK(varve_wait(v, varve_epoch(v)));
	OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
	MUST(memcmp(q, b.mirror, LEN) == 0);
	OK(varve_checkpoint_on_stream(v, work));
	MUST(!busy.passed && !also.passed);
	busy.go = also.go = true;
	memset(b.mirror + 5000, 9, 5000);
	check_stored(v, "p", b.mirror, LEN);
	/* without a stream all work counts */
	gate = (struct device_gate){ .seconds = 0.1 };
	device_gate_on(other, &gate);
	device_copy_on(other, b.p, from.p, LEN);
	OK(varve_checkpoint(v));
	MUST(gate.passed);
	check_stored(v, "p", from.mirror, LEN);
	/* neither does a restart overtake it */
	gate = (struct device_gate){ .seconds = 0.1 };
	device_gate_on(other, &gate);
	device_set_on(other, b.p, 1, LEN);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, from.mirror));
	OK(varve_close(v));
	device_stream_end(work);
	device_stream_end(other);
	place_remove(store);
	put(&b);
	put(&from);
	free(q);
}

/* ---- pointers ------------------------------------------------------------------------------------------------------------------------ */

/* Managed and pinned memory is the host's. */
static void pointers(void)
{
	enum { LEN = 300001 };
	uint8_t *managed = device_get_managed(LEN), *pinned = space->rent(0, LEN), *was = malloc(LEN), *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;
	int device;

	must_begin("managed and pinned memory");
	place_path(store, "pointers");
	MUST(!space->owns(managed, LEN, &device) && !space->owns(pinned, LEN, &device));
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "managed", managed, LEN));
	OK(varve_protect(v, "pinned", pinned, LEN));
	for (int e = 0; e < 4; e++) {
		noise(managed + e * 1000, LEN / 4);
		memcpy(pinned, managed, LEN / 2);
		memset(pinned + LEN / 2, e, LEN - LEN / 2);
		OK(varve_checkpoint(v));
		memcpy(was, pinned, LEN);
		pinned[e]++;
		OK(varve_restart_region(v, varve_epoch(v), "managed", q, LEN));
		MUST(memcmp(q, managed, LEN) == 0);
		OK(varve_restart_region(v, varve_epoch(v), "pinned", q, LEN));
		MUST(memcmp(q, was, LEN) == 0);
	}
	memcpy(q, managed, LEN);
	memset(managed, 1, LEN);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(managed, q, LEN) == 0 && memcmp(pinned, was, LEN) == 0);
	OK(varve_close(v));
	place_remove(store);
	device_put(managed);
	space->give_back(0, pinned, LEN);
	free(was);
	free(q);
}

/* Memory that was given back is told of, by name, before it is read or written. */
static void gone(void)
{
	enum { LEN = 8 << 20 };
	uint8_t *p = device_get(LEN), *q = device_get(LEN), *zero = calloc(1, LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("memory that is gone");
	place_path(store, "gone");
	OK(space->copy_in(p, zero, LEN));
	OK(space->copy_in(q, zero, LEN));
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "p", p, LEN));
	OK(varve_protect(v, "q", q, LEN));
	OK(varve_checkpoint(v));
	device_put(q);
	MUST(varve_checkpoint(v) == VARVE_EINVAL && strstr(varve_last_error(), "'q'"));
	MUST(varve_restart(v, VARVE_LATEST) == VARVE_EINVAL && strstr(varve_last_error(), "'q'"));
	OK(varve_unprotect(v, "q"));
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	device_put(p); /* before the session ends: it does not mind */
	OK(varve_close(v));
	place_remove(store);
	free(zero);
}

/* ---- all of it, or what is named ------------------------------------------------------------------------------------------------------- */

/* A region that was device memory is declared again as host memory, without grains: it is checkpointed and restarted like any other. */
static void moved_to_host(void)
{
	enum { LEN = 1 << 20 };
	struct buf b;
	uint8_t *host = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("a region moves from the device to the host");
	place_path(store, "moved");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	push(&b);
	memcpy(host, b.mirror, LEN);
	OK(varve_open(store, "job", "grain=0", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	OK(varve_protect(v, "p", host, LEN));
	put(&b);
	host[77]++;
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	check_stored(v, "p", host, LEN);
	host[77]--;
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	OK(varve_close(v));
	free(host);
	place_remove(store);
}

static void keeps(void)
{
	kept("grain=64 keep=2");
	kept("grain=128 keep=2 method=tree mode=sync");
	kept("grain=32 keep=1 method=list history=1KiB");
}

static void failures(void)
{
	failed("grain=128 mode=sync");
	failed("grain=128 mode=async codec=none");
	failed("grain=128 mode=async method=tree");
	failed("grain=512 mode=sync method=full");
}

static void large(void)
{
	much((size_t)(VV_GRAIN_SLICE + 70000) * 128 + 5);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "new", only_new }, { "kept", keeps }, { "failed", failures }, { "streams", streams }, { "pointers", pointers },
		{ "gone", gone },    { "moved", moved_to_host }, { "memory", want_of_memory }, { "large", large },
	};

	space = device_space();
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		seed = 88172645463325252ull + i;
		if (argc < 2 || strcmp(argv[1], tests[i].name) == 0)
			tests[i].run();
	}
	return 0;
}
