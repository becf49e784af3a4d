#include "cli/run/run_drain.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/options.h"
#include "engine/tier_list.h"
#include "engine/upkeep/copy_lineage.h"
#include <string.h>

char *vv_run_drain_tier(const struct vv_run_plan *plan)
{
	struct vv_tier_list tiers = { 0 };
	char *url = NULL;

	if (strncmp(plan->store, "ram:", 4) == 0 && vv_tier_list_read(&plan->job->conf, plan->store, &tiers) == 0 && tiers.n)
		url = vv_mem_strdup(tiers.v[0].url);
	vv_tier_list_fini(&tiers);
	return url;
}

int vv_run_drain(struct vv_run_epochs *e, const char *tier, uint64_t *epoch)
{
	struct vv_store_options opt = vv_options_store(&e->plan->job->conf, true);
	struct vv_copy_request q = { .from = &e->lin };
	bool copied = false;
	uint64_t newest = 0;
	int rc = vv_run_epochs_newest(e, UINT64_MAX, &newest);

	*epoch = 0;
	if (rc || !newest)
		return rc;
	rc = vv_verb_context_start_pool(e->plan->job);
	if (rc == 0)
		rc = vv_store_open(tier, &opt, &q.to);
	q.pool = e->plan->job->pool;
	if (rc == 0)
		rc = vv_copy_lineage_epoch(&q, newest, &copied);
	*epoch = copied ? newest : 0;
	vv_store_close(q.to);
	return rc;
}
