/* The ranks of a group as threads of one process: a varve_comm through shared memory. It is stricter than others: every operation
 * ends only when all ranks have come, and fails on all of them when they did not make the same call with lengths that fit. */
#ifndef VV_TEST_THREADCOMM_H
#define VV_TEST_THREADCOMM_H

#include <varve/varve_comm.h>

/* Calls fn on `size` threads, each with its own rank, and returns when all have. The comm may be copied and changed, and is
 * valid until fn returns; closing it is up to fn, and is noticed: who closes with an operation under way breaks the group. */
void threadcomm_run(uint32_t size, void (*fn)(const struct varve_comm *comm, void *arg), void *arg);

#endif
