/* Enumerates connected induced subgraphs, each once (S. Wernicke's ESU, IEEE/ACM TCBB 3, 2006): a subgraph grows
 * from its lowest vertex by vertices that are above it and that were no neighbours of what was there before.
 *
 * Every thread takes blocks of lowest vertices and counts in rows of its own, which stay in the cache; when it has
 * no more rows they are added to the table. */
#include "count.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "complain.h"

enum { ROWS = 4096, TALLIES = 16384, LINE = 16, BLOCK = 128, NO_ROW = -1 };

struct worker {
	struct crew *crew;
	uint32_t member[MAX_NODES]; /* the subgraph */
	uint8_t *near;      /* of each vertex: bit i says that it is a neighbour of member i */
	uint32_t *reach;    /* the vertices that may join: none is there twice, so there is room for all */
	int32_t *row;       /* of each vertex: its row, or NO_ROW */
	uint32_t *owner;    /* of each row: its vertex */
	uint32_t *counts;   /* the rows */
	size_t used;        /* rows */
	uint64_t since;     /* subgraphs since the rows were empty: no counter can be above */
	struct tally *tallies;
	bool failed;
};

struct crew {
	const struct graph *g;
	const struct orbits *o;
	struct table *t;
	size_t width; /* of a row, in counters: whole cache lines */
	uint32_t next, end, block; /* of lowest vertices */
	bool stop;
	unsigned threads;
	struct worker *workers;
};

/* ---- rows of counters -------------------------------------------------------------------------------------------- */

static void flush(struct worker *w)
{
	const struct crew *crew = w->crew;
	size_t n = 0;

	for (size_t i = 0; i < w->used; i++) {
		uint32_t *counts = w->counts + i * crew->width;

		for (uint32_t orbit = 0; orbit < crew->o->count; orbit++)
			if (counts[orbit])
				w->tallies[n++] = (struct tally){ w->owner[i], orbit, counts[orbit] };
		memset(counts, 0, crew->width * sizeof(*counts));
		w->row[w->owner[i]] = NO_ROW;
		if (n + MAX_ORBITS > TALLIES || i + 1 == w->used) {
			w->failed = w->failed || !table_add(crew->t, w->tallies, n);
			n = 0;
		}
	}
	w->used = 0;
	w->since = 0;
}

/* There are rows for so many vertices more, and counters for so many subgraphs more. */
static void reserve(struct worker *w, size_t rows, uint64_t subgraphs)
{
	if (w->used + rows > ROWS || w->since + subgraphs > UINT32_MAX)
		flush(w);
	w->since += subgraphs;
}

static uint32_t *counts_of(struct worker *w, uint32_t v)
{
	if (w->row[v] == NO_ROW) {
		w->row[v] = (int32_t)w->used;
		w->owner[w->used++] = v;
	}
	return w->counts + (size_t)w->row[v] * w->crew->width;
}

/* ---- subgraphs --------------------------------------------------------------------------------------------------- */

static void count(struct worker *w, unsigned size, uint32_t code)
{
	const uint8_t *orbit = w->crew->o->of[size][code];

	reserve(w, size, 1);
	for (unsigned i = 0; i < size; i++)
		counts_of(w, w->member[i])[orbit[i]]++;
}

/* The largest subgraphs: `size` members and any one of reach[from .. to). What they add to the members depends only
 * on whose neighbour the last one is, so it is added once for each such set. */
static void count_last(struct worker *w, unsigned size, uint32_t code, size_t from, size_t to)
{
	const uint8_t(*of)[MAX_NODES] = w->crew->o->of[size + 1];
	unsigned shift = code_shift(size);
	uint32_t times[1 << (MAX_NODES - 1)] = { 0 };

	reserve(w, 0, to - from);
	for (size_t i = from; i < to; i++) {
		uint32_t v = w->reach[i], near = w->near[v];

		times[near]++;
		if (w->used == ROWS)
			flush(w);
		counts_of(w, v)[of[code | near << shift][size]]++;
	}
	reserve(w, size, to - from);
	for (unsigned i = 0; i < size; i++) {
		uint32_t *counts = counts_of(w, w->member[i]);

		for (uint32_t near = 1; near < 1u << size; near++)
			counts[of[code | near << shift][i]] += times[near];
	}
}

/* v becomes member i: its neighbours that are above the lowest and nobody's neighbour so far may join, behind
 * reach[to). */
static size_t join(struct worker *w, uint32_t v, unsigned i, size_t to)
{
	const struct graph *g = w->crew->g;

	w->member[i] = v;
	for (uint64_t k = g->first[v]; k < g->first[v + 1]; k++) {
		uint32_t u = g->neighbour[k];

		if (!w->near[u] && u > w->member[0])
			w->reach[to++] = u;
		w->near[u] |= (uint8_t)(1u << i);
	}
	return to;
}

static void leave(struct worker *w, unsigned i)
{
	const struct graph *g = w->crew->g;
	uint32_t v = w->member[i];

	for (uint64_t k = g->first[v]; k < g->first[v + 1]; k++)
		w->near[g->neighbour[k]] &= (uint8_t)~(1u << i);
}

/* All subgraphs that have these members, and more of reach[from .. to). Who has had its turn does not come again. */
static void extend(struct worker *w, unsigned size, uint32_t code, size_t from, size_t to)
{
	if (size + 1 == w->crew->o->nodes) {
		count_last(w, size, code, from, to);
		return;
	}
	for (size_t i = from; i < to; i++) {
		uint32_t v = w->reach[i], larger = code | (uint32_t)w->near[v] << code_shift(size);
		size_t end = join(w, v, size, to);

		count(w, size + 1, larger);
		extend(w, size + 1, larger, i + 1, end);
		leave(w, size);
	}
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *work(void *arg)
{
	struct worker *w = arg;
	struct crew *crew = w->crew;

	for (;;) {
		uint32_t v = __atomic_fetch_add(&crew->next, crew->block, __ATOMIC_RELAXED), end;

		if (v >= crew->end || __atomic_load_n(&crew->stop, __ATOMIC_RELAXED))
			break;
		end = crew->end - v < crew->block ? crew->end : v + crew->block;
		for (; v < end && !w->failed; v++) {
			extend(w, 1, 0, 0, join(w, v, 0, 0));
			leave(w, 0);
		}
		if (w->failed)
			__atomic_store_n(&crew->stop, true, __ATOMIC_RELAXED);
	}
	flush(w);
	return NULL;
}

bool crew_count(struct crew *crew, uint32_t begin, uint32_t end)
{
	pthread_t *ids = malloc(crew->threads * sizeof(*ids));
	unsigned started = 0;
	bool fine = ids != NULL;

	if (!ids)
		return complain("no memory for %u threads", crew->threads);
	crew->next = begin;
	crew->end = end;
	/* blocks small enough that nobody waits long for the last one */
	crew->block = (end - begin) / (8 * crew->threads) + 1;
	crew->block = crew->block < BLOCK ? crew->block : BLOCK;
	while (started + 1 < crew->threads && pthread_create(&ids[started], NULL, work, &crew->workers[started]) == 0)
		started++;
	/* a thread that could not be started is not missed: the others take its blocks */
	work(&crew->workers[crew->threads - 1]);
	for (unsigned i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
	for (unsigned i = 0; i < crew->threads; i++)
		fine = fine && !crew->workers[i].failed;
	free(ids);
	return fine;
}

static bool worker_init(struct worker *w, struct crew *crew)
{
	size_t n = (size_t)crew->g->vertices + 1;

	*w = (struct worker){
		.crew = crew,
		.near = calloc(n, sizeof(*w->near)),
		.reach = malloc(n * sizeof(*w->reach)),
		.row = malloc(n * sizeof(*w->row)),
		.owner = malloc(ROWS * sizeof(*w->owner)),
		.counts = calloc(ROWS * crew->width, sizeof(*w->counts)),
		.tallies = malloc(TALLIES * sizeof(*w->tallies)),
	};
	if (!w->near || !w->reach || !w->row || !w->owner || !w->counts || !w->tallies)
		return complain("no memory for a thread's counters");
	for (size_t i = 0; i < n; i++)
		w->row[i] = NO_ROW;
	return true;
}

static void worker_fini(struct worker *w)
{
	free(w->near);
	free(w->reach);
	free(w->row);
	free(w->owner);
	free(w->counts);
	free(w->tallies);
}

struct crew *crew_new(const struct graph *g, const struct orbits *o, struct table *t, unsigned threads)
{
	struct crew *crew = calloc(1, sizeof(*crew));
	bool fine;

	if (!crew) {
		complain("no memory");
		return NULL;
	}
	*crew = (struct crew){ .g = g, .o = o, .t = t, .width = (o->count + LINE - 1) / LINE * LINE, .threads = threads };
	crew->workers = calloc(threads, sizeof(*crew->workers));
	fine = crew->workers || complain("no memory for %u threads", threads);
	for (unsigned i = 0; fine && i < threads; i++)
		fine = worker_init(&crew->workers[i], crew);
	if (fine)
		return crew;
	crew_free(crew);
	return NULL;
}

void crew_free(struct crew *crew)
{
	if (!crew)
		return;
	for (unsigned i = 0; crew->workers && i < crew->threads; i++)
		worker_fini(&crew->workers[i]);
	free(crew->workers);
	free(crew);
}
