/* The ranks of a session: operations of the plug, each with a time limit, and the end of it all when one did not come back. */
#ifndef VV_COMM_COMM_H
#define VV_COMM_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <varve/varve_comm.h>

/* A rank that gives up cannot take back what it handed over: the others may still read and write it. So what an operation reads
 * and writes goes through memory of the comm if it is no more than this together, and may lie on the caller's stack. What is
 * larger, and all of alltoallv, comes from the heap and goes back by vv_comm_free. */
#define VV_COMM_SMALL 4096

struct vv_comm {
	struct varve_comm plug;
	void *ctx; /* the channel: the plug's ctx or side */
	double timeout_s; /* seconds to wait for the others */
	pthread_mutex_t lock; /* held for each call of the plug: of another thread, the twin may give up on this channel */
	struct vv_comm *other_channel; /* the other channel; may be NULL */
	atomic_bool broken; /* an operation failed or timed out: nothing more can be said, and what was handed over is not ours to free */
	void **kept;     /* such memory; the comm itself then stays for good as well */
	size_t n_kept, cap_kept;
	struct vv_comm *next;
	uint64_t sent;   /* bytes this rank has sent to others, counted as if straight to each; for the statistics, without checks */
	char why[512];   /* it is broken */
	void *small;     /* VV_COMM_SMALL bytes */
};

/* Takes one of the plug's channels over: it is closed with the comm, and also if this fails. */
int vv_comm_open(const struct varve_comm *plug, void *channel, double patience, struct vv_comm **out);
/* Two channels of one group: who gives up on one because of what came, or because the plug failed, does so on both. */
void vv_comm_pair(struct vv_comm *a, struct vv_comm *b);
void vv_comm_close(struct vv_comm *c); /* NULL is fine */
/* Frees memory of base/mem.h that was handed over to operations; keeps it if the others may still reach for it. */
void vv_comm_free(struct vv_comm *c, void *p);

/* Each ends when all ranks have come, or with VV_EPEER after `patience`: the session is then of no more use. Bytes that come are those that
 * were sent. If some were not, VV_EPEER on all ranks, and the group is as good as before; or, of a sum, a minimum or a maximum, and of what goes on in the
 * background, it is broken, and the others are told. */
int vv_comm_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root);
int vv_comm_allreduce(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how);
int vv_comm_allgather(struct vv_comm *c, const void *mine, void *all, size_t len);
int vv_comm_alltoall(struct vv_comm *c, const void *to, void *from, size_t len);
int vv_comm_alltoallv(struct vv_comm *c, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len);
int vv_comm_sendrecv(struct vv_comm *c, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from);

/* One that goes on in the background: begun here, looked at by vv_comm_look. Nothing else is begun before it is done, and its
 * memory is never on the stack. The last bytes of each part, VV_COMM_SEAL of them, are the comm's, for the check of the others. */
#define VV_COMM_SEAL sizeof(uint64_t)

struct vv_comm_op {
	void *op;
	const char *what;
	const void *sealed; /* what comes: so many parts of len bytes */
	size_t len;
	uint32_t n_sealed;
	double seen;   /* on the monotonic clock: the last look */
	double waited; /* seconds; a gap between two looks counts for little, see vv_comm_look */
};

int vv_comm_begin_allgather(struct vv_comm *c, void *mine, void *all, size_t len, struct vv_comm_op *op);
int vv_comm_begin_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root, struct vv_comm_op *op);
/* 1: done; 0: not yet; < 0: failed, or too late. With `wait` it does not return 0.
 * Many plugs get on only while somebody looks. So a long gap between two looks, when this rank was busy or stopped, is not held
 * against the others: it counts for at most 0.1 s. */
int vv_comm_look(struct vv_comm *c, struct vv_comm_op *op, bool wait);

#endif
