/* The rows are built by transposing twice: the second time the neighbours arrive in ascending order. */
#include "graph.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "complain.h"

bool room_for(uint64_t bytes, const char *what)
{
	uint64_t have = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	if (bytes <= have)
		return true;
	return complain("%s needs %" PRIu64 " MiB, this machine has %" PRIu64 " MiB of memory", what, bytes >> 20, have >> 20);
}

bool edges_add(struct edges *e, uint32_t u, uint32_t v)
{
	if (e->count == e->room) {
		size_t room = e->room ? 2 * e->room : 1024;
		void *grown = realloc(e->pair, room * sizeof(*e->pair));

		if (!grown)
			return complain("no memory for %zu edges", room);
		e->pair = grown;
		e->room = room;
	}
	e->pair[e->count][0] = u;
	e->pair[e->count++][1] = v;
	return true;
}

void edges_free(struct edges *e)
{
	free(e->pair);
	memset(e, 0, sizeof(*e));
}

/* The neighbours of every vertex, in the order of the edges; loops are left out. first[v] ends up as it should. */
static void scatter(const struct edges *e, uint32_t vertices, uint64_t *first, uint64_t *cursor, uint32_t *out)
{
	for (size_t i = 0; i < e->count; i++) {
		uint32_t u = e->pair[i][0], v = e->pair[i][1];

		first[u + 1] += u != v;
		first[v + 1] += u != v;
	}
	for (uint32_t v = 0; v < vertices; v++)
		first[v + 1] += first[v];
	memcpy(cursor, first, vertices * sizeof(*cursor));
	for (size_t i = 0; i < e->count; i++) {
		uint32_t u = e->pair[i][0], v = e->pair[i][1];

		if (u == v)
			continue;
		out[cursor[u]++] = v;
		out[cursor[v]++] = u;
	}
}

static void transpose(uint32_t vertices, const uint64_t *first, uint64_t *cursor, const uint32_t *in, uint32_t *out)
{
	memcpy(cursor, first, vertices * sizeof(*cursor));
	for (uint32_t u = 0; u < vertices; u++)
		for (uint64_t i = first[u]; i < first[u + 1]; i++)
			out[cursor[in[i]]++] = u;
}

static void drop_doubles(struct graph *g)
{
	uint64_t kept = 0, begin = 0;

	for (uint32_t v = 0; v < g->vertices; v++) {
		uint64_t end = g->first[v + 1];

		g->first[v] = kept;
		for (uint64_t i = begin; i < end; i++)
			if (i == begin || g->neighbour[i] != g->neighbour[i - 1])
				g->neighbour[kept++] = g->neighbour[i];
		begin = end;
	}
	g->first[g->vertices] = kept;
	g->edges = kept / 2;
}

bool graph_build(struct graph *g, uint32_t vertices, const struct edges *e)
{
	uint64_t arcs = 2 * (uint64_t)e->count;
	uint64_t *cursor = NULL;
	uint32_t *loose = NULL;
	bool fine = room_for(16 * ((uint64_t)vertices + 1) + 8 * arcs, "the graph");

	*g = (struct graph){ .vertices = vertices };
	if (!fine)
		return false;
	g->first = calloc((size_t)vertices + 1, sizeof(*g->first));
	g->neighbour = malloc((arcs + 1) * sizeof(*g->neighbour));
	cursor = malloc(((size_t)vertices + 1) * sizeof(*cursor));
	loose = malloc((arcs + 1) * sizeof(*loose));
	fine = g->first && g->neighbour && cursor && loose;
	if (fine) {
		scatter(e, vertices, g->first, cursor, loose);
		transpose(vertices, g->first, cursor, loose, g->neighbour);
		drop_doubles(g);
	} else {
		complain("no memory for a graph of %" PRIu32 " vertices and %zu edges", vertices, e->count);
		graph_free(g);
	}
	free(cursor);
	free(loose);
	return fine;
}

void graph_free(struct graph *g)
{
	free(g->first);
	free(g->neighbour);
	memset(g, 0, sizeof(*g));
}

uint32_t graph_degree(const struct graph *g, uint32_t v)
{
	return (uint32_t)(g->first[v + 1] - g->first[v]);
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
	return sum ^ sum >> 29;
}

uint64_t graph_fingerprint(const struct graph *g)
{
	uint64_t sum = mix(g->vertices, g->edges);

	for (uint32_t v = 0; v < g->vertices; v++) {
		sum = mix(sum, g->first[v + 1]);
		for (uint64_t i = g->first[v]; i < g->first[v + 1]; i++)
			sum = mix(sum, g->neighbour[i]);
	}
	return sum;
}
