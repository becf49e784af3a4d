#include "engine/ranks.h"
#include "base/mem.h"
#include "engine/aggregate.h"
#include "engine/collective.h"
#include "engine/options.h"
#include "engine/session.h"
#include "engine/tasting.h"
#include "engine/whose.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the group ------------------------------------------------------------------------------------------------------------- */

void vv_ranks_close(struct vv_ranks *g)
{
	if (!g)
		return;
	vv_comm_close(g->side);
	vv_comm_close(g->comm);
	vv_judge_fini(&g->judge);
	vv_mem_free(g->host);
	vv_mem_free(g->place);
	vv_mem_free(g->bundle.room);
	vv_tasting_free(g->bundle.tasting);
	vv_mem_free(g);
}

int vv_ranks_open(const struct varve_comm *plug, double patience, struct vv_ranks **out)
{
	struct vv_ranks *g = vv_mem_new(1, sizeof(*g));
	int rc = VV_ENOMEM, side = VV_ENOMEM;

	if (!g && plug->close) {
		plug->close(plug->side);
		plug->close(plug->ctx);
	}
	if (g) { /* each is closed if it cannot be opened */
		rc = vv_comm_open(plug, plug->ctx, patience, &g->comm);
		side = vv_comm_open(plug, plug->side, patience, &g->side);
		rc = rc ? rc : side;
	}
	if (rc == 0) {
		vv_comm_pair(g->comm, g->side);
		g->behind = plug->any_thread;
		g->rank = plug->rank;
		g->size = plug->size;
		g->host = vv_mem_new(g->size, sizeof(*g->host));
		g->place = vv_mem_new(g->size, sizeof(*g->place));
		rc = g->host && g->place ? 0 : VV_ENOMEM;
	}
	if (rc) {
		vv_ranks_close(g);
		return rc;
	}
	*out = g;
	return 0;
}

/* ---- one mind -------------------------------------------------------------------------------------------------------------- */

static const char *call_name(uint64_t call)
{
	static const char *const name[] = { "something else",  "varve_open_mpi or varve_open_comm", "varve_checkpoint",
					    "varve_restart",   "varve_due",       "varve_wait",      "varve_close",     "pack" };

	return name[call < sizeof(name) / sizeof(name[0]) ? call : 0];
}

/* All ranks have seen that they differ, so all come here. */
static int tell_apart(struct vv_ranks *g, uint64_t call, uint64_t detail)
{
	uint64_t mine[2] = { call, detail }, *all = vv_mem_new(g->size, sizeof(mine));
	uint32_t odd = 0;
	int rc = all ? vv_comm_allgather(g->comm, mine, all, sizeof(mine)) : VV_ENOMEM;

	if (rc == 0) {
		while (odd < g->size && memcmp(all + (size_t)2 * odd, all, sizeof(mine)) == 0)
			odd++;
		if (odd < g->size && all[2 * odd] != all[0])
			rc = vv_err_set(VV_EPEER, "rank 0 called %s while rank %u called %s; every rank makes the same calls in the same "
					"order", call_name(all[0]), odd, call_name(all[2 * odd]));
		else if (odd < g->size && call == VV_RANKS_OPEN)
			rc = vv_err_set(VV_EPEER, "rank 0 and rank %u have different options or lineages; all ranks must have the same "
					"lineage, mode, chunk, digest, dedup, collective, alike, threshold, copies and aggregate", odd);
		else if (odd < g->size && call == VV_RANKS_PACK)
			rc = vv_err_set(VV_EPEER, "rank 0 and rank %u are to pack different files, or in different ways", odd);
		else if (odd < g->size)
			rc = vv_err_set(VV_EPEER, "rank 0 asks for epoch %" PRId64 ", rank %u for %" PRId64 " (-1: the newest); all ranks "
					"ask for the same", (int64_t)all[1], odd, (int64_t)all[2 * odd + 1]);
	}
	vv_comm_free(g->comm, all);
	return rc;
}

int vv_ranks_meet(struct vv_ranks *g, enum vv_ranks_call call, uint64_t detail)
{
	uint64_t v[4] = { call, ~(uint64_t)call, detail, ~detail };
	int rc = vv_comm_allreduce(g->comm, v, 4, VARVE_MAX);

	if (rc == 0 && (v[0] != ~v[1] || v[2] != ~v[3]))
		rc = tell_apart(g, call, detail);
	return rc ? vv_err_context(rc, "%s", call_name(call)) : 0;
}

/* What a rank has heard from another it passes on in that one's name. */
int vv_ranks_quote(const struct vv_ranks *g, uint32_t who, struct vv_err_state *told)
{
	const char *words = told->message;
	int code = told->code < 0 ? told->code : VV_EPEER, n = 0;

	told->message[sizeof(told->message) - 1] = '\0';
	for (unsigned first; sscanf(words, "rank %7u: %n", &first, &n) == 1 && n; n = 0) {
		who = first;
		words += n;
	}
	return who == g->rank ? vv_err_set(code, "%s", words) : vv_err_set(code, "rank %u: %s", who, words);
}

/* Every rank hears what the lowest rank that failed has to say. */
static int hear(struct vv_ranks *g, struct vv_comm *c, uint32_t who, int rc)
{
	struct vv_err_state e;
	int said;

	vv_err_save(rc, &e);
	said = vv_comm_bcast(c, &e, sizeof(e), who);
	if (said)
		return said;
	return who == g->rank ? vv_err_restore(&e) : vv_ranks_quote(g, who, &e);
}

int vv_ranks_sum(struct vv_ranks *g, struct vv_comm *c, int rc, uint64_t *v, size_t n)
{
	enum { MOST = 8 };
	uint64_t sum[MOST + 1] = { rc != 0 }, lowest;
	struct vv_err_state error;
	int said;

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
	return hear(g, c, (uint32_t)lowest, rc);
}

int vv_ranks_agree(struct vv_ranks *g, struct vv_comm *c, int rc)
{
	return vv_ranks_sum(g, c, rc, NULL, 0);
}

/* ---- a session ------------------------------------------------------------------------------------------------------------- */

enum { PATIENCE = 600 };

static int read_aggregate(struct varve *v, struct vv_ranks *g)
{
	const char *text = vv_conf_text(&v->conf, "aggregate");
	char *end = NULL;
	unsigned long n = strtoul(text, &end, 10);

	if (strcmp(text, "node") == 0) {
		g->aggregate = 0;
		return 0;
	}
	if (!*text || *end || n < 1 || n > VV_MAX_RANKS)
		return vv_err_set(VV_EINVAL, "aggregate = %s (%s): node, or a number of ranks", text, vv_conf_origin(&v->conf, "aggregate"));
	g->aggregate = (uint32_t)n;
	return 0;
}

static int read_options(struct varve *v)
{
	const char *how = vv_conf_text(&v->conf, "collective");
	struct vv_ranks *g = v->group;

	g->how = how[0] == 'e' ? VV_RANKS_EXACT : how[0] == 't' ? VV_RANKS_TOPK : VV_RANKS_NONE;
	g->threshold = (size_t)vv_conf_number(&v->conf, "threshold");
	g->copies = (unsigned)vv_conf_number(&v->conf, "copies");
	return read_aggregate(v, g);
}

/* A number that differs where what all ranks must have in common differs. */
static uint64_t options_digest(const struct varve *v)
{
	static const char *const names[] = { "mode", "chunk", "digest", "dedup", "collective", "alike", "threshold", "copies", "aggregate" };
	char text[512];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", vv_conf_text(&v->conf, names[i]));
	return vv_digest_check(text, n < sizeof(text) ? n : sizeof(text));
}

int vv_ranks_join(struct varve *v, const struct varve_comm *plug, int rc)
{
	struct vv_err_state error;
	int met;

	vv_err_save(rc, &error);
	met = vv_ranks_open(plug, rc ? PATIENCE : vv_conf_real(&v->conf, "timeout"), &v->group);
	if (met)
		return rc ? vv_err_restore(&error) : met;
	v->rank = v->group->rank;
	v->ranks = v->group->size;
	if (rc == 0)
		rc = read_options(v);
	if (rc == 0)
		rc = vv_verdict_init(v);
	rc = vv_ranks_agree(v->group, v->group->comm, rc);
	return rc ? rc : vv_ranks_meet(v->group, VV_RANKS_OPEN, options_digest(v));
}

void vv_ranks_leave(struct varve *v)
{
	if (!v->group)
		return;
	vv_collective_forget(v);
	vv_verdict_fini(v);
	vv_ranks_close(v->group);
	v->group = NULL;
}

/* A lineage, for all. */
struct found {
	uint8_t id[16];
	uint64_t created_ns;
	uint64_t token; /* of the session */
};

/* Of this place's leader: takes the lock, and looks. *has: there is one. */
static int open_here(struct varve *v, const char *lineage, bool *has)
{
	char object[VV_NAME_MAX];
	int rc;

	vv_name_lock(object, lineage);
	rc = vv_store_lock(v->store, object, &v->writer);
	if (rc == 0)
		rc = vv_catalog_open(v->store, lineage, false, &v->lineage);
	*has = rc == 0;
	if (rc != VV_ENOENT)
		return rc;
	vv_err_clear();
	return 0;
}

/* What the lowest rank that has one says, is said in all places; where there is none at all, rank 0 makes one. */
static int find_lineage(struct varve *v, const char *lineage, bool has, struct found *f, uint32_t *who)
{
	struct vv_ranks *g = v->group;
	uint64_t lowest = has ? g->rank : g->size;
	int rc = vv_comm_allreduce(g->comm, &lowest, 1, VARVE_MIN);

	if (rc)
		return rc;
	*who = lowest < g->size ? (uint32_t)lowest : 0;
	if (*who == g->rank && !has)
		rc = vv_catalog_open(v->store, lineage, true, &v->lineage);
	rc = vv_ranks_agree(g, g->comm, rc);
	memcpy(f->id, v->lineage.id, sizeof(f->id));
	f->created_ns = v->lineage.created_ns;
	f->token = v->token;
	return rc ? rc : vv_comm_bcast(g->comm, f, sizeof(*f), *who);
}

static int match_lineage(struct varve *v, const char *lineage, bool has, const struct found *f, uint32_t who)
{
	int rc = 0;

	if (!has && v->rank != who)
		rc = vv_catalog_adopt(v->store, lineage, f->id, f->created_ns, &v->lineage);
	else if (memcmp(v->lineage.id, f->id, sizeof(f->id)) != 0)
		rc = vv_err_set(VV_EMISMATCH, "the lineage '%s' in store '%s' and the one in rank %u's store are not of one origin; one of the two "
				"stores is not this job's", lineage, v->store->url, who);
	return rc ? rc : vv_session_look(v, lineage);
}

/* The record goes from rank `who`, which has it as `b`, to all places that lack it. */
static int hand_commit(struct varve *v, uint32_t who, const struct vv_buf *b, bool has)
{
	struct vv_ranks *g = v->group;
	struct vv_commit c = { 0 };
	uint64_t len = who == g->rank ? b->n : 0;
	uint8_t *bytes = NULL;
	int rc = vv_comm_bcast(g->comm, &len, sizeof(len), who);

	if (rc)
		return rc;
	bytes = len < VV_MAX_PAYLOAD ? vv_mem_new((size_t)len + 1, 1) : NULL;
	rc = vv_ranks_agree(g, g->comm, bytes ? 0 : VV_ENOMEM);
	if (rc == 0 && who == g->rank)
		memcpy(bytes, b->p, b->n);
	if (rc == 0)
		rc = vv_comm_bcast(g->comm, bytes, (size_t)len, who);
	if (rc == 0 && !has && vv_ranks_leads_place(g)) {
		rc = vv_commit_get(&c, bytes, (size_t)len);
		if (rc == 0)
			rc = vv_catalog_put_commit(&v->lineage, &c);
		vv_commit_fini(&c);
	}
	vv_comm_free(g->comm, bytes);
	return rc;
}

/* A place that missed the record of an epoch, because the job died then, gets it now. */
int vv_ranks_spread_commit(struct varve *v, uint64_t epoch)
{
	struct vv_ranks *g = v->group;
	struct vv_commit c = { 0 };
	uint64_t have, who;
	struct vv_buf b = { 0 };
	int rc, read = vv_catalog_commit(&v->lineage, epoch, &c);
	bool has = read == 0;

	if (has)
		vv_commit_put(&c, &b);
	vv_commit_fini(&c);
	has = has && vv_buf_check(&b) == 0;
	have = has;
	rc = vv_comm_allreduce(g->comm, &have, 1, VARVE_SUM);
	if (rc == 0 && !have) /* one that is damaged is not one that never was */
		rc = vv_ranks_agree(g, g->comm, read == VV_EDAMAGED ? read : 0);
	if (rc == 0 && have && have < g->size) {
		who = has ? g->rank : g->size;
		rc = vv_comm_allreduce(g->comm, &who, 1, VARVE_MIN);
		if (rc == 0)
			rc = vv_ranks_agree(g, g->comm, hand_commit(v, (uint32_t)who, &b, has));
	}
	vv_buf_fini(&b);
	return rc;
}

static int agree_on_epoch(struct varve *v)
{
	struct vv_ranks *g = v->group;
	uint64_t newest[2] = { v->epoch, v->highest };
	int rc = vv_comm_allreduce(g->comm, newest, 2, VARVE_MAX);

	if (rc)
		return rc;
	v->epoch = newest[0];
	v->highest = newest[1];
	rc = g->split && v->epoch ? vv_ranks_spread_commit(v, v->epoch) : 0;
	return rc == VV_EDAMAGED ? 0 : rc; /* who restarts will be told */
}

int vv_ranks_attach(struct varve *v, const char *lineage, int rc)
{
	struct vv_ranks *g = v->group;
	struct found f = { 0 };
	bool has = false;
	uint32_t who = 0;

	rc = vv_ranks_agree(g, g->comm, rc);
	if (rc == 0)
		rc = vv_ranks_meet(g, VV_RANKS_OPEN, vv_digest_check(lineage, strlen(lineage)));
	if (rc == 0)
		rc = vv_whose_find(g, v->store, lineage);
	if (rc)
		return rc;
	rc = vv_ranks_agree(g, g->comm, vv_ranks_leads_place(g) ? open_here(v, lineage, &has) : 0);
	if (rc == 0)
		rc = find_lineage(v, lineage, has, &f, &who);
	if (rc)
		return rc;
	v->token = f.token;
	rc = vv_ranks_agree(g, g->comm, vv_ranks_leads_place(g) ? match_lineage(v, lineage, has, &f, who) : 0);
	if (rc)
		return rc;
	if (!vv_ranks_leads_place(g))
		rc = vv_catalog_open(v->store, lineage, false, &v->lineage);
	if (rc == 0)
		rc = vv_aggregate_plan(g, v->store);
	rc = vv_ranks_agree(g, g->comm, rc);
	return rc ? rc : agree_on_epoch(v);
}

bool vv_ranks_poke(struct varve *v, uint64_t epoch, bool wait)
{
	if (!v->group)
		return false;
	if (wait && epoch == v->newest)
		vv_flusher_wait(v);
	if (vv_flusher_busy(v))
		return false;
	vv_verdict_step(v, wait && epoch == v->verdict.epoch);
	return v->verdict.pending && epoch == v->verdict.epoch;
}

/* As in every call, the epoch under way comes to its end first; if the ranks lose each other over that, its fate says more. */
int vv_ranks_wait(struct varve *v, uint64_t epoch)
{
	vv_flusher_wait(v);
	vv_verdict_step(v, true);
	return v->group->side->broken ? 0 : vv_ranks_meet(v->group, VV_RANKS_WAIT, epoch);
}

int vv_ranks_due(struct varve *v, bool asked, int due)
{
	uint64_t answer[4] = { VV_RANKS_DUE, ~(uint64_t)VV_RANKS_DUE, 0, 0 }; /* as vv_ranks_meet has it */
	int rc;

	vv_ranks_poke(v, 0, false);
	answer[2] = asked || (v->rank == 0 && due);
	rc = vv_comm_allreduce(v->group->comm, answer, 4, VARVE_MAX);
	if (rc == 0 && answer[0] != ~answer[1])
		rc = tell_apart(v->group, VV_RANKS_DUE, 0);
	return rc ? vv_err_context(rc, "varve_due") : (int)answer[2];
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
	if (!comm || !out)
		return vv_err_set(VV_EINVAL, "varve_open_comm: a communicator and out are needed");
	return vv_session_open(comm, store, lineage, options, out);
}
