// ctest: COST 3
// The wrapper of comm.h over threads of one process, and over plugs that fail.
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include "support/commsuite.h"
#include "support/must.h"
#include "support/threadcomm.h"
#include <pthread.h>
#include <stdatomic.h>

static struct vv_comm *open_comm(const struct varve_comm *plug, double patience)
{
	struct vv_comm *c = NULL;

	CHECK_EQ(vv_comm_open(plug, plug->ctx, patience, &c), 0);
	return c;
}

static void suite(const struct varve_comm *plug, void *arg)
{
	struct vv_comm *c = open_comm(plug, 60);

	commsuite_run(c, *(uint64_t *)arg, 150, 3 * VV_COMM_SMALL);
	vv_comm_close(c);
}

static void test_model(void)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 7 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint64_t seed = 1; seed <= 4; seed++) {
			must_begin("suite of %u ranks, seed %llu", sizes[i], (unsigned long long)seed);
			threadcomm_run(sizes[i], suite, &seed);
		}
}

/* A plug in front of a plug: counts, and fails when told to. */
struct front {
	struct varve_comm behind;
	int asked, closed;
	int fail_begin, fail_test;
	int mute; /* cannot tell who is missing */
};

static int front_allreduce(void *ctx, uint64_t *v, size_t n, enum varve_reduce how, void **op)
{
	struct front *f = ctx;

	f->asked++;
	if (f->fail_begin)
		return f->fail_begin;
	return f->behind.allreduce(f->behind.ctx, v, n, how, op);
}

static int front_bcast(void *ctx, void *p, size_t len, uint32_t root, void **op)
{
	struct front *f = ctx;

	f->asked++;
	return f->behind.bcast(f->behind.ctx, p, len, root, op);
}

static int front_test(void *ctx, void *op)
{
	struct front *f = ctx;

	return f->fail_test ? f->fail_test : f->behind.test(f->behind.ctx, op);
}

static const char *front_message(void *ctx)
{
	(void)ctx;
	return "the cable is out";
}

static const char *front_absent(void *ctx)
{
	struct front *f = ctx;

	return f->mute ? NULL : f->behind.absent(f->behind.ctx);
}

static void front_close(void *ctx)
{
	struct front *f = ctx;

	f->closed++;
	if (f->behind.close)
		f->behind.close(f->behind.ctx);
}

static struct varve_comm put_front(struct front *f, const struct varve_comm *behind)
{
	struct varve_comm plug = *behind;

	f->behind = *behind;
	plug.ctx = f;
	plug.allreduce = front_allreduce;
	plug.bcast = front_bcast;
	plug.test = front_test;
	plug.message = front_message;
	plug.absent = front_absent;
	plug.close = front_close;
	return plug;
}

/* Everything fails, without the plug being asked, and says why it did in the first place. */
static void check_dead(struct vv_comm *c, const struct front *f, const char *why)
{
	uint64_t v[8] = { 0 }, in[8], len[8] = { 0 };
	struct vv_comm_op op = { .what = "bcast" };
	int asked = f->asked;

	CHECK(c->broken);
	CHECK_EQ(vv_comm_bcast(c, v, 8, 0), VV_EPEER);
	CHECK_EQ(vv_comm_allreduce(c, v, 1, VARVE_SUM), VV_EPEER);
	CHECK(strstr(vv_err_last(), why));
	CHECK_EQ(vv_comm_allgather(c, v, in, 1), VV_EPEER);
	CHECK_EQ(vv_comm_alltoall(c, v, in, 1), VV_EPEER);
	CHECK_EQ(vv_comm_alltoallv(c, v, len, in, len), VV_EPEER);
	CHECK_EQ(vv_comm_sendrecv(c, v, 1, VARVE_NOBODY, in, 1, VARVE_NOBODY), VV_EPEER);
	CHECK_EQ(vv_comm_begin_allgather(c, v, in, 1, &op), VV_EPEER);
	CHECK_EQ(vv_comm_begin_bcast(c, v, 8, 0, &op), VV_EPEER);
	CHECK_EQ(vv_comm_look(c, &op, true), VV_EPEER);
	CHECK(strstr(vv_err_last(), why));
	CHECK_EQ(f->asked, asked);
}

struct gathering {
	atomic_uint missing, left;
};

static void one_stays_away(const struct varve_comm *plug, void *arg)
{
	struct front f = { .mute = plug->rank == 1 };
	struct varve_comm front = put_front(&f, plug);
	struct vv_comm *c = open_comm(&front, 1);
	char word[32] = "for the others";
	struct gathering *g = arg;
	uint64_t v = 1;
	void *heap = vv_mem_new(1, 100);
	double begin;

	for (g->missing--; g->missing;) /* who comes too late for the others would be named, too */
		must_nap(1);
	begin = vv_clock_s();
	if (plug->rank + 1 < plug->size) {
		CHECK_EQ(vv_comm_allreduce(c, &v, 1, VARVE_SUM), VV_EPEER);
		if (!f.mute)
			snprintf(word, sizeof(word), "for rank %u (allreduce)", plug->size - 1);
		CHECK(strstr(vv_err_last(), word));
		CHECK(strstr(vv_err_last(), "allreduce"));
		CHECK(strstr(vv_err_last(), "`timeout`"));
		CHECK(strstr(vv_err_last(), "same call"));
		CHECK(vv_clock_s() - begin >= 1);
		CHECK_EQ(v, 1);
		check_dead(c, &f, "waited 1");
	}
	for (g->left--; g->left;) /* who closes first would be noticed by those who still wait */
		must_nap(1);
	vv_comm_free(c, heap);
	vv_comm_free(c, NULL);
	vv_comm_close(c);
	CHECK_EQ(f.closed, 1);
}

/* Rank 0 gives up and uses its stack for something else. Rank 1 comes after that, and gets what rank 0 had said. */
static void one_is_late(const struct varve_comm *plug, void *arg)
{
	struct vv_comm *c = open_comm(plug, plug->rank == 0 ? 0.1 : 60);
	atomic_int *gone = arg;
	uint64_t v = plug->rank == 0 ? 5 : 7;

	if (plug->rank == 0) {
		CHECK_EQ(vv_comm_allreduce(c, &v, 1, VARVE_SUM), VV_EPEER);
		v = 999;
		*gone = 1;
		while (*gone == 1)
			must_nap(1);
		CHECK_EQ(v, 999);
	} else {
		while (*gone == 0)
			must_nap(1);
		CHECK_EQ(vv_comm_allreduce(c, &v, 1, VARVE_SUM), 0);
		CHECK_EQ(v, 12);
		*gone = 2;
	}
	vv_comm_close(c);
}

/* The same for its part of an allgather that is too large for the memory of the comm. */
static void one_is_late_for_much(const struct varve_comm *plug, void *arg)
{
	enum { MUCH = VV_COMM_SMALL / 2 };
	struct vv_comm *c = open_comm(plug, 0.1);
	uint8_t mine[MUCH] = { plug->rank ? 7 : 5 }, *all = vv_mem_new(2, MUCH);
	atomic_int *gone = arg;
	void *op = NULL;
	int rc;

	if (plug->rank == 0) {
		CHECK_EQ(vv_comm_allgather(c, mine, all, MUCH), VV_EPEER);
		mine[0] = 99;
		*gone = 1;
		while (*gone == 1)
			must_nap(1);
	} else {
		while (*gone == 0)
			must_nap(1);
		CHECK_EQ(plug->allgather(plug->ctx, mine, all, MUCH, &op), 0);
		while ((rc = plug->test(plug->ctx, op)) == 0)
			must_nap(1);
		CHECK_EQ(rc, 1);
		CHECK_EQ(all[0], 5);
		*gone = 2;
	}
	vv_comm_free(c, all);
	vv_comm_close(c);
}

/* Who looks seldom does not hold his own absence against the others. */
static void look_seldom(const struct varve_comm *plug, void *arg)
{
	struct vv_comm *c = open_comm(plug, plug->rank == 0 ? 0.35 : 60);
	atomic_int *seen = arg;
	uint64_t mine[2] = { plug->rank }, all[2][2]; /* and a seal */
	struct vv_comm_op op;

	if (plug->rank == 1)
		while (*seen == 0)
			must_nap(1);
	CHECK_EQ(vv_comm_begin_allgather(c, mine, all, sizeof(mine), &op), 0);
	if (plug->rank == 0) {
		for (int i = 0; i < 2; i++) {
			must_nap(400);
			CHECK_EQ(vv_comm_look(c, &op, false), 0);
		}
		*seen = 1;
		while (*seen == 1) /* it may take its time, too */
			must_nap(1);
	} else {
		*seen = 2;
	}
	CHECK_EQ(vv_comm_look(c, &op, true), 1);
	CHECK_EQ(all[0][0] + 10 * all[1][0], 10);
	vv_comm_close(c);
}

static void test_time(void)
{
	struct gathering two = { 2, 2 }, five = { 5, 5 };
	atomic_int flag = 0;

	must_begin("a rank that never comes");
	threadcomm_run(2, one_stays_away, &two);
	threadcomm_run(5, one_stays_away, &five);
	must_begin("a rank that comes late");
	threadcomm_run(2, one_is_late, &flag);
	must_begin("a rank that comes late for much");
	flag = 0;
	threadcomm_run(2, one_is_late_for_much, &flag);
	must_begin("a rank that looks seldom");
	flag = 0;
	threadcomm_run(2, look_seldom, &flag);
}

static void fail_as_told(const struct varve_comm *plug, void *arg)
{
	struct front f = *(const struct front *)arg;
	struct varve_comm front = put_front(&f, plug);
	struct vv_comm *c = open_comm(&front, 60);
	uint64_t v = 3;

	CHECK_EQ(vv_comm_allreduce(c, &v, 1, VARVE_SUM), VV_EPEER);
	CHECK(strstr(vv_err_last(), "the cable is out"));
	CHECK(strstr(vv_err_last(), "allreduce"));
	CHECK_EQ(v, 3);
	check_dead(c, &f, "the cable is out");
	vv_comm_close(c);
	CHECK_EQ(f.closed, 1);
}

static void call_differently(const struct varve_comm *plug, void *arg)
{
	struct vv_comm *c = open_comm(plug, 60);
	uint64_t v[2] = { 0 };
	int rc = plug->rank ? vv_comm_allreduce(c, v, 1, VARVE_SUM) : vv_comm_bcast(c, v, 8, 0);

	(void)arg;
	CHECK_EQ(rc, VV_EPEER);
	CHECK(strstr(vv_err_last(), "does not fit"));
	vv_comm_close(c);
}

/* Mistakes of the caller are told before anybody else is asked, and break nothing. */
static void call_wrongly(const struct varve_comm *plug, void *arg)
{
	struct vv_comm *c = open_comm(plug, 60);
	uint64_t to_len[2] = { 1, 1 }, from_len[2] = { 2, 2 };
	char out[8] = "", in[8] = "";
	uint32_t me = plug->rank;

	(void)arg;
	CHECK_EQ(vv_comm_bcast(c, out, 1, 2), VV_EINVAL);
	CHECK_EQ(vv_comm_alltoallv(c, out, to_len, in, from_len), VV_EINVAL);
	CHECK_EQ(vv_comm_sendrecv(c, out, 1, 2, in, 1, VARVE_NOBODY), VV_EINVAL);
	CHECK_EQ(vv_comm_sendrecv(c, out, 1, VARVE_NOBODY, in, 1, 7), VV_EINVAL);
	CHECK_EQ(vv_comm_sendrecv(c, out, 1, me, in, 1, 1 - me), VV_EINVAL);
	CHECK_EQ(vv_comm_sendrecv(c, out, 1, me, in, 2, me), VV_EINVAL);
	CHECK(!c->broken);
	CHECK_EQ(vv_comm_bcast(c, out, 1, 1), 0);
	vv_comm_close(c);
}

static void test_failures(void)
{
	must_begin("plugs that fail");
	threadcomm_run(2, fail_as_told, &(struct front){ .fail_begin = VARVE_EIO });
	threadcomm_run(2, fail_as_told, &(struct front){ .fail_test = VARVE_ENOMEM });
	threadcomm_run(3, fail_as_told, &(struct front){ .fail_test = -4711 });
	must_begin("callers that are wrong");
	threadcomm_run(2, call_differently, NULL);
	threadcomm_run(2, call_wrongly, NULL);
}

static void open_badly(const struct varve_comm *good, void *arg)
{
	struct front f = { 0 };
	struct varve_comm base = put_front(&f, good), p;
	struct vv_comm *c = NULL;
	int tries = 0;

	(void)arg;
#define BAD(field, value)                                                                                                        \
	do {                                                                                                                   \
		p = base;                                                                                                      \
		p.field = value;                                                                                               \
		CHECK_EQ(vv_comm_open(&p, p.ctx, 1, &c), VV_EINVAL);                                                                  \
		CHECK_EQ(f.closed, ++tries);                                                                                   \
	} while (0)
	BAD(size, 0);
	BAD(size, VV_MAX_RANKS + 1);
	BAD(rank, 2);
	BAD(bcast, NULL);
	BAD(allreduce, NULL);
	BAD(allgather, NULL);
	BAD(alltoall, NULL);
	BAD(alltoallv, NULL);
	BAD(sendrecv, NULL);
	BAD(test, NULL);
	CHECK_EQ(vv_comm_open(&base, base.ctx, 0, &c), VV_EINVAL);
	CHECK_EQ(f.closed, ++tries);
	for (long i = 1; i <= 2; i++) {
		vv_mem_fail_at(i);
		CHECK_EQ(vv_comm_open(&base, base.ctx, 1, &c), VV_ENOMEM);
		CHECK_EQ(f.closed, ++tries);
	}
	vv_mem_fail_at(0);
	CHECK(!c);
	base.absent = NULL;
	base.message = NULL;
	c = open_comm(&base, 1);
	vv_comm_close(c);
	c = open_comm(&(struct varve_comm){ .size = 1 }, 1); /* needs nothing */
	vv_comm_close(c);
	vv_comm_close(NULL);
}

static void once(const struct varve_comm *plug, void *arg)
{
	if (plug->rank == 0)
		open_badly(plug, arg);
}

int main(void)
{
	test_model();
	test_time();
	test_failures();
	threadcomm_run(2, once, NULL);
	return 0;
}
