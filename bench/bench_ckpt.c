/* ckpt.*: checkpoints of one session, one after another, with little, all or nothing changed in between. */
#include "base/clock.h"
#include "support.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct session {
	varve *v;
	uint8_t *p;
	size_t n;
	char store[3200];
};

static void session_open(struct bench *b, const char *lineage, const char *options, size_t n, struct session *s)
{
	s->n = n;
	s->p = bench_memory(n);
	snprintf(s->store, sizeof(s->store), "%s/%s", b->dir, lineage);
	bench_check(varve_open(s->store, lineage, options, &s->v), "varve_open");
	bench_check(varve_protect(s->v, "p", s->p, n), "varve_protect");
}

static void session_close(struct session *s)
{
	varve_close(s->v);
	munmap(s->p, s->n);
	bench_remove(s->store);
}

static double checkpoint(struct session *s, struct varve_stats *st)
{
	double start = vv_clock_s(), took;

	bench_check(varve_checkpoint(s->v), "varve_checkpoint");
	took = vv_clock_s() - start;
	bench_check(varve_stats(s->v, st), "varve_stats");
	return took;
}

/* The bytes at epoch end are what is in memory: a fast wrong checkpoint is worth nothing. */
static void verify(struct session *s)
{
	uint8_t *copy = bench_memory(s->n);

	bench_check(varve_restart_region(s->v, VARVE_LATEST, "p", copy, s->n), "varve_restart_region");
	if (memcmp(copy, s->p, s->n) != 0)
		bench_die("%s: the last epoch holds other bytes than memory", s->store);
	munmap(copy, s->n);
}

/* ---- ckpt.incremental ------------------------------------------------------------------------------------------------ */

static void incremental(struct bench *b, struct session *s, double percent, bool judged, uint64_t seed)
{
	double limit[BENCH_ROUNDS_MAX], ours[BENCH_ROUNDS_MAX], hash[BENCH_ROUNDS_MAX], most = 0, l, o;
	size_t pages = (size_t)((double)(s->n / BENCH_PAGE) * percent / 100), bytes = pages * BENCH_PAGE;
	struct varve_stats st;
	char name[32];

	for (int i = 0; i < b->rounds; i++) {
		double payload;

		bench_change(s->p, s->n, pages, seed + (uint64_t)i);
		bench_settle(b, bytes);
		hash[i] = bench_hash(b, s->p, s->n);
		limit[i] = hash[i] + bench_write(b, s->p, bytes);
		bench_settle(b, bytes);
		ours[i] = checkpoint(s, &st);
		payload = (double)st.bytes_new / (double)bytes;
		most = payload > most ? payload : most;
	}
	l = bench_median(limit, b->rounds);
	o = bench_median(ours, b->rounds);
	snprintf(name, sizeof(name), "%g%%", percent);
	bench_baseline("ckpt.incremental", name, "hashing", bench_median(hash, b->rounds) * 1e3, "ms");
	bench_baseline("ckpt.incremental", name, "limit", l * 1e3, "ms");
	bench_line("ckpt.incremental", name, "time", o * 1e3, "ms");
	if (!judged) {
		bench_line("ckpt.incremental", name, "time_vs_limit", o / l, "x");
		bench_line("ckpt.incremental", name, "payload_vs_changed", most, "x");
		return;
	}
	bench_at_most("ckpt.incremental", name, "time_vs_limit", o / l, "x", 1.3);
	bench_at_most("ckpt.incremental", name, "payload_vs_changed", most, "x", 1.01);
}

static void ckpt_incremental(struct bench *b)
{
	struct varve_stats st;
	struct session s;

	session_open(b, "incremental", "mode=sync", b->size, &s);
	bench_fill(b, s.p, s.n, 10);
	checkpoint(&s, &st);
	incremental(b, &s, 1, true, 1000);
	incremental(b, &s, 0.1, false, 2000);
	incremental(b, &s, 10, false, 3000);
	verify(&s);
	session_close(&s);
}

/* ---- ckpt.full ------------------------------------------------------------------------------------------------------- */

static void ckpt_full(struct bench *b)
{
	double plain[BENCH_ROUNDS_MAX], direct[BENCH_ROUNDS_MAX], ours[BENCH_ROUNDS_MAX], p, d, o;
	struct varve_stats st;
	struct session s;

	session_open(b, "full", "mode=sync", b->size, &s);
	bench_fill(b, s.p, s.n, 20);
	checkpoint(&s, &st);
	for (int i = 0; i < b->rounds; i++) {
		bench_fill(b, s.p, s.n, 21 + (uint64_t)i);
		bench_settle(b, b->size);
		plain[i] = bench_write(b, s.p, s.n);
		direct[i] = bench_direct_write(b, s.p, s.n);
		bench_settle(b, b->size);
		ours[i] = checkpoint(&s, &st);
		if (st.bytes_new != s.n)
			bench_die("%zu bytes changed, %llu are new", s.n, (unsigned long long)st.bytes_new);
	}
	p = bench_median(plain, b->rounds);
	d = bench_median(direct, b->rounds);
	o = bench_median(ours, b->rounds);
	bench_baseline("ckpt.full", "plain", "time", p * 1e3, "ms");
	bench_baseline("ckpt.full", "direct", "time", d * 1e3, "ms");
	bench_line("ckpt.full", "varve", "time", o * 1e3, "ms");
	bench_line("ckpt.full", "100%", "time_vs_plain", o / p, "x");
	bench_at_most("ckpt.full", "100%", "time_vs_direct", o / d, "x", 1.2);
	verify(&s);
	session_close(&s);
}

/* ---- ckpt.metadata ---------------------------------------------------------------------------------------------------- */

/* The largest of some layers in a row, with nothing changed in between. */
static double idle_layers(struct session *s, double *ms)
{
	struct varve_stats st;
	double most = 0, took[8];

	for (int i = 0; i < 8; i++) {
		took[i] = checkpoint(s, &st) * 1e3;
		most = (double)st.bytes_layer > most ? (double)st.bytes_layer : most;
	}
	*ms = bench_median(took, 8);
	return most;
}

static void ckpt_metadata(struct bench *b)
{
	struct varve_stats st;
	struct session s;
	double bytes, ms;

	session_open(b, "metadata", "mode=sync", b->size, &s);
	bench_fill(b, s.p, s.n, 30);
	checkpoint(&s, &st);
	bytes = idle_layers(&s, &ms);
	bench_line("ckpt.metadata", "0%", "time", ms, "ms");
	bench_at_most("ckpt.metadata", "0%", "layer", bytes, "B", 4096);
	for (int i = 0; i < 3; i++) { /* the same in a lineage whose table has thousands of runs */
		bench_change(s.p, s.n, s.n / BENCH_PAGE / 100, 31 + (uint64_t)i);
		checkpoint(&s, &st);
	}
	bench_line("ckpt.metadata", "1% before", "layer_less_payload", (double)(st.bytes_layer - st.bytes_stored), "B");
	bytes = idle_layers(&s, &ms);
	bench_at_most("ckpt.metadata", "0% after 1%", "layer", bytes, "B", 4096);
	session_close(&s);
}

/* ---- ckpt.codec ------------------------------------------------------------------------------------------------------- */

static size_t load(const char *path, uint8_t **out)
{
	FILE *f = fopen(path, "rb");
	long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;

	if (n <= 0)
		bench_die("cannot read '%s': %s", path, strerror(errno));
	rewind(f);
	*out = bench_memory((size_t)n);
	if (fread(*out, 1, (size_t)n, f) != (size_t)n)
		bench_die("cannot read '%s'", path);
	fclose(f);
	return (size_t)n;
}

static void codec(struct bench *b, const uint8_t *field, size_t n, const char *name, const char *options)
{
	double took[BENCH_ROUNDS_MAX];
	struct varve_stats st;

	for (int i = 0; i < b->rounds; i++) {
		struct session s;

		session_open(b, "codec", options, n, &s);
		memcpy(s.p, field, n);
		bench_settle(b, n);
		took[i] = checkpoint(&s, &st);
		session_close(&s);
	}
	bench_line("ckpt.codec", name, "time", bench_median(took, b->rounds) * 1e3, "ms");
	bench_line("ckpt.codec", name, "ratio", (double)st.bytes_new / (double)st.bytes_stored, "x");
}

static void ckpt_codec(struct bench *b)
{
	uint8_t *field = NULL;
	size_t n;

	if (!b->field) {
		fprintf(stderr, "bench: ckpt.codec needs --field FILE (heat3d --out writes one)\n");
		return;
	}
	n = load(b->field, &field);
	codec(b, field, n, "none", "mode=sync codec=none");
	codec(b, field, n, "lz4", "mode=sync codec=lz4");
	codec(b, field, n, "zstd:1", "mode=sync codec=zstd:1");
	codec(b, field, n, "auto", "mode=sync codec=auto");
	codec(b, field, n, "none at 200 MB/s", "mode=sync codec=none bandwidth=200M");
	codec(b, field, n, "auto at 200 MB/s", "mode=sync codec=auto bandwidth=200M");
	munmap(field, n);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	if (bench_wants(&b, "ckpt.incremental"))
		ckpt_incremental(&b);
	if (bench_wants(&b, "ckpt.full"))
		ckpt_full(&b);
	if (bench_wants(&b, "ckpt.metadata"))
		ckpt_metadata(&b);
	if (bench_wants(&b, "ckpt.codec"))
		ckpt_codec(&b);
	return bench_close(&b);
}
