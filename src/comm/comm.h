/* The ranks of a session: operations of the plug, each with a time limit, and the end of it all when one did not come back. */
#ifndef VV_COMM_COMM_H
#define VV_COMM_COMM_H

#include <stdbool.h>
#include <varve/varve_comm.h>

struct vv_comm {
	struct varve_comm plug;
	double patience; /* seconds to wait for the others */
	bool broken;     /* an operation failed or timed out: nothing more can be said, and what was handed over is not ours to free */
	uint64_t sent;   /* bytes this rank has sent to others, for the statistics */
};

int vv_comm_open(const struct varve_comm *plug, double patience, struct vv_comm **out);
void vv_comm_close(struct vv_comm *c); /* NULL is fine */

/* Each ends when all ranks have come, or with VV_EPEER after `patience`: the session is then of no more use. */
int vv_comm_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root);
int vv_comm_allreduce(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how);
int vv_comm_allgather(struct vv_comm *c, const void *mine, void *all, size_t len);
int vv_comm_alltoall(struct vv_comm *c, const void *to, void *from, size_t len);
int vv_comm_alltoallv(struct vv_comm *c, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len);
int vv_comm_sendrecv(struct vv_comm *c, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from);

/* One that goes on in the background: begun here, looked at by vv_comm_look. Nothing else is begun before it is done. */
struct vv_comm_op {
	void *op;
	double begun; /* on the monotonic clock */
};

int vv_comm_begin_allgather(struct vv_comm *c, const void *mine, void *all, size_t len, struct vv_comm_op *op);
int vv_comm_begin_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root, struct vv_comm_op *op);
/* 1: done; 0: not yet; < 0: failed, or too late. With `wait` it does not return 0. */
int vv_comm_look(struct vv_comm *c, struct vv_comm_op *op, bool wait);

#endif
