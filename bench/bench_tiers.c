/* tiers.crash: a program with a store in shared memory dies; its restart, against memcpy of the same bytes by all cores, from a mapping of the layer. And what the copies
 * to a tier on the disk cost a program that keeps all cores busy: the same work with the same checkpoints, with the tier and without it, in turn. */
#include "base/clock.h"
#include "support.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 12, SLICES = 64, PASSES = 6 };

struct crash {
	char store[64], layer[192], folder[128];
	uint8_t *p, *to;
	size_t n;
};

static void name_store(struct crash *c)
{
	snprintf(c->store, sizeof(c->store), "ram:bench-%ld", (long)getpid());
	snprintf(c->folder, sizeof(c->folder), "/dev/shm/varve-%lu/bench-%ld", (unsigned long)geteuid(), (long)getpid());
	snprintf(c->layer, sizeof(c->layer), "%s/crash/00000000/0000000001.r0.layer", c->folder);
}

/* In a process of its own: a checkpoint of all bytes, then its death. */
static void write_and_die(struct crash *c)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		varve *v = NULL;

		bench_check(varve_open(c->store, "crash", "codec=none", &v), "varve_open");
		bench_check(varve_protect(v, "p", c->p, c->n), "varve_protect");
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		bench_check(varve_wait(v, varve_epoch(v)), "varve_wait");
		raise(SIGKILL);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		bench_die("tiers.crash: the program was to be killed, and ended otherwise");
}

static double restart(struct crash *c)
{
	double start, took;
	varve *v = NULL;

	memset(c->to, 1, c->n);
	start = vv_clock_s();
	bench_check(varve_open(c->store, "crash", NULL, &v), "varve_open");
	bench_check(varve_protect(v, "p", c->to, c->n), "varve_protect");
	bench_check(varve_restart(v, VARVE_LATEST), "varve_restart");
	took = vv_clock_s() - start;
	bench_check(varve_close(v), "varve_close");
	if (memcmp(c->to, c->p, c->n) != 0)
		bench_die("tiers.crash: the restart gave other bytes");
	return took;
}

static void time_restart(struct bench *b, struct crash *c)
{
	double ours[BENCH_ROUNDS_MAX], copy[BENCH_ROUNDS_MAX];

	for (int i = 0; i < b->rounds; i++) {
		bench_remove(c->folder);
		write_and_die(c);
		ours[i] = restart(c);
		copy[i] = bench_copy_mapped(b, c->layer, c->to, c->n, false);
	}
	bench_line("tiers.crash", "restart", "time", bench_median(ours, b->rounds) * 1e3, "ms");
	bench_baseline("tiers.crash", "restart", "memcpy", bench_median(copy, b->rounds) * 1e3, "ms");
	bench_at_most("tiers.crash", "restart", "time_vs_memcpy", bench_median(ours, b->rounds) / bench_median(copy, b->rounds), "x", 1.5);
}

/* ---- the program that goes on -------------------------------------------------------------------------------------------------- */

/* Work on a part of the memory, most of which only reads. */
static void compute(void *arg, size_t i)
{
	struct crash *c = arg;
	size_t slice = c->n / SLICES / 8;
	const uint64_t *word = (const uint64_t *)(const void *)c->p + i * slice;
	volatile uint64_t sink = 0;
	uint64_t sum = 0;

	for (int pass = 0; pass < PASSES; pass++)
		for (size_t k = 0; k < slice; k++)
			sum = sum * 31 + word[k];
	sink = sum;
	(void)sink;
}

/* The first epoch has all bytes. */
static void await_first(const char *tier)
{
	char path[3300];

	snprintf(path, sizeof(path), "%s/crash/00000000/0000000001.commit", tier);
	while (access(path, F_OK) < 0)
		vv_clock_sleep(0.01);
}

/* Each step changes 1 % of the pages and takes a checkpoint; seconds of all steps, without the closing and the first epoch. */
static double work(struct bench *b, struct crash *c, const char *options, const char *tier)
{
	double start, took;
	varve *v = NULL;

	bench_remove(c->folder);
	bench_check(varve_open(c->store, "crash", options, &v), "varve_open");
	bench_check(varve_protect(v, "p", c->p, c->n), "varve_protect");
	bench_check(varve_checkpoint(v), "varve_checkpoint");
	bench_check(varve_wait(v, varve_epoch(v)), "varve_wait");
	if (tier)
		await_first(tier);
	start = vv_clock_s();
	for (int step = 0; step < STEPS; step++) {
		vv_pool_each(b->pool, SLICES, compute, c);
		bench_change(c->p, c->n, c->n / BENCH_PAGE / 100, (uint64_t)step);
		bench_check(varve_checkpoint(v), "varve_checkpoint");
	}
	bench_check(varve_wait(v, varve_epoch(v)), "varve_wait");
	took = vv_clock_s() - start;
	bench_check(varve_close(v), "varve_close");
	return took;
}

static void time_work(struct bench *b, struct crash *c)
{
	double with[BENCH_ROUNDS_MAX], without[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
	char options[4096], tier[3200];

	snprintf(tier, sizeof(tier), "%s/tier", b->dir);
	snprintf(options, sizeof(options), "keep=2 tiers=\"%s keep=2\"", tier);
	work(b, c, "keep=2", NULL);
	for (int i = 0; i < b->rounds; i++) {
		bench_remove(tier);
		bench_settle(b, 0);
		without[i] = work(b, c, "keep=2", NULL);
		with[i] = work(b, c, options, tier);
		ratio[i] = with[i] / without[i];
	}
	bench_line("tiers.crash", "copying", "time", bench_median(with, b->rounds), "s");
	bench_baseline("tiers.crash", "copying", "without_tier", bench_median(without, b->rounds), "s");
	bench_at_most("tiers.crash", "copying", "time_vs_without", bench_median(ratio, b->rounds), "x", 1.01);
}

int main(int argc, char **argv)
{
	struct bench b;
	struct crash c;

	bench_open(&b, argc, argv);
	if (access("/dev/shm", W_OK) < 0)
		bench_skip("no /dev/shm");
	name_store(&c);
	c.n = bench_size(&b, 256 << 20, 1ull << 30);
	c.p = bench_memory(c.n);
	c.to = bench_memory(c.n);
	bench_fill(&b, c.p, c.n, 7);
	if (bench_wants(&b, "tiers.crash")) {
		time_restart(&b, &c);
		time_work(&b, &c);
	}
	bench_remove(c.folder);
	munmap(c.p, c.n);
	munmap(c.to, c.n);
	return bench_close(&b);
}
