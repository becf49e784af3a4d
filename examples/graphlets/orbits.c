/* Only the names are written down: one drawing of each graphlet, with the nodes in the order of their orbits. Which
 * nodes are one orbit, and what the other drawings of a graphlet are, is found by trying all permutations. */
#include "orbits.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const graphlets[] = {
	"01", "02 12", "01 02 12",
	"02 13 23", "03 13 23", "01 12 23 03", "03 12 13 23", "02 03 12 13 23", "01 02 03 12 13 23",
	"02 13 24 34", "03 14 24 34", "04 14 24 34", "03 14 23 24 34", "01 14 23 24 34", "04 14 23 24 34", "01 12 23 34 04",
	"04 12 13 24 34", "04 13 14 23 24 34", "01 04 14 23 24 34", "02 13 14 23 24 34", "03 04 13 14 23 24", "01 03 14 23 24 34",
	"03 04 13 14 23 24 34", "04 12 13 14 23 24 34", "02 04 13 14 23 24 34", "01 02 13 14 23 24 34",
	"03 04 12 13 14 23 24 34", "01 03 04 12 14 23 24 34", "02 03 04 12 13 14 23 24 34", "01 02 03 04 12 13 14 23 24 34",
};

enum { GRAPHLETS = sizeof(graphlets) / sizeof(*graphlets) };

struct graphlet {
	unsigned nodes, code;
};

static unsigned bit(unsigned i, unsigned j)
{
	return 1u << (i < j ? code_shift(j) + i : code_shift(i) + j);
}

static struct graphlet parse(const char *edges)
{
	struct graphlet g = { 0 };

	for (const char *p = edges;; p += 3) {
		unsigned i = (unsigned)(p[0] - '0'), j = (unsigned)(p[1] - '0');

		g.code |= bit(i, j);
		g.nodes = j >= g.nodes ? j + 1 : g.nodes;
		if (!p[2])
			return g;
	}
}

/* The next of all ways to write down 0 .. n - 1; begin with to[0] = n. */
static bool permute(unsigned n, unsigned *to)
{
	unsigned seen;

	if (to[0] == n)
		memset(to, 0, n * sizeof(*to));
	do { /* counts with n digits until no digit is there twice */
		unsigned i = n;

		while (i > 0 && to[i - 1] == n - 1)
			to[--i] = 0;
		if (i == 0)
			return false;
		to[i - 1]++;
		seen = 0;
		for (i = 0; i < n; i++)
			seen |= 1u << to[i];
	} while (seen != (1u << n) - 1);
	return true;
}

static unsigned permuted(struct graphlet g, const unsigned *to)
{
	unsigned code = 0;

	for (unsigned j = 1; j < g.nodes; j++)
		for (unsigned i = 0; i < j; i++)
			if (g.code & bit(i, j))
				code |= bit(to[i], to[j]);
	return code;
}

/* orbit[i] of the nodes, numbered from `first` on; returns the number behind the last. */
static unsigned find_orbits(struct graphlet g, unsigned first, uint8_t *orbit)
{
	unsigned to[MAX_NODES] = { g.nodes }, least[MAX_NODES] = { 0, 1, 2, 3, 4 };

	while (permute(g.nodes, to))
		for (unsigned i = 0; permuted(g, to) == g.code && i < g.nodes; i++)
			least[i] = to[i] < least[i] ? to[i] : least[i];
	for (unsigned i = 0; i < g.nodes; i++)
		orbit[i] = least[i] == i ? (uint8_t)first++ : orbit[least[i]];
	return first;
}

void orbits_init(struct orbits *o, unsigned nodes)
{
	memset(o, NO_ORBIT, sizeof(*o));
	o->nodes = nodes;
	o->count = 0;
	for (unsigned k = 0; k < GRAPHLETS; k++) {
		struct graphlet g = parse(graphlets[k]);
		unsigned to[MAX_NODES] = { g.nodes };
		uint8_t orbit[MAX_NODES];

		if (g.nodes > nodes)
			break;
		o->count = find_orbits(g, o->count, orbit);
		while (permute(g.nodes, to))
			for (unsigned i = 0; i < g.nodes; i++)
				o->of[g.nodes][permuted(g, to)][to[i]] = orbit[i];
		for (unsigned i = 0; i < g.nodes; i++)
			o->size[orbit[i]] = (uint8_t)g.nodes;
	}
}

void orbits_print(void)
{
	uint8_t orbit[MAX_NODES];
	unsigned first = 0;

	for (unsigned k = 0; k < GRAPHLETS; k++) {
		struct graphlet g = parse(graphlets[k]);
		unsigned end = find_orbits(g, first, orbit);

		for (; first < end; first++) {
			printf("orbit %2u  graphlet %2u  nodes", first, k);
			for (unsigned i = 0; i < g.nodes; i++)
				if (orbit[i] == first)
					printf(" %u", i);
			printf("  edges %s\n", graphlets[k]);
		}
	}
}
