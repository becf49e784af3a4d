/* Counts, for every vertex of a graph, how often it touches each orbit of the graphlets of 2 to 5 nodes: its
 * graphlet degree vector, the application of the paper that varve's fine-grained dedup comes from (ORANGES;
 * docs/graphlets.md). Kill it whenever you like and start it again: it goes on from its last checkpoint and ends
 * with the same table.
 *
 *	build/examples/graphlets --graph triangulation --vertices 40000 --nodes 5 --checkpoints 10 --store /scratch/ckpt
 *
 * What varve needs is in three places: attach() opens, protects and restarts; save() takes a checkpoint, which is
 * stored while the count goes on; tell() waits for it. The other files know nothing of it. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <varve/varve.h>
#include "complain.h"
#include "count.h"

struct settings {
	const char *graph;
	const char *write; /* NULL: the graph is not written */
	const char *store; /* NULL: no checkpoints */
	const char *lineage;
	const char *options;
	const char *dump;       /* NULL: the table is not written */
	const char *parts_dump; /* NULL: nor after each part */
	uint64_t vertices, seed, nodes, threads, checkpoints;
	bool columns, device;
};

/* What is saved: the table, how far it is, and of what it is. */
struct job {
	struct graph g;
	struct orbits o;
	struct table *t;
	uint64_t done;     /* vertices that are lowest in no subgraph still to be counted */
	uint64_t identity; /* of graph and orbits */
};

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool dump(struct table *t, const char *path)
{
	uint32_t *counts = table_read(t);
	FILE *f = counts ? fopen(path, "wb") : NULL;
	bool fine = f && fwrite(counts, sizeof(*counts), table_cells(t), f) == table_cells(t);

	if (f && fclose(f) != 0)
		fine = false;
	if (counts && !fine)
		complain("cannot write '%s': %s", path, strerror(errno));
	free(counts);
	return fine;
}

static bool dump_part(struct table *t, const char *dir, uint64_t part)
{
	char path[4096];

	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return complain("cannot make '%s': %s", dir, strerror(errno));
	if (snprintf(path, sizeof(path), "%s/%04" PRIu64 ".bin", dir, part) >= (int)sizeof(path))
		return complain("'%s' is too long a name", dir);
	return dump(t, path);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static bool complain_varve(void)
{
	return complain("%s", varve_last_error());
}

static int protect(varve *v, struct job *j)
{
	size_t rows = j->t->columns ? j->t->orbits : j->t->vertices, width = j->t->columns ? j->t->vertices : j->t->orbits;
	int rc = varve_protect_array(v, "counts", j->t->counts, VARVE_U32, 2, (size_t[]){ rows, width });

	if (rc == 0)
		rc = varve_protect_array(v, "done", &j->done, VARVE_U64, 1, (size_t[]){ 1 });
	if (rc == 0)
		rc = varve_protect_array(v, "identity", &j->identity, VARVE_U64, 1, (size_t[]){ 1 });
	return rc;
}

/* Its table may have another size: then a restart would say no more than that. */
static bool is_of_another(varve *v, uint64_t identity)
{
	uint64_t was;

	return varve_restart_region(v, VARVE_LATEST, "identity", &was, sizeof(was)) >= 0 && was != identity;
}

static bool attach(const struct settings *set, struct job *j, varve **v)
{
	uint64_t identity = j->identity;
	int rc = varve_open(set->store, set->lineage, set->options, v);

	if (rc == 0 && is_of_another(*v, identity))
		return complain("lineage '%s' of '%s' counts another graph, or other orbits: choose another --lineage", set->lineage, set->store);
	if (rc == 0)
		rc = protect(*v, j);
	if (rc == 0)
		rc = varve_restart(*v, VARVE_LATEST);
	if (rc < 0)
		return complain_varve();
	if (j->identity != identity || j->done > j->g.vertices)
		return complain("lineage '%s' of '%s' is not what it seemed to be: choose another --lineage", set->lineage, set->store);
	if (rc > 0)
		printf("restarted from epoch %" PRIu64 " at vertex %" PRIu64 "\n", varve_epoch(*v), j->done);
	return true;
}

/* What became of the checkpoint taken at vertex `saved`; waits until it is durable. */
static bool tell(varve *v, uint64_t saved)
{
	struct varve_stats st;

	if (varve_wait(v, VARVE_LATEST) < 0 || varve_stats(v, &st) < 0)
		return complain_varve();
	printf("epoch %4" PRIu64 "  vertex %9" PRIu64 "  memory %" PRIu64 " B  new %9" PRIu64 " B  stored %9" PRIu64
	       " B  blocked %6.1f ms\n",
	       st.epoch, saved, st.bytes_memory, st.bytes_new, st.bytes_layer, st.seconds_blocked * 1e3);
	fflush(stdout);
	return true;
}

/* The one before, taken at vertex *saved, has had all the time since then to be stored. */
static bool save(varve *v, const struct job *j, uint64_t *saved)
{
	if (*saved && !tell(v, *saved))
		return false;
	*saved = j->done;
	return varve_checkpoint(v) == 0 || complain_varve();
}

/* ---- the count --------------------------------------------------------------------------------------------------- */

/* Part by part; between two parts no thread is at work, so the table and `done` belong together. */
static bool count_parts(const struct settings *set, struct job *j, varve *v)
{
	struct crew *crew = crew_new(&j->g, &j->o, j->t, (unsigned)set->threads);
	uint64_t parts = set->checkpoints ? set->checkpoints : 1, saved = 0;
	bool fine = crew != NULL;

	for (uint64_t part = 1; fine && part <= parts; part++) {
		uint64_t end = j->g.vertices * part / parts;

		if (end <= j->done)
			continue;
		fine = crew_count(crew, (uint32_t)j->done, (uint32_t)end);
		j->done = fine ? end : j->done;
		if (fine && set->parts_dump)
			fine = dump_part(j->t, set->parts_dump, part);
		if (fine && v && set->checkpoints)
			fine = save(v, j, &saved);
	}
	crew_free(crew);
	return fine && (!saved || tell(v, saved));
}

static bool summarise(struct job *j, double seconds, uint64_t vertices)
{
	uint64_t touches[MAX_NODES + 1] = { 0 }, sum = 0xcbf29ce484222325u;
	uint32_t *counts = table_read(j->t);

	if (!counts)
		return false;
	for (size_t i = 0; i < table_cells(j->t); i++) {
		size_t orbit = j->t->columns ? i / j->t->vertices : i % j->t->orbits;

		touches[j->o.size[orbit]] += counts[i];
		sum = (sum ^ counts[i]) * 0x100000001b3u;
	}
	for (unsigned n = 2; n <= j->o.nodes; n++)
		printf("%u nodes: %" PRIu64 " subgraphs\n", n, touches[n] / n);
	printf("%" PRIu64 " vertices in %.2f s: %.0f vertices/s\n", vertices, seconds, (double)vertices / seconds);
	printf("checksum %016" PRIx64 "\n", sum);
	free(counts);
	return true;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool run(const struct settings *set, struct job *j)
{
	varve *v = NULL;
	double start = now();
	uint64_t resumed;
	bool fine = !set->store || attach(set, j, &v);

	fflush(stdout);
	resumed = j->done;
	fine = fine && count_parts(set, j, v);
	fine = fine && summarise(j, now() - start, j->done - resumed);
	fine = fine && (!set->dump || dump(j->t, set->dump));
	if (varve_close(v) < 0 && fine)
		fine = complain_varve();
	return fine;
}

static bool prepare(const struct settings *set, struct job *j)
{
	const struct table_kind *kind = &table_host;
	uint32_t degree = 0;

	if (set->device) {
#ifdef GRAPHLETS_CUDA
		kind = &table_cuda;
#else
		return complain("--device: this program was built without CUDA (VARVE_WITH_CUDA)");
#endif
	}
	if (!(graph_is_kind(set->graph) ? graph_make(&j->g, set->graph, (uint32_t)set->vertices, set->seed)
					: graph_read(&j->g, set->graph)))
		return false;
	if (set->write && !graph_write(&j->g, set->write))
		return false;
	orbits_init(&j->o, (unsigned)set->nodes);
	j->t = table_new(kind, j->g.vertices, j->o.count, set->columns);
	if (!j->t)
		return false;
	j->identity = graph_fingerprint(&j->g) + set->nodes + (set->columns ? 8 : 0);
	for (uint32_t v = 0; v < j->g.vertices; v++)
		degree = graph_degree(&j->g, v) > degree ? graph_degree(&j->g, v) : degree;
	printf("%s: %" PRIu32 " vertices, %" PRIu64 " edges, largest degree %" PRIu32 "; %u orbits, table %zu B\n", set->graph,
	       j->g.vertices, j->g.edges, degree, j->o.count, table_cells(j->t) * sizeof(uint32_t));
	return true;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static int usage(void)
{
	fputs("usage: graphlets [--graph KIND|FILE] [--vertices N] [--seed N] [--nodes 2..5] [--threads N]\n"
	      "                 [--layout rows|columns] [--store STORE] [--lineage NAME] [--options \"NAME=VALUE ...\"]\n"
	      "                 [--checkpoints N] [--device] [--dump FILE] [--checkpoint-dump DIR] [--write FILE]\n"
	      "       graphlets --orbits\n"
	      "KIND: " GRAPH_KINDS " (of about --vertices vertices, drawn by --seed); FILE: Matrix Market or an edge list\n"
	      "--checkpoints: so many, evenly spaced over the vertices; without --store nothing is saved\n"
	      "--dump, --checkpoint-dump: the table as raw 32-bit counters, at the end and after each part (DIR/0001.bin, ...)\n"
	      "--write: the graph as Matrix Market\n"
	      "--device: the table lies in the memory of a GPU\n"
	      "--orbits: lists the orbits and the graphlets that they belong to\n",
	      stderr);
	return 2;
}

static bool number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *out >= least && *out <= most;
}

static bool layout(const char *text, bool *columns)
{
	*columns = strcmp(text, "columns") == 0;
	return *columns || strcmp(text, "rows") == 0;
}

static const struct option names[] = {
	{ "graph", required_argument, NULL, 'g' },       { "vertices", required_argument, NULL, 'n' },
	{ "write", required_argument, NULL, 'w' },
	{ "seed", required_argument, NULL, 's' },        { "nodes", required_argument, NULL, 'k' },
	{ "threads", required_argument, NULL, 't' },     { "layout", required_argument, NULL, 'l' },
	{ "store", required_argument, NULL, 'S' },       { "lineage", required_argument, NULL, 'L' },
	{ "options", required_argument, NULL, 'O' },     { "checkpoints", required_argument, NULL, 'c' },
	{ "dump", required_argument, NULL, 'd' },        { "checkpoint-dump", required_argument, NULL, 'D' },
	{ "device", no_argument, NULL, 'G' },            { "orbits", no_argument, NULL, 'o' },
	{ NULL, 0, NULL, 0 },
};

static bool set_one(int name, const char *value, struct settings *set)
{
	switch (name) {
	case 'g': set->graph = value; return true;
	case 'w': set->write = value; return true;
	case 'S': set->store = value; return true;
	case 'L': set->lineage = value; return true;
	case 'O': set->options = value; return true;
	case 'd': set->dump = value; return true;
	case 'D': set->parts_dump = value; return true;
	case 'G': return set->device = true;
	case 'l': return layout(value, &set->columns);
	case 'n': return number(value, 1, GRAPH_MAX_VERTICES, &set->vertices);
	case 's': return number(value, 0, UINT64_MAX, &set->seed);
	case 'k': return number(value, 2, MAX_NODES, &set->nodes);
	case 't': return number(value, 1, 1024, &set->threads);
	case 'c': return number(value, 0, 1000000, &set->checkpoints);
	default: return false;
	}
}

int main(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct settings set = { .graph = "triangulation", .lineage = "graphlets", .options = "grain=256", .vertices = 40000, .seed = 1, .nodes = 4,
				.threads = cores > 0 && cores <= 1024 ? (uint64_t)cores : 1, .checkpoints = 10 };
	static struct job j;
	bool fine;
	int name;

	while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (name == 'o') {
			orbits_print();
			return 0;
		}
		if (!set_one(name, optarg, &set))
			return usage();
	}
	if (optind < argc)
		return usage();
	fine = prepare(&set, &j) && run(&set, &j);
	table_free(j.t);
	graph_free(&j.g);
	return fine ? 0 : 1;
}
