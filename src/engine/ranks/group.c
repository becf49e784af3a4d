#include "engine/ranks/group.h"
#include "base/mem.h"
#include "engine/context.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the group ------------------------------------------------------------------------------- */

void vv_group_free(const struct vv_group *g, void *p)
{
	vv_comm_free(g->side->broken ? g->side : g->comm, p);
}

void vv_group_close(struct vv_group *g)
{
	if (!g)
		return;
	if (g->comm && g->side) {
		vv_group_free(g, g->storage_node);
		vv_group_free(g, g->bundle.room);
	}
	vv_comm_close(g->side);
	vv_comm_close(g->comm);
	vv_owner_index_fini(&g->owners);
	vv_mem_free(g->host);
	vv_mem_free(g->bundle.len);
	vv_mem_free(g);
}

int vv_group_open(const struct varve_comm *plug, double patience, struct vv_group **out)
{
	struct vv_group *g = vv_mem_new(1, sizeof(*g));
	int rc = VV_ENOMEM, side = VV_ENOMEM;

	if (!g && plug->close) {
		plug->close(plug->side);
		plug->close(plug->ctx);
	}
	if (g) { /* a channel is closed also if its opening fails */
		rc = vv_comm_open(plug, plug->ctx, patience, &g->comm);
		side = vv_comm_open(plug, plug->side, patience, &g->side);
		rc = rc ? rc : side;
	}
	if (rc == 0) {
		vv_comm_pair(g->comm, g->side);
		g->threaded = plug->any_thread;
		g->rank = plug->rank;
		g->size = plug->size;
		g->host = vv_mem_new(g->size, sizeof(*g->host));
		g->storage_node = vv_mem_new(g->size, sizeof(*g->storage_node));
		rc = g->host && g->storage_node ? 0 : VV_ENOMEM;
	}
	if (rc) {
		vv_group_close(g);
		return rc;
	}
	*out = g;
	return 0;
}

/* ---- agreement ------------------------------------------------------------------------------- */

static const char *call_name(uint64_t call)
{
	static const char *const name[] = { "something else",  "varve_open_mpi or varve_open_comm", "varve_checkpoint",
					    "varve_restart",   "varve_due",       "varve_wait",      "varve_close",     "pack",
					    "varve_list_share" };

	return name[call < sizeof(name) / sizeof(name[0]) ? call : 0];
}

/* All ranks have seen that they differ, so all come here. */
static int name_odd_rank(struct vv_group *g, uint64_t call, uint64_t detail)
{
	uint64_t mine[2] = { call, detail }, *all = vv_mem_new(g->size, sizeof(mine));
	uint32_t odd = 0;
	int rc = vv_group_agree(g, g->comm, all ? 0 : VV_ENOMEM);

	if (rc == 0)
		rc = vv_comm_allgather(g->comm, mine, all, sizeof(mine));
	if (rc == 0) {
		while (odd < g->size && memcmp(all + (size_t)2 * odd, all, sizeof(mine)) == 0)
			odd++;
		if (odd < g->size && all[2 * odd] != all[0])
			rc = vv_err_set(VV_EPEER, "rank 0 called %s while rank %u called %s; every rank makes the same calls in the same "
					"order", call_name(all[0]), odd, call_name(all[2 * odd]));
		else if (odd < g->size && call == VV_GROUP_OPEN)
			rc = vv_err_set(VV_EPEER, "rank 0 and rank %u have different options or lineages; all ranks must have the same "
					"lineage, mode, chunk, digest, dedup, collective, alike, threshold, copies, aggregate, redundancy and tiers", odd);
		else if (odd < g->size && call == VV_GROUP_PACK)
			rc = vv_err_set(VV_EPEER, "rank 0 and rank %u are to pack different files, or in different ways", odd);
		else if (odd < g->size && call == VV_GROUP_LIST)
			rc = vv_err_set(VV_EPEER, "rank 0 and rank %u ask for different lists or epochs", odd);
		else if (odd < g->size)
			rc = vv_err_set(VV_EPEER, "rank 0 asks for epoch %" PRId64 ", rank %u for %" PRId64 " (-1: the newest); all ranks "
					"ask for the same", (int64_t)all[1], odd, (int64_t)all[2 * odd + 1]);
	}
	vv_comm_free(g->comm, all);
	return rc;
}

int vv_group_check_call(struct vv_group *g, enum vv_group_call call, uint64_t detail)
{
	uint64_t v[4] = { call, ~(uint64_t)call, detail, ~detail };
	int rc = vv_comm_allreduce(g->comm, v, 4, VARVE_MAX);

	if (rc == 0 && (v[0] != ~v[1] || v[2] != ~v[3]))
		rc = name_odd_rank(g, call, detail);
	return rc ? vv_err_context(rc, "%s", call_name(call)) : 0;
}

int vv_group_check_call_max(struct vv_group *g, enum vv_group_call call, uint64_t *value)
{
	/* as many as in vv_group_check_call, which another rank may have called */
	uint64_t v[4] = { call, ~(uint64_t)call, *value, 0 };
	int rc = vv_comm_allreduce(g->comm, v, 4, VARVE_MAX);

	if (rc == 0 && v[0] != ~v[1])
		rc = name_odd_rank(g, call, 0);
	if (rc)
		return vv_err_context(rc, "%s", call_name(call));
	*value = v[2];
	return 0;
}

/* A rank passes on another rank's error in the name of that rank. */
int vv_group_adopt_error(const struct vv_group *g, uint32_t who, struct vv_err_state *error)
{
	const char *words = error->message;
	int code = error->code < 0 ? error->code : VV_EPEER, n = 0;

	error->message[sizeof(error->message) - 1] = '\0';
	for (unsigned first; sscanf(words, "rank %7u: %n", &first, &n) == 1 && n; n = 0) {
		who = first;
		words += n;
	}
	return who == g->rank ? vv_err_set(code, "%s", words) : vv_err_set(code, "rank %u: %s", who, words);
}

/* Every rank gets the error of the lowest rank that failed. */
static int broadcast_error(struct vv_group *g, struct vv_comm *c, uint32_t who, int rc)
{
	struct vv_err_state e;
	int said;

	vv_err_save(rc, &e);
	said = vv_comm_bcast(c, &e, sizeof(e), who);
	if (said)
		return said;
	return who == g->rank ? vv_err_restore(&e) : vv_group_adopt_error(g, who, &e);
}

int vv_group_sum(struct vv_group *g, struct vv_comm *c, int rc, uint64_t *v, size_t n)
{
	uint64_t sum[VV_GROUP_SUM_MOST + 1] = { rc != 0 }, lowest;
	struct vv_err_state error;
	int said;

	if (n > VV_GROUP_SUM_MOST)
		return vv_err_set(VV_EINVAL, "a sum of %zu numbers over the ranks", n);
	vv_err_save(rc, &error);
	for (size_t i = 0; i < n; i++)
		sum[i + 1] = v[i];
	said = vv_comm_allreduce(c, sum, n + 1, VARVE_SUM);
	for (size_t i = 0; said == 0 && sum[0] == 0 && i < n; i++)
		v[i] = sum[i + 1];
	if (said == 0 && sum[0] == 0)
		return 0;
	lowest = rc ? g->rank : g->size;
	if (said == 0)
		said = vv_comm_allreduce(c, &lowest, 1, VARVE_MIN);
	if (said)
		return rc ? vv_err_restore(&error) : said;
	vv_err_restore(&error);
	return broadcast_error(g, c, (uint32_t)lowest, rc);
}

int vv_group_agree(struct vv_group *g, struct vv_comm *c, int rc)
{
	return vv_group_sum(g, c, rc, NULL, 0);
}

/* ---- commit records -------------------------------------------------------------------------- */

/* The record goes from rank `who`, which has it as `b`, to all storage nodes that lack it. */
static int hand_commit(struct vv_context *ctx, uint32_t who, const struct vv_buf *b, bool has)
{
	struct vv_group *g = ctx->group;
	struct vv_commit c = { 0 };
	uint64_t len = who == g->rank ? b->n : 0;
	uint8_t *bytes = NULL;
	int rc = vv_comm_bcast(g->comm, &len, sizeof(len), who);

	if (rc)
		return rc;
	bytes = len < VV_MAX_PAYLOAD ? vv_mem_new((size_t)len + 1, 1) : NULL;
	rc = vv_group_agree(g, g->comm, bytes ? 0 : VV_ENOMEM);
	if (rc == 0 && who == g->rank)
		memcpy(bytes, b->p, b->n);
	if (rc == 0)
		rc = vv_comm_bcast(g->comm, bytes, (size_t)len, who);
	if (rc == 0 && !has && vv_group_leads_storage_node(g)) {
		rc = vv_commit_get(&c, bytes, (size_t)len);
		if (rc == 0)
			rc = vv_catalog_put_commit(&ctx->lineage, &c);
		vv_commit_fini(&c);
	}
	vv_comm_free(g->comm, bytes);
	return rc;
}

/* A storage node that missed the record of an epoch, because the job died then, gets it now. */
int vv_group_spread_commit(struct vv_context *ctx, uint64_t epoch)
{
	struct vv_group *g = ctx->group;
	struct vv_commit c = { 0 };
	uint64_t have, who;
	struct vv_buf b = { 0 };
	int rc, read = vv_catalog_commit(&ctx->lineage, epoch, &c);
	bool has = read == 0;

	if (has)
		vv_commit_put(&c, &b);
	vv_commit_fini(&c);
	has = has && vv_buf_check(&b) == 0;
	have = has;
	rc = vv_comm_allreduce(g->comm, &have, 1, VARVE_SUM);
	if (rc == 0 && !have) /* a damaged record is not an absent one */
		rc = vv_group_agree(g, g->comm, read == VV_EDAMAGED ? read : 0);
	if (rc == 0 && have && have < g->size) {
		who = has ? g->rank : g->size;
		rc = vv_comm_allreduce(g->comm, &who, 1, VARVE_MIN);
		if (rc == 0)
			rc = vv_group_agree(g, g->comm, hand_commit(ctx, (uint32_t)who, &b, has));
	}
	vv_buf_fini(&b);
	return rc;
}
