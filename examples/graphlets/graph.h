/* An undirected graph in compressed sparse rows: no loops, no double edges, every vertex's neighbours ascending. */
#ifndef GRAPHLETS_GRAPH_H
#define GRAPHLETS_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph {
	uint32_t vertices;
	uint64_t edges;
	uint64_t *first;     /* where a vertex's neighbours begin; vertices + 1 entries */
	uint32_t *neighbour;
};

enum { GRAPH_MAX_VERTICES = INT32_MAX };

/* What a graph is built from; loops and repetitions are welcome. */
struct edges {
	uint32_t (*pair)[2];
	size_t count, room;
};

bool edges_add(struct edges *e, uint32_t u, uint32_t v);
void edges_free(struct edges *e);

bool graph_build(struct graph *g, uint32_t vertices, const struct edges *e);
/* A Matrix Market file (by its first line) or an edge list. */
bool graph_read(struct graph *g, const char *path);
/* As Matrix Market. */
bool graph_write(const struct graph *g, const char *path);
/* One of GRAPH_KINDS, with as many vertices as fill whole rows of a grid. */
bool graph_make(struct graph *g, const char *kind, uint32_t vertices, uint64_t seed);
bool graph_is_kind(const char *kind);
#define GRAPH_KINDS "road, triangulation, hexagonal, events"
void graph_free(struct graph *g);

uint32_t graph_degree(const struct graph *g, uint32_t v);
/* Two graphs with the same fingerprint are the same. */
uint64_t graph_fingerprint(const struct graph *g);

/* Sizes come from files: more than the machine has is refused before it is asked for. */
bool room_for(uint64_t bytes, const char *what);

#endif
