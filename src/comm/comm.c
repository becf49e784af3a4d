/* The wrapper of comm.h: every operation of a session among its ranks goes through here. */
#include "comm/comm.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/run.h"
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static const double gap_max = 0.1;

/* ---- the life of a comm --------------------------------------------------------------------------------------------- */

static int check_plug(const struct varve_comm *p, double patience)
{
	if (p->size == 0 || p->size > VV_MAX_RANKS || p->rank >= p->size)
		return vv_err_set(VV_EINVAL, "communicator: rank %u of %u; there are 1 to %u ranks, counted from 0", p->rank,
				  p->size, VV_MAX_RANKS);
	if (p->size > 1 && (!p->bcast || !p->allreduce || !p->allgather || !p->alltoall || !p->alltoallv || !p->sendrecv || !p->test))
		return vv_err_set(VV_EINVAL, "communicator: only `message`, `absent` and `close` may be NULL");
	if (!(patience > 0))
		return vv_err_set(VV_EINVAL, "communicator: a time limit of %g s; it must be above 0", patience);
	return 0;
}

int vv_comm_open(const struct varve_comm *plug, void *channel, double patience, struct vv_comm **out)
{
	struct vv_comm *c = NULL;
	int rc = check_plug(plug, patience);

	if (rc)
		goto out;
	rc = VV_ENOMEM;
	c = vv_mem_new(1, sizeof(*c));
	if (!c)
		goto out;
	c->small = vv_mem_new(1, VV_COMM_SMALL);
	if (!c->small)
		goto out;
	c->plug = *plug;
	c->ctx = channel;
	c->patience = patience;
	*out = c;
	return 0;
out:
	vv_mem_free(c);
	if (plug->close)
		plug->close(channel);
	return rc;
}

/* Broken ones, with what the others may still reach for: in sight of leak checkers, and never freed. */
static _Atomic(struct vv_comm *) lost;

void vv_comm_close(struct vv_comm *c)
{
	if (!c)
		return;
	if (c->plug.close)
		c->plug.close(c->ctx);
	if (c->broken) {
		c->next = lost;
		while (!atomic_compare_exchange_weak(&lost, &c->next, c))
			;
		return;
	}
	vv_mem_free(c->small);
	vv_mem_free(c);
}

void vv_comm_free(struct vv_comm *c, void *p)
{
	if (!c->broken)
		vv_mem_free(p);
	else if (p && vv_mem_room(&c->kept, c->n_kept, &c->cap_kept, sizeof(*c->kept)) == 0)
		c->kept[c->n_kept++] = p;
}

/* ---- one operation ---------------------------------------------------------------------------------------------------- */

static bool alone(const struct vv_comm *c)
{
	return c->plug.size == 1;
}

static int enter(const struct vv_comm *c, const char *what)
{
	if (c->broken)
		return vv_err_set(VV_EPEER, "%s: the ranks have lost each other (%s); end the job and start it again", what, c->why);
	return 0;
}

/* The thread's message is set. */
static int give_up(struct vv_comm *c)
{
	size_t n = strnlen(vv_err_last(), sizeof(c->why) - 1);

	memcpy(c->why, vv_err_last(), n);
	c->why[n] = '\0';
	c->broken = true;
	return VV_EPEER;
}

static int fail(struct vv_comm *c, const char *what, int code)
{
	const char *words = c->plug.message ? c->plug.message(c->ctx) : NULL;

	if (!words || !words[0])
		words = vv_err_name(code);
	vv_err_set(VV_EPEER, "rank %u of %u: %s among the ranks failed: %s", c->plug.rank, c->plug.size, what, words);
	return give_up(c);
}

/* After the plug's call: `rc` is what it returned. */
static int begun(struct vv_comm *c, const char *what, int rc, struct vv_comm_op *op)
{
	if (rc)
		return fail(c, what, rc);
	op->what = what;
	op->seen = vv_clock_s();
	op->waited = 0;
	return 0;
}

static int look(struct vv_comm *c, struct vv_comm_op *op)
{
	const char *who;
	double now, gap;
	int rc = c->plug.test(c->ctx, op->op);

	if (rc)
		return rc > 0 ? 1 : fail(c, op->what, rc);
	now = vv_clock_s();
	gap = now - op->seen;
	op->seen = now;
	op->waited += gap < gap_max ? gap : gap_max;
	if (op->waited < c->patience)
		return 0;
	who = c->plug.absent ? c->plug.absent(c->ctx) : NULL;
	vv_err_set(VV_EPEER,
		   "rank %u of %u waited %.3g s for %s (%s): one has died, hangs, or did not make the same call; if it was "
		   "only late, raise the option `timeout`",
		   c->plug.rank, c->plug.size, op->waited, who && who[0] ? who : "the others", op->what);
	return give_up(c);
}

/* When all are there, an answer takes microseconds: spin. Where ranks share cores, the one waited for may need this one: yield,
 * then sleep; not for long, since data of an operation moves only while somebody looks. */
static void rest(double waited)
{
	if (waited < 20e-6)
		return;
	if (waited < 1e-3)
		sched_yield();
	else
		vv_clock_sleep(waited < 0.1 ? 50e-6 : waited < 1 ? 200e-6 : 1e-3);
}

int vv_comm_look(struct vv_comm *c, struct vv_comm_op *op, bool wait)
{
	int rc = enter(c, op->what);

	if (rc)
		return rc;
	if (alone(c))
		return 1;
	while ((rc = look(c, op)) == 0 && wait)
		rest(op->waited);
	return rc;
}

/* What beginning it returned, then what became of it. */
static int finish(struct vv_comm *c, int rc, struct vv_comm_op *op)
{
	if (rc == 0)
		rc = vv_comm_look(c, op, true);
	return rc < 0 ? rc : 0;
}

static void copy(void *to, const void *from, size_t len)
{
	if (len)
		memcpy(to, from, len);
}

/* Do n parts go through memory of the comm? While it is broken, that is not ours. */
static bool is_small(const struct vv_comm *c, size_t len, size_t n)
{
	return len <= VV_COMM_SMALL && len * n <= VV_COMM_SMALL && !c->broken;
}

static uint64_t others(const struct vv_comm *c)
{
	return c->plug.size - 1;
}

/* ---- the operations ----------------------------------------------------------------------------------------------------- */

int vv_comm_begin_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root, struct vv_comm_op *op)
{
	int rc = enter(c, "bcast");

	if (rc)
		return rc;
	if (root >= c->plug.size)
		return vv_err_set(VV_EINVAL, "bcast: from rank %u of %u", root, c->plug.size);
	*op = (struct vv_comm_op){ .what = "bcast" };
	if (alone(c))
		return 0;
	if (root == c->plug.rank)
		c->sent += len * others(c);
	return begun(c, "bcast", c->plug.bcast(c->ctx, p, len, root, &op->op), op);
}

int vv_comm_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root)
{
	void *there = is_small(c, len, 1) ? c->small : p;
	struct vv_comm_op op;
	int rc;

	if (there != p && root == c->plug.rank)
		copy(there, p, len);
	rc = finish(c, vv_comm_begin_bcast(c, there, len, root, &op), &op);
	if (rc == 0 && there != p && root != c->plug.rank)
		copy(p, there, len);
	return rc;
}

int vv_comm_allreduce(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how)
{
	uint64_t *there = is_small(c, n, sizeof(*v)) ? c->small : v;
	struct vv_comm_op op;
	int rc = enter(c, "allreduce");

	if (rc || alone(c))
		return rc;
	if (there != v)
		copy(there, v, n * sizeof(*v));
	c->sent += n * sizeof(*v) * others(c);
	rc = finish(c, begun(c, "allreduce", c->plug.allreduce(c->ctx, there, n, how, &op.op), &op), &op);
	if (rc == 0 && there != v)
		copy(v, there, n * sizeof(*v));
	return rc;
}

int vv_comm_begin_allgather(struct vv_comm *c, const void *mine, void *all, size_t len, struct vv_comm_op *op)
{
	int rc = enter(c, "allgather");

	if (rc)
		return rc;
	*op = (struct vv_comm_op){ .what = "allgather" };
	if (alone(c)) {
		copy(all, mine, len);
		return 0;
	}
	c->sent += len * others(c);
	return begun(c, "allgather", c->plug.allgather(c->ctx, mine, all, len, &op->op), op);
}

int vv_comm_allgather(struct vv_comm *c, const void *mine, void *all, size_t len)
{
	uint8_t *there = c->small;
	struct vv_comm_op op;
	int rc;

	if (!is_small(c, len, (size_t)c->plug.size + 1))
		return finish(c, vv_comm_begin_allgather(c, mine, all, len, &op), &op);
	copy(there, mine, len);
	rc = finish(c, vv_comm_begin_allgather(c, there, there + len, len, &op), &op);
	if (rc == 0)
		copy(all, there + len, len * c->plug.size);
	return rc;
}

static int alltoall(struct vv_comm *c, const void *to, void *from, size_t len)
{
	struct vv_comm_op op;

	c->sent += len * others(c);
	return finish(c, begun(c, "alltoall", c->plug.alltoall(c->ctx, to, from, len, &op.op), &op), &op);
}

int vv_comm_alltoall(struct vv_comm *c, const void *to, void *from, size_t len)
{
	size_t total = len * c->plug.size;
	uint8_t *there = c->small;
	int rc = enter(c, "alltoall");

	if (rc)
		return rc;
	if (alone(c)) {
		copy(from, to, len);
		return 0;
	}
	if (!is_small(c, len, 2 * (size_t)c->plug.size))
		return alltoall(c, to, from, len);
	copy(there, to, total);
	rc = alltoall(c, there, there + total, len);
	if (rc == 0)
		copy(from, there + total, total);
	return rc;
}

int vv_comm_alltoallv(struct vv_comm *c, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len)
{
	uint32_t me = c->plug.rank;
	struct vv_comm_op op;
	int rc = enter(c, "alltoallv");

	if (rc)
		return rc;
	if (to_len[me] != from_len[me])
		return vv_err_set(VV_EINVAL, "alltoallv: rank %u sends itself %" PRIu64 " bytes and expects %" PRIu64, me,
				  to_len[me], from_len[me]);
	if (alone(c)) {
		copy(from, to, to_len[0]);
		return 0;
	}
	for (uint32_t r = 0; r < c->plug.size; r++)
		c->sent += r == me ? 0 : to_len[r];
	return finish(c, begun(c, "alltoallv", c->plug.alltoallv(c->ctx, to, to_len, from, from_len, &op.op), &op), &op);
}

/* Who sends to itself must receive that, and nothing else. */
static int check_pair(const struct vv_comm *c, size_t out_len, uint32_t to, size_t in_len, uint32_t from)
{
	uint32_t me = c->plug.rank, size = c->plug.size;

	if ((to >= size && to != VARVE_NOBODY) || (from >= size && from != VARVE_NOBODY) || (to == me) != (from == me) ||
	    (to == me && out_len != in_len))
		return vv_err_set(VV_EINVAL, "sendrecv: rank %u of %u sends %zu bytes to %u and expects %zu from %u", me, size,
				  out_len, to, in_len, from);
	return 0;
}

static int sendrecv(struct vv_comm *c, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from)
{
	struct vv_comm_op op;
	int rc;

	if (to != c->plug.rank && to != VARVE_NOBODY)
		c->sent += out_len;
	rc = c->plug.sendrecv(c->ctx, out, out_len, to, in, in_len, from, &op.op);
	return finish(c, begun(c, "sendrecv", rc, &op), &op);
}

int vv_comm_sendrecv(struct vv_comm *c, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from)
{
	uint8_t *there = c->small;
	int rc = enter(c, "sendrecv");

	if (rc == 0)
		rc = check_pair(c, out_len, to, in_len, from);
	if (rc)
		return rc;
	if (alone(c)) {
		if (to == 0)
			copy(in, out, in_len);
		return 0;
	}
	if (out_len > VV_COMM_SMALL || in_len > VV_COMM_SMALL - out_len)
		return sendrecv(c, out, out_len, to, in, in_len, from);
	if (to != VARVE_NOBODY)
		copy(there, out, out_len);
	rc = sendrecv(c, there, out_len, to, there + out_len, in_len, from);
	if (rc == 0 && from != VARVE_NOBODY)
		copy(in, there + out_len, in_len);
	return rc;
}
