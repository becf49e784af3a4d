/* dedup.ratio: the paper's figures 4 and 5 (Tan 2023): what the methods leave of a series of checkpoints, by size of grains and number of
 * checkpoints; what varve stores; what zstd makes of the same bytes. */
#include "base/clock.h"
#include "delta.h"
#include "record.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint32_t chunks[] = { 32, 64, 128, 256, 512 };
static const int times[] = { 5, 10, 20 };

enum { CHUNKS = sizeof(chunks) / sizeof(chunks[0]), TIMES = sizeof(times) / sizeof(times[0]), METHODS = VV_METHOD_RUN + 1 };

/* ---- what the methods leave ---------------------------------------------------------------------------------------------- */

static void tell_record(const char *kase, enum vv_method method, const struct bench_record *r)
{
	const char *name = vv_grain_method_name(method);
	char metric[64];

	bench_line("dedup.ratio", kase, name, bench_record_ratio(r), "x");
	snprintf(metric, sizeof(metric), "%s_data", name);
	bench_line("dedup.ratio", kase, metric, (double)r->data, "B");
	snprintf(metric, sizeof(metric), "%s_metadata", name);
	bench_line("dedup.ratio", kase, metric, (double)r->metadata, "B");
	if (r->forgotten) {
		snprintf(metric, sizeof(metric), "%s_forgotten", name);
		bench_line("dedup.ratio", kase, metric, (double)r->forgotten, "digests");
	}
}

static bool has_events(const struct bench_series *s)
{
	return strncmp(s->name, "events", 6) == 0 || strncmp(s->name, "msgrace", 7) == 0;
}

/* The ratio of the paper's list. */
static double records(struct bench *b, const struct bench_series *s, int n, uint32_t chunk, const char *kase)
{
	struct bench_record r[METHODS];
	double ratio[METHODS];

	for (enum vv_method m = VV_METHOD_FULL; m <= VV_METHOD_RUN; m++) {
		bench_record(b, s, n, m, chunk, &r[m]);
		ratio[m] = bench_record_ratio(&r[m]);
		tell_record(kase, m, &r[m]);
	}
	bench_at_least("dedup.ratio", kase, "tree_vs_list", ratio[VV_METHOD_TREE] / ratio[VV_METHOD_LIST], "x", 1);
	bench_at_least("dedup.ratio", kase, "run_vs_tree", ratio[VV_METHOD_RUN] / ratio[VV_METHOD_TREE], "x", 1);
	bench_line("dedup.ratio", kase, "run_vs_list", ratio[VV_METHOD_RUN] / ratio[VV_METHOD_LIST], "x");
	return ratio[VV_METHOD_LIST];
}

/* ---- what varve stores --------------------------------------------------------------------------------------------------- */

struct layers { /* of all checkpoints but the first */
	uint64_t original, bytes;
	double seconds; /* in varve_checkpoint, which stores them in memory */
};

static void verify_layers(varve *v, const struct bench_series *s, int n, const char *options)
{
	uint8_t *to = bench_memory(s->bytes);
	uint64_t last = varve_epoch(v);

	for (int i = 0; i < n; i++) {
		bench_check(varve_restart_region(v, last - (uint64_t)(n - 1 - i), "p", to, s->bytes), "varve_restart_region");
		if (memcmp(to, bench_series_state(s, n, i), s->bytes) != 0)
			bench_die("%s, %s: checkpoint %d holds other bytes than memory did", s->name, options, i + 1);
	}
	munmap(to, s->bytes);
}

static void layers_once(const struct bench_series *s, int n, const char *options, bool verified, struct layers *out)
{
	uint8_t *p = bench_memory(s->bytes);
	struct varve_stats st;
	varve *v = NULL;

	*out = (struct layers){ 0 };
	bench_check(varve_open("mem:ratio", "ratio", options, &v), "varve_open");
	bench_check(varve_protect_array(v, "p", p, s->type, 2, s->shape), "varve_protect_array");
	for (int i = 0; i < n; i++) {
		double start;

		memcpy(p, bench_series_state(s, n, i), s->bytes);
		start = vv_clock_s();
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		if (i == 0)
			continue;
		out->seconds += vv_clock_s() - start;
		bench_check(varve_stats(v, &st), "varve_stats");
		out->bytes += st.bytes_layer;
		out->original += s->bytes;
	}
	if (verified)
		verify_layers(v, s, n, options);
	bench_check(varve_close(v), "varve_close");
	munmap(p, s->bytes);
}

/* The least time of the rounds; the sizes are the same in all. */
static void layers(const struct bench_series *s, int n, uint32_t chunk, const char *codec, int rounds, struct layers *out)
{
	char options[128];
	double least = 0;

	snprintf(options, sizeof(options), "mode=sync grain=%u codec=%s", chunk, codec);
	for (int i = 0; i < rounds; i++) {
		layers_once(s, n, options, i == 0, out);
		least = i && least < out->seconds ? least : out->seconds;
	}
	out->seconds = least;
}

static double tell_sizes(const char *kase, const char *what, bool ours, uint64_t original, uint64_t bytes, double seconds)
{
	void (*line)(const char *bench, const char *kase, const char *metric, double value, const char *unit) = ours ? bench_line : bench_baseline;
	double ratio = (double)original / (double)bytes;
	char metric[64];

	line("dedup.ratio", kase, what, ratio, "x");
	snprintf(metric, sizeof(metric), "%s_bytes", what);
	line("dedup.ratio", kase, metric, (double)bytes, "B");
	snprintf(metric, sizeof(metric), "%s_rate", what);
	line("dedup.ratio", kase, metric, (double)original / seconds / 1e9, "GB/s");
	return ratio;
}

/* ---- dedup.ratio --------------------------------------------------------------------------------------------------------- */

static double tell_zstd(const struct bench_series *s, int n, int rounds)
{
	struct bench_delta d;
	char kase[96];

	snprintf(kase, sizeof(kase), "%s, %d", s->name, n);
	if (bench_delta(s, n, false, rounds, &d))
		tell_sizes(kase, "zstd", false, d.original, d.bytes, d.seconds);
	if (bench_delta(s, n, true, rounds, &d))
		return tell_sizes(kase, "patch_from", false, d.original, d.bytes, d.seconds);
	return 0;
}

/* bar: what zstd reaches with the state before as dictionary; 0: this build has no zstd. list: what the paper's list does, uncoded. Judged are the coded
 * layers, at the size of grains that device memory has if nothing is said. */
static void tell_varve(const struct bench_series *s, int n, uint32_t chunk, const char *kase, int rounds, double bar, double list, bool judged)
{
	enum { JUDGED = 256 };
	struct layers l;
	double ratio;

	layers(s, n, chunk, "none", rounds, &l);
	tell_sizes(kase, "varve", true, l.original, l.bytes, l.seconds);
	if (bar == 0)
		return;
	layers(s, n, chunk, "zstd:3", rounds, &l);
	ratio = tell_sizes(kase, "varve_zstd", true, l.original, l.bytes, l.seconds);
	if (judged && chunk == JUDGED) {
		bench_at_least("dedup.ratio", kase, "varve_zstd_vs_patch_from", ratio / bar, "x", 1);
		bench_at_least("dedup.ratio", kase, "varve_zstd_rate_of_original", (double)l.original / l.seconds / 1e9, "GB/s", 1);
	} else {
		bench_line("dedup.ratio", kase, "varve_zstd_vs_patch_from", ratio / bar, "x");
	}
	if (has_events(s) && chunk == 128) /* uncoded the same new data are in both, a quarter of the list and more: no metadata are small enough */
		bench_at_least("dedup.ratio", kase, "varve_zstd_vs_list", ratio / list, "x", 5);
}

static void series(struct bench *b, const struct bench_series *s, int n, int rounds, bool judged)
{
	double bar = tell_zstd(s, n, rounds);
	char kase[96];

	for (int c = 0; c < CHUNKS; c++) {
		double list;

		snprintf(kase, sizeof(kase), "%s, %d, %u B", s->name, n, chunks[c]);
		list = records(b, s, n, chunks[c], kase);
		tell_varve(s, n, chunks[c], kase, rounds, bar, list, judged);
	}
}

static bool asked_for(const struct bench *b, const char *name)
{
	return !b->only || strncmp(name, b->only, strlen(b->only)) == 0;
}

static void synthetic(struct bench *b, struct bench_series *s)
{
	for (int t = 0; t < TIMES; t++)
		series(b, s, times[t], 1, false);
}

static void graphs(struct bench *b, size_t vertices)
{
	const char *const kinds[] = { "road", "hexagonal", "triangulation", "events" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct bench_series rows, columns;

		if (!asked_for(b, kinds[i]))
			continue;
		bench_series_graph(b, kinds[i], vertices, &rows);
		bench_series_turned(&rows, &columns);
		synthetic(b, &rows);
		synthetic(b, &columns);
		bench_series_free(&rows);
		bench_series_free(&columns);
	}
}

static void arrays(struct bench *b, size_t bytes)
{
	const char *const patterns[] = { "sparse", "log", "ping-pong" };

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct bench_series s;

		if (!asked_for(b, patterns[i]))
			continue;
		bench_series_array(patterns[i], bytes, &s);
		synthetic(b, &s);
		bench_series_free(&s);
	}
}

static void recorded(struct bench *b)
{
	enum { MOST = 16 };
	struct bench_series s[MOST];
	size_t n = bench_series_recorded(b->data, s, MOST);

	for (size_t i = 0; i < n; i++) {
		if (s[i].n > 1 && asked_for(b, s[i].name))
			series(b, &s[i], s[i].n, b->rounds, true);
		bench_series_free(&s[i]);
	}
}

static void dedup_ratio(struct bench *b)
{
	enum { ROW = 292 }; /* 73 counters of 4 bytes */
	size_t bytes = bench_size(b, 8192 * ROW, 200000 * ROW);

	if (b->data)
		recorded(b);
	if (b->graphlets)
		graphs(b, bytes / ROW);
	else
		fprintf(stderr, "bench: dedup.ratio measures graphs with --graphlets PATH only (examples/graphlets, as built)\n");
	arrays(b, bytes);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	dedup_ratio(&b);
	return bench_close(&b);
}
