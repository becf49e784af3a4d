// ctest: COST 2
/* A commit record that is whole, and claims a million ranks whose layers are not there: verify says so in no time, and in few words. */
#include "base/mem.h"
#include "core/format/run.h"
#include "engine/upkeep/verify.h"
#include "support/must.h"
#include "support/place.h"
#include "support/settle.h"
#include <inttypes.h>
#include <time.h>

#define OK(call) MUST((call) >= 0)

struct heard {
	size_t n;
	char last[512];
};

static void hear(void *arg, const char *problem)
{
	struct heard *h = arg;

	h->n++;
	snprintf(h->last, sizeof(h->last), "%s", problem);
}

static void lay_down(const char *url, int epochs)
{
	uint8_t p[5000] = { 0 };
	varve *v = NULL;

	OK(varve_open(url, "a", "", &v));
	OK(varve_protect(v, "p", p, sizeof(p)));
	for (int e = 1; e <= epochs; e++) {
		memset(p, e, sizeof(p));
		OK(settle_checkpoint(v));
	}
	OK(varve_close(v));
}

enum claim { ALL_HERE, ONE_PLACE, OWN_PLACES, CLAIMS };

/* Epoch 2 was laid down by one rank; now it claims so many. */
static void claim_ranks(const struct vv_lineage *lin, enum claim what, uint32_t ranks)
{
	struct vv_commit c = { 0 };
	struct vv_commit_rank first;

	OK(vv_catalog_commit(lin, 2, &c));
	first = c.rank[0];
	vv_mem_free(c.rank);
	c.n_ranks = ranks;
	c.rank = vv_mem_new(ranks, sizeof(*c.rank));
	MUST(c.rank);
	for (uint32_t r = 0; r < ranks; r++) {
		c.rank[r] = first;
		c.rank[r].storage_node = what == ALL_HERE ? 0 : what == ONE_PLACE ? 1 : (uint64_t)r + 1;
	}
	OK(vv_catalog_put_commit(lin, &c));
	vv_commit_fini(&c);
}

static struct heard verify(const struct vv_lineage *lin, struct vv_pool *pool, bool whole, struct vv_verify_report *report)
{
	struct heard h = { 0 };
	clock_t begin = clock(); /* of processors: others may use them, too */

	OK(vv_verify_run(lin, pool, 0, whole, hear, &h, NULL, report));
	MUST(clock() - begin < 20 * CLOCKS_PER_SEC);
	MUST(report->problems == h.n);
	return h;
}

static void test(struct vv_pool *pool, enum claim what, bool has_layer, uint32_t ranks)
{
	struct vv_store_options opt = { .create = true };
	struct vv_verify_report report;
	struct vv_lineage lin;
	struct vv_store *s;
	struct heard h;
	char url[64];

	must_begin("claim %d, layer %d, %u ranks", (int)what, has_layer, ranks);
	snprintf(url, sizeof(url), "mem:hostile%d%d%u", (int)what, has_layer, ranks);
	OK(vv_store_open(url, &opt, &s));
	lay_down(url, 2);
	OK(vv_catalog_open(s, "a", false, &lin));
	claim_ranks(&lin, what, ranks);
	if (!has_layer)
		OK(vv_store_remove(s, "a/00000000/0000000002.r0.layer"));

	h = verify(&lin, pool, false, &report);
	if (what == ALL_HERE || (what == ONE_PLACE && has_layer)) { /* they should be here, and are missing */
		MUST(h.n == (ranks > 17 ? (has_layer ? 18u : 17u) : ranks));
		MUST(ranks < 20 || strstr(h.last, "more of its"));
		MUST(report.elsewhere == 0);
	} else { /* they may be in other stores, and only the layer that is here is not as the record says */
		MUST(h.n == (has_layer ? 1u : 0u));
		MUST(report.elsewhere == ranks - has_layer);
	}
	h = verify(&lin, pool, true, &report);
	MUST(h.n >= 1 && h.n <= 18);
	if (report.elsewhere)
		MUST(strstr(h.last, "is not whole"));
	vv_store_close(s);
}

int main(void)
{
	struct vv_pool *pool = NULL;

	OK(vv_pool_new(1, &pool));
	for (enum claim what = ALL_HERE; what < CLAIMS; what++)
		for (int has_layer = 0; has_layer < 2; has_layer++) {
			test(pool, what, has_layer, VV_MAX_RANKS / 8);
			test(pool, what, has_layer, 3);
		}
	test(pool, ONE_PLACE, true, VV_MAX_RANKS);
	vv_pool_free(pool);
	return 0;
}
