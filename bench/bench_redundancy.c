/* redundancy.cost and redundancy.rebuild: 8 ranks stand for 8 hosts, each with a store of its own. All stores are on one disk, and the ranks share the cores, so
 * ratios are what to look at. The schemes take turns, epoch by epoch, in changing order. */
#include "ranks.h"
#include "engine/epoch/background.h"
#include "engine/epoch/commit_ranks.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOSTS = 8, EPOCHS = 8, SETTLED = 2 }; /* epochs that count; those before them */

struct scheme {
	const char *name;
	unsigned k, m; /* of its stripes; 0: none */
};

static const struct scheme schemes[] = { { "none", 0, 0 }, { "partner", 1, 1 }, { "xor:8", 7, 1 }, { "rs:6+2", 6, 2 } };

enum { SCHEMES = sizeof(schemes) / sizeof(schemes[0]) };

struct host { /* a rank with its store */
	const struct scheme *scheme;
	varve *v;
	uint8_t *p;
	size_t n;
	char root[PATH_LEN + 16], store[PATH_LEN + 64];
	_Atomic double durable; /* when the last epoch became durable; 0: it has not */
};

/* ---- a session ---------------------------------------------------------------------------------------------------------- */

static void note_durable(void *arg, uint64_t epoch, int rc)
{
	struct host *h = arg;

	(void)epoch;
	bench_check(rc, "a checkpoint");
	atomic_store(&h->durable, vv_clock_s());
}

static void host_open(const struct job *j, struct host *h)
{
	char options[OPTIONS_LEN];

	snprintf(options, sizeof(options), "codec=none threads=%u keep=2 log=error failure-domain=store redundancy=%s", j->threads, h->scheme->name);
	bench_check(varve_open_mpi(MPI_COMM_WORLD, h->store, "hosts", options, &h->v), options);
	bench_check(varve_protect(h->v, "p", h->p, h->n), "varve_protect");
	bench_check(varve_on_done(h->v, note_durable, h), "varve_on_done");
}

static void host_new(struct job *j, const struct scheme *scheme, size_t n, struct host *h)
{
	*h = (struct host){ .scheme = scheme, .p = bench_memory(n), .n = n };
	bench_fill(&j->b, h->p, n, 1000 + (uint64_t)j->rank);
	snprintf(h->root, sizeof(h->root), "%s/hosts", j->disk);
	snprintf(h->store, sizeof(h->store), "%s/%d-%ld", h->root, j->rank, (long)(scheme - schemes));
	if (mkdir(h->root, 0777) < 0 && errno != EEXIST)
		bench_die("cannot make '%s': %s", h->root, strerror(errno));
	barrier();
	host_open(j, h);
}

static void host_end(struct host *h)
{
	bench_remove(h->store);
	munmap(h->p, h->n);
	barrier();
}

/* What the newest epoch holds is what is in memory. */
static void verify(const struct job *j, const struct host *h)
{
	uint8_t *copy = bench_memory(h->n);

	bench_check(varve_restart_region(h->v, VARVE_LATEST, "p", copy, h->n), "varve_restart_region");
	if (memcmp(copy, h->p, h->n) != 0)
		bench_die("%s: rank %d: the epoch holds other bytes than memory", h->scheme->name, j->rank);
	munmap(copy, h->n);
}

struct sample { /* of an epoch, from the call on; seconds of the slowest rank, bytes of all ranks */
	double blocked, durable, protected, added, layers, parity; /* blocked: of all ranks, the mean */
};

static bool is_done(const struct host *h)
{
	return h->scheme->k ? varve_protected_epoch(h->v) == varve_epoch(h->v) : atomic_load(&h->durable) > 0;
}

static struct sample take(const struct job *j, struct host *h)
{
	double start, parity = (double)h->v->background->metrics.bytes_parity;
	struct varve_stats st;
	struct sample s;

	atomic_store(&h->durable, 0);
	barrier();
	start = vv_clock_s();
	bench_check(varve_checkpoint(h->v), "varve_checkpoint");
	s.blocked = sum(vv_clock_s() - start) / j->ranks;
	while (!is_done(h)) {
		if (vv_clock_s() - start > 300)
			bench_die("%s: epoch %llu was not protected within 5 minutes", h->scheme->name, (unsigned long long)varve_epoch(h->v));
		vv_clock_sleep(0.5e-3);
	}
	s.protected = most(vv_clock_s() - start);
	bench_check(varve_wait(h->v, VARVE_LATEST), "varve_wait");
	s.durable = most(atomic_load(&h->durable) - start);
	bench_check(varve_stats(h->v, &st), "varve_stats");
	s.added = sum((double)st.bytes_stored);
	s.layers = sum((double)st.bytes_layer);
	s.parity = sum((double)h->v->background->metrics.bytes_parity - parity);
	return s;
}

static void change(const struct job *j, struct host *h, size_t per_mille, int epoch)
{
	bench_change(h->p, h->n, h->n / BENCH_PAGE * per_mille / 1000, (uint64_t)epoch * HOSTS + (uint64_t)j->rank);
}

/* ---- redundancy.cost ------------------------------------------------------------------------------------------------------ */

static double median_of(const struct sample *s, size_t field)
{
	double v[EPOCHS];

	for (int i = 0; i < EPOCHS; i++)
		memcpy(&v[i], (const char *)&s[i] + field, sizeof(v[i]));
	return bench_median(v, EPOCHS);
}

#define MEDIAN(s, field) median_of(s, offsetof(struct sample, field))

static void report_times(const char *kase, const struct scheme *scheme, const struct sample *s, const struct sample *without)
{
	double ratio[EPOCHS], blocked[EPOCHS], bound = 1 + (double)scheme->m / scheme->k, worst = 0;

	for (int i = 0; i < EPOCHS; i++) {
		ratio[i] = s[i].protected / s[i].durable;
		blocked[i] = s[i].blocked / without[i].blocked;
		worst = ratio[i] > worst ? ratio[i] : worst;
	}
	bench_line("redundancy.cost", kase, "durable", MEDIAN(s, durable) * 1e3, "ms");
	bench_line("redundancy.cost", kase, "protected", MEDIAN(s, protected) * 1e3, "ms");
	bench_at_most("redundancy.cost", kase, "protected_vs_durable", bench_median(ratio, EPOCHS), "x", 1.5);
	bench_line("redundancy.cost", kase, "protected_vs_durable_worst", worst, "x");
	bench_baseline("redundancy.cost", kase, "written_vs_new", bound, "x"); /* the least by a disk that does nothing but write */
	bench_at_most("redundancy.cost", kase, "blocked_vs_none", bench_median(blocked, EPOCHS), "x", 1.1);
	bench_line("redundancy.cost", kase, "durable_vs_none", MEDIAN(s, durable) / MEDIAN(without, durable), "x");
}

static void report(const char *share, const struct scheme *scheme, const struct sample *s, const struct sample *without)
{
	double added = 0, layers = 0, parity = 0, plain = 0;
	char kase[NAME_LEN];

	snprintf(kase, sizeof(kase), "%s, %s changed", scheme->name, share);
	for (int i = 0; i < EPOCHS; i++) {
		added += s[i].added;
		layers += s[i].layers;
		parity += s[i].parity;
		plain += without[i].added;
	}
	bench_line("redundancy.cost", kase, "blocked", MEDIAN(s, blocked) * 1e3, "ms");
	if (!scheme->k) {
		bench_line("redundancy.cost", kase, "durable", MEDIAN(s, durable) * 1e3, "ms");
		return;
	}
	bench_at_most("redundancy.cost", kase, "parity_vs_layers", parity / layers, "x", (double)scheme->m / scheme->k + 0.01);
	bench_line("redundancy.cost", kase, "parity_vs_pages", parity / added, "x"); /* layers have tables, too */
	bench_line("redundancy.cost", kase, "new_vs_none", added / plain, "x"); /* full epochs, so that old layers can go */
	report_times(kase, scheme, s, without);
}

static void cost(struct job *j, const char *share, size_t per_mille)
{
	size_t n = bench_size(&j->b, 32ul << 20, 128ul << 20);
	struct sample s[SCHEMES][EPOCHS];
	struct host h[SCHEMES];

	for (int k = 0; k < SCHEMES; k++) {
		host_new(j, &schemes[k], n, &h[k]);
		take(j, &h[k]);
	}
	for (int i = -SETTLED; i < EPOCHS; i++)
		for (int turn = 0; turn < SCHEMES; turn++) { /* what the one before leaves to the disk hits each of them */
			int k = (turn + i + SETTLED) % SCHEMES;
			struct sample one;

			change(j, &h[k], per_mille, i + SETTLED + 1);
			one = take(j, &h[k]);
			if (i >= 0)
				s[k][i] = one;
		}
	for (int k = 0; k < SCHEMES; k++) {
		verify(j, &h[k]);
		bench_check(varve_close(h[k].v), "varve_close");
		host_end(&h[k]);
		if (j->rank == 0)
			report(share, &schemes[k], s[k], s[0]);
	}
}

/* ---- redundancy.rebuild --------------------------------------------------------------------------------------------------- */

static int drop_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)at;
	if (kind == FTW_F && st->st_size >= BENCH_PAGE)
		bench_drop(path);
	return 0;
}

static void drop_store(const struct host *h)
{
	if (nftw(h->store, drop_file, 16, FTW_PHYS) < 0)
		bench_die("cannot read '%s'", h->store);
	barrier();
}

static double left_to_read;

static int read_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	static char step[BENCH_STEP];
	int fd = kind == FTW_F && st->st_size >= BENCH_PAGE && left_to_read > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? 0 : 1;

	(void)at;
	while (n > 0 && left_to_read > 0) {
		n = read(fd, step, left_to_read < BENCH_STEP ? (size_t)left_to_read : BENCH_STEP);
		left_to_read -= (double)n;
	}
	if (fd >= 0)
		close(fd);
	return n < 0;
}

/* Seconds in which all ranks read, from their own layers and parity, as many bytes as each has read for the rebuilding. */
static double read_alone(const struct host *h, double bytes)
{
	double start;

	drop_store(h);
	left_to_read = bytes;
	start = vv_clock_s();
	if (nftw(h->store, read_file, 16, FTW_PHYS) != 0 || left_to_read > 0)
		bench_die("'%s': cannot read %.0f bytes more", h->store, left_to_read);
	return most(vv_clock_s() - start);
}

/* The store of host `lost` is gone, if there is one; seconds until all have opened the lineage. */
static double start_again(struct job *j, struct host *h, int lost)
{
	double start;

	bench_check(varve_close(h->v), "varve_close");
	if (j->rank == lost)
		bench_remove(h->store);
	else
		drop_store(h); /* has a barrier */
	if (j->rank == lost)
		barrier();
	start = vv_clock_s();
	host_open(j, h);
	return most(vv_clock_s() - start);
}

struct rebuilt {
	double took, intact, read, ratio, reads, writes;
};

static struct rebuilt rebuild_once(struct job *j, struct host *h, int lost)
{
	const struct vv_parity_built *built;
	struct rebuilt r;

	r.took = start_again(j, h, lost);
	built = &h->v->commit->redundancy.lost.built;
	r.reads = sum((double)built->read_bytes);
	r.writes = sum((double)(built->layer_bytes + built->parity_bytes));
	if (r.writes < (double)h->n)
		bench_die("%s: %.0f bytes were rebuilt", h->scheme->name, r.writes);
	r.read = read_alone(h, (double)built->read_bytes);
	verify(j, h);
	r.intact = start_again(j, h, j->ranks);
	r.ratio = (r.took - r.intact) / r.read;
	return r;
}

static void rebuild(struct job *j, const struct scheme *scheme)
{
	double took[BENCH_ROUNDS_MAX], read[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX], intact[BENCH_ROUNDS_MAX];
	size_t n = bench_size(&j->b, 64ul << 20, 512ul << 20);
	struct rebuilt r = { 0 };
	struct host h;
	int rounds = j->b.rounds;

	host_new(j, scheme, n, &h);
	for (int i = 0; i < 3; i++) { /* layers of three epochs */
		change(j, &h, i ? 100 : 0, i);
		take(j, &h);
	}
	for (int i = 0; i < rounds; i++) {
		r = rebuild_once(j, &h, (3 * i + 2) % HOSTS);
		took[i] = r.took;
		read[i] = r.read;
		ratio[i] = r.ratio;
		intact[i] = r.intact;
	}
	bench_check(varve_close(h.v), "varve_close");
	host_end(&h);
	if (j->rank)
		return;
	bench_line("redundancy.rebuild", scheme->name, "start_with_loss", bench_median(took, rounds) * 1e3, "ms");
	bench_line("redundancy.rebuild", scheme->name, "start_without_loss", bench_median(intact, rounds) * 1e3, "ms");
	bench_baseline("redundancy.rebuild", scheme->name, "read_alone", bench_median(read, rounds) * 1e3, "ms");
	bench_line("redundancy.rebuild", scheme->name, "bytes_read", r.reads / 1e6, "MB");
	bench_line("redundancy.rebuild", scheme->name, "bytes_written", r.writes / 1e6, "MB");
	bench_at_most("redundancy.rebuild", scheme->name, "read_vs_needed", r.reads / (scheme->k * r.writes), "x", 1.01);
	bench_at_most("redundancy.rebuild", scheme->name, "rebuild_vs_read", bench_median(ratio, rounds), "x", 1.5);
}

int main(int argc, char **argv)
{
	struct job j;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	job_open(&j, argc, argv);
	if (bench_wants(&j.b, "redundancy.cost") && j.ranks == HOSTS) {
		cost(&j, "100 %", 1000);
		cost(&j, "10 %", 100);
		cost(&j, "1 %", 10);
	}
	if (bench_wants(&j.b, "redundancy.rebuild") && j.ranks == HOSTS)
		for (int k = 1; k < SCHEMES; k++)
			rebuild(&j, &schemes[k]);
	bench_close(&j.b);
	MPI_Finalize();
	return 0;
}
