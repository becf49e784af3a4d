/* Graphlets are the connected graphs of 2 to 5 nodes; an orbit is a set of nodes of a graphlet that its symmetries
 * carry into each other. Graphlets and orbits bear the numbers of N. Przulj, Bioinformatics 23 (2007): 30 graphlets,
 * 73 orbits. */
#ifndef GRAPHLETS_ORBITS_H
#define GRAPHLETS_ORBITS_H

#include <stdint.h>

enum { MAX_NODES = 5, MAX_ORBITS = 73, MAX_CODES = 1 << MAX_NODES * (MAX_NODES - 1) / 2, NO_ORBIT = 255 };

/* A graph of few nodes as a number: bit j (j - 1) / 2 + i says that nodes i < j are neighbours. So the code of a
 * graph with one node more is the old one and the new node's neighbours above it. */
struct orbits {
	unsigned nodes;                /* of the largest graphlets */
	unsigned count;                /* of orbits: 1, 4, 15, 73 with 2, 3, 4, 5 nodes */
	uint8_t size[MAX_ORBITS];      /* nodes of an orbit's graphlet */
	uint8_t of[MAX_NODES + 1][MAX_CODES][MAX_NODES]; /* [nodes][code][node]: its orbit */
};

static inline unsigned code_shift(unsigned nodes)
{
	return nodes * (nodes - 1) / 2;
}

void orbits_init(struct orbits *o, unsigned nodes);
/* All orbits, with the graphlets they belong to, on stdout. */
void orbits_print(void);

#endif
