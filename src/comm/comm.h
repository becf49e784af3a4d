/* The ranks of a session: operations of the plug, each with a time limit. A comm is broken for good
 * when an operation does not end. */
#ifndef VV_COMM_COMM_H
#define VV_COMM_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <varve/varve_comm.h>

/* A rank that gives up cannot take back memory of an operation: the others may still read and write
 * it. So operations of up to this many bytes in all use memory of the comm; the caller's may be on
 * the stack. So may a rank's own part of an allgather, up to this length. Memory of larger
 * operations, and of every alltoallv, comes from the heap and is freed by vv_comm_free. */
#define VV_COMM_SMALL 4096

struct vv_comm {
	struct varve_comm plug;
	void *ctx; /* the channel: the plug's ctx or side */
	double timeout_s; /* seconds to wait for the others */
	/* held for each call of the plug; a thread of the other channel may give up on this one */
	pthread_mutex_t lock;
	struct vv_comm *other_channel; /* the other channel; may be NULL */
	/* an operation failed or timed out: no more operations, and its memory is not ours to
	 * free */
	atomic_bool broken;
	/* memory that is not ours to free; the comm itself is then never freed either */
	void **kept;
	size_t n_kept, cap_kept;
	struct vv_comm *next;
	/* bytes sent to other ranks, counted as if directly to each, without checks; for the
	 * statistics */
	uint64_t sent;
	char why[512];   /* the reason for `broken` */
	void *small;     /* VV_COMM_SMALL bytes */
};

/* Takes ownership of one of the plug's channels: it is closed with the comm, and also if this call
 * fails. */
int vv_comm_open(const struct varve_comm *plug, void *channel, double patience, struct vv_comm **out);
/* Two channels of one group. A rank that gives up on one after damage or a failure of the plug
 * gives up on both. */
void vv_comm_pair(struct vv_comm *a, struct vv_comm *b);
void vv_comm_close(struct vv_comm *c); /* NULL is fine */
/* Frees memory of base/mem.h that operations used; keeps it if other ranks may still access it. */
void vv_comm_free(struct vv_comm *c, void *p);

/* Each operation ends when all ranks have come, or with VV_EPEER after the time limit: the session
 * is then unusable. Received bytes equal the sent bytes. Damage to them is VV_EPEER on all ranks,
 * and the group stays usable. Damage to a sum, a minimum, a maximum or an operation in the
 * background breaks the group, and the others learn of it. */
int vv_comm_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root);
int vv_comm_allreduce(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how);
int vv_comm_allgather(struct vv_comm *c, const void *mine, void *all, size_t len);
int vv_comm_alltoall(struct vv_comm *c, const void *to, void *from, size_t len);
int vv_comm_alltoallv(struct vv_comm *c, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len);
int vv_comm_sendrecv(struct vv_comm *c, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from);

/* An operation in the background: begun here, polled by vv_comm_look. No other operation begins
 * before it is done, and its memory is never on the stack. The last VV_COMM_SEAL bytes of each part
 * belong to the comm, which stores the check there. */
#define VV_COMM_SEAL sizeof(uint64_t)

struct vv_comm_op {
	void *op;
	const char *what;
	const void *sealed; /* the received data: n_sealed parts of len bytes */
	size_t len;
	uint32_t n_sealed;
	double seen;   /* time of the last look, on the monotonic clock */
	double waited; /* seconds; a gap between two looks counts for little, see vv_comm_look */
};

int vv_comm_begin_allgather(struct vv_comm *c, void *mine, void *all, size_t len, struct vv_comm_op *op);
int vv_comm_begin_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root, struct vv_comm_op *op);
/* Returns 1: done; 0: not yet; < 0: failed, or timed out. With `wait` it does not return 0.
 * Many plugs make progress only while a thread polls. So a long gap between two looks, when this
 * rank was busy or stopped, is not blamed on the others. It counts for at most 0.1 s. */
int vv_comm_look(struct vv_comm *c, struct vv_comm_op *op, bool wait);

#endif
