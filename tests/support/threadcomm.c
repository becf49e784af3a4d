#include "support/threadcomm.h"
#include "vv_test.h"
#include <pthread.h>

enum kind { BCAST, ALLREDUCE, ALLGATHER, ALLTOALL, ALLTOALLV, SENDRECV };

static const char *const kind_name[] = { "bcast", "allreduce", "allgather", "alltoall", "alltoallv", "sendrecv" };

/* What one rank wants. The last one to come does it for all. */
struct call {
	enum kind kind;
	const void *out;
	void *in;
	size_t out_len, in_len;
	uint32_t to, from; /* bcast: both the root */
	enum varve_reduce how;
	const uint64_t *to_len, *from_len;
};

struct hub;

struct seat {
	struct hub *hub;
	struct varve_comm comm;
	struct call call;
	uint64_t begun; /* operations */
	char absent[64];
	void (*fn)(const struct varve_comm *comm, void *arg);
	void *arg;
	pthread_t thread;
};

struct hub {
	pthread_mutex_t lock;
	uint32_t size, here; /* ranks that have begun operation done + 1 */
	uint64_t done;
	int broken;
	char message[200];
	struct seat *seat;
};

static int mismatch(struct hub *h, uint32_t a, uint32_t b)
{
	const struct call *x = &h->seat[a].call, *y = &h->seat[b].call;

	snprintf(h->message, sizeof(h->message), "rank %u does %s of %zu bytes, which does not fit rank %u's %s of %zu", a,
		 kind_name[x->kind], x->out_len, b, kind_name[y->kind], y->out_len);
	h->broken = 1;
	return VARVE_EPEER;
}

static void copy(void *to, const void *from, size_t len)
{
	if (len)
		memcpy(to, from, len);
}

static uint64_t before(const uint64_t *len, uint32_t r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r; i++)
		sum += len[i];
	return sum;
}

/* The pair of ranks that is part of every operation but allreduce: what a has for b. */
static int move(struct hub *h, uint32_t a, uint32_t b)
{
	const struct call *x = &h->seat[a].call, *y = &h->seat[b].call;
	size_t n = x->out_len;

	switch (x->kind) {
	case BCAST:
		if (x->to == a && a != b)
			copy(y->in, x->out, n);
		return 0;
	case ALLGATHER:
		copy((char *)y->in + a * n, x->out, n);
		return 0;
	case ALLTOALL:
		copy((char *)y->in + a * n, (const char *)x->out + b * n, n);
		return 0;
	case ALLTOALLV:
		if (x->to_len[b] != y->from_len[a])
			return mismatch(h, a, b);
		copy((char *)y->in + before(y->from_len, a), (const char *)x->out + before(x->to_len, b), x->to_len[b]);
		return 0;
	case SENDRECV:
		if ((x->to == b) != (y->from == a) || (x->to == b && n != y->in_len))
			return mismatch(h, a, b);
		if (x->to == b)
			copy(y->in, x->out, n);
		return 0;
	default:
		return 0;
	}
}

static void reduce(struct hub *h)
{
	for (size_t i = 0; i < h->seat[0].call.out_len / 8; i++) {
		uint64_t sum = ((const uint64_t *)h->seat[0].call.out)[i];

		for (uint32_t r = 1; r < h->size; r++) {
			uint64_t v = ((const uint64_t *)h->seat[r].call.out)[i];

			if (h->seat[0].call.how == VARVE_SUM)
				sum += v;
			else if ((h->seat[0].call.how == VARVE_MIN) == (v < sum))
				sum = v;
		}
		for (uint32_t r = 0; r < h->size; r++)
			((uint64_t *)h->seat[r].call.in)[i] = sum;
	}
}

static int same(const struct call *x, const struct call *y)
{
	if (x->kind != y->kind)
		return 0;
	if (x->kind == ALLTOALLV || x->kind == SENDRECV)
		return 1;
	return x->out_len == y->out_len && x->how == y->how && x->to == y->to;
}

static int perform(struct hub *h)
{
	int rc = 0;

	for (uint32_t r = 1; r < h->size; r++)
		if (!same(&h->seat[0].call, &h->seat[r].call))
			return mismatch(h, 0, r);
	if (h->seat[0].call.kind == ALLREDUCE)
		reduce(h);
	for (uint32_t a = 0; a < h->size; a++)
		for (uint32_t b = 0; b < h->size && rc == 0; b++)
			rc = move(h, a, b);
	return rc;
}

static int begin(void *ctx, struct call call, void **op)
{
	struct seat *s = ctx;
	struct hub *h = s->hub;
	int rc = 0;

	pthread_mutex_lock(&h->lock);
	CHECK_EQ(s->begun, h->done); /* else a second operation beside the first */
	if (h->broken) {
		rc = VARVE_EPEER;
	} else {
		s->call = call;
		s->begun++;
		*op = s;
		if (++h->here == h->size && perform(h) == 0) {
			h->here = 0;
			h->done++;
		}
	}
	pthread_mutex_unlock(&h->lock);
	return rc;
}

static int test(void *ctx, void *op)
{
	struct seat *s = ctx;
	int rc;

	CHECK(op == s);
	pthread_mutex_lock(&s->hub->lock);
	rc = s->begun <= s->hub->done ? 1 : s->hub->broken ? VARVE_EPEER : 0;
	pthread_mutex_unlock(&s->hub->lock);
	return rc;
}

static int bcast(void *ctx, void *p, size_t len, uint32_t root, void **op)
{
	return begin(ctx, (struct call){ .kind = BCAST, .out = p, .in = p, .out_len = len, .to = root, .from = root }, op);
}

static int allreduce(void *ctx, uint64_t *v, size_t n, enum varve_reduce how, void **op)
{
	return begin(ctx, (struct call){ .kind = ALLREDUCE, .out = v, .in = v, .out_len = n * sizeof(*v), .how = how }, op);
}

static int allgather(void *ctx, const void *mine, void *all, size_t len, void **op)
{
	return begin(ctx, (struct call){ .kind = ALLGATHER, .out = mine, .in = all, .out_len = len }, op);
}

static int alltoall(void *ctx, const void *to, void *from, size_t len, void **op)
{
	return begin(ctx, (struct call){ .kind = ALLTOALL, .out = to, .in = from, .out_len = len }, op);
}

static int alltoallv(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op)
{
	return begin(ctx, (struct call){ .kind = ALLTOALLV, .out = to, .in = from, .to_len = to_len, .from_len = from_len }, op);
}

static int sendrecv(void *ctx, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from, void **op)
{
	return begin(ctx,
		     (struct call){ .kind = SENDRECV, .out = out, .in = in, .out_len = out_len, .in_len = in_len, .to = to,
				    .from = from },
		     op);
}

static const char *message(void *ctx)
{
	return ((struct seat *)ctx)->hub->message;
}

/* The lowest rank that is not there, and how many more. */
static const char *absent(void *ctx)
{
	struct seat *s = ctx;
	struct hub *h = s->hub;
	uint32_t n = 0;

	pthread_mutex_lock(&h->lock);
	for (uint32_t r = h->size; r-- > 0;)
		if (h->seat[r].begun == h->done) {
			snprintf(s->absent, sizeof(s->absent), n ? "rank %u and %u more" : "rank %u", r, n);
			n++;
		}
	pthread_mutex_unlock(&h->lock);
	return s->absent;
}

static void leave(void *ctx)
{
	struct seat *s = ctx;
	struct hub *h = s->hub;

	pthread_mutex_lock(&h->lock);
	if (s->begun > h->done && !h->broken) {
		snprintf(h->message, sizeof(h->message), "rank %u has left in the middle of %s", s->comm.rank,
			 kind_name[s->call.kind]);
		h->broken = 1;
	}
	pthread_mutex_unlock(&h->lock);
}

static void *sit(void *arg)
{
	struct seat *s = arg;

	s->fn(&s->comm, s->arg);
	return NULL;
}

static void hub_init(struct hub *h, uint32_t size, void (*fn)(const struct varve_comm *comm, void *arg), void *arg)
{
	*h = (struct hub){ .size = size, .seat = calloc(size, sizeof(*h->seat)) };
	CHECK(h->seat);
	pthread_mutex_init(&h->lock, NULL);
	for (uint32_t r = 0; r < size; r++)
		h->seat[r] = (struct seat){
			.hub = h,
			.fn = fn,
			.arg = arg,
			.comm = { .rank = r, .size = size, .any_thread = 1, .ctx = &h->seat[r], .bcast = bcast,
				  .allreduce = allreduce, .allgather = allgather, .alltoall = alltoall, .alltoallv = alltoallv,
				  .sendrecv = sendrecv, .test = test, .message = message, .absent = absent, .close = leave },
		};
}

static void hub_fini(struct hub *h)
{
	pthread_mutex_destroy(&h->lock);
	free(h->seat);
}

void threadcomm_run(uint32_t size, void (*fn)(const struct varve_comm *comm, void *arg), void *arg)
{
	struct hub calls, side;

	hub_init(&calls, size, fn, arg);
	hub_init(&side, size, fn, arg);
	for (uint32_t r = 0; r < size; r++)
		calls.seat[r].comm.side = &side.seat[r];
	for (uint32_t r = 0; r < size; r++)
		CHECK_EQ(pthread_create(&calls.seat[r].thread, NULL, sit, &calls.seat[r]), 0);
	for (uint32_t r = 0; r < size; r++)
		CHECK_EQ(pthread_join(calls.seat[r].thread, NULL), 0);
	hub_fini(&calls);
	hub_fini(&side);
}
