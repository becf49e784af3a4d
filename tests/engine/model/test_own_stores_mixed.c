// ctest: TIMEOUT 120 PROCESSORS 2 COST 2
/* Ranks with stores of their own, of which some are of one copy of a lineage and some of another: no rank gets bytes that another one's store has under the same number but that are not
 * what was meant, and what is laid down from then on can be restored. */
#include "support/hosts.h"

enum { RANKS = 2 };

struct state { /* number of each page */
	uint32_t id[RANKS][PAGES];
};

struct series { /* a session */
	struct hosts *r;
	uint64_t from;             /* epoch to restart from; 0: none */
	int rc;                    /* what that says */
	const struct state *found; /* if it is 1 */
	const struct state *next;  /* n epochs */
	int n;
};

static void change(struct state *s, uint32_t rank, uint32_t first, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		s->id[rank][first + i] = id + i;
}

static void live(const struct varve_comm *comm, void *arg)
{
	const struct series *x = arg;
	varve *v = hosts_open(x->r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE), want[PAGE];

	if (x->from)
		MUST(varve_restart(v, x->from) == x->rc);
	for (uint32_t i = 0; x->from && x->rc == 1 && i < PAGES; i++) {
		pages_fill(x->found->id[comm->rank][i], want, PAGE);
		MUST(memcmp(want, p + (size_t)i * PAGE, PAGE) == 0);
	}
	for (int k = 0; k < x->n; k++) {
		for (uint32_t i = 0; i < PAGES; i++)
			pages_fill(x->next[k].id[comm->rank][i], p + (size_t)i * PAGE, PAGE);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
	}
	OK(varve_close(v));
}

static void go_series(struct series x)
{
	threadcomm_run(RANKS, live, &x);
}

/* One epoch, of which all is new. */
struct job {
	struct hosts *r;
	uint64_t from;
	int rc;
	uint32_t found[RANKS]; /* number of each rank's first page */
	uint32_t next[RANKS];  /* 0: nothing is laid down */
};

static void go(struct job j)
{
	struct state found = { 0 }, next = { 0 };

	for (uint32_t r = 0; r < RANKS; r++) {
		change(&found, r, 0, PAGES, j.found[r]);
		change(&next, r, 0, PAGES, j.next[r]);
	}
	go_series((struct series){ .r = j.r, .from = j.from, .rc = j.rc, .found = &found, .next = &next, .n = j.next[0] != 0 });
}

static void copy(const char *from, const char *to)
{
	char command[4 * PLACE_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir -p \"$(dirname '%s')\" && cp -a '%s' '%s'", to, to, from, to);
	CHECK_EQ(system(command), 0);
}

/* Where a rank has its layer of an epoch. */
static void layer(const struct hosts *r, uint32_t rank, int epoch, char out[PLACE_MAX + 96])
{
	char store[PLACE_MAX + 16];

	hosts_place(r, rank, store);
	snprintf(out, PLACE_MAX + 96, "%s/job/00000000/%010d.r%u.layer", store, epoch, rank);
}

/* Two copies that have epoch 1 in common. In each rank 1 lays down something of its own as epoch 2. */
static void part_ways(struct hosts *a, struct hosts *b)
{
	go((struct job){ .r = a, .next = { 1000, 2000 } });
	copy(a->store, b->store);
	go((struct job){ .r = a, .from = 1, .rc = 1, .found = { 1000, 2000 }, .next = { 1000, 3000 } });
	go((struct job){ .r = b, .from = 1, .rc = 1, .found = { 1000, 2000 }, .next = { 1000, 4000 } });
}

/* Rank 0 refers to what rank 1 has stored in epoch 2, and rank 1 itself does not. */
static void replace_what_another_needs(const char *options)
{
	struct hosts *a = hosts_new(RANKS, 1, options), *b = hosts_new(RANKS, 2, options);
	char mine[PLACE_MAX + 96], theirs[PLACE_MAX + 96], aside[PLACE_MAX + 104];

	part_ways(a, b);
	go((struct job){ .r = a, .from = 1, .rc = 1, .found = { 1000, 2000 }, .next = { 3000, 2000 } });
	layer(a, 1, 2, mine);
	layer(b, 1, 2, theirs);
	snprintf(aside, sizeof(aside), "%s.aside", mine);
	CHECK_EQ(rename(mine, aside), 0);
	go((struct job){ .r = a, .from = 3, .rc = VARVE_EDAMAGED }); /* so it is needed */
	CHECK_EQ(rename(aside, mine), 0);
	go((struct job){ .r = a, .from = 3, .rc = 1, .found = { 3000, 2000 } });
	copy(theirs, mine);
	go((struct job){ .r = a, .from = 3, .rc = VARVE_EDAMAGED });
	go((struct job){ .r = a, .from = VARVE_LATEST, .rc = 1, .found = { 1000, 2000 } });
	hosts_end(a);
	hosts_end(b);
}

/* One rank's store is the other copy's: what it has to lend the ranks do not mean the same by. */
static void go_on_mixed(const char *options, bool restart)
{
	struct hosts *a = hosts_new(RANKS, 3, options), *b = hosts_new(RANKS, 4, options);
	char mine[PLACE_MAX + 16], theirs[PLACE_MAX + 16];

	part_ways(a, b);
	hosts_place(a, 1, mine);
	hosts_place(b, 1, theirs);
	copy(theirs, mine);
	go((struct job){ .r = a, .from = restart ? VARVE_LATEST : 0, .rc = 1, .found = { 1000, 2000 }, .next = { 4000, 4000 } });
	go((struct job){ .r = a, .from = 3, .rc = 1, .found = { 4000, 4000 }, .next = { 2000, 3000 } });
	go((struct job){ .r = a, .from = VARVE_LATEST, .rc = 1, .found = { 2000, 3000 } });
	hosts_end(a);
	hosts_end(b);
}

/* A layer of the other copy says of an epoch that it is that one's. Whoever has met it must not say so of what another rank lends him of the same number. */
static void believe_a_stranger(const char *options)
{
	struct hosts *a = hosts_new(RANKS, 5, options), *b = hosts_new(RANKS, 6, options);
	char mine[PLACE_MAX + 96], theirs[PLACE_MAX + 96];
	struct state first = { 0 }, x[3], y[3], last;

	change(&first, 0, 0, PAGES, 1000);
	change(&first, 1, 0, PAGES, 2000);
	go_series((struct series){ .r = a, .next = &first, .n = 1 });
	copy(a->store, b->store);
	x[0] = y[0] = first;
	change(&x[0], 1, 0, 8, 3000);
	change(&y[0], 1, 0, 8, 4000);
	x[1] = x[0];
	y[1] = y[0];
	change(&x[1], 1, 8, 4, 3100);
	change(&y[1], 1, 8, 4, 4100);
	x[2] = x[1];
	y[2] = y[1];
	change(&x[2], 1, 4, 4, 3200);
	change(&y[2], 0, 10, 8, 4000); /* what rank 1 has stored in epoch 2 */
	change(&y[2], 0, 0, 2, 4200);
	go_series((struct series){ .r = a, .from = 1, .rc = 1, .found = &first, .next = x, .n = 3 });
	go_series((struct series){ .r = b, .from = 1, .rc = 1, .found = &first, .next = y, .n = 3 });
	layer(a, 0, 4, mine);
	layer(b, 0, 4, theirs);
	copy(theirs, mine);
	last = x[1];
	change(&last, 1, 20, 2, 5000);
	change(&last, 0, 20, 2, 5100);
	go_series((struct series){ .r = a, .from = VARVE_LATEST, .rc = 1, .found = &x[1], .next = &last, .n = 1 });
	first = last;
	change(&last, 0, 30, 4, 3000); /* the same, in the copy that this is */
	go_series((struct series){ .r = a, .from = 5, .rc = 1, .found = &first, .next = &last, .n = 1 });
	go_series((struct series){ .r = a, .from = 6, .rc = 1, .found = &last });
	hosts_end(a);
	hosts_end(b);
}

int main(void)
{
	static const char *const options[] = { "mode=sync", "mode=async", "mode=sync collective=topk", "mode=sync copies=2" };

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		go_on_mixed(options[i], true);
		go_on_mixed(options[i], false);
		believe_a_stranger(options[i]);
	}
	replace_what_another_needs("mode=sync");
	replace_what_another_needs("mode=async");
	return 0;
}
