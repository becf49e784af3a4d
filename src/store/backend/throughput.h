/* The measured throughput of a store, for the choice of a codec. The newest GiB has the most
 * weight. */
#ifndef VV_STORE_BACKEND_THROUGHPUT_H
#define VV_STORE_BACKEND_THROUGHPUT_H

#include <stddef.h>
#include <stdint.h>

struct vv_store;

/* A write of so many bytes, which began at `since` (vv_clock_s), has ended. */
void vv_throughput_add(struct vv_store *s, uint64_t bytes, double since);
/* Writes without waiting: the time in which at least one is in progress counts, whatever their
 * number is. */
void vv_throughput_begin(struct vv_store *s);
void vv_throughput_end(struct vv_store *s, size_t bytes);

/* In bytes per second; before enough was written to measure, the limit of the store, or 0. */
double vv_throughput_rate(struct vv_store *s);
/* The same as bytes and nanoseconds, to be summed over ranks. */
void vv_throughput_get(struct vv_store *s, uint64_t *bytes, uint64_t *ns);

#endif
