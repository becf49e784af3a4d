#include "support/damage.h"
#include "support/gen.h"
#include "vv_test.h"
#include <unistd.h>

void damage_begin(struct damage *d, uint32_t ranks)
{
	CHECK(ranks <= DAMAGE_RANKS);
	memset(d, 0, sizeof(*d));
	d->ranks = ranks;
	d->seed = 1;
}

static void reset(struct damage *d)
{
	for (uint32_t r = 0; r < d->ranks; r++)
		for (unsigned c = 0; c < DAMAGE_CHANNELS; c++) {
			free(d->seat[r][c].copy);
			d->seat[r][c] = (struct damage_seat){ .d = d, .channel = c };
		}
	d->done = false;
	d->gone[0] = d->gone[1] = false;
}

static bool start(struct damage *d)
{
	bool fresh = !d->first && d->n[0] + d->n[1] == 0;

	if (fresh) {
		d->first = true;
		snprintf(d->words, sizeof(d->words), "nothing damaged");
	}
	return fresh;
}

/* Of each message what goes and what comes, of one rank after the other. */
bool damage_next(struct damage *d)
{
	if (start(d)) {
		reset(d);
		return true;
	}
	if (d->first) {
		d->first = false;
		for (unsigned c = 0; c < DAMAGE_CHANNELS; c++)
			d->n[c] = d->seat[0][c].begun;
		CHECK(d->n[0]);
	} else if (!d->outward) {
		d->outward = true;
	} else {
		d->outward = false;
		d->turn++;
	}
	for (; d->channel < DAMAGE_CHANNELS && d->turn >= d->n[d->channel]; d->channel++)
		d->turn = 0;
	if (d->channel == DAMAGE_CHANNELS) {
		reset(d);
		return false;
	}
	d->rank = (uint32_t)(d->turn % d->ranks);
	reset(d);
	snprintf(d->words, sizeof(d->words), "rank %u, channel %u, message %llu of %llu, %s", d->rank, d->channel, (unsigned long long)d->turn,
		 (unsigned long long)d->n[d->channel], d->outward ? "as it goes" : "as it comes");
	return true;
}

/* ---- one operation ---------------------------------------------------------------------------------------------------------------- */

static void change(struct damage *d, uint8_t *p, size_t n)
{
	if (!n)
		return;
	d->seed = d->seed * 6364136223846793005u + 1;
	p[gen_below(&d->seed, n)] ^= (uint8_t)(1 + gen_below(&d->seed, 255));
	d->done = true;
}

/* What is handed to the communicator behind, and what it fills. */
static const void *begin(struct damage_seat *s, const void *out, size_t n_out, void *in, size_t n_in)
{
	struct damage *d = s->d;

	s->turn = !d->first && d->rank == s->behind.rank && d->channel == s->channel && d->turn == s->begun;
	s->begun++;
	s->in = in;
	s->back = NULL;
	s->n_in = n_in;
	if (!s->turn || !d->outward)
		return out;
	free(s->copy);
	s->copy = malloc(n_out + 1);
	CHECK(s->copy);
	if (n_out)
		memcpy(s->copy, out, n_out);
	change(d, s->copy, n_out);
	if (out == in) {
		s->back = in;
		s->in = s->copy;
	}
	return s->copy;
}

/* Ranks with odd numbers take their time with the message that is damaged, and with the next: what those do who hear of it first is done by then. */
static void linger(const struct damage_seat *s)
{
	const struct damage *d = s->d;
	uint64_t turn = s->begun - 1;

	if (!d->first && d->channel == s->channel && d->rank != s->behind.rank && s->behind.rank % 2 && turn - d->turn < 2)
		usleep(3000);
}

static int test(void *ctx, void *op)
{
	struct damage_seat *s = ctx;
	int rc = s->d->gone[s->channel] ? VARVE_EPEER : s->behind.test(s->behind.ctx, op);

	if (rc <= 0)
		return rc;
	linger(s);
	if (s->turn && !s->d->outward)
		change(s->d, s->in, s->n_in);
	if (s->back && s->n_in)
		memcpy(s->back, s->in, s->n_in);
	s->turn = false;
	return rc;
}

static uint64_t sum(const uint64_t *len, uint32_t n)
{
	uint64_t all = 0;

	for (uint32_t r = 0; r < n; r++)
		all += len[r];
	return all;
}

static int bcast(void *ctx, void *p, size_t len, uint32_t root, void **op)
{
	struct damage_seat *s = ctx;
	bool mine = root == s->behind.rank;
	const void *there = begin(s, p, mine ? len : 0, p, mine ? 0 : len);

	if (!mine) { /* it sends nothing */
		there = s->in = p;
		s->back = NULL;
	}
	return s->behind.bcast(s->behind.ctx, (void *)(uintptr_t)there, len, root, op);
}

static int allreduce(void *ctx, uint64_t *v, size_t n, enum varve_reduce how, void **op)
{
	struct damage_seat *s = ctx;
	const void *there = begin(s, v, n * sizeof(*v), v, n * sizeof(*v));

	return s->behind.allreduce(s->behind.ctx, (void *)(uintptr_t)there, n, how, op);
}

static int allgather(void *ctx, const void *mine, void *all, size_t len, void **op)
{
	struct damage_seat *s = ctx;
	const void *there = begin(s, mine, len, all, len * s->behind.size);

	return s->behind.allgather(s->behind.ctx, there, all, len, op);
}

static int alltoall(void *ctx, const void *to, void *from, size_t len, void **op)
{
	struct damage_seat *s = ctx;
	const void *there = begin(s, to, len * s->behind.size, from, len * s->behind.size);

	return s->behind.alltoall(s->behind.ctx, there, from, len, op);
}

static int alltoallv(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op)
{
	struct damage_seat *s = ctx;
	const void *there = begin(s, to, sum(to_len, s->behind.size), from, sum(from_len, s->behind.size));

	return s->behind.alltoallv(s->behind.ctx, there, to_len, from, from_len, op);
}

static int sendrecv(void *ctx, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from, void **op)
{
	struct damage_seat *s = ctx;
	const void *there = begin(s, out, to == VARVE_NOBODY ? 0 : out_len, in, from == VARVE_NOBODY ? 0 : in_len);

	return s->behind.sendrecv(s->behind.ctx, there, out_len, to, in, in_len, from, op);
}

static const char *message(void *ctx)
{
	struct damage_seat *s = ctx;

	return s->d->gone[s->channel] ? "another rank has given up" : s->behind.message(s->behind.ctx);
}

static const char *absent(void *ctx)
{
	struct damage_seat *s = ctx;

	s->d->gone[s->channel] = true;
	return "";
}

static void leave(void *ctx)
{
	struct damage_seat *s = ctx;

	s->behind.close(s->behind.ctx);
}

struct varve_comm damage_plug(struct damage *d, const struct varve_comm *comm)
{
	struct varve_comm out = *comm;
	struct damage_seat *s = d->seat[comm->rank];

	s[0].behind = s[1].behind = *comm;
	s[1].behind.ctx = comm->side;
	out.ctx = &s[0];
	out.side = &s[1];
	out.bcast = bcast;
	out.allreduce = allreduce;
	out.allgather = allgather;
	out.alltoall = alltoall;
	out.alltoallv = alltoallv;
	out.sendrecv = sendrecv;
	out.test = test;
	out.message = message;
	out.absent = absent;
	out.close = leave;
	return out;
}
