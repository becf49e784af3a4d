/* The wrapper of comm.h: every operation of a session among its ranks goes through here.
 *
 * The network is not trusted: received bytes are checked against the sent ones. Each rank adds the
 * checks of its sent messages and subtracts those of its received ones. The total over all ranks is
 * 0. One sum among the ranks reports that total to all of them. So a damaged message fails on all
 * ranks alike, and they can continue. Sums, minima and maxima are computed in transit and carry a
 * check of their own kind. Ranks that find this check wrong cannot know which others do: they give
 * up and report that. */
#include "comm/comm.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/digest.h"
#include "core/format/run.h"
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static const double gap_max = 0.1;

/* ---- the life of a comm ---------------------------------------------------------------------- */

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
	pthread_mutex_init(&c->lock, NULL);
	c->plug = *plug;
	c->ctx = channel;
	c->timeout_s = patience;
	*out = c;
	return 0;
out:
	vv_mem_free(c);
	if (plug->close)
		plug->close(channel);
	return rc;
}

void vv_comm_pair(struct vv_comm *a, struct vv_comm *b)
{
	a->other_channel = b;
	b->other_channel = a;
}

/* Broken comms, with the memory that other ranks may still access: reachable for leak checkers,
 * never freed. */
static _Atomic(struct vv_comm *) lost;

void vv_comm_close(struct vv_comm *c)
{
	if (!c)
		return;
	if (c->other_channel)
		c->other_channel->other_channel = NULL;
	if (c->plug.close)
		c->plug.close(c->ctx);
	if (c->broken) {
		c->next = lost;
		while (!atomic_compare_exchange_weak(&lost, &c->next, c))
			;
		return;
	}
	pthread_mutex_destroy(&c->lock);
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

/* ---- one operation --------------------------------------------------------------------------- */

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

/* Before an operation: no other thread uses this channel from here to begun(). */
static int take(struct vv_comm *c, const char *what)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = enter(c, what);
	if (rc)
		pthread_mutex_unlock(&c->lock);
	return rc;
}

/* The caller holds the channel. */
static void give_up(struct vv_comm *c, const char *why)
{
	size_t n = strnlen(why, sizeof(c->why) - 1);

	memcpy(c->why, why, n);
	c->why[n] = '\0';
	c->broken = true;
}

static void leave(struct vv_comm *c, const char *why)
{
	pthread_mutex_lock(&c->lock);
	if (!c->broken) {
		give_up(c, why);
		if (c->plug.absent)
			c->plug.absent(c->ctx);
	}
	pthread_mutex_unlock(&c->lock);
}

/* The other ranks do not know of this failure and would wait in vain, on either channel. The
 * thread's error message is set. */
static int part(struct vv_comm *c)
{
	struct vv_err_state error;

	vv_err_save(VV_EPEER, &error);
	leave(c, error.message);
	if (c->other_channel)
		leave(c->other_channel, error.message);
	return vv_err_restore(&error);
}

static int fail(struct vv_comm *c, const char *what, int code)
{
	const char *words = c->plug.message ? c->plug.message(c->ctx) : NULL;

	if (!words || !words[0])
		words = vv_err_name(code);
	vv_err_set(VV_EPEER, "rank %u of %u: %s among the ranks failed: %s", c->plug.rank, c->plug.size, what, words);
	return part(c);
}

static int garbled(struct vv_comm *c, const char *what)
{
	vv_err_set(VV_EPEER, "rank %u of %u: what came from the others is damaged (%s)", c->plug.rank, c->plug.size, what);
	return part(c);
}

/* Called after take() and the plug's call, which returned `rc`. */
static int begun(struct vv_comm *c, const char *what, int rc, struct vv_comm_op *op)
{
	pthread_mutex_unlock(&c->lock);
	if (rc)
		return fail(c, what, rc);
	op->what = what;
	op->seen = vv_clock_s();
	op->waited = 0;
	op->n_sealed = 0;
	return 0;
}

/* Messages that end with a check of the bytes before it. */
static void seal(void *p, size_t len)
{
	uint64_t check = vv_digest_check(p, len - VV_COMM_SEAL);

	memcpy((uint8_t *)p + len - VV_COMM_SEAL, &check, sizeof(check));
}

static bool is_sealed(const struct vv_comm_op *op)
{
	for (uint32_t i = 0; i < op->n_sealed; i++) {
		const uint8_t *p = (const uint8_t *)op->sealed + i * op->len;
		uint64_t check = vv_digest_check(p, op->len - VV_COMM_SEAL);

		if (memcmp(p + op->len - VV_COMM_SEAL, &check, sizeof(check)) != 0)
			return false;
	}
	return true;
}

/* The caller holds the channel. */
static int too_late(struct vv_comm *c, const struct vv_comm_op *op)
{
	const char *who = c->plug.absent ? c->plug.absent(c->ctx) : NULL;

	vv_err_set(VV_EPEER,
		   "rank %u of %u waited %.3g s for %s (%s): one has died, hangs, or did not make the same call; if it was "
		   "only late, raise the option `timeout`",
		   c->plug.rank, c->plug.size, op->waited, who && who[0] ? who : "the others", op->what);
	give_up(c, vv_err_last());
	return VV_EPEER;
}

static int look(struct vv_comm *c, struct vv_comm_op *op)
{
	int code, rc = take(c, op->what);
	double now, gap;

	if (rc)
		return rc;
	code = c->plug.test(c->ctx, op->op);
	if (code == 0) {
		now = vv_clock_s();
		gap = now - op->seen;
		op->seen = now;
		op->waited += gap < gap_max ? gap : gap_max;
		rc = op->waited < c->timeout_s ? 0 : too_late(c, op);
	}
	pthread_mutex_unlock(&c->lock);
	if (code > 0)
		return is_sealed(op) ? 1 : garbled(c, op->what);
	return code ? fail(c, op->what, code) : rc;
}

/* When all ranks have arrived, an answer takes microseconds: spin. Where ranks share cores, the
 * awaited rank may need this core: yield, then sleep. The sleeps are short, since an operation's
 * data moves only while a thread polls. */
static void back_off(double waited)
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
	int rc = 0;

	if (alone(c))
		return 1;
	while ((rc = look(c, op)) == 0 && wait)
		back_off(op->waited);
	return rc;
}

/* Takes the return code of the beginning, and returns the result of the operation. */
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

/* Do n parts go through memory of the comm? While the comm is broken, that memory is not ours. */
static bool is_small(const struct vv_comm *c, size_t len, size_t n)
{
	return len <= VV_COMM_SMALL && len * n <= VV_COMM_SMALL && !c->broken;
}

static uint64_t others(const struct vv_comm *c)
{
	return c->plug.size - 1;
}

/* ---- sums, minima, maxima -------------------------------------------------------------------- */

static int reduce(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how)
{
	struct vv_comm_op op;
	int rc = take(c, "allreduce");

	return rc ? rc : finish(c, begun(c, "allreduce", c->plug.allreduce(c->ctx, v, n, how, &op.op), &op), &op);
}

/* The check of a sum: the sum of the ranks' checks. It differs if one of the numbers does. */
static uint64_t linear(const uint64_t *v, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i] * ((i + 1) * 0x9e3779b97f4a7c15 | 1);
	return sum;
}

/* Through memory of the comm: the numbers twice, or followed by the check of a sum. */
static int reduce_small(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how)
{
	uint64_t *there = c->small, check = linear(v, n);
	size_t n_check = how == VARVE_SUM ? 1 : n;
	int rc;

	copy(there, v, n * sizeof(*v));
	copy(there + n, how == VARVE_SUM ? &check : v, n_check * sizeof(*v));
	rc = reduce(c, there, n + n_check, how);
	if (rc)
		return rc;
	check = linear(there, n);
	if (memcmp(there + n, how == VARVE_SUM ? &check : there, n_check * sizeof(*v)) != 0)
		return garbled(c, "allreduce");
	copy(v, there, n * sizeof(*v));
	return 0;
}

static int reduce_large(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how)
{
	enum { PIECE = VV_COMM_SMALL / 2 / sizeof(*v) };
	uint64_t check = linear(v, n);
	int rc = 0;

	for (size_t at = 0; how != VARVE_SUM && rc == 0 && at < n; at += PIECE)
		rc = reduce_small(c, v + at, n - at < PIECE ? n - at : PIECE, how);
	if (how != VARVE_SUM)
		return rc;
	rc = reduce(c, v, n, how);
	if (rc == 0)
		rc = reduce_small(c, &check, 1, how);
	return rc == 0 && check != linear(v, n) ? garbled(c, "allreduce") : rc;
}

int vv_comm_allreduce(struct vv_comm *c, uint64_t *v, size_t n, enum varve_reduce how)
{
	int rc = enter(c, "allreduce");

	if (rc || alone(c))
		return rc;
	c->sent += n * sizeof(*v) * others(c);
	return is_small(c, n, 2 * sizeof(*v)) ? reduce_small(c, v, n, how) : reduce_large(c, v, n, how);
}

/* ---- the other operations -------------------------------------------------------------------- */

/* The check of a message from one rank to another, as a term of the sum over all ranks. */
static uint64_t checksum(const struct vv_comm *c, uint32_t from, uint32_t to, const void *p, uint64_t len)
{
	return len ? vv_digest_check(p, (size_t)len) * (2 * ((uint64_t)from * c->plug.size + to) + 1) : 0;
}

/* After a message has arrived: compares the checks of sent and received bytes over all ranks. All
 * ranks return the same, unless the group breaks. */
static int check_sums(struct vv_comm *c, const char *what, uint64_t sent, uint64_t got)
{
	uint64_t rest = sent - got;
	int rc = reduce_small(c, &rest, 1, VARVE_SUM);

	if (rc == 0 && rest)
		rc = vv_err_set(VV_EPEER, "a message from one rank to another came damaged (%s); nothing came of it, try again", what);
	return rc;
}

static int enter_bcast(const struct vv_comm *c, uint32_t root)
{
	int rc = enter(c, "bcast");

	return rc || root < c->plug.size ? rc : vv_err_set(VV_EINVAL, "bcast: from rank %u of %u", root, c->plug.size);
}

int vv_comm_begin_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root, struct vv_comm_op *op)
{
	int rc = enter_bcast(c, root);

	if (rc)
		return rc;
	*op = (struct vv_comm_op){ .what = "bcast" };
	if (alone(c))
		return 0;
	if (root == c->plug.rank) {
		seal(p, len);
		c->sent += len * others(c);
	}
	rc = take(c, "bcast");
	rc = rc ? rc : begun(c, "bcast", c->plug.bcast(c->ctx, p, len, root, &op->op), op);
	op->sealed = p;
	op->len = len;
	op->n_sealed = root != c->plug.rank;
	return rc;
}

static int bcast(struct vv_comm *c, void *p, size_t len, uint32_t root)
{
	struct vv_comm_op op;
	int rc = take(c, "bcast");

	return rc ? rc : finish(c, begun(c, "bcast", c->plug.bcast(c->ctx, p, len, root, &op.op), &op), &op);
}

int vv_comm_bcast(struct vv_comm *c, void *p, size_t len, uint32_t root)
{
	void *there = is_small(c, len, 1) ? c->small : p;
	bool mine = root == c->plug.rank;
	uint64_t weight;
	int rc = enter_bcast(c, root);

	if (rc || alone(c))
		return rc;
	if (mine) {
		c->sent += len * others(c);
		if (there != p)
			copy(there, p, len);
	}
	rc = bcast(c, there, len, root);
	if (rc)
		return rc;
	if (!mine && there != p)
		copy(p, there, len);
	weight = checksum(c, root, root, p, len);
	return check_sums(c, "bcast", mine ? weight * others(c) : 0, mine ? 0 : weight);
}

int vv_comm_begin_allgather(struct vv_comm *c, void *mine, void *all, size_t len, struct vv_comm_op *op)
{
	int rc = enter(c, "allgather");

	if (rc)
		return rc;
	*op = (struct vv_comm_op){ .what = "allgather" };
	if (alone(c)) {
		copy(all, mine, len);
		return 0;
	}
	seal(mine, len);
	c->sent += len * others(c);
	rc = take(c, "allgather");
	rc = rc ? rc : begun(c, "allgather", c->plug.allgather(c->ctx, mine, all, len, &op->op), op);
	op->sealed = all;
	op->len = len;
	op->n_sealed = c->plug.size;
	return rc;
}

static int allgather(struct vv_comm *c, const void *mine, void *all, size_t len)
{
	struct vv_comm_op op;
	int rc = take(c, "allgather");

	return rc ? rc : finish(c, begun(c, "allgather", c->plug.allgather(c->ctx, mine, all, len, &op.op), &op), &op);
}

int vv_comm_allgather(struct vv_comm *c, const void *mine, void *all, size_t len)
{
	bool small = is_small(c, len, (size_t)c->plug.size + 1), own_small = is_small(c, len, 1);
	uint8_t *there = c->small;
	uint64_t got = 0;
	int rc = enter(c, "allgather");

	if (rc)
		return rc;
	if (alone(c)) {
		copy(all, mine, len);
		return 0;
	}
	c->sent += len * others(c);
	if (own_small) /* often a variable of the caller */
		copy(there, mine, len);
	rc = allgather(c, own_small ? there : mine, small ? there + len : all, len);
	if (rc)
		return rc;
	if (small)
		copy(all, there + len, len * c->plug.size);
	for (uint32_t r = 0; r < c->plug.size; r++)
		got += checksum(c, r, r, (uint8_t *)all + r * len, len);
	return check_sums(c, "allgather", checksum(c, c->plug.rank, c->plug.rank, mine, len) * c->plug.size, got);
}

/* The sum of the checks of all parts that this rank sends to the others, or receives from them. */
static uint64_t checksum_parts(const struct vv_comm *c, const void *parts, const uint64_t *lens, size_t len, bool outward)
{
	const uint8_t *p = parts;
	uint32_t me = c->plug.rank;
	uint64_t sum = 0;

	for (uint32_t r = 0; r < c->plug.size; p += lens ? lens[r] : len, r++)
		sum += outward ? checksum(c, me, r, p, lens ? lens[r] : len) : checksum(c, r, me, p, lens ? lens[r] : len);
	return sum;
}

static int alltoall(struct vv_comm *c, const void *to, void *from, size_t len)
{
	struct vv_comm_op op;
	int rc = take(c, "alltoall");

	return rc ? rc : finish(c, begun(c, "alltoall", c->plug.alltoall(c->ctx, to, from, len, &op.op), &op), &op);
}

int vv_comm_alltoall(struct vv_comm *c, const void *to, void *from, size_t len)
{
	size_t total = len * c->plug.size;
	bool small = is_small(c, len, 2 * (size_t)c->plug.size);
	uint8_t *there = c->small;
	int rc = enter(c, "alltoall");

	if (rc)
		return rc;
	if (alone(c)) {
		copy(from, to, len);
		return 0;
	}
	c->sent += len * others(c);
	if (small)
		copy(there, to, total);
	rc = small ? alltoall(c, there, there + total, len) : alltoall(c, to, from, len);
	if (rc)
		return rc;
	if (small)
		copy(from, there + total, total);
	return check_sums(c, "alltoall", checksum_parts(c, to, NULL, len, true), checksum_parts(c, from, NULL, len, false));
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
	rc = take(c, "alltoallv");
	rc = rc ? rc : finish(c, begun(c, "alltoallv", c->plug.alltoallv(c->ctx, to, to_len, from, from_len, &op.op), &op), &op);
	if (rc)
		return rc;
	return check_sums(c, "alltoallv", checksum_parts(c, to, to_len, 0, true), checksum_parts(c, from, from_len, 0, false));
}

/* A rank that sends to itself must receive that message, and nothing else. */
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
	int rc = take(c, "sendrecv");

	return rc ? rc : finish(c, begun(c, "sendrecv", c->plug.sendrecv(c->ctx, out, out_len, to, in, in_len, from, &op.op), &op), &op);
}

int vv_comm_sendrecv(struct vv_comm *c, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from)
{
	uint8_t *there = c->small;
	uint32_t me = c->plug.rank;
	bool small = out_len <= VV_COMM_SMALL && in_len <= VV_COMM_SMALL - out_len;
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
	c->sent += to == me || to == VARVE_NOBODY ? 0 : out_len;
	if (small && to != VARVE_NOBODY)
		copy(there, out, out_len);
	rc = small ? sendrecv(c, there, out_len, to, there + out_len, in_len, from) : sendrecv(c, out, out_len, to, in, in_len, from);
	if (rc)
		return rc;
	if (small && from != VARVE_NOBODY)
		copy(in, there + out_len, in_len);
	return check_sums(c, "sendrecv", to == VARVE_NOBODY ? 0 : checksum(c, me, to, out, out_len), from == VARVE_NOBODY ? 0 : checksum(c, from, me, in, in_len));
}
