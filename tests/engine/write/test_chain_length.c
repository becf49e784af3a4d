// ctest: TIMEOUT 120 MODES COST 5
/* What a restart has to read, and gc, does not grow with the number of epochs: whichever chunks change, the tables of a chain of layers have together no more than a few times
 * the runs that a full one has. */
#include "engine/lineage/layer_file.h"
#include "engine/context.h"
#include "engine/lineage/run_table.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <varve/varve.h>

enum { CHUNK = 64, CHUNKS = 16384, SIZE = CHUNK * CHUNKS, EPOCHS = 150, FEW = 12000 };

static uint8_t region[SIZE];
static char store[PLACE_MAX];

/* In every so manieth chunk, from one on, or anywhere, something new. */
static void change(uint64_t *state, unsigned epoch, size_t step, size_t anywhere)
{
	for (size_t i = 0; anywhere && i < anywhere; i++)
		region[gen_below(state, CHUNKS) * CHUNK + 8] ^= (uint8_t)(1 + epoch % 255);
	for (size_t c = 0; step && c < CHUNKS; c += step) {
		uint64_t number = gen_next(state);

		memcpy(region + c * CHUNK, &number, sizeof(number));
	}
}

/* Of the chain of the newest epoch. */
static size_t count(const varve *v, size_t *full)
{
	struct vv_run_table t = { 0 };
	size_t runs = 0;

	MUST(vv_run_table_load(&v->ctx.lineage, v->tip.epoch, 0, NULL, &t) == 0);
	*full = t.region[0].runs.n;
	for (size_t i = 0; i < t.layers; i++) {
		struct vv_layer_file *f = NULL;

		MUST(vv_layer_file_open(&v->ctx.lineage, t.layer[i], VV_LAYER_FILE_HEAD, &f) == 0);
		runs += f->head.region[0].runs.n;
		vv_layer_file_close(f);
	}
	vv_run_table_fini(&t);
	return runs;
}

static void run(const char *what, size_t step, size_t anywhere)
{
	uint64_t state = 9;
	varve *v = NULL;

	must_begin("%s", what);
	place_remove(store);
	MUST(varve_open(store, "L", "chunk=64 codec=none threads=1 keep=4", &v) == 0);
	MUST(varve_protect(v, "r", region, SIZE) == 0);
	change(&state, 0, 1, 0);
	for (unsigned e = 1; e <= EPOCHS; e++) {
		size_t full, runs;

		MUST(settle_checkpoint(v) == 0);
		settle_idle(v);
		runs = count(v, &full);
		if (runs > 4 * full + FEW) {
			fprintf(stderr, "%s, epoch %u: the chain has %zu runs, a full table %zu\n", what, e, runs, full);
			exit(1);
		}
		change(&state, e, step, anywhere);
	}
	MUST(varve_close(v) == 0);
}

int main(void)
{
	place_path(store, "store");
	run("everything", 1, 0);
	run("every second chunk", 2, 0);
	run("the same chunks", 10, 0);
	run("a few anywhere", 0, 50);
	run("many anywhere", 0, 3000);
	return 0;
}
