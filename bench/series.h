/* States of a program from checkpoint to checkpoint, all in memory: tables of graphlet counts, arrays that change in a certain way, and
 * recorded files. */
#ifndef VV_BENCH_SERIES_H
#define VV_BENCH_SERIES_H

#include "support.h"

enum { BENCH_STATES = 20 };

struct bench_series {
	char name[64];
	size_t bytes; /* of a state */
	int n;
	uint8_t *state[BENCH_STATES];
	enum varve_type type;
	size_t shape[2];
	bool whole_run; /* the states are a run from its begin to its end: fewer checkpoints are further apart */
};

/* The table of examples/graphlets (--graphlets), 5 nodes, after each 20th of the vertices of a graph of that kind. */
void bench_series_graph(struct bench *b, const char *kind, size_t vertices, struct bench_series *out);
/* The same table as columns: all vertices of an orbit lie together. */
void bench_series_turned(const struct bench_series *s, struct bench_series *out);
/* How arrays change: `sparse`: 1 word in 500, wherever it is; `log`: the content moves by 4608 bytes, and as many are new at its end;
 * `ping-pong`: two buffers, each in turn made from the other with 1 word in 500 changed. */
void bench_series_array(const char *pattern, size_t bytes, struct bench_series *out);
/* Files NAME.NUMBER.bin of a folder; those of one name, ascending, are a series. The number of series, at most `room`. */
size_t bench_series_recorded(const char *folder, struct bench_series *out, size_t room);
void bench_series_free(struct bench_series *s);

/* The i-th state of a session with n checkpoints. */
uint8_t *bench_series_state(const struct bench_series *s, int n, int i);

#endif
