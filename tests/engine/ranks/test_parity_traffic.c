// ctest: TIMEOUT 60 COST 1
/* The messages among ranks that make parity: each data block once, then each parity block but one. */
#include "engine/context.h"
#include "engine/ranks/group.h"
#include "support/hosts.h"

enum { BYTES = 1 << 20 };

struct traffic {
	struct hosts *r;
	uint64_t sent[RANKS_MAX], stored[RANKS_MAX];
};

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

int main(void)
{
	double rs = measure(8, "mode=sync codec=none redundancy=rs:6+2 failure-domain=store");
	double wide = measure(8, "mode=sync codec=none redundancy=rs:4+4 failure-domain=store");
	double xor = measure(8, "mode=sync codec=none redundancy=xor:8 failure-domain=store");

	MUST(rs > 7 / 6. && rs < 7 / 6. * 1.1);
	MUST(wide > 7 / 4. && wide < 7 / 4. * 1.1);
	MUST(xor > 1 && xor < 1.1);
	return 0;
}
