/* catalog.scale: a lineage of ten thousand epochs must not be slower to use than one of a hundred. Each measurement is
 * made in a process of its own: this program, started again with --child. */
#include "base/clock.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { EPOCH_BYTES = 1 << 20, SHORT = 100, LONG = 10000, LEAST_ROUNDS = 11 };

static const char *const lineages[2] = { "short", "long" };

static void build_lineage(const char *store, const char *lineage, int epochs)
{
	uint8_t *p = bench_memory(EPOCH_BYTES);
	uint64_t seed = 1;
	varve *v = NULL;

	bench_change(p, EPOCH_BYTES, EPOCH_BYTES / BENCH_PAGE, 99);
	bench_check(varve_open(store, lineage, "mode=sync", &v), "varve_open");
	bench_check(varve_protect(v, "p", p, EPOCH_BYTES), "varve_protect");
	for (int i = 0; i < epochs; i++) {
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		bench_change(p, EPOCH_BYTES, EPOCH_BYTES / BENCH_PAGE / 100 + 1, bench_random(&seed));
	}
	varve_close(v);
}

/* In the child: prints the seconds of the whole and, of a checkpoint, of the call alone. */
static int child(const char *what, const char *store, const char *lineage)
{
	bool save = strcmp(what, "checkpoint") == 0;
	uint8_t *p = bench_memory(EPOCH_BYTES);
	double start = vv_clock_s(), before, call = 0;
	varve *v = NULL;

	bench_check(varve_open(store, lineage, "mode=sync", &v), "varve_open");
	bench_check(varve_protect(v, "p", p, EPOCH_BYTES), "varve_protect");
	bench_check(varve_restart(v, VARVE_LATEST), "varve_restart");
	if (save) {
		bench_change(p, EPOCH_BYTES, EPOCH_BYTES / BENCH_PAGE / 100 + 1, vv_clock_ns());
		before = vv_clock_s();
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		call = vv_clock_s() - before;
	}
	printf("%.9f %.9f\n", vv_clock_s() - start, call);
	varve_close(v);
	return 0;
}

/* Runs a program with its output into `out`; seconds from start to end. */
static double run(const char *const argv[], char *out, size_t n)
{
	posix_spawn_file_actions_t actions;
	double start = vv_clock_s();
	int ends[2], status = -1;
	size_t got = 0;
	ssize_t k;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		bench_die("pipe: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	errno = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	if (errno)
		bench_die("cannot run '%s': %s", argv[0], strerror(errno));
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	do { /* what does not fit is read over the end of it */
		got = got < n / 2 ? got : n / 2;
		k = read(ends[0], out + got, n - 1 - got);
		got += k > 0 ? (size_t)k : 0;
	} while (k > 0);
	out[got] = '\0';
	close(ends[0]);
	waitpid(pid, &status, 0);
	if (status)
		bench_die("'%s %s' failed with status %d", argv[0], argv[1], status);
	return vv_clock_s() - start;
}

struct samples {
	double restart[BENCH_ROUNDS_MAX], call[BENCH_ROUNDS_MAX], whole[BENCH_ROUNDS_MAX], ls[BENCH_ROUNDS_MAX];
};

static void measure(struct bench *b, const char *self, const char *store, const char *lineage, int i, struct samples *s)
{
	static char out[1 << 20];
	const char *restart[] = { self, "--child", "restart", store, lineage, NULL };
	const char *checkpoint[] = { self, "--child", "checkpoint", store, lineage, NULL };
	const char *ls[] = { b->varve, "ls", store, lineage, NULL };

	run(restart, out, sizeof(out));
	s->restart[i] = atof(out);
	run(checkpoint, out, sizeof(out));
	s->whole[i] = atof(out);
	s->call[i] = atof(strchr(out, ' '));
	if (b->varve)
		s->ls[i] = run(ls, out, sizeof(out));
}

static void compare(const char *metric, double *small, double *large, int rounds)
{
	double a = bench_median(small, rounds), c = bench_median(large, rounds);
	char name[64];

	snprintf(name, sizeof(name), "%s, %d", metric, SHORT);
	bench_line("catalog.scale", name, "time", a * 1e3, "ms");
	snprintf(name, sizeof(name), "%s, %d", metric, LONG);
	bench_line("catalog.scale", name, "time", c * 1e3, "ms");
	bench_at_most("catalog.scale", metric, "time_vs_short", c / a, "x", 3);
}

static void catalog_scale(struct bench *b)
{
	static struct samples s[2];
	char self[1024], store[3200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int rounds = b->rounds < LEAST_ROUNDS ? LEAST_ROUNDS : b->rounds;
	double start;

	if (n < 0)
		bench_die("/proc/self/exe: %s", strerror(errno));
	self[n] = '\0';
	snprintf(store, sizeof(store), "%s/catalog", b->dir);
	build_lineage(store, lineages[0], SHORT);
	start = vv_clock_s();
	build_lineage(store, lineages[1], LONG);
	bench_line("catalog.scale", "building", "per_epoch", (vv_clock_s() - start) / LONG * 1e3, "ms");
	bench_settle(b, 0);
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < 2; k++)
			measure(b, self, store, lineages[k], i, &s[k]);
	if (b->varve)
		compare("ls", s[0].ls, s[1].ls, rounds);
	else
		fprintf(stderr, "bench: no --varve: 'varve ls' was not measured\n");
	compare("open and restart", s[0].restart, s[1].restart, rounds);
	compare("checkpoint", s[0].call, s[1].call, rounds);
	compare("open, restart and checkpoint", s[0].whole, s[1].whole, rounds);
	bench_remove(store);
}

int main(int argc, char **argv)
{
	struct bench b;

	if (argc == 5 && strcmp(argv[1], "--child") == 0)
		return child(argv[2], argv[3], argv[4]);
	bench_open(&b, argc, argv);
	if (bench_wants(&b, "catalog.scale"))
		catalog_scale(&b);
	return bench_close(&b);
}
