/* Counts, for every vertex, how often it touches each orbit of the induced subgraphs of a graph. */
#ifndef GRAPHLETS_COUNT_H
#define GRAPHLETS_COUNT_H

#include <stdbool.h>
#include "graph.h"
#include "orbits.h"
#include "table.h"

struct crew;

/* NULL after a complaint. The graph, the orbits and the table are used until crew_free. */
struct crew *crew_new(const struct graph *g, const struct orbits *o, struct table *t, unsigned threads);
/* Adds all subgraphs whose lowest vertex is one of begin .. end - 1 to the table. When it returns all of them are
 * there, and nobody is at work; what the table holds does not depend on the number of threads. */
bool crew_count(struct crew *crew, uint32_t begin, uint32_t end);
void crew_free(struct crew *crew);

#endif
