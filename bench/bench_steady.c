/* steady.*: a session that has run for a while. Pages change in random order, epochs beyond the newest two are dropped,
 * and nothing is prepared for the measurement. */
#include "base/clock.h"
#include "support.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EPOCHS = 12, SETTLED = 2 }; /* epochs after the first; those that do not count yet */

struct kind {
	const char *bench;
	size_t per_mille; /* of the pages change between two checkpoints */
	double most;      /* durable, against the direct write */
};

static const struct kind kinds[] = {
	{ "steady.full", 1000, 1.2 },
	{ "steady.tenth", 100, 1.3 },
	{ "steady.hundredth", 10, 1.3 },
};

struct series {
	double durable[EPOCHS], blocked[EPOCHS], rewrite[EPOCHS], limit[EPOCHS];
	int n;
};

/* The bytes of a file that are in the page cache. */
static size_t cached_file(const char *path, size_t n)
{
	int fd = open(path, O_RDONLY);
	uint8_t *p = fd < 0 ? MAP_FAILED : mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char *in = calloc(n / BENCH_PAGE + 1, 1);
	size_t pages = 0;

	if (p == MAP_FAILED || !in || mincore(p, n, in) < 0)
		bench_die("%s: cannot see which pages are cached", path);
	for (size_t i = 0; i < (n + BENCH_PAGE - 1) / BENCH_PAGE; i++)
		pages += in[i] & 1;
	munmap(p, n);
	close(fd);
	free(in);
	return pages * BENCH_PAGE;
}

/* Calls fn for every file below the folder that is not empty; the sum of what it returns. */
static size_t each_file(const char *path, size_t (*fn)(const char *file, size_t n))
{
	DIR *d = opendir(path);
	struct dirent *e;
	size_t sum = 0;

	while (d && (e = readdir(d))) {
		char file[4096];
		struct stat st;

		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || lstat(file, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			sum += each_file(file, fn);
		else if (st.st_size)
			sum += fn(file, (size_t)st.st_size);
	}
	if (d)
		closedir(d);
	return sum;
}

/* Writes new bytes to pages in random order; seconds. */
static double rewrite(uint8_t *p, const uint32_t *page, size_t pages, uint64_t seed)
{
	double start = vv_clock_s();

	for (size_t i = 0; i < pages; i++) {
		uint64_t *at = (uint64_t *)(void *)(p + (size_t)page[i] * BENCH_PAGE);

		for (size_t k = 0; k < BENCH_PAGE / sizeof(*at); k++)
			at[k] = at[k] * 0x9e3779b97f4a7c15u + seed;
	}
	return vv_clock_s() - start;
}

static uint32_t *pages_of(const struct bench *b, const struct kind *k, uint64_t seed, size_t *n)
{
	size_t all = b->size / BENCH_PAGE;
	uint32_t *page;

	*n = all * k->per_mille / 1000;
	page = calloc(*n + 1, sizeof(*page));
	if (!page)
		bench_die("no memory for the numbers of %zu pages", *n);
	bench_pick(page, all, *n, seed);
	bench_shuffle(page, *n, seed);
	return page;
}

static void epoch(struct bench *b, const struct kind *k, struct bench_session *s, int i, struct series *out)
{
	size_t n = 0;
	uint32_t *page = pages_of(b, k, (uint64_t)i + 100, &n);
	double limit = bench_direct_write(b, s->p, n * BENCH_PAGE), start, wrote = rewrite(s->p, page, n, (uint64_t)i);

	start = vv_clock_s();
	bench_check(varve_checkpoint(s->v), "varve_checkpoint");
	if (i >= SETTLED) {
		out->blocked[out->n] = vv_clock_s() - start;
		out->rewrite[out->n] = wrote;
		out->limit[out->n] = limit;
	}
	bench_check(varve_wait(s->v, VARVE_LATEST), "varve_wait");
	if (i >= SETTLED)
		out->durable[out->n++] = vv_clock_s() - start;
	free(page);
}

static double most_of(const double *v, int n)
{
	double most = v[0];

	for (int i = 1; i < n; i++)
		most = v[i] > most ? v[i] : most;
	return most;
}

static void tell(const struct kind *k, const char *mode, struct series *x)
{
	double worst = most_of(x->durable, x->n), stall = most_of(x->blocked, x->n);
	double limit = bench_median(x->limit, x->n), durable = bench_median(x->durable, x->n), blocked = bench_median(x->blocked, x->n);

	bench_baseline(k->bench, mode, "direct_write", limit * 1e3, "ms");
	bench_line(k->bench, mode, "durable", durable * 1e3, "ms");
	bench_line(k->bench, mode, "durable_worst", worst * 1e3, "ms");
	bench_line(k->bench, mode, "blocked", blocked * 1e3, "ms");
	bench_line(k->bench, mode, "rewrite", bench_median(x->rewrite, x->n) * 1e3, "ms");
	bench_at_most(k->bench, mode, "durable_vs_direct", durable / limit, "x", k->most);
	if (k->per_mille == 1000)
		bench_at_most(k->bench, mode, "worst_vs_direct", worst / limit, "x", 1.5);
	else
		bench_at_most(k->bench, mode, "blocked_worst_vs_median", stall / blocked, "x", 2);
}

static size_t drop_file(const char *file, size_t n)
{
	bench_drop(file);
	return n;
}

static double restart(struct bench *b, const char *options, struct bench_session *s, uint8_t *to)
{
	struct bench_session other;
	double start;

	(void)b;
	other = *s;
	start = vv_clock_s();
	bench_check(varve_open(s->store, "steady", options, &other.v), "varve_open");
	bench_check(varve_protect(other.v, "p", to, s->n), "varve_protect");
	bench_check(varve_restart(other.v, VARVE_LATEST), "varve_restart");
	start = vv_clock_s() - start;
	if (memcmp(to, s->p, s->n) != 0)
		bench_die("%s: the newest epoch holds other bytes than memory", s->store);
	varve_close(other.v);
	return start;
}

struct copying {
	uint8_t *to;
	const uint8_t *from;
	size_t n;
};

enum { COPY_STEP = 2 << 20 };

static void copy_step(void *arg, size_t i)
{
	const struct copying *c = arg;
	size_t at = i * COPY_STEP;

	memcpy(c->to + at, c->from + at, c->n - at < COPY_STEP ? c->n - at : COPY_STEP);
}

/* memcpy on all cores; seconds. */
static double copy_all(struct bench *b, uint8_t *to, const uint8_t *from, size_t n)
{
	struct copying c = { to, from, n };
	double start = vv_clock_s();

	vv_pool_each(b->pool, (n + COPY_STEP - 1) / COPY_STEP, copy_step, &c);
	return vv_clock_s() - start;
}

/* The session is closed before; the memory that is filled is new. */
static void restarts(struct bench *b, const struct kind *k, const char *mode, const char *options, struct bench_session *s)
{
	uint8_t *to = mmap(NULL, s->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];
	double cold, read, warm, copy;

	if (to == MAP_FAILED)
		bench_die("no memory for %zu bytes", s->n);
	bench_direct_write(b, s->p, s->n);
	read = bench_direct_read(b, to, s->n);
	munmap(to, s->n);
	to = mmap(NULL, s->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	each_file(s->store, drop_file);
	cold = restart(b, options, s, to);
	bench_load(s->store);
	warm = restart(b, options, s, to);
	copy = copy_all(b, to, s->p, s->n);
	munmap(to, s->n);
	snprintf(name, sizeof(name), "%s %zu%%", mode, k->per_mille / 10);
	bench_baseline("steady.restart", name, "direct_read", read * 1e3, "ms");
	bench_baseline("steady.restart", name, "memcpy", copy * 1e3, "ms");
	bench_line("steady.restart", name, "cold", cold * 1e3, "ms");
	bench_line("steady.restart", name, "warm", warm * 1e3, "ms");
	bench_at_most("steady.restart", name, "cold_vs_direct", cold / read, "x", 1.2);
	bench_at_least("steady.restart", name, "warm_vs_memcpy", copy / warm, "x", 0.6);
}

static void measure(struct bench *b, const struct kind *k, const char *mode, const char *options)
{
	uint8_t *p = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct bench_session s;
	struct series x = { .n = 0 };

	if (p == MAP_FAILED)
		bench_die("no memory for %zu bytes", b->size);
	bench_fill(b, p, b->size, 7);
	bench_check(bench_session_open(b, "steady", options, p, b->size, &s), "varve_open");
	bench_session_checkpoint(&s);
	for (int i = 0; i < EPOCHS; i++)
		epoch(b, k, &s, i, &x);
	tell(k, mode, &x);
	if (k->per_mille == 1000)
		bench_at_most(k->bench, mode, "page_cache", (double)each_file(s.store, cached_file) / (1 << 20), "MiB", 64);
	bench_check(varve_close(s.v), "varve_close");
	if (bench_wants(b, "steady.restart"))
		restarts(b, k, mode, options, &s);
	s.v = NULL;
	bench_session_close(&s);
	munmap(p, b->size);
}

/* ---- steady.codec ---------------------------------------------------------------------------------------------------- */

enum content { RANDOM, FLOATS, DOUBLES };

struct fill_numbers {
	uint8_t *p;
	uint64_t seed;
	enum content what;
};

/* Random bits, or numbers that drift a little with each epoch. */
static void fill_page(void *arg, size_t i)
{
	const struct fill_numbers *f = arg;
	uint64_t state = f->seed * 0x100000001b3u + i;
	uint64_t *word = (uint64_t *)(void *)(f->p + i * BENCH_PAGE);

	for (size_t k = 0; k < BENCH_PAGE / 8; k++) {
		uint64_t r = bench_random(&state);
		float *pair = (float *)(void *)&word[k];
		double *one = (double *)(void *)&word[k];

		if (f->what == RANDOM) {
			word[k] = r;
		} else if (f->what == DOUBLES) {
			*one = *one * 0.999 + 1e-3 * ((double)(r & 0xffff) - 32768) / 32768;
		} else {
			pair[0] = pair[0] * 0.999f + 1e-3f * ((float)(r & 0xffff) - 32768) / 32768;
			pair[1] = pair[1] * 0.999f + 1e-3f * ((float)(r >> 48) - 32768) / 32768;
		}
	}
}

enum { CODECS = 4, TURNS = 3, TURN = 4, UNSETTLED = 2 };

/* Appends the durable times of the last of some epochs, each of them all new. */
static void durable_with(struct bench *b, const char *dir, const char *options, enum content what, uint8_t *p, size_t n, double *took)
{
	size_t numbers = n / (what == DOUBLES ? 8 : 4);
	char store[3200];
	varve *v = NULL;

	snprintf(store, sizeof(store), "%s/codec", dir);
	memset(p, 0, n);
	bench_check(varve_open(store, "codec", options, &v), options);
	bench_check(varve_protect_array(v, "p", p, what == DOUBLES ? VARVE_F64 : what == FLOATS ? VARVE_F32 : VARVE_I32, 1, &numbers), "varve_protect_array");
	for (int i = 0; i < TURN; i++) {
		struct fill_numbers f = { p, (uint64_t)i + 1, what };
		double start;

		vv_pool_each(b->pool, n / BENCH_PAGE, fill_page, &f);
		start = vv_clock_s();
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		bench_check(varve_wait(v, VARVE_LATEST), "varve_wait");
		if (i >= UNSETTLED)
			took[i - UNSETTLED] = vv_clock_s() - start;
	}
	varve_close(v);
	bench_remove(store);
}

/* The codecs take turns. */
static void codecs_on(struct bench *b, const char *place, const char *dir, const char *more, size_t n)
{
	static const char *const content[] = { "random", "f32", "f64" };
	static const char *const codec[CODECS] = { "none", "lz4", "zstd:1", "auto" };
	uint8_t *p = bench_memory(n);

	for (int what = RANDOM; what <= DOUBLES; what++) {
		double took[CODECS][TURNS * (TURN - UNSETTLED)], best = 0, median = 0;
		char kase[100], options[200];

		for (int k = 0; k < CODECS * TURNS; k++) {
			snprintf(options, sizeof(options), "keep=2 codec=%s%s", codec[k % CODECS], more);
			durable_with(b, dir, options, (enum content)what, p, n, took[k % CODECS] + (size_t)(k / CODECS * (TURN - UNSETTLED)));
		}
		snprintf(kase, sizeof(kase), "%s, %s", content[what], place);
		for (int c = 0; c < CODECS; c++) {
			median = bench_median(took[c], TURNS * (TURN - UNSETTLED));
			bench_line("steady.codec", kase, codec[c], median * 1e3, "ms");
			if (c == 0 || (c + 1 < CODECS && median < best))
				best = median;
		}
		bench_at_most("steady.codec", kase, "auto_vs_best", median / best, "x", 1.1);
	}
	munmap(p, n);
}

static void codecs(struct bench *b)
{
	char memory[] = "/dev/shm/bench-XXXXXX";
	size_t n = bench_size(b, 128 << 20, 1 << 30);

	codecs_on(b, "disk", b->dir, "", n);
	codecs_on(b, "200 MB/s", b->dir, " bandwidth=200000000", n / 2);
	if (!mkdtemp(memory))
		return;
	codecs_on(b, "memory", memory, "", n);
	bench_remove(memory);
}

/* ---- steady.felt ----------------------------------------------------------------------------------------------------- */

enum { FELT = 8 }; /* epochs that count, of each share */

struct feeling {
	double felt[FELT], copy[FELT];
	int n;
};

/* One checkpoint, and the writes of the program right after it. What the program feels is the call, and what these writes
 * take longer than without a checkpoint. */
static void feel(struct bench *b, struct bench_session *s, uint8_t *spare, size_t per_mille, uint64_t seed, struct feeling *out)
{
	struct kind k = { "steady.felt", per_mille, 0 };
	size_t n = 0;
	uint32_t *page = pages_of(b, &k, seed, &n);
	double copied, plain, blocked, wrote;

	copied = vv_clock_s();
	for (size_t i = 0; i < n; i++)
		memcpy(spare + i * BENCH_PAGE, s->p + (size_t)page[i] * BENCH_PAGE, BENCH_PAGE);
	copied = vv_clock_s() - copied;
	plain = rewrite(spare, page, n, seed);
	blocked = vv_clock_s();
	bench_check(varve_checkpoint(s->v), "varve_checkpoint");
	blocked = vv_clock_s() - blocked;
	wrote = rewrite(s->p, page, n, seed);
	bench_check(varve_wait(s->v, VARVE_LATEST), "varve_wait");
	free(page);
	if (out->n == FELT)
		return;
	out->felt[out->n] = blocked + (wrote > plain ? wrote - plain : 0);
	out->copy[out->n++] = copied;
}

static double feel_series(struct bench *b, const char *kase, const char *mode, const char *options, size_t before, size_t after)
{
	uint8_t *p = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *spare = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct bench_session s;
	struct feeling first = { .n = 0 }, x = { .n = 0 };
	char name[100];
	double felt, copy, worst;

	if (p == MAP_FAILED || spare == MAP_FAILED)
		bench_die("no memory for %zu bytes", 2 * b->size);
	bench_fill(b, p, b->size, 7);
	bench_fill(b, spare, b->size, 8);
	bench_check(bench_session_open(b, "felt", options, p, b->size, &s), "varve_open");
	bench_session_checkpoint(&s);
	for (int i = 0; i < 4; i++)
		feel(b, &s, spare, before, (uint64_t)i + 200, &first);
	for (int i = 0; i < FELT; i++)
		feel(b, &s, spare, after, (uint64_t)i + 300, &x);
	snprintf(name, sizeof(name), "%s, %s", kase, mode);
	worst = most_of(x.felt, x.n);
	felt = bench_median(x.felt, x.n);
	copy = bench_median(x.copy, x.n);
	bench_baseline("steady.felt", name, "memcpy", copy * 1e3, "ms");
	bench_line("steady.felt", name, "felt", felt * 1e3, "ms");
	bench_line("steady.felt", name, "felt_worst", worst * 1e3, "ms");
	bench_at_most("steady.felt", name, "felt_vs_memcpy", felt / copy, "x", 1.5);
	bench_at_most("steady.felt", name, "worst_vs_median", worst / felt, "x", 2);
	bench_session_close(&s);
	munmap(spare, b->size);
	munmap(p, b->size);
	return felt;
}

static void feelings(struct bench *b)
{
	static const struct {
		const char *kase;
		size_t before, after;
	} series[] = { { "1%", 10, 10 }, { "10%", 100, 100 }, { "100%", 1000, 1000 }, { "1% to 100%", 10, 1000 } };

	for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++) {
		double sync = feel_series(b, series[i].kase, "sync", "keep=2 mode=sync", series[i].before, series[i].after);
		double felt = feel_series(b, series[i].kase, "default", "keep=2", series[i].before, series[i].after);

		bench_at_most("steady.felt", series[i].kase, "default_vs_sync", felt / sync, "x", 1);
	}
}

static void both(struct bench *b, const struct kind *k)
{
	static const char *const mode[][2] = { { "default", "keep=2" }, { "sync", "keep=2 mode=sync" } };

	for (size_t i = 0; i < 2; i++)
		if (!b->only || strncmp(mode[i][0], b->only, strlen(b->only)) == 0)
			measure(b, k, mode[i][0], mode[i][1]);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (bench_wants(&b, kinds[i].bench))
			both(&b, &kinds[i]);
	if (bench_wants(&b, "steady.felt"))
		feelings(&b);
	if (bench_wants(&b, "steady.codec"))
		codecs(&b);
	return bench_close(&b);
}
