/* async.block: how long varve_checkpoint keeps the caller, against the least that it has to do: copy what fits the buffer, and
 * arm the tracker anew. The rest goes on behind the call and is not counted here. */
#include "base/clock.h"
#include "support.h"
#include "track/scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WARM_UP = 2, SETTLE = 7, DEFAULT_BUFFER = 16 << 20 };

/* A second region of the same size, dirtied in the same way, on which the plain means are measured. */
struct twin {
	uint8_t *p, *to; /* to: touched before, for copies */
	size_t n;
	uint32_t *list;  /* the dirty pages */
	size_t pages;
	struct vv_scan *scan; /* NULL: by mprotect */
};

struct plain {
	double arm, copy, all; /* seconds: re-arm, copy of what fits the buffer, copy of the region */
	double write_protect;          /* one around the region, which what does not fit needs besides */
};

static void ignore(void *arg, uintptr_t lo, uintptr_t hi)
{
	(void)arg;
	(void)lo;
	(void)hi;
}

/* p: the region to be checkpointed. */
static void twin_init(struct twin *t, size_t n, uint8_t **p)
{
	uint8_t *both[2];

	*t = (struct twin){ .to = bench_memory(n), .n = n };
	bench_memory_alike(both, 2, n);
	*p = both[0];
	t->p = both[1];
	t->list = calloc(n / BENCH_PAGE, sizeof(*t->list));
	if (!t->list)
		bench_die("no memory for the list of pages");
	if (vv_scan_open(&t->scan) == 0 && vv_scan_attach(t->scan, NULL, (uintptr_t)t->p, (uintptr_t)t->p + n) == 0)
		return;
	fprintf(stderr, "bench: async.block: the kernel has no asynchronous write protection; re-arming is mprotect\n");
	vv_scan_close(t->scan);
	t->scan = NULL;
}

static void twin_fini(struct twin *t)
{
	vv_scan_close(t->scan);
	munmap(t->p, t->n);
	munmap(t->to, t->n);
	free(t->list);
}

static double write_protect(struct twin *t)
{
	double start = vv_clock_s(), took;

	if (mprotect(t->p, t->n, PROT_READ) < 0)
		bench_die("mprotect failed");
	took = vv_clock_s() - start;
	if (mprotect(t->p, t->n, PROT_READ | PROT_WRITE) < 0)
		bench_die("mprotect failed");
	return took;
}

static bool is_tracked(const struct twin *t)
{
	return t->scan && t->pages < t->n / BENCH_PAGE;
}

static bool overflows(const struct twin *t, size_t buffer)
{
	return t->pages > buffer / BENCH_PAGE;
}

/* What the tracker does at the call. While few pages are written it collects them by a scan, which protects them again. When
 * nearly all are, writes are not tracked: what does not fit the buffer is write-protected, by one mprotect of the whole. */
static double rearm(struct twin *t)
{
	double start = vv_clock_s();

	if (!is_tracked(t))
		return write_protect(t);
	bench_check(vv_scan_collect(t->scan, (uintptr_t)t->p, (uintptr_t)t->p + t->n, ignore, NULL), "scan");
	return vv_clock_s() - start;
}

static struct plain twin_measure(struct twin *t, size_t buffer, uint64_t seed)
{
	size_t fit = buffer / BENCH_PAGE < t->pages ? buffer / BENCH_PAGE : t->pages;
	struct plain r = { 0 };
	double start;

	bench_pick(t->list, t->n / BENCH_PAGE, t->pages, seed);
	bench_change(t->p, t->n, t->pages, seed);
	r.arm = rearm(t);
	if (is_tracked(t) && overflows(t, buffer))
		r.write_protect = write_protect(t);
	start = vv_clock_s();
	for (size_t i = 0; i < fit; i++)
		memcpy(t->to + i * BENCH_PAGE, t->p + t->list[i] * (size_t)BENCH_PAGE, BENCH_PAGE);
	r.copy = vv_clock_s() - start;
	start = vv_clock_s();
	memcpy(t->to, t->p, t->n);
	r.all = vv_clock_s() - start;
	return r;
}

struct times {
	double ours, arm, copy, all, write_protect; /* medians */
};

static void report(const char *kase, const struct times *m)
{
	bench_line("async.block", kase, "time", m->ours * 1e3, "ms");
	bench_baseline("async.block", kase, "rearm", m->arm * 1e3, "ms");
	bench_baseline("async.block", kase, "copy", m->copy * 1e3, "ms");
	bench_baseline("async.block", kase, "memcpy_of_region", m->all * 1e3, "ms");
	if (m->write_protect == 0)
		return;
	bench_baseline("async.block", kase, "fence", m->write_protect * 1e3, "ms");
	bench_line("async.block", kase, "time_vs_copy_rearm_and_fence", m->ours / (m->copy + m->arm + m->write_protect), "x");
}

/* Where watched pages overflow the buffer, the order of writes is learned first. With three rounds that would be measured. */
static int warm_up(const struct twin *t, size_t buffer)
{
	return is_tracked(t) && overflows(t, buffer) ? SETTLE : WARM_UP;
}

static struct times measure(struct bench *b, struct bench_session *s, struct twin *t, size_t buffer)
{
	double ours[BENCH_ROUNDS_MAX], arm[BENCH_ROUNDS_MAX], copy[BENCH_ROUNDS_MAX], all[BENCH_ROUNDS_MAX];
	double around[BENCH_ROUNDS_MAX];

	for (int i = -warm_up(t, buffer); i < b->rounds; i++) {
		struct plain plain;
		double took;

		bench_change(s->p, s->n, t->pages, 100 + (uint64_t)i);
		took = bench_session_checkpoint(s);
		plain = twin_measure(t, buffer, 100 + (uint64_t)i);
		if (i < 0)
			continue;
		ours[i] = took;
		arm[i] = plain.arm;
		copy[i] = plain.copy;
		all[i] = plain.all;
		around[i] = plain.write_protect;
	}
	return (struct times){ bench_median(ours, b->rounds), bench_median(arm, b->rounds), bench_median(copy, b->rounds),
			       bench_median(all, b->rounds), bench_median(around, b->rounds) };
}

/* buffer 0: the default. */
static void block(struct bench *b, struct twin *t, uint8_t *p, double percent, size_t buffer)
{
	char kase[64], options[64] = "";
	struct bench_session s;
	struct times m;

	snprintf(kase, sizeof(kase), "%g%%%s", percent, buffer ? " whole buffer" : "");
	if (buffer)
		snprintf(options, sizeof(options), "buffer=%zu", buffer);
	t->pages = (size_t)((double)(t->n / BENCH_PAGE) * percent / 100);
	bench_fill(b, p, t->n, 1);
	if (bench_session_open(b, "block", options, p, t->n, &s))
		bench_die("%s", varve_last_error());
	bench_session_checkpoint(&s);
	m = measure(b, &s, t, buffer ? buffer : DEFAULT_BUFFER);
	bench_session_verify(&s, t->to);
	bench_session_close(&s);
	report(kase, &m);
	if (buffer) {
		bench_at_most("async.block", kase, "time_vs_memcpy_of_region", m.ours / m.all, "x", 1.3);
		return;
	}
	bench_at_most("async.block", kase, "time_vs_copy_and_rearm", m.ours / (m.copy + m.arm), "x", 1.5);
	if (percent == 1)
		bench_at_most("async.block", kase, "time_vs_memcpy_of_region", m.ours / m.all, "x", 0.25);
}

int main(int argc, char **argv)
{
	struct bench b;
	struct twin t;
	uint8_t *p;
	size_t n;

	bench_open(&b, argc, argv);
	n = bench_size(&b, 1ul << 30, 1ul << 30);
	twin_init(&t, n, &p);
	block(&b, &t, p, 1, 0);
	block(&b, &t, p, 10, 0);
	block(&b, &t, p, 100, 0);
	block(&b, &t, p, 100, n);
	twin_fini(&t);
	munmap(p, n);
	return bench_close(&b);
}
