/* Lays down epochs with known content, for the tests of the command:
 *
 *	writer_check STORE LINEAGE OPTIONS [ranks N] WORD...
 *
 * With `ranks N` as many ranks do it together, as threads; %r in a word, or in STORE, is the number of the rank.
 *
 *	region NAME TYPE SHAPE   declares a region of zeros: f64 10x20, bytes 4096
 *	load NAME FILE           its content is the file's
 *	poke NAME OFFSET HEX     changes some of it
 *	unprotect NAME           takes it out again
 *	label LABEL              of the next epoch
 *	checkpoint               lays down an epoch and prints its number
 *	tick NAME N              N epochs, each with the region's first 8 bytes one higher
 *	restart EPOCH            continues from there; 0: the newest
 *	dump NAME FILE           writes what it holds
 *	only R WORD...           rank R does it, the others do not
 *	hold                     stays until the standard input ends
 */
#include "support/settle.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>
#include <varve/varve_comm.h>

enum { REGIONS = 64 };

struct region {
	const char *name;
	uint8_t *p;
	size_t len;
};

static _Thread_local struct region region[REGIONS];
static _Thread_local size_t n_regions;
static _Thread_local uint32_t rank;

static void need(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "writer_check: %s\n", varve_last_error());
	exit(2);
}

static struct region *find(const char *name)
{
	for (size_t i = 0; i < n_regions; i++)
		if (strcmp(region[i].name, name) == 0)
			return &region[i];
	fprintf(stderr, "writer_check: no region '%s'\n", name);
	exit(2);
}

static int type_of(const char *word, size_t *size)
{
	static const struct {
		const char *name;
		size_t size;
	} types[] = {
		{ "bytes", 1 }, { "i8", 1 },  { "u8", 1 },  { "i16", 2 }, { "u16", 2 }, { "i32", 4 },  { "u32", 4 },
		{ "i64", 8 },   { "u64", 8 }, { "f32", 4 }, { "f64", 8 }, { "c64", 8 }, { "c128", 16 },
		{ "bf16", 2 },  { "f16", 2 }, { "f8_e4m3", 1 }, { "f8_e5m2", 1 },
	};

	for (int i = 0; i < (int)(sizeof(types) / sizeof(types[0])); i++)
		if (strcmp(types[i].name, word) == 0) {
			*size = types[i].size;
			return i;
		}
	fprintf(stderr, "writer_check: no type '%s'\n", word);
	exit(2);
}

static void declare(varve *v, char **w)
{
	size_t shape[VARVE_MAX_DIMS], size = 0, len;
	int ndim = 0, type = type_of(w[2], &size);
	struct region *r = &region[n_regions++];

	CHECK(n_regions <= REGIONS);
	len = size;
	for (char *save = NULL, *s = strtok_r(w[3], "x", &save); s; s = strtok_r(NULL, "x", &save)) {
		shape[ndim] = strtoull(s, NULL, 10);
		len *= shape[ndim++];
	}
	*r = (struct region){ w[1], calloc(len + 1, 1), len };
	CHECK(r->p);
	need(type == VARVE_BYTES ? varve_protect(v, w[1], r->p, len) :
				   varve_protect_array(v, w[1], r->p, (enum varve_type)type, ndim, shape));
}

static void load(varve *v, char **w)
{
	const struct region *r = find(w[1]);
	FILE *f = fopen(w[2], "rb");

	(void)v;
	CHECK(f);
	CHECK_EQ(fread(r->p, 1, r->len, f), r->len);
	fclose(f);
}

static void dump(varve *v, char **w)
{
	const struct region *r = find(w[1]);
	FILE *f = fopen(w[2], "wb");

	(void)v;
	CHECK(f);
	CHECK_EQ(fwrite(r->p, 1, r->len, f), r->len);
	CHECK_EQ(fclose(f), 0);
}

static void poke(varve *v, char **w)
{
	const struct region *r = find(w[1]);
	size_t at = strtoull(w[2], NULL, 10);

	(void)v;
	for (const char *hex = w[3]; hex[0] && hex[1]; hex += 2, at++) {
		const char two[3] = { hex[0], hex[1], '\0' };

		CHECK(at < r->len);
		r->p[at] = (uint8_t)strtoul(two, NULL, 16);
	}
}

static void unprotect(varve *v, char **w)
{
	need(varve_unprotect(v, w[1]));
}

static void checkpoint(varve *v, char **w)
{
	(void)w;
	need(settle_checkpoint(v));
	if (rank == 0)
		printf("%llu\n", (unsigned long long)varve_epoch(v));
	fflush(stdout);
}

static void label(varve *v, char **w)
{
	need(varve_label(v, w[1]));
}

static void tick(varve *v, char **w)
{
	const struct region *r = find(w[1]);
	uint64_t count;

	CHECK(r->len >= sizeof(count));
	for (long n = strtol(w[2], NULL, 10); n > 0; n--) {
		memcpy(&count, r->p, sizeof(count));
		count++;
		memcpy(r->p, &count, sizeof(count));
		need(settle_checkpoint(v));
	}
}

static void restart(varve *v, char **w)
{
	need(varve_restart(v, w[1][0] == '0' ? VARVE_LATEST : strtoull(w[1], NULL, 10)));
}

static void hold(varve *v, char **w)
{
	(void)v, (void)w;
	printf("held\n");
	fflush(stdout);
	while (getchar() != EOF)
		continue;
}

static const struct {
	const char *word;
	int n; /* words, with this one */
	void (*act)(varve *v, char **w);
} acts[] = {
	{ "region", 4, declare }, { "load", 3, load }, { "poke", 4, poke },       { "unprotect", 2, unprotect },
	{ "checkpoint", 1, checkpoint }, { "tick", 3, tick }, { "restart", 2, restart }, { "dump", 3, dump },
	{ "hold", 1, hold }, { "label", 2, label },
};

/* One word and what belongs to it; how many were used. */
static int act(varve *v, char **w, bool mine)
{
	if (strcmp(w[0], "only") == 0)
		return 2 + act(v, w + 2, strtoul(w[1], NULL, 10) == rank);
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(acts[i].word, w[0]) == 0) {
			if (mine)
				acts[i].act(v, w);
			return acts[i].n;
		}
	fprintf(stderr, "writer_check: unknown word '%s'\n", w[0]);
	exit(2);
}

struct words {
	int n;
	char **v;
};

static char *expand(const char *word)
{
	const char *at = strstr(word, "%r");
	char *out = NULL;

	if (at)
		CHECK(asprintf(&out, "%.*s%u%s", (int)(at - word), word, rank, at + 2) >= 0);
	else
		out = strdup(word);
	CHECK(out);
	return out;
}

static void write_epochs(const struct varve_comm *comm, void *arg)
{
	const struct words *words = arg;
	char **w = calloc((size_t)words->n + 1, sizeof(*w));
	varve *v = NULL;

	CHECK(w);
	rank = comm ? comm->rank : 0;
	for (int i = 0; i < words->n; i++)
		w[i] = comm ? expand(words->v[i]) : words->v[i];
	need(comm ? varve_open_comm(comm, w[0], w[1], w[2], &v) : varve_open(w[0], w[1], w[2], &v));
	for (int i = 3; i < words->n;)
		i += act(v, &w[i], true);
	need(varve_close(v));
	for (size_t i = 0; i < n_regions; i++)
		free(region[i].p);
	for (int i = 0; comm && i < words->n; i++)
		free(w[i]);
	free(w);
}

int main(int argc, char **argv)
{
	struct words words = { argc - 1, argv + 1 };
	uint32_t ranks;

	if (argc < 4) {
		fprintf(stderr, "usage: writer_check STORE LINEAGE OPTIONS [ranks N] WORD...\n");
		return 2;
	}
	if (argc < 6 || strcmp(argv[4], "ranks") != 0) {
		write_epochs(NULL, &words);
		return 0;
	}
	ranks = (uint32_t)strtoul(argv[5], NULL, 10);
	words.n -= 2;
	words.v += 2;
	memmove(words.v, argv + 1, 3 * sizeof(*argv)); /* STORE LINEAGE OPTIONS, in the place of `ranks N` */
	threadcomm_run(ranks, write_epochs, &words);
	return 0;
}
