// ctest: TIMEOUT 120 COST 2
/* Restarts page by page where gc has taken what only older epochs needed, and the tables that are left still name it: none falls back to merging them. */
#include "engine/read/layer_by_layer.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <varve/varve.h>

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

int main(void)
{
	enum { LEN = 96 << 20, MANY = 30, CHANGES = 900, PAGE = 4096 };
	uint8_t *p = malloc(LEN), *to = malloc(LEN);
	char store[PLACE_MAX];
	struct vv_store *s = NULL;
	struct vv_lineage lineage = { 0 };
	struct vv_pool *pool = NULL;
	uint64_t state = 5;
	struct vv_store_options opt = { 0 };
	size_t tried = 0, failed = 0;
	varve *v = NULL;

	CHECK(p && to);
	place_path(store, "kept");
	gen_bytes(&state, p, LEN);
	ok(varve_open(store, "L", "keep=3", &v));
	ok(varve_protect(v, "p", p, LEN));
	ok(vv_store_open(store, &opt, &s));
	ok(vv_pool_new(2, &pool));
	for (uint64_t e = 1; e <= MANY; e++) {
		struct vv_run_table t = { 0 };
		struct vv_want want = { .len = LEN, .to = to, .name = "p" };

		for (int i = 0; i < CHANGES; i++)
			gen_bytes(&state, p + gen_below(&state, LEN / PAGE) * PAGE, PAGE);
		ok(settle_checkpoint(v));
		ok(vv_catalog_open(s, "L", false, &lineage));
		ok(vv_run_table_load(&lineage, e, 0, &(struct vv_run_table_how){ .pool = pool, .runs = VV_RUN_TABLE_LATE }, &t));
		want.runs = &t.region[0].runs;
		memset(to, 0, LEN);
		if (vv_layer_by_layer_pays(&t, &want, 1)) {
			tried++;
			if (vv_layer_by_layer_read(&lineage, pool, &t, &want, 1))
				CHECK(memcmp(p, to, LEN) == 0);
			else
				failed++;
		}
		vv_run_table_fini(&t);
	}
	CHECK(tried > 0 && (failed == 0 || failed == tried)); /* all: files of others, say */
	ok(varve_close(v));
	vv_pool_free(pool);
	vv_store_close(s);
	place_remove(store);
	free(p);
	free(to);
	return 0;
}
