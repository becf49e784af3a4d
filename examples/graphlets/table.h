/* The table of counts: how often each vertex touches each orbit. It lies in the host's memory or in a device's; who
 * counts hands over what a block of vertices adds to it.
 *
 * 32 bits for a count, as in the paper: every subgraph is visited, so no counter can pass 2^32 before as many
 * subgraphs of one vertex were, and half the bytes are half the checkpoint. If it happens all the same it is an
 * error, not a wrong count. */
#ifndef GRAPHLETS_TABLE_H
#define GRAPHLETS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally {
	uint32_t vertex, orbit, count;
};

struct table {
	const struct table_kind *kind;
	uint32_t vertices, orbits;
	bool columns;     /* all vertices of an orbit lie together, not all orbits of a vertex */
	uint32_t *counts; /* vertices x orbits; may be memory of a device: only `kind` looks inside */
	void *more;       /* of the kind */
};

/* Each returns false after it has complained. add may be called by several threads at a time. */
struct table_kind {
	bool (*open)(struct table *t); /* all zero */
	bool (*add)(struct table *t, const struct tally *what, size_t n);
	bool (*read)(struct table *t, uint32_t *out);
	void (*close)(struct table *t);
};

extern const struct table_kind table_host;
extern const struct table_kind table_cuda; /* where CUDA is built in */

struct table *table_new(const struct table_kind *kind, uint32_t vertices, uint32_t orbits, bool columns);
bool table_add(struct table *t, const struct tally *what, size_t n);
/* A copy of the counts, to be freed by the caller; NULL after a complaint. */
uint32_t *table_read(struct table *t);
void table_free(struct table *t);

static inline size_t table_cells(const struct table *t)
{
	return (size_t)t->vertices * t->orbits;
}

#ifdef __cplusplus
}
#endif

#endif
