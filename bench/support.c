#include "support.h"
#include "base/clock.h"
#include "core/format/digest.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { TMPFS = 0x01021994 };

static char made[3072]; /* removed at exit */

void bench_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(2);
}

void bench_skip(const char *why)
{
	fprintf(stderr, "bench: skipped: %s\n", why);
	exit(77);
}

int bench_check(int rc, const char *what)
{
	if (rc < 0)
		bench_die("%s: %s", what, varve_last_error());
	return rc;
}

/* ---- arguments ----------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const char *text)
{
	char *end;
	double v = strtod(text, &end);
	double unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 1;
	size_t n = (size_t)(v * unit);

	if (v <= 0 || (*end && (unit == 1 || end[1])) || n < 1 << 20)
		bench_die("--size %s: want a number of at least 1M, such as 256M or 1G", text);
	return n / BENCH_STEP * BENCH_STEP;
}

static void parse(struct bench *b, int argc, char **argv, const char **dir)
{
	int i = 1;

	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		const char *name = argv[i] + 2, *value;
		char *equals = strchr(argv[i], '=');

		if (strcmp(name, "full") == 0) {
			b->full = true;
			continue;
		}
		if (equals)
			*equals = '\0';
		value = equals ? equals + 1 : argv[++i];
		if (!value)
			bench_die("--%s wants a value", name);
		if (strcmp(name, "size") == 0)
			b->asked = bytes_of(value);
		else if (strcmp(name, "rounds") == 0)
			b->rounds = atoi(value);
		else if (strcmp(name, "dir") == 0)
			*dir = value;
		else if (strcmp(name, "field") == 0)
			b->field = value;
		else if (strcmp(name, "varve") == 0)
			b->varve = value;
		else if (strcmp(name, "graphlets") == 0)
			b->graphlets = value;
		else if (strcmp(name, "data") == 0)
			b->data = value;
		else if (strcmp(name, "only") == 0)
			b->only = value;
		else
			bench_die("do not know --%s", name);
	}
	b->argc = argc - i;
	b->argv = argv + i;
}

static void remove_made(void)
{
	if (made[0])
		bench_remove(made);
}

static void make_dir(struct bench *b, const char *dir)
{
	struct statfs fs;
	char here[1024];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);

	if (!dir && n > 0) { /* beside the program: the build directory */
		here[n] = '\0';
		*strrchr(here, '/') = '\0';
		dir = here;
	}
	if (!dir || strlen(dir) > 2048)
		bench_die("no directory to work in; give one by --dir");
	snprintf(b->dir, sizeof(b->dir), "%s/bench-XXXXXX", dir);
	if (!mkdtemp(b->dir))
		bench_die("cannot make '%s': %s", b->dir, strerror(errno));
	memcpy(made, b->dir, sizeof(made));
	atexit(remove_made);
	if (statfs(b->dir, &fs) == 0 && fs.f_type == TMPFS)
		fprintf(stderr, "bench: '%s' is in memory, not on a disk: the numbers mean little (--dir)\n", dir);
}

void bench_open(struct bench *b, int argc, char **argv)
{
	const char *dir = NULL;
	unsigned cores = vv_pool_cores();

	*b = (struct bench){ 0 };
	parse(b, argc, argv, &dir);
	b->size = bench_size(b, 1ul << 30, 4ul << 30);
	if (!b->rounds)
		b->rounds = b->full ? 9 : 3;
	if (b->rounds < 1 || b->rounds > BENCH_ROUNDS_MAX)
		bench_die("--rounds: 1 to %d", BENCH_ROUNDS_MAX);
	setvbuf(stdout, NULL, _IOLBF, 0);
	make_dir(b, dir);
	bench_check(vv_pool_new((cores < 16 ? cores : 16) - 1, &b->pool), "threads");
}

int bench_close(struct bench *b)
{
	vv_pool_free(b->pool);
	return 0;
}

size_t bench_size(const struct bench *b, size_t usual, size_t full)
{
	return b->asked ? b->asked : b->full ? full : usual;
}

bool bench_wants(const struct bench *b, const char *name)
{
	for (int i = 0; i < b->argc; i++)
		if (strcmp(b->argv[i], name) == 0)
			return true;
	return b->argc == 0;
}

/* ---- results ------------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void begin_line(const char *bench, const char *kase, const char *metric, double value, const char *unit)
{
	printf("{\"bench\":\"%s\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.10g,\"unit\":\"%s\"", bench, kase, metric,
	       value, unit);
}

void bench_line(const char *bench, const char *kase, const char *metric, double value, const char *unit)
{
	begin_line(bench, kase, metric, value, unit);
	printf("}\n");
}

void bench_baseline(const char *bench, const char *kase, const char *metric, double value, const char *unit)
{
	begin_line(bench, kase, metric, value, unit);
	printf(",\"baseline\":true}\n");
}

void bench_at_most(const char *bench, const char *kase, const char *metric, double value, const char *unit, double limit)
{
	begin_line(bench, kase, metric, value, unit);
	printf(",\"target\":\"<= %g\",\"ok\":%s}\n", limit, value <= limit ? "true" : "false");
}

void bench_at_least(const char *bench, const char *kase, const char *metric, double value, const char *unit, double limit)
{
	begin_line(bench, kase, metric, value, unit);
	printf(",\"target\":\">= %g\",\"ok\":%s}\n", limit, value >= limit ? "true" : "false");
}

/* ---- content ------------------------------------------------------------------------------------------------------- */

uint64_t bench_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void fill(uint64_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		p[i] = bench_random(&seed);
}

struct fill {
	uint8_t *p;
	size_t n;
	uint64_t seed;
};

static size_t step_len(size_t n, size_t i)
{
	size_t left = n - i * BENCH_STEP;

	return left < BENCH_STEP ? left : BENCH_STEP;
}

static size_t steps(size_t n)
{
	return (n + BENCH_STEP - 1) / BENCH_STEP;
}

static void fill_step(void *arg, size_t i)
{
	struct fill *f = arg;
	uint64_t state = f->seed + i, seed = bench_random(&state);

	fill((uint64_t *)(void *)(f->p + i * BENCH_STEP), step_len(f->n, i), seed);
}

void bench_fill(struct bench *b, void *p, size_t n, uint64_t seed)
{
	uint64_t state = seed;
	struct fill f = { p, n, bench_random(&state) };

	vv_pool_each(b->pool, steps(n), fill_step, &f);
}

void bench_pick(uint32_t *list, size_t total, size_t pages, uint64_t seed)
{
	/* each page is taken with the chance (still to take) / (still to see): exactly `pages` of them, all different */
	for (size_t i = 0; i < total && pages; i++)
		if (bench_random(&seed) % (total - i) < pages) {
			*list++ = (uint32_t)i;
			pages--;
		}
}

void bench_shuffle(uint32_t *list, size_t n, uint64_t seed)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = bench_random(&seed) % i;
		uint32_t x = list[i - 1];

		list[i - 1] = list[j];
		list[j] = x;
	}
}

void bench_change_stretches(void *p, size_t n, size_t pages, size_t stretch, uint64_t seed)
{
	size_t bytes = stretch * BENCH_PAGE, count = pages / stretch;
	uint32_t *list = calloc(count + 1, sizeof(*list));
	uint64_t state = ~seed;

	if (!list)
		bench_die("no memory for %zu pages' numbers", count);
	bench_pick(list, n / bytes, count, seed);
	for (size_t i = 0; i < count; i++)
		for (size_t at = 0; at < bytes; at += BENCH_PAGE)
			fill((uint64_t *)(void *)((uint8_t *)p + list[i] * bytes + at), BENCH_PAGE, bench_random(&state));
	free(list);
}

void bench_change(void *p, size_t n, size_t pages, uint64_t seed)
{
	bench_change_stretches(p, n, pages, 1, seed);
}

void *bench_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("no memory for %zu bytes", n);
	memset(p, 1, n);
	return p;
}

void bench_memory_alike(uint8_t **p, size_t regions, size_t n)
{
	enum { STRIPE = 64 << 10 };

	for (size_t i = 0; i < regions; i++) {
		p[i] = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p[i] == MAP_FAILED)
			bench_die("no memory for %zu regions of %zu bytes", regions, n);
	}
	for (size_t at = 0; at < n; at += STRIPE)
		for (size_t i = 0; i < regions; i++)
			memset(p[i] + at, 1, n - at < STRIPE ? n - at : STRIPE);
}

/* ---- a session ------------------------------------------------------------------------------------------------------ */

int bench_session_open(struct bench *b, const char *lineage, const char *options, uint8_t *p, size_t n,
		       struct bench_session *s)
{
	int rc;

	*s = (struct bench_session){ .p = p, .n = n };
	snprintf(s->store, sizeof(s->store), "%s/%s", b->dir, lineage);
	rc = varve_open(s->store, lineage, options, &s->v);
	if (rc == 0)
		rc = varve_protect(s->v, "p", p, n);
	if (rc != VARVE_ENOTSUP)
		return bench_check(rc, options ? options : "varve_open");
	bench_session_close(s);
	return rc;
}

void bench_session_close(struct bench_session *s)
{
	varve_close(s->v);
	bench_remove(s->store);
}

double bench_session_checkpoint(struct bench_session *s)
{
	double start = vv_clock_s(), took;

	bench_check(varve_checkpoint(s->v), "varve_checkpoint");
	took = vv_clock_s() - start;
	bench_check(varve_wait(s->v, varve_epoch(s->v)), "varve_wait");
	return took;
}

void bench_session_verify(struct bench_session *s, uint8_t *to)
{
	bench_check(varve_restart_region(s->v, VARVE_LATEST, "p", to, s->n), "varve_restart_region");
	if (memcmp(to, s->p, s->n) != 0)
		bench_die("%s: the newest epoch holds other bytes than memory", s->store);
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0666);

	if (fd < 0)
		bench_die("cannot open '%s': %s", path, strerror(errno));
	return fd;
}

static void must(bool fine, const char *what)
{
	if (!fine)
		bench_die("%s: %s", what, strerror(errno));
}

enum { FOLIO = 2 << 20 }; /* the largest that the page cache has: by such pieces files are written */

double bench_write(struct bench *b, const void *p, size_t n)
{
	char tmp[3200], path[3200];
	double start, end;
	int fd, dir;

	snprintf(tmp, sizeof(tmp), "%s/plain.tmp", b->dir);
	snprintf(path, sizeof(path), "%s/plain", b->dir);
	start = vv_clock_s();
	fd = open_file(tmp, O_WRONLY | O_CREAT | O_TRUNC);
	if (fallocate(fd, 0, 0, (off_t)n) < 0 && errno != EOPNOTSUPP)
		bench_die("fallocate: %s", strerror(errno));
	for (size_t at = 0; at < n; at += FOLIO) {
		size_t len = n - at < FOLIO ? n - at : FOLIO;

		must(pwrite(fd, (const uint8_t *)p + at, len, (off_t)at) == (ssize_t)len, "pwrite");
	}
	must(fsync(fd) == 0 && close(fd) == 0, "fsync");
	must(rename(tmp, path) == 0, "rename");
	dir = open_file(b->dir, O_RDONLY | O_DIRECTORY);
	must(fsync(dir) == 0, "fsync of the directory");
	close(dir);
	end = vv_clock_s();
	must(unlink(path) == 0, "unlink");
	return end - start;
}

struct direct {
	int fd;
	bool reads;
	uint8_t *p;
	size_t n;
};

static void direct_step(void *arg, size_t i)
{
	const struct direct *d = arg;
	size_t len = step_len(d->n, i);
	off_t at = (off_t)(i * BENCH_STEP);
	ssize_t done = d->reads ? pread(d->fd, d->p + at, len, at) : pwrite(d->fd, d->p + at, len, at);

	must(done == (ssize_t)len, d->reads ? "direct read" : "direct write");
}

static double direct(struct bench *b, bool reads, void *p, size_t n, unsigned threads)
{
	char path[3200];
	struct direct d = { .reads = reads, .p = p, .n = n };
	double start;

	snprintf(path, sizeof(path), "%s/direct", b->dir);
	d.fd = open_file(path, (reads ? O_RDONLY : O_RDWR | O_CREAT) | O_DIRECT);
	start = vv_clock_s();
	vv_pool_each_deep(b->pool, threads, steps(n), direct_step, &d);
	must(reads || fsync(d.fd) == 0, "fsync");
	start = vv_clock_s() - start;
	close(d.fd);
	return start;
}

/* The number of concurrent transfers that was fastest. */
static unsigned direct_best(struct bench *b, bool reads, void *p, size_t n)
{
	static unsigned best[2];
	double least = 0;

	if (best[reads])
		return best[reads];
	if (!reads)
		direct(b, false, p, n, 4); /* allocates the file */
	for (unsigned threads = 2; threads <= 16; threads *= 2) {
		double took = direct(b, reads, p, n, threads);

		if (!best[reads] || took < least) {
			best[reads] = threads;
			least = took;
		}
	}
	return best[reads];
}

double bench_direct_write(struct bench *b, const void *p, size_t n)
{
	union {
		const void *in;
		void *out;
	} from = { .in = p };

	return direct(b, false, from.out, n, direct_best(b, false, from.out, n));
}

double bench_direct_read(struct bench *b, void *to, size_t n)
{
	return direct(b, true, to, n, direct_best(b, true, to, n));
}

struct transfer {
	int fd;
	const uint8_t *from;
	uint8_t *to;
	size_t n;
	atomic_bool failed;
};

static void read_step(void *arg, size_t i)
{
	struct transfer *t = arg;
	size_t n = step_len(t->n, i);

	if (pread(t->fd, t->to + i * BENCH_STEP, n, (off_t)(i * BENCH_STEP)) != (ssize_t)n)
		atomic_store(&t->failed, true);
}

double bench_read(struct bench *b, const char *path, void *to, size_t n)
{
	double start = vv_clock_s();
	struct transfer t = { .fd = open_file(path, O_RDONLY), .to = to, .n = n };

	vv_pool_each(b->pool, steps(n), read_step, &t);
	close(t.fd);
	if (atomic_load(&t.failed))
		bench_die("cannot read '%s'", path);
	return vv_clock_s() - start;
}

static void copy_step(void *arg, size_t i)
{
	struct transfer *t = arg;

	memcpy(t->to + i * BENCH_STEP, t->from + i * BENCH_STEP, step_len(t->n, i));
}

double bench_copy_mapped(struct bench *b, const char *path, void *to, size_t n, bool populate)
{
	double start = vv_clock_s(), end;
	int fd = open_file(path, O_RDONLY), flags = MAP_SHARED | (populate ? MAP_POPULATE : 0);
	void *map = mmap(NULL, n, PROT_READ, flags, fd, 0);
	struct transfer t = { .from = map, .to = to, .n = n };

	must(map != MAP_FAILED, "mmap");
	if (populate) /* only the copying counts then */
		start = vv_clock_s();
	vv_pool_each(b->pool, steps(n), copy_step, &t);
	end = vv_clock_s();
	munmap(map, n);
	close(fd);
	return (populate ? end : vv_clock_s()) - start;
}

static void hash_step(void *arg, size_t i)
{
	struct transfer *t = arg;
	const uint8_t *p = t->from + i * BENCH_STEP, *end = p + step_len(t->n, i);
	struct vv_digest d;

	for (; p < end; p += BENCH_PAGE) {
		vv_digest_xxh3(p, BENCH_PAGE, &d);
		__asm__ volatile("" : : "r"(&d) : "memory"); /* the result is wanted */
	}
}

double bench_hash(struct bench *b, const void *p, size_t n)
{
	struct transfer t = { .from = p, .n = n };
	double start = vv_clock_s();

	vv_pool_each(b->pool, steps(n), hash_step, &t);
	return vv_clock_s() - start;
}

static size_t resident(int fd, size_t n)
{
	size_t pages = (n + BENCH_PAGE - 1) / BENCH_PAGE, count = 0;
	unsigned char *seen = malloc(pages);
	void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);

	must(seen && map != MAP_FAILED && mincore(map, n, seen) == 0, "mincore");
	for (size_t i = 0; i < pages; i++)
		count += seen[i] & 1;
	munmap(map, n);
	free(seen);
	return count;
}

static int load_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	static char block[FOLIO];
	int fd = kind == FTW_F ? open_file(path, O_RDONLY) : -1;
	ssize_t n = fd < 0 ? 0 : 1;

	(void)st;
	(void)at;
	while (n > 0)
		n = read(fd, block, sizeof(block));
	if (fd >= 0)
		close(fd);
	return (int)n;
}

void bench_load(const char *path)
{
	must(nftw(path, load_file, 16, FTW_PHYS) == 0, "read");
}

void bench_drop(const char *path)
{
	int fd = open_file(path, O_RDONLY);
	struct stat st;
	size_t left = 1;

	must(fstat(fd, &st) == 0 && fsync(fd) == 0, "fsync");
	for (int i = 0; i < 50 && left; i++) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		left = resident(fd, (size_t)st.st_size);
		if (left)
			vv_clock_sleep(0.02);
	}
	close(fd);
	if (left)
		bench_die("%zu pages of '%s' stay in the page cache", left, path);
}

static void touch(const struct bench *b, size_t bytes)
{
	static char block[FOLIO];
	char path[3200];
	int fd;

	snprintf(path, sizeof(path), "%s/touch", b->dir);
	fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
	must(unlink(path) == 0, "unlink");
	for (size_t at = 0; at < bytes; at += FOLIO)
		must(pwrite(fd, block, FOLIO, (off_t)at) == FOLIO, "pwrite");
	close(fd);
}

void bench_settle(struct bench *b, size_t bytes)
{
	int dir = open_file(b->dir, O_RDONLY | O_DIRECTORY);
	cpu_set_t all, one;
	size_t n;

	must(syncfs(dir) == 0, "syncfs");
	close(dir);
	must(sched_getaffinity(0, sizeof(all), &all) == 0, "sched_getaffinity");
	n = (size_t)CPU_COUNT(&all);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			must(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
			touch(b, n > 2 ? 2 * bytes / n : bytes);
		}
	must(sched_setaffinity(0, sizeof(all), &all) == 0, "sched_setaffinity");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

void bench_remove(const char *path)
{
	nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}
