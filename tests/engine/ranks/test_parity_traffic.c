// ctest: TIMEOUT 60 COST 1
/* The messages among ranks that make parity: each data block once, then each parity block but one. A host that writes everything again gets
 * these blocks, and its share of those from which they are made. */
#include "engine/context.h"
#include "engine/ranks/group.h"
#include "support/hosts.h"

enum { BYTES = 1 << 20 };

struct traffic {
	struct hosts *r;
	uint64_t sent[RANKS_MAX], stored[RANKS_MAX], got[RANKS_MAX];
};

static int (*alltoallv)(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op);
static _Thread_local uint64_t received; /* by this rank */
static _Thread_local uint32_t me;

static int count_received(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op)
{
	for (uint32_t r = 0; r < RANKS_MAX; r++)
		received += r == me ? 0 : from_len[r];
	return alltoallv(ctx, to, to_len, from, from_len, op);
}

/* Opens with what is left, which brings back what is lost. */
static void rebuild(const struct varve_comm *comm, void *arg)
{
	struct varve_comm counted = *comm;
	struct traffic *t = arg;

	counted.alltoallv = count_received;
	me = comm->rank;
	received = 0;
	OK(varve_close(hosts_open(t->r, &counted)));
	t->got[me] = received;
}

static void remember(const struct varve_comm *comm, void *arg)
{
	(void)arg;
	if (comm->rank == 0)
		alltoallv = comm->alltoallv;
}

static void store(const struct varve_comm *comm, void *arg)
{
	struct traffic *t = arg;
	varve *v = hosts_open(t->r, comm);
	uint8_t *p = varve_alloc(v, "p", BYTES);
	struct varve_stats st;

	for (uint32_t i = 0; i < BYTES / PAGE; i++)
		pages_fill(1 + comm->rank * 1000 + i, p + (size_t)i * PAGE, PAGE);
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	OK(varve_stats(v, &st));
	t->sent[comm->rank] = v->ctx.group->side->sent;
	t->stored[comm->rank] = st.bytes_layer;
	OK(varve_close(v));
}

/* Sent bytes of all ranks for each byte of their layers. */
static double measure(uint32_t ranks, const char *options)
{
	struct traffic t = { .r = hosts_new(ranks, ranks, options) };
	uint64_t sent = 0, stored = 0, most = 0;

	threadcomm_run(ranks, store, &t);
	for (uint32_t i = 0; i < ranks; i++) {
		sent += t.sent[i];
		stored += t.stored[i];
		most = t.sent[i] > most ? t.sent[i] : most;
	}
	MUST(most < 2 * sent / ranks); /* all take part */
	printf("%s: %.3f, most %.3f\n", options, (double)sent / (double)stored, (double)most * ranks / (double)sent);
	hosts_end(t.r);
	return (double)sent / (double)stored;
}

/* A lost host receives what it writes, and little more. objects: bytes of its layer and parity, for each byte of the layer. */
static void measure_lost(const char *options, double objects)
{
	struct traffic t = { .r = hosts_new(RANKS_MAX, 77, options) };
	char place[PLACE_MAX + 16];
	double got;

	threadcomm_run(RANKS_MAX, store, &t);
	threadcomm_run(RANKS_MAX, remember, &t);
	hosts_place(t.r, 3, place);
	place_remove(place);
	threadcomm_run(RANKS_MAX, rebuild, &t);
	got = (double)t.got[3] / (double)t.stored[3];
	printf("%s: the lost host receives %.3f\n", options, got);
	MUST(got > objects && got < objects * 1.5);
	hosts_end(t.r);
}

int main(void)
{
	double rs = measure(8, "mode=sync codec=none redundancy=rs:6+2 failure-domain=store");
	double wide = measure(8, "mode=sync codec=none redundancy=rs:4+4 failure-domain=store");
	double xor = measure(8, "mode=sync codec=none redundancy=xor:8 failure-domain=store");

	MUST(rs > 7 / 6. && rs < 7 / 6. * 1.1);
	MUST(wide > 7 / 4. && wide < 7 / 4. * 1.1);
	MUST(xor > 1 && xor < 1.1);
	measure_lost("mode=sync codec=none redundancy=xor:8 failure-domain=store log=error", 8 / 7.);
	measure_lost("mode=sync codec=none redundancy=rs:6+2 failure-domain=store log=error", 8 / 6.);
	return 0;
}
