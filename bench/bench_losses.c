/* scale.redundancy: parity and lost nodes for 64 to 65 536 ranks, each on a node of its own. Stripes, sets, traffic and the blocks that a rebuild reads come from
 * the library's code. Failures are drawn from a published rate. Times follow from bytes and from given rates, the same for all schemes. docs/scale.md has the
 * model, what it omits, and the results. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/plan/interval.h"
#include "engine/ranks/parity_job.h"
#include "support.h"
#include <math.h>
#include <stdio.h>

enum { FEWEST = 64, MOST = 65536, FAILURES = 20000, PENDING = 64, BURST = 8, SETS = 64 /* nodes of a set, at most */ };

static struct { /* seconds, bytes, bytes per second */
	double node_mtbf;           /* of one node: all failures of a job, over its nodes */
	double program, one_node;   /* shares of the failures: of the program alone, of one node; the others need the parallel file system */
	double state, fresh;        /* of a node: all its memory; the share of it that is new in an epoch */
	double disk, net, copy, pfs; /* rates: of a node's disk, link and memory; of the whole parallel file system */
	double relaunch;
} given = { .node_mtbf = 29300 * 3600., .program = 0.31, .one_node = 0.54, .state = 16e9, .fresh = 0.1,
	    .disk = 2e9, .net = 10e9, .copy = 10e9, .pfs = 1e12, .relaunch = 60 };

enum system { VARVE, SCR_XOR, SCR_PARTNER, FTI };

struct scheme {
	const char *name;
	enum system system;
	unsigned k, m; /* of varve */
	bool full;     /* all bytes are new in each epoch */
};

static const struct scheme schemes[] = {
	{ "varve partner", VARVE, 1, 1, false },  { "varve xor:8", VARVE, 7, 1, false }, { "varve rs:6+2", VARVE, 6, 2, false },
	{ "varve rs:6+2, all new", VARVE, 6, 2, true }, { "SCR partner", SCR_PARTNER, 0, 0, true }, { "SCR xor 8", SCR_XOR, 0, 0, true },
	{ "FTI rs 4", FTI, 0, 0, true },
};

struct costs { /* of a scheme with some number of nodes; seconds */
	uint32_t nodes, sets;
	unsigned bears; /* losses in a set */
	double blocked, durable, protected, rebuild, interval;
	double parity, sent, plan; /* of new bytes; bytes of the busiest node; seconds of our code */
};

/* The set of node 0, whose layers differ in length by up to a fifth. */
static void open_set(const struct scheme *s, uint32_t nodes, double mean, struct vv_parity_job *j)
{
	size_t sets = vv_parity_plan_sets(nodes, s->k + s->m);
	struct vv_parity_head h = { .n_ranks = nodes, .k = (uint8_t)s->k, .m = (uint8_t)s->m };
	uint64_t seed = nodes;

	h.layer = vv_mem_new(nodes / sets + 1, sizeof(*h.layer));
	if (!h.layer)
		bench_die("no memory for a set");
	for (uint32_t d = 0; d < nodes; d += (uint32_t)sets, h.n_layers++)
		h.layer[h.n_layers] = (struct vv_parity_layer){ .rank = d, .domain = (uint32_t)h.n_layers,
								 .len = (uint64_t)(mean * (0.8 + 0.4 * (double)(bench_random(&seed) >> 11) * 0x1p-53)) };
	bench_check(vv_parity_job_init(j, &h), "the plan of a set");
	for (size_t i = 0; i < j->head.n_layers; i++)
		j->data[i].there = j->parity[i].there = true;
}

static void lose(struct vv_parity_job *j, size_t member)
{
	j->data[member].there = j->parity[member].there = false;
	j->data[member].wanted = j->parity[member].wanted = true;
}

/* The losses that the library can undo. */
static unsigned count_bears(struct vv_parity_job *j)
{
	unsigned n = 0;

	while (n < j->head.n_layers) {
		lose(j, n);
		if (!vv_parity_job_is_possible(j))
			break;
		n++;
	}
	return n;
}

static double largest(const double v[SETS])
{
	double x = 0;

	for (size_t i = 0; i < SETS; i++)
		x = fmax(x, v[i]);
	return x;
}

/* Parity: every data block goes to the node that computes the stripe, the first with parity; it sends the other parity blocks. */
static void measure_parity(const struct vv_parity_job *j, struct costs *c)
{
	const struct vv_parity_plan *p = &j->plan;
	double sent[SETS] = { 0 }, got[SETS] = { 0 }, disk[SETS] = { 0 }, all = 0, parity = 0;

	for (size_t s = 0; s < p->n_stripes; s++) {
		const struct vv_parity_block *b = vv_parity_plan_stripe(p, s);
		uint32_t coder = b[p->code.k].member;

		for (unsigned i = 0; i < vv_parity_plan_data(p, b); i++) {
			sent[b[i].member] += b[i].len;
			got[coder] += b[i].len;
		}
		for (unsigned i = 1; i < p->code.m; i++) {
			sent[coder] += b[p->code.k + i].len;
			got[b[p->code.k + i].member] += b[p->code.k + i].len;
		}
	}
	for (size_t i = 0; i < p->n_members; i++) {
		disk[i] = (double)(j->head.layer[i].len + p->parity_len[i]); /* read, and written */
		all += (double)j->head.layer[i].len;
		parity += (double)p->parity_len[i];
	}
	c->parity = parity / all;
	c->sent = largest(sent);
	c->protected = c->durable + largest(disk) / given.disk + fmax(c->sent, largest(got)) / given.net + largest(got) / given.copy;
}

/* The loss of the first node of the set: bytes that the others read, by the stripes' sources, and that the new one writes. */
static double measure_rebuild(struct vv_parity_job *j)
{
	double read[SETS] = { 0 }, wrote = 0;
	uint8_t from[VV_ERASURE_BLOCKS];

	lose(j, 0);
	for (size_t s = 0; s < j->plan.n_stripes; s++) {
		const struct vv_parity_block *b = vv_parity_plan_stripe(&j->plan, s);

		for (unsigned k = 0; k < (unsigned)(j->plan.code.k + j->plan.code.m); k++) {
			unsigned n = vv_parity_job_is_wanted(j, b, k) ? vv_parity_job_sources(j, b, k, from) : 0;

			wrote += n ? b[k].len : 0;
			for (unsigned i = 0; i < n; i++)
				read[b[from[i]].member] += b[from[i]].len;
		}
	}
	return largest(read) / given.disk + wrote / given.net + wrote / given.disk;
}

static void cost_varve(const struct scheme *s, struct costs *c)
{
	double mean = given.state * (s->full ? 1 : given.fresh), start;
	struct vv_parity_job j = { 0 };

	c->sets = (uint32_t)vv_parity_plan_sets(c->nodes, s->k + s->m);
	c->durable = mean / given.disk;
	c->blocked = 1.5 * mean / given.copy; /* the target of steady.felt */
	start = vv_clock_s();
	open_set(s, c->nodes, mean, &j);
	c->plan = vv_clock_s() - start;
	if (j.head.n_layers > SETS)
		bench_die("a set of %zu nodes", j.head.n_layers);
	measure_parity(&j, c);
	c->bears = count_bears(&j);
	vv_parity_job_fini(&j);
	open_set(s, c->nodes, 2 * given.state, &j); /* the layers that epochs need have up to twice their bytes */
	c->rebuild = measure_rebuild(&j);
	vv_parity_job_fini(&j);
}

/* The program waits until the checkpoint is complete. */
static void cost_others(const struct scheme *s, struct costs *c)
{
	double n = given.state, parity = s->system == SCR_XOR ? n / 7 : n, moved = s->system == FTI ? 3 * n : n;

	c->bears = s->system == FTI ? 2 : 1;
	c->parity = parity / n;
	c->sent = moved;
	c->durable = n / given.disk;
	c->blocked = c->protected = c->durable + moved / given.net + parity / given.disk;
	/* Survivors read data and parity, those of a partner only one of them; the new node writes both. */
	c->rebuild = (s->system == SCR_PARTNER ? n : n + parity) / given.disk + (n + parity) / given.net + (n + parity) / given.disk;
}

static struct costs cost_of(const struct scheme *s, uint32_t nodes)
{
	struct vv_interval daly = { .mtbf = given.node_mtbf / nodes };
	struct costs c = { .nodes = nodes };

	if (s->system == VARVE)
		cost_varve(s, &c);
	else
		cost_others(s, &c);
	c.interval = fmax(vv_interval_after(&daly, c.blocked), c.protected - c.blocked); /* an epoch ends before the next one begins */
	return c;
}

static double uniform(uint64_t *state)
{
	return ((double)(bench_random(state) >> 11) + 0.5) * 0x1p-53;
}

/* The set of a node. A partner is the next node. */
static uint32_t set_of(const struct scheme *s, const struct costs *c, uint32_t node)
{
	return s->system == VARVE ? node % c->sets : node / (s->system == FTI ? 4 : 8);
}

static bool survives(const struct scheme *s, const struct costs *c, const uint32_t *lost, int n)
{
	for (int i = 0; i < n; i++) {
		unsigned together = 0;

		for (int k = 0; k < n; k++)
			together += s->system == SCR_PARTNER ? k == i || (lost[i] + 1) % c->nodes == lost[k] : set_of(s, c, lost[i]) == set_of(s, c, lost[k]);
		if (together > c->bears)
			return false;
	}
	return true;
}

/* Adds the nodes that a failure takes; false: it takes more than nodes. burst: the share of failures of the third kind that
 * takes 2 to 8 neighbours instead. */
static bool add_losses(uint32_t nodes, double burst, uint64_t *state, uint32_t *lost, int *n)
{
	double kind = uniform(state);
	uint32_t first = (uint32_t)(bench_random(state) % nodes);
	int more = 1;

	if (kind < given.program)
		more = 0;
	else if (kind >= given.program + given.one_node)
		more = uniform(state) < burst ? 2 + (int)(bench_random(state) % (BURST - 1)) : -1;
	for (int i = 0; i < more; i++) {
		uint32_t node = (first + (uint32_t)i) % nodes;
		int k = 0;

		while (k < *n && lost[k] != node)
			k++;
		if (k == *n && *n < PENDING)
			lost[(*n)++] = node;
	}
	return more >= 0;
}

/* The share of the time that is no progress: checkpoints, lost work, recovery. */
static double simulate(const struct scheme *s, const struct costs *c, double burst, uint64_t seed)
{
	double mtbf = given.node_mtbf / c->nodes, total = 0, done = 0, base = 0, left = 0; /* left: of a recovery */
	double cycle = c->interval + c->blocked, flush = c->nodes * given.state / given.pfs;
	uint32_t lost[PENDING];
	bool redundant = true;
	int n_lost = 0;

	for (int i = 0; i < FAILURES; i++) {
		double gap = -mtbf * log(uniform(&seed)), ran = gap - left, epochs;

		total += gap;
		if (ran > 0) { /* the recovery came to its end, and the program ran */
			n_lost = 0;
			redundant = true;
		}
		redundant &= add_losses(c->nodes, burst, &seed, lost, &n_lost);
		epochs = floor((ran - (n_lost ? c->protected : c->durable)) / cycle);
		done += epochs > 0 ? epochs * c->interval : 0;
		if (redundant && survives(s, c, lost, n_lost)) {
			left = given.relaunch + given.state / given.disk + (n_lost ? c->rebuild : 0);
		} else { /* copies go to the parallel file system all the time; the newest complete one is that old */
			redundant = false;
			done = fmax(base, done - flush * (1 + uniform(&seed)) * c->interval / cycle);
			base = done;
			left = given.relaunch + flush;
		}
	}
	return 1 - done / total;
}

static void report(const struct scheme *s, uint32_t nodes)
{
	struct costs c = cost_of(s, nodes);
	const struct {
		const char *metric, *unit;
		double value;
	} lines[] = {
		{ "nodes_of_a_set", "", s->system == VARVE ? ceil((double)nodes / c.sets) : s->system == FTI ? 4 : s->system == SCR_XOR ? 8 : 2 },
		{ "losses_borne", "", c.bears }, { "parity_vs_new", "x", c.parity }, { "sent_by_busiest", "GB", c.sent / 1e9 },
		{ "plan", "ms", c.plan * 1e3 }, { "protected", "s", c.protected }, { "rebuild", "s", c.rebuild }, { "interval", "s", c.interval },
		{ "time_lost", "%", 100 * simulate(s, &c, 0, nodes) }, { "time_lost_with_bursts", "%", 100 * simulate(s, &c, 0.5, nodes) },
	};
	char kase[96];

	snprintf(kase, sizeof(kase), "%s, %u ranks", s->name, nodes);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		bench_line("scale.redundancy", kase, lines[i].metric, lines[i].value, lines[i].unit);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	if (bench_wants(&b, "scale.redundancy"))
		for (uint32_t nodes = FEWEST; nodes <= MOST; nodes *= 4)
			for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
				report(&schemes[i], nodes);
	return bench_close(&b);
}
