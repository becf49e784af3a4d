/* The session of one rank among many. All ranks open, wait and close together. */
#include "engine/session/rank_session.h"
#include "engine/epoch/commit_ranks.h"
#include "engine/session/session.h"
#include "engine/write/shared_file.h"
#include "engine/write/rank_dedup.h"
#include "engine/epoch/background.h"
#include "engine/options.h"
#include "engine/ranks/group.h"
#include "engine/tiers/tiers.h"
#include "engine/tiers/tiers_ranks.h"
#include "engine/epoch/tip.h"
#include "engine/ranks/hosts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_comm.h>

enum { PATIENCE = 600 };

static int read_aggregate(struct varve *v, struct vv_group *g)
{
	const char *text = vv_conf_text(&v->ctx.conf, "aggregate");
	char *end = NULL;
	unsigned long n = strtoul(text, &end, 10);

	if (strcmp(text, "node") == 0) {
		g->aggregate = 0;
		return 0;
	}
	if (!*text || *end || n < 1 || n > VV_MAX_RANKS)
		return vv_err_set(VV_EINVAL, "aggregate = %s (%s): node, or a number of ranks", text, vv_conf_origin(&v->ctx.conf, "aggregate"));
	g->aggregate = (uint32_t)n;
	return 0;
}

static int read_options(struct varve *v)
{
	const char *how = vv_conf_text(&v->ctx.conf, "collective");
	struct vv_group *g = v->ctx.group;
	int rc;

	g->dedup = how[0] == 'e' ? VV_GROUP_EXACT : how[0] == 't' ? VV_GROUP_TOPK : VV_GROUP_NONE;
	g->threshold = (size_t)vv_conf_number(&v->ctx.conf, "threshold");
	g->copies = (unsigned)vv_conf_number(&v->ctx.conf, "copies");
	rc = vv_redundancy_configure(v);
	return rc ? rc : read_aggregate(v, g);
}

/* A digest of the options that all ranks must have in common. */
static uint64_t options_digest(const struct varve *v)
{
	static const char *const names[] = { "mode", "chunk", "digest", "dedup", "collective", "alike", "threshold", "copies", "aggregate",
					     "redundancy", "tiers" };
	uint64_t digest[sizeof(names) / sizeof(names[0])];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = vv_conf_text(&v->ctx.conf, names[i]);

		digest[i] = vv_digest_check(text, strlen(text));
	}
	return vv_digest_check(digest, sizeof(digest));
}

int vv_rank_session_join(struct varve *v, const struct varve_comm *plug, int rc)
{
	struct vv_err_state error;
	int met;

	vv_err_save(rc, &error);
	met = vv_group_open(plug, rc ? PATIENCE : vv_conf_real(&v->ctx.conf, "timeout"), &v->ctx.group);
	if (met)
		return rc ? vv_err_restore(&error) : met;
	v->ctx.rank = v->ctx.group->rank;
	v->ctx.ranks = v->ctx.group->size;
	if (rc == 0)
		rc = read_options(v);
	if (rc == 0)
		rc = vv_commit_ranks_init(v);
	rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	return rc ? rc : vv_group_check_call(v->ctx.group, VV_GROUP_OPEN, options_digest(v));
}

void vv_rank_session_leave(struct varve *v)
{
	if (!v->ctx.group)
		return;
	vv_rank_dedup_discard(v);
	vv_redundancy_close(v);
	vv_commit_ranks_fini(v);
	vv_group_close(v->ctx.group);
	v->ctx.group = NULL;
}

/* The lineage, as sent to all ranks. */
struct found {
	uint8_t id[16];
	uint64_t created_ns;
	uint64_t token; /* of the session */
};

/* Called by the leader of a storage node. Takes the lock and looks for the lineage. *has: it
 * exists. */
static int open_here(struct varve *v, const char *lineage, bool *has)
{
	char object[VV_NAME_MAX];
	int rc;

	vv_name_lock(object, lineage);
	rc = vv_store_lock(v->ctx.store, object, &v->ctx.writer);
	if (rc == 0)
		rc = vv_tiers_adopt(v, lineage);
	if (rc == 0)
		rc = vv_catalog_open(v->ctx.store, lineage, false, &v->ctx.lineage);
	*has = rc == 0;
	if (rc != VV_ENOENT)
		return rc;
	vv_err_clear();
	return 0;
}

/* All storage nodes use the lineage of the lowest rank that has one. If there is none, rank 0
 * creates it. */
static int find_lineage(struct varve *v, const char *lineage, bool has, struct found *f, uint32_t *who)
{
	struct vv_group *g = v->ctx.group;
	uint64_t lowest = has ? g->rank : g->size;
	int rc = vv_comm_allreduce(g->comm, &lowest, 1, VARVE_MIN);

	if (rc)
		return rc;
	*who = lowest < g->size ? (uint32_t)lowest : 0;
	if (*who == g->rank && !has) {
		rc = g->has_local_stores ? vv_tiers_check_reached(v, false) : 0;
		rc = rc ? rc : vv_catalog_open(v->ctx.store, lineage, true, &v->ctx.lineage);
	}
	rc = vv_group_agree(g, g->comm, rc);
	memcpy(f->id, v->ctx.lineage.id, sizeof(f->id));
	f->created_ns = v->ctx.lineage.created_ns;
	f->token = v->tip.token;
	return rc ? rc : vv_comm_bcast(g->comm, f, sizeof(*f), *who);
}

static int match_lineage(struct varve *v, const char *lineage, bool has, const struct found *f, uint32_t who)
{
	int rc = 0;

	if (!has && v->ctx.rank != who)
		rc = vv_catalog_adopt(v->ctx.store, lineage, f->id, f->created_ns, &v->ctx.lineage);
	else if (memcmp(v->ctx.lineage.id, f->id, sizeof(f->id)) != 0)
		rc = vv_err_set(VV_EMISMATCH, "the lineage '%s' in store '%s' and the one in rank %u's store are not of one origin; one of the two "
				"stores is not this job's", lineage, v->ctx.store->url, who);
	return rc ? rc : vv_tip_find_newest(v, lineage);
}

static int agree_on_epoch(struct varve *v)
{
	struct vv_group *g = v->ctx.group;
	uint64_t newest[2] = { v->tip.epoch, v->tip.highest };
	int rc = vv_comm_allreduce(g->comm, newest, 2, VARVE_MAX);

	if (rc)
		return rc;
	vv_tip_agree(v, newest[0], newest[1]);
	rc = vv_group_agree(g, g->comm, g->has_local_stores && g->rank == 0 ? vv_tiers_check_reached(v, v->tip.epoch) : 0);
	if (rc == 0)
		rc = vv_tiers_ranks_check(v);
	if (rc)
		return rc;
	rc = g->has_local_stores && v->tip.epoch ? vv_group_spread_commit(&v->ctx, v->tip.epoch) : 0;
	return rc == VV_EDAMAGED ? 0 : rc; /* a restart will report it */
}

int vv_rank_session_attach(struct varve *v, const char *lineage, int rc)
{
	struct vv_group *g = v->ctx.group;
	struct found f = { 0 };
	bool has = false;
	uint32_t who = 0;

	rc = vv_group_agree(g, g->comm, rc);
	if (rc == 0)
		rc = vv_group_check_call(g, VV_GROUP_OPEN, vv_digest_check(lineage, strlen(lineage)));
	if (rc == 0)
		rc = vv_hosts_find(g, v->ctx.store, lineage);
	if (rc)
		return rc;
	rc = vv_group_agree(g, g->comm, vv_group_leads_storage_node(g) ? open_here(v, lineage, &has) : 0);
	if (rc == 0)
		rc = find_lineage(v, lineage, has, &f, &who);
	if (rc)
		return rc;
	vv_tip_set_token(v, f.token);
	rc = vv_group_agree(g, g->comm, vv_group_leads_storage_node(g) ? match_lineage(v, lineage, has, &f, who) : 0);
	if (rc)
		return rc;
	if (!vv_group_leads_storage_node(g))
		rc = vv_catalog_open(v->ctx.store, lineage, false, &v->ctx.lineage);
	if (rc == 0)
		rc = vv_shared_file_plan(g, v->ctx.store);
	rc = vv_group_agree(g, g->comm, rc);
	if (rc == 0)
		rc = agree_on_epoch(v);
	return rc ? rc : vv_redundancy_open(v);
}

bool vv_rank_session_progress(struct varve *v, uint64_t epoch, bool wait)
{
	if (!v->ctx.group)
		return false;
	if (wait && epoch == v->newest)
		vv_background_wait(v);
	if (vv_background_busy(v))
		return false;
	vv_commit_ranks_step(v, wait && epoch == v->commit->epoch);
	return v->commit->pending && epoch == v->commit->epoch;
}

/* As in every call, the epoch in progress is completed first. If the ranks lose contact meanwhile,
 * the result of the epoch is more informative. */
int vv_rank_session_wait(struct varve *v, uint64_t epoch)
{
	int rc;

	vv_background_wait(v);
	vv_commit_ranks_step(v, true);
	rc = v->ctx.group->side->broken ? 0 : vv_group_check_call(v->ctx.group, VV_GROUP_WAIT, epoch);
	if (rc == 0)
		vv_commit_ranks_follow_up(v);
	return rc;
}

int vv_rank_session_due(struct varve *v, bool asked, int due)
{
	uint64_t answer = asked || (v->ctx.rank == 0 && due);
	int rc;

	vv_rank_session_progress(v, 0, false);
	rc = vv_group_check_call_max(v->ctx.group, VV_GROUP_DUE, &answer);
	return rc ? rc : (int)answer;
}

double varve_timeout(const char *options)
{
	struct vv_conf conf = { 0 };
	double seconds = PATIENCE;

	if (vv_options_load(&conf, options) == 0)
		seconds = vv_conf_real(&conf, "timeout");
	vv_conf_fini(&conf);
	return seconds > 0 ? seconds : PATIENCE;
}

int varve_open_comm(const struct varve_comm *comm, const char *store, const char *lineage, const char *options, varve **out)
{
	if (out)
		*out = NULL;
	if (!comm || !out)
		return vv_err_set(VV_EINVAL, "varve_open_comm: a communicator and out are needed");
	return vv_session_open(comm, store, lineage, options, out);
}
