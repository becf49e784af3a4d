/* varve over any kind of communicator. MPI programs use varve_mpi.h. */
#ifndef VARVE_COMM_H
#define VARVE_COMM_H

#include <varve/varve.h>

#ifdef __cplusplus
extern "C" {
#endif

enum varve_reduce { VARVE_SUM, VARVE_MIN, VARVE_MAX };

/* A group of processes that communicate over two channels: `ctx` for collective calls, `side` for
 * work in the background. On each channel every rank begins the same operations in the same order,
 * at most one at a time. There is no order between the operations of the two channels.
 *
 * An operation returns at once: 0 with *op set, or a VARVE_E... code. Then `test` is called until
 * it does not return 0, and all buffers stay in place until then. Buffers for reading and for
 * writing do not overlap. Lengths are in bytes and may exceed 4 GiB. Rank r's part lies at r * len,
 * or after the parts of the ranks before it. A message of a rank to itself has the same length on
 * both sides. For a group of one rank only `close` is called. */
struct varve_comm {
	uint32_t rank, size;
	int any_thread; /* calls may come from any thread, one at a time; 0: only from threads that call varve */
	void *ctx, *side;
	int (*bcast)(void *ctx, void *p, size_t len, uint32_t root, void **op);
	int (*allreduce)(void *ctx, uint64_t *v, size_t n, enum varve_reduce how, void **op); /* in place, element by element */
	int (*allgather)(void *ctx, const void *mine, void *all, size_t len, void **op);
	int (*alltoall)(void *ctx, const void *to, void *from, size_t len, void **op);
	int (*alltoallv)(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op);
	/* Sends to one rank and receives from one; VARVE_NOBODY: no rank. A rank that sends to
	 * itself receives from itself. */
	int (*sendrecv)(void *ctx, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from,
			void **op);
	int (*test)(void *ctx, void *op);  /* 1: done; 0: not yet; < 0: failed. Unless 0, op is no longer valid. */
	const char *(*message)(void *ctx); /* why the last operation failed; may be NULL */
	/* May be NULL. Called when this rank gives up, after a timeout, a failed operation or
	 * damaged data. Returns the missing ranks, as "rank 2" or "ranks 2, 5-7"; NULL or "" if
	 * they are not known. May take a second or two, and should make the others give up, too.
	 * Otherwise they wait for this rank until their time limit. Only `close` is called after
	 * it. */
	const char *(*absent)(void *ctx);
	/* The last call on each channel, on every rank; may be NULL. After a failure an operation
	 * may still be in progress, and other ranks may be missing: this call must not wait for
	 * them. */
	void (*close)(void *ctx);
};

#define VARVE_NOBODY UINT32_MAX

/* The collective form of varve_open: one session over the group. The struct is copied. The channels
 * are closed with the session, also if the call fails. */
VARVE_API int varve_open_comm(const struct varve_comm *comm, const char *store, const char *lineage, const char *options,
			      varve_session **out);

/* For wrappers of varve_open_comm: makes `message` the text of varve_last_error on this thread, and
 * returns code. */
VARVE_API int varve_fail(int code, const char *message);
/* For the same: how many seconds a rank waits for the others, by the option `timeout` as
 * varve_open_comm reads it with these options. If they are not valid, which that call will report:
 * the default. */
VARVE_API double varve_timeout(const char *options);

#ifdef __cplusplus
}
#endif

#endif
