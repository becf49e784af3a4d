/* scale.model: the real merge and judge code for up to 65 536 ranks, in one process. Times are the processor time of our code,
 * measured here, plus costs of messages and bytes that are given: a message costs its sender alpha, and a node's ranks share one
 * link. docs/scale.md says what follows from it, and how little of it is a guess. */
#include "base/clock.h"
#include "base/err.h"
#include "core/ranks/owner_batch.h"
#include "core/ranks/topk_merge.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 16, CHUNK = 4096, FEWEST = 64 };
#define MOST (1u << STEPS)

struct machine {
	double alpha, beta;             /* seconds per message, bytes per second of a node's link */
	double local_alpha, local_beta; /* the same between the ranks of a node; local_beta is measured */
	double node;                    /* ranks */
};

struct model {
	struct bench *b;
	struct machine m;
	size_t pages; /* per rank */
	double share; /* of them, held by all ranks; the others by nobody else */
};

struct cost { /* of the busiest rank */
	double messages, bytes; /* sent */
	double compute, alphas, time; /* seconds; alphas: of messages, whatever their length */
};

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *room(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (!p)
		bench_die("no memory for %zu x %zu bytes", n, size);
	return p;
}

static struct vv_digest random_digest(uint64_t *state)
{
	uint64_t w0 = bench_random(state);

	return (struct vv_digest){ { w0, bench_random(state) } };
}

/* So many messages, and seconds of other things. */
static void add(struct cost *c, double messages, double alpha, double bytes, double seconds)
{
	c->messages += messages;
	c->bytes += bytes;
	c->alphas += messages * alpha;
	c->time += messages * alpha + seconds;
}

static void report(const struct model *m, const char *method, uint32_t ranks, const struct cost *c)
{
	char kase[96];

	snprintf(kase, sizeof(kase), "%s, %u ranks, %g%% shared", method, ranks, 100 * m->share);
	bench_line("scale.model", kase, "time", c->time * 1e3, "ms");
	bench_line("scale.model", kase, "compute", c->compute * 1e3, "ms");
	bench_line("scale.model", kase, "message_time", c->alphas * 1e3, "ms");
	bench_line("scale.model", kase, "messages", c->messages, "per rank");
	bench_line("scale.model", kase, "sent", c->bytes / 1e6, "MB per rank");
}

/* ---- topk: the path of rank 0 through the all-reduce */

static int by_digest(const void *a, const void *b)
{
	const struct vv_tuple *x = a, *y = b;

	return vv_topk_merge_before(&x->digest, &y->digest) ? -1 : vv_topk_merge_before(&y->digest, &x->digest);
}

/* The set that comes from the other half of 2^(step + 1) ranks: what is shared (it has an odd digest here) is the same there, in
 * number and frequency; what is not is other content of other ranks. So it is made from the own set, instead of from all the sets
 * behind it. */
static void make_twin(struct vv_tuple *twin, const struct vv_tuple *own, size_t n, uint32_t step, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		twin[i] = own[i];
		twin[i].rank += 1u << step;
		if (own[i].digest.w[1] & 1)
			continue;
		twin[i].digest = random_digest(state);
		twin[i].digest.w[1] &= ~1ull;
	}
	qsort(twin, n, sizeof(*twin), by_digest);
}

static size_t first_set(const struct model *m, struct vv_tuple *own, uint64_t *state)
{
	size_t shared = (size_t)((double)m->pages * m->share);

	for (size_t i = 0; i < m->pages; i++) {
		own[i] = (struct vv_tuple){ random_digest(state), 1, 0 };
		own[i].digest.w[1] = (own[i].digest.w[1] & ~1ull) | (i < shared);
	}
	qsort(own, m->pages, sizeof(*own), by_digest);
	return m->pages;
}

/* Lengths, then the set; beyond the node all its ranks send at once. */
static void add_step(const struct model *m, struct cost *c, uint32_t step, double bytes)
{
	bool local = (1u << step) < m->m.node;
	double alpha = local ? m->m.local_alpha : m->m.alpha, rate = local ? m->m.local_beta : m->m.beta / m->m.node;

	add(c, 2, alpha, bytes, bytes / rate);
}

static void topk(const struct model *m, size_t threshold)
{
	size_t cap = 2 * (m->pages > threshold ? m->pages : threshold), n, kept = 0, shared = (size_t)((double)m->pages * m->share);
	struct vv_tuple *own = room(cap, sizeof(*own)), *twin = room(cap, sizeof(*own)), *out = room(cap, sizeof(*own)), *swap;
	struct cost c = { 0 };
	uint64_t state = 1;
	char name[64];

	n = first_set(m, own, &state);
	for (uint32_t step = 0; step < STEPS; step++) {
		double start;

		make_twin(twin, own, n, step, &state);
		add_step(m, &c, step, (double)n * sizeof(*own));
		start = cpu_s();
		bench_check(vv_topk_merge_sets(own, n, twin, n, MOST, threshold, out, &n), "merge");
		start = cpu_s() - start;
		c.compute += start;
		c.time += start;
		swap = own, own = out, out = swap;
		if (2u << step >= FEWEST && step % 2 == 1) {
			snprintf(name, sizeof(name), "topk 2^%g", log2((double)threshold));
			report(m, name, 2u << step, &c);
		}
	}
	for (size_t i = 0; i < n; i++)
		kept += own[i].digest.w[1] & 1;
	snprintf(name, sizeof(name), "topk 2^%g, %g%% shared", log2((double)threshold), 100 * m->share);
	if (shared)
		bench_line("scale.model", name, "duplicates_found", 100 * (double)kept / (double)shared, "%");
	free(own);
	free(twin);
	free(out);
}

/* ---- exact: judges */

struct owner_trial {
	uint32_t ranks, judges; /* judges: so many of them are simulated */
	struct vv_digest *shared;
	size_t n_shared;
	uint64_t *stored; /* bytes per rank, if all judges are simulated */
	double slowest, total; /* seconds, of one judge and of all */
};

struct stream { /* what one judge gets */
	uint8_t *claims;
	uint64_t *len;
	uint32_t *own; /* claims of each rank that nobody else makes */
	size_t n;
};

/* To whom the x-th of all ranks' own claims belongs: at random, but each rank has as many as it should have in all, if their
 * number is a power of two. */
static uint32_t deal(uint64_t x, uint64_t total, uint32_t ranks)
{
	int half = total > 1 ? (64 - __builtin_clzll(total - 1)) / 2 : 0;

	if (total & (total - 1))
		return (uint32_t)(bench_random(&x) % ranks);
	for (int i = 0; i < 4 && half; i++) {
		x = x * 0x9e3779b97f4a7c15ull & (total - 1);
		x ^= x >> half;
	}
	return (uint32_t)(x % ranks);
}

/* Draws from the space of one judge what the partition would send there: of the shared content what is really its own, of each
 * rank's other content as many digests as there are on the average, from ranks at random. */
static void fill_docket(const struct model *m, const struct owner_trial *t, uint32_t judge, struct stream *d, uint64_t *state)
{
	size_t own = m->pages - t->n_shared, mine = 0;
	uint32_t *at = room(t->n_shared, sizeof(*at));
	uint8_t *p;

	for (size_t i = 0; i < t->n_shared; i++)
		if (vv_owner_index_home(&t->shared[i], t->ranks) == judge)
			at[mine++] = (uint32_t)i;
	d->own = room(t->ranks, sizeof(*d->own));
	d->len = room(t->ranks, sizeof(*d->len));
	for (size_t i = 0; i < own; i++)
		d->own[deal((uint64_t)judge * own + i, (uint64_t)t->ranks * own, t->ranks)]++;
	d->n = own + mine * t->ranks;
	d->claims = p = room(d->n, VV_OWNER_INDEX_CLAIM);
	for (uint32_t r = 0; r < t->ranks; r++) {
		uint32_t tag;

		for (size_t i = 0; i < mine; i++, p += sizeof(struct vv_digest))
			memcpy(p, &t->shared[at[i]], sizeof(struct vv_digest));
		for (uint32_t i = 0; i < d->own[r]; i++, p += sizeof(struct vv_digest)) {
			struct vv_digest digest = random_digest(state);

			digest.w[0] = (uint64_t)(((double)judge + (double)digest.w[0] / 18446744073709551616.0) / t->ranks * 18446744073709551616.0);
			memcpy(p, &digest, sizeof(digest));
		}
		for (size_t i = 0; i < mine + d->own[r]; i++, p += sizeof(tag)) {
			tag = vv_owner_index_tag(CHUNK, i < mine ? at[i] : t->n_shared + bench_random(state) % own);
			memcpy(p, &tag, sizeof(tag));
		}
		d->len[r] = (mine + d->own[r]) * VV_OWNER_INDEX_CLAIM;
	}
	free(at);
}

/* Seconds from claims to places, without what others do in between. */
static double hear_once(struct owner_trial *t, const struct stream *d, uint32_t *decision, uint64_t *lent, bool count)
{
	uint64_t *len = room(t->ranks, sizeof(*len)), *word = room(d->n, sizeof(*word));
	struct vv_owner_index judge;
	struct vv_owner_batch c;
	double start, took;

	vv_owner_index_init(&judge, 0);
	start = cpu_s();
	bench_check(vv_owner_batch_open(&c, &judge, t->ranks, d->claims, d->len), "open the case");
	bench_check(vv_owner_batch_decide(&c, NULL, 1, decision), "decide");
	took = cpu_s() - start;
	for (uint32_t r = 0; r < t->ranks; r++)
		len[r] = vv_owner_index_count_shared(&decision[c.first[r]], c.first[r + 1] - c.first[r]) * sizeof(*lent);
	start = cpu_s();
	bench_check(vv_owner_batch_set_positions(&c, lent, len), "positions");
	vv_owner_batch_get_locations(&c, word);
	took += cpu_s() - start;
	for (uint32_t r = 0; count && r < t->ranks; r++)
		t->stored[r] += c.load[r];
	vv_owner_batch_close(&c);
	free(len);
	free(word);
	return took;
}

static void hear(struct owner_trial *t, const struct stream *d)
{
	enum { TRIES = 3 };
	uint32_t *decision = room(d->n, sizeof(*decision));
	uint64_t *lent = room(d->n, sizeof(*lent));
	double best = INFINITY;

	for (int i = 0; i < TRIES; i++)
		best = fmin(best, hear_once(t, d, decision, lent, i == 0));
	t->total += best;
	t->slowest = fmax(t->slowest, best);
	free(decision);
	free(lent);
}

static void hold_court(const struct model *m, struct owner_trial *t)
{
	const size_t claims = 1ul << 24, pairs = 1ul << 26; /* as many as there is patience for */
	size_t judges = claims / m->pages < pairs / t->ranks ? claims / m->pages : pairs / t->ranks;
	uint64_t state = 7;

	t->n_shared = (size_t)((double)m->pages * m->share);
	t->shared = room(t->n_shared, sizeof(*t->shared));
	t->stored = room(t->ranks, sizeof(*t->stored));
	for (size_t i = 0; i < t->n_shared; i++)
		t->shared[i] = random_digest(&state);
	t->judges = judges < t->ranks ? (uint32_t)judges + !judges : t->ranks;
	for (uint32_t k = 0; k < t->judges; k++) {
		struct stream d = { 0 };

		fill_docket(m, t, (uint32_t)((uint64_t)k * t->ranks / t->judges), &d, &state);
		hear(t, &d);
		free(d.claims);
		free(d.len);
		free(d.own);
	}
}

/* What a rank does to send its claims, and to read what comes back: a counting sort by judge, and walks over all messages. */
static double measure_rank(const struct model *m, uint32_t ranks)
{
	struct vv_digest *mine = room(m->pages, sizeof(*mine)), *sorted = room(m->pages, sizeof(*mine));
	size_t *next = room(ranks + 1, sizeof(*next));
	uint32_t *order = room(m->pages, sizeof(*order));
	uint64_t state = 3;
	double start, took;

	for (size_t i = 0; i < m->pages; i++)
		mine[i] = random_digest(&state);
	start = cpu_s();
	for (size_t i = 0; i < m->pages; i++)
		next[vv_owner_index_home(&mine[i], ranks) + 1]++;
	for (uint32_t r = 0; r < ranks; r++)
		next[r + 1] += next[r];
	for (size_t i = 0; i < m->pages; i++) {
		size_t k = next[vv_owner_index_home(&mine[i], ranks)]++;

		sorted[k] = mine[i];
		order[k] = (uint32_t)i;
	}
	took = cpu_s() - start;
	free(mine);
	free(sorted);
	free(next);
	free(order);
	return took;
}

/* ---- exact: the exchange. Bytes that a rank sends in each round: claims, verdicts, positions lent, places. The lengths before
 * claims and queries are a round of 8 bytes for each rank. */

enum exchange { FLAT, LEADER, GRID };

static void add_round(const struct machine *m, struct cost *c, enum exchange how, double ranks, double bytes)
{
	double near = ranks < m->node ? ranks : m->node, nodes = ranks / near, off = 1 - 1 / nodes;
	double link = m->node * bytes * off / m->beta;

	if (how == FLAT) { /* everyone to everyone */
		add(c, near - 1, m->local_alpha, bytes * (1 - off), bytes * (1 - off) / m->local_beta);
		add(c, ranks - near, m->alpha, bytes * off, link);
	} else if (how == LEADER) { /* to the node's leader, among leaders, to the ranks of the node */
		add(c, 2 * near, m->local_alpha, near * bytes, 2 * near * bytes / m->local_beta);
		add(c, nodes - 1, m->alpha, near * bytes * off, link);
	} else { /* to the rank of the node that has the judge's number within its node, among those of the same number */
		add(c, near - 1, m->local_alpha, bytes, bytes / m->local_beta);
		add(c, nodes - 1, m->alpha, bytes * off, link);
	}
}

/* MPI libraries send small equal parts to all in log2(ranks) messages. */
static void add_lengths(const struct machine *m, struct cost *c, enum exchange how, double ranks)
{
	double steps = log2(ranks);

	if (how != FLAT) {
		add_round(m, c, how, ranks, ranks * 8);
		return;
	}
	add(c, steps, m->alpha, steps * ranks * 4, steps * m->node * ranks * 4 / m->beta);
}

static void exact(const struct model *m, const struct owner_trial *t, enum exchange how, const char *name, double rank_side)
{
	double n = (double)m->pages, lends = m->share * n / t->ranks, refers = m->share * n - lends;
	struct cost c = { .compute = t->slowest + rank_side, .time = t->slowest + rank_side };

	add_lengths(&m->m, &c, how, t->ranks);
	add_lengths(&m->m, &c, how, t->ranks);
	add_round(&m->m, &c, how, t->ranks, n * VV_OWNER_INDEX_CLAIM);
	add_round(&m->m, &c, how, t->ranks, n * sizeof(uint32_t));
	add_round(&m->m, &c, how, t->ranks, lends * sizeof(uint64_t));
	add_round(&m->m, &c, how, t->ranks, refers * sizeof(uint64_t));
	report(m, name, t->ranks, &c);
}

static void report_balance(const struct model *m, const struct owner_trial *t)
{
	double sum = 0, busiest = 0;
	char kase[96];

	snprintf(kase, sizeof(kase), "exact, %u ranks, %g%% shared", t->ranks, 100 * m->share);
	bench_line("scale.model", kase, "judge_per_claim", t->total / ((double)t->judges * (double)m->pages) * 1e9, "ns");
	bench_line("scale.model", kase, "judges_simulated", t->judges, "");
	for (uint32_t r = 0; r < t->ranks; r++) {
		sum += (double)t->stored[r];
		busiest = fmax(busiest, (double)t->stored[r]);
	}
	if (t->judges == t->ranks)
		bench_line("scale.model", kase, "stored_max_over_avg", busiest / (sum / t->ranks), "x");
}

static void exact_all(const struct model *m, uint32_t ranks)
{
	struct owner_trial t = { .ranks = ranks };
	double rank_side = measure_rank(m, ranks);

	hold_court(m, &t);
	report_balance(m, &t);
	exact(m, &t, FLAT, "exact flat", rank_side);
	exact(m, &t, LEADER, "exact by leaders", rank_side);
	exact(m, &t, GRID, "exact by grid", rank_side);
	free(t.shared);
	free(t.stored);
}

/* ---- options */

static double copy_rate(void)
{
	size_t n = 64ul << 20;
	uint8_t *from = bench_memory(n), *to = bench_memory(n);
	double best = 0;

	for (int i = 0; i < 5; i++) {
		double start = cpu_s();

		memcpy(to, from, n);
		best = fmax(best, (double)n / (cpu_s() - start));
	}
	return best;
}

/* A number with a unit of time or rate: 2us, 500ns, 10GB/s. */
static double quantity(const char *option, const char *text)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "", 1 }, { "s", 1 }, { "us", 1e-6 }, { "ns", 1e-9 }, { "MB/s", 1e6 }, { "GB/s", 1e9 } };
	char *end;
	double v = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && v > 0 && strcmp(end, units[i].unit) == 0)
			return v * units[i].factor;
	bench_die("%s: cannot read '%s'; say for example 2us or 10GB/s", option, text);
}

/* Takes --NAME VALUE or --NAME=VALUE out of the arguments. */
static bool take(int *argc, char **argv, const char *name, double *out)
{
	size_t len = strlen(name);

	for (int i = 1; i < *argc; i++) {
		bool joined = strncmp(argv[i], name, len) == 0 && argv[i][len] == '=';
		int used = joined ? 1 : 2;

		if (!joined && (strcmp(argv[i], name) != 0 || i + 1 == *argc))
			continue;
		*out = quantity(name, joined ? argv[i] + len + 1 : argv[i + 1]);
		memmove(&argv[i], &argv[i + used], (size_t)(*argc - i - used + 1) * sizeof(*argv));
		*argc -= used;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct model m = { .m = { .alpha = 2e-6, .beta = 10e9, .local_alpha = 0.5e-6, .node = 64 } };
	const double shares[] = { 0, 0.5, 1 };
	double pages = 0;
	struct bench b;

	take(&argc, argv, "--alpha", &m.m.alpha);
	take(&argc, argv, "--beta", &m.m.beta);
	take(&argc, argv, "--local-alpha", &m.m.local_alpha);
	take(&argc, argv, "--node", &m.m.node);
	take(&argc, argv, "--pages", &pages);
	bench_open(&b, argc, argv);
	m.b = &b;
	m.pages = pages > 0 ? (size_t)pages : b.full ? 1u << 18 : 1u << 10;
	m.m.local_beta = copy_rate();
	bench_baseline("scale.model", "given", "alpha", m.m.alpha * 1e6, "us");
	bench_baseline("scale.model", "given", "beta_of_node", m.m.beta / 1e9, "GB/s");
	bench_baseline("scale.model", "given", "alpha_in_node", m.m.local_alpha * 1e6, "us");
	bench_baseline("scale.model", "measured", "beta_in_node", m.m.local_beta / 1e9, "GB/s");
	bench_baseline("scale.model", "given", "pages_per_rank", (double)m.pages, "");
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		m.share = shares[i];
		for (size_t threshold = 1ul << 16; threshold <= 1ul << 18; threshold *= 2)
			topk(&m, threshold);
		for (uint32_t ranks = FEWEST; ranks <= MOST; ranks *= 4)
			exact_all(&m, ranks);
	}
	return bench_close(&b);
}
