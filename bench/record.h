/* What a method of docs/dedup.md leaves behind of a series of states: the sieve's pieces in the method's own encoding, and the data.
 * Sizes are those of the paper (Tan 2023) and its code: a header of 32 bytes, and
 *
 *	full    nothing else
 *	basic   a bit for each grain
 *	list    for each grain that is not unchanged its number (4 bytes), for a COPY also that of its source (4), for each epoch
 *	        that is a source 8
 *	tree    the same for each root
 *	run     varints for each piece: grains since the end of the last one, length << 2 | kind; for a COPY how many epochs ago, and
 *	        how far from the end of the last source (zigzag); for a REPEAT its distance */
#ifndef VV_BENCH_RECORD_H
#define VV_BENCH_RECORD_H

#include "core/dedup/grain.h"
#include "series.h"

struct bench_record { /* of all checkpoints but the first */
	uint64_t original, data, metadata; /* bytes; header in metadata, tails in data */
	uint64_t pieces;
	uint64_t forgotten; /* digests */
};

/* Every state is rebuilt from what was kept and compared; for `run` from the encoded bytes alone. */
void bench_record(struct bench *b, const struct bench_series *s, int n, enum vv_method method, uint32_t chunk,
		  struct bench_record *out);
double bench_record_ratio(const struct bench_record *r);

#endif
