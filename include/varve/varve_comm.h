/* varve over any kind of communicator. MPI programs want varve_mpi.h; this is for those who bring another one. */
#ifndef VARVE_COMM_H
#define VARVE_COMM_H

#include <varve/varve.h>

#ifdef __cplusplus
extern "C" {
#endif

enum varve_reduce { VARVE_SUM, VARVE_MIN, VARVE_MAX };

/* A group of processes that talk to each other, over two channels: `ctx` for calls that all ranks make, `side` for what goes on
 * behind them. On each channel every rank begins the same operations in the same order, and has at most one under way; what is
 * begun on one has no order with what is begun on the other. Each returns at once, 0 with *op set or a VARVE_E... code; then `test`
 * is called until it does not return 0, and all memory handed over stays where it is until then. What is read and what is written
 * do not overlap. Lengths are bytes and may exceed 4 GiB; rank r's part lies at r * len, or behind those of the ranks before it.
 * What a rank sends to itself has the same length on both sides. A group of one rank is never asked for anything but `close`. */
struct varve_comm {
	uint32_t rank, size;
	int any_thread; /* calls may come from any thread, one at a time; 0: only from threads that call varve */
	void *ctx, *side;
	int (*bcast)(void *ctx, void *p, size_t len, uint32_t root, void **op);
	int (*allreduce)(void *ctx, uint64_t *v, size_t n, enum varve_reduce how, void **op); /* in place, element by element */
	int (*allgather)(void *ctx, const void *mine, void *all, size_t len, void **op);
	int (*alltoall)(void *ctx, const void *to, void *from, size_t len, void **op);
	int (*alltoallv)(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op);
	/* Sends to one rank and receives from one; VARVE_NOBODY: neither. Who sends to itself receives from itself. */
	int (*sendrecv)(void *ctx, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from,
			void **op);
	int (*test)(void *ctx, void *op);  /* 1: done; 0: not yet; < 0: failed. Unless 0, op is gone. */
	const char *(*message)(void *ctx); /* why the last operation failed; may be NULL */
	/* May be NULL. This rank gives up: it has waited too long, an operation has failed, or what came was damaged. Returns who is missed, as "rank 2" or
	 * "ranks 2, 5-7", NULL or "" if that cannot be told. May take a second or two, and should make the others give up, too: where it does not, they
	 * wait for this rank until their time limit. Nothing but `close` comes after it. */
	const char *(*absent)(void *ctx);
	/* The last call on each channel, on every rank; may be NULL. After a failure an operation may still be under way, and others may not
	 * come: this must not wait for them. */
	void (*close)(void *ctx);
};

#define VARVE_NOBODY UINT32_MAX

/* As varve_open, by all ranks together: one session over the group. The struct is copied; the channels are closed with the
 * session, also if this fails. */
VARVE_API int varve_open_comm(const struct varve_comm *comm, const char *store, const char *lineage, const char *options,
			      varve **out);

/* For those who wrap varve_open_comm: makes `message` what varve_last_error says on this thread, and returns code. */
VARVE_API int varve_fail(int code, const char *message);
/* And: how many seconds a rank waits for the others, by the option `timeout` as varve_open_comm reads it with these options. If they are
 * wrong, which that call will say, its default. */
VARVE_API double varve_timeout(const char *options);

#ifdef __cplusplus
}
#endif

#endif
