#include "engine/epoch/redundancy.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/context.h"
#include "engine/ranks/hosts.h"
#include "engine/epoch/background.h"
#include "engine/epoch/commit_ranks.h"
#include "engine/epoch/metrics_file.h"
#include "engine/epoch/tip.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct vv_redundancy *of(const struct varve *v)
{
	return &v->commit->redundancy;
}

/* ---- options --------------------------------------------------------------------------------- */

/* A decimal number of at most two digits at *s, which moves past it; 0: none. */
static unsigned number(const char **s)
{
	unsigned n = 0, digits = 0;

	while (**s >= '0' && **s <= '9' && digits++ < 2)
		n = n * 10 + (unsigned)(*(*s)++ - '0');
	return n;
}

static bool parse(const char *text, unsigned *k, unsigned *m)
{
	*k = *m = 0;
	if (strcmp(text, "none") == 0)
		return true;
	*k = *m = 1;
	if (strcmp(text, "partner") == 0)
		return true;
	if (strncmp(text, "xor:", 4) == 0) {
		text += 4;
		*k = number(&text);
		*k -= *k != 0;
	} else if (strncmp(text, "rs:", 3) == 0) {
		text += 3;
		*k = number(&text);
		if (*text++ != '+')
			return false;
		*m = number(&text);
	} else {
		return false;
	}
	return !*text && vv_erasure_code_is_sound(*k, *m);
}

int vv_redundancy_configure(struct varve *v)
{
	const char *text = vv_conf_text(&v->ctx.conf, "redundancy"), *domain = vv_conf_text(&v->ctx.conf, "failure-domain");

	if (strlen(domain) >= VV_PARITY_DOMAIN)
		return vv_err_set(VV_EINVAL, "failure-domain = %.80s... (%s): a name of %zu bytes, where %d are allowed", domain,
				  vv_conf_origin(&v->ctx.conf, "failure-domain"), strlen(domain), VV_PARITY_DOMAIN - 1);
	if (parse(text, &of(v)->domains.k, &of(v)->domains.m))
		return 0;
	return vv_err_set(VV_EINVAL, "redundancy = %s (%s): none, partner, xor:N or rs:K+M, with N from 2, K and M from 1, N and K + M at most %d, and M at most 16", text,
			  vv_conf_origin(&v->ctx.conf, "redundancy"), VV_ERASURE_BLOCKS);
}

static void name_domain(const struct varve *v, char out[VV_PARITY_DOMAIN])
{
	const char *text = vv_conf_text(&v->ctx.conf, "failure-domain");
	char boot[64], host[40] = "";

	memset(out, 0, VV_PARITY_DOMAIN);
	if (strcmp(text, "store") == 0) {
		snprintf(out, VV_PARITY_DOMAIN, "store of rank %" PRIu32, v->ctx.group->storage_node[v->ctx.rank]);
	} else if (strcmp(text, "host") == 0) {
		vv_hosts_machine(boot);
		gethostname(host, sizeof(host) - 1);
		snprintf(out, VV_PARITY_DOMAIN, "%s/%.8s", host, boot);
	} else {
		snprintf(out, VV_PARITY_DOMAIN, "%s", text);
	}
}

/* With fewer domains than a stripe has blocks, stripes are narrower, as after the loss of hosts. */
static void fit(struct varve *v)
{
	struct vv_parity_domains *d = &of(v)->domains;
	unsigned k = d->k, m = d->m;
	char asked[VV_PARITY_SCHEME], used[VV_PARITY_SCHEME];

	if (d->n >= k + m)
		return;
	d->m = m < d->n ? m : d->n - 1;
	d->k = d->n - d->m;
	vv_parity_sets_scheme(k, m, asked);
	vv_parity_sets_scheme(d->k, d->m, used);
	if (v->ctx.rank != 0)
		return;
	if (d->n < 2)
		vv_log_warn("redundancy = %s: all ranks are in one failure domain ('%s'), so nothing is protected (see failure-domain in varve.conf(5))",
			    asked, d->name[0]);
	else
		vv_log_warn("redundancy = %s: there are %u failure domains only, so %s is used", asked, d->n, used);
}

static int find_domains(struct varve *v)
{
	struct vv_parity_domains *d = &of(v)->domains;
	char mine[VV_PARITY_DOMAIN];
	int rc;

	if (!v->ctx.group->has_local_stores) {
		if (v->ctx.rank == 0)
			vv_log_warn("redundancy: all ranks write to one store, '%s', which is to protect its files itself: no parity is made",
				    v->ctx.store->url);
		d->k = 0;
		return 0;
	}
	name_domain(v, mine);
	rc = vv_parity_ranks_domains(v->ctx.group, mine, d);
	if (rc == 0)
		fit(v);
	d->k = d->n < 2 ? 0 : d->k;
	return rc;
}

/* ---- lost objects ---------------------------------------------------------------------------- */

static void tell(const struct varve *v, const struct vv_parity_report *r, bool scan)
{
	if (r->built.n_objects)
		vv_log_warn("%zu objects of '%s' (%" PRIu64 " bytes) were lost or damaged, and are written again to '%s' from parity", r->built.n_objects,
			    v->ctx.lineage.name, r->built.layer_bytes + r->built.parity_bytes, v->ctx.store->url);
	for (size_t i = 0; !scan && v->ctx.rank == 0 && i < r->n_lost; i++)
		if (!vv_catalog_is_dropped(&v->ctx.lineage, r->lost[i].epoch)) /* else gc was about to remove it, or a live epoch needs it */
			vv_log_warn("%s", r->lost[i].text);
}

static int rebuild(struct varve *v, uint64_t last, bool scan, struct vv_parity_report *r)
{
	int rc = vv_parity_ranks_rebuild(&v->ctx, &of(v)->domains, last, scan, r);

	vv_parity_rebuild_free_report(&of(v)->lost);
	of(v)->lost = *r;
	tell(v, r, scan);
	return rc;
}

int vv_redundancy_open(struct varve *v)
{
	struct vv_parity_report r = { 0 };
	int rc = of(v)->domains.k ? find_domains(v) : 0;

	of(v)->newest_at_open = v->tip.epoch;
	if (rc || !v->tip.epoch)
		return rc;
	rc = rebuild(v, UINT64_MAX, false, &r);
	if (rc && !v->ctx.group->comm->broken) { /* a restart reports missing objects */
		if (v->ctx.rank == 0)
			vv_log_warn("some lost layers or parity of '%s' cannot be written again: %s", v->ctx.lineage.name, vv_err_last());
		vv_err_clear();
		rc = 0;
	}
	return rc;
}

void vv_redundancy_close(struct varve *v)
{
	vv_parity_ranks_fini(&of(v)->domains, v->ctx.group);
	vv_parity_rebuild_free_report(&of(v)->lost);
}

int vv_redundancy_repair(struct varve *v, uint64_t epoch, bool *repaired)
{
	struct vv_parity_report r = { 0 };
	struct vv_err_state error;
	uint64_t n;
	int rc;

	*repaired = false;
	if (!v->ctx.group || of(v)->scanned)
		return 0;
	of(v)->scanned = true;
	vv_err_save(rebuild(v, epoch, true, &r), &error);
	n = r.built.n_objects;
	rc = vv_group_sum(v->ctx.group, v->ctx.group->comm, 0, &n, 1);
	*repaired = rc == 0 && n;
	if (rc || *repaired)
		return rc;
	/* A rank may have failed by itself, for lack of memory for example. */
	rc = error.code && error.code != VV_EDAMAGED ? vv_err_restore(&error) : 0;
	return vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
}

int vv_redundancy_explain(const struct varve *v, uint64_t epoch, int rc)
{
	const struct vv_parity_report *r = &of(v)->lost;

	for (size_t i = r->n_lost; rc == VV_EDAMAGED && i-- > 0;)
		if (r->lost[i].epoch <= epoch)
			return vv_err_context(rc, "%s", r->lost[i].text);
	return rc;
}

/* ---- parity of new epochs -------------------------------------------------------------------- */

void vv_redundancy_note(struct varve *v, uint64_t epoch)
{
	struct vv_redundancy *r = of(v);

	/* Parity is tried between two commits, and given up after so many failures. So there is
	 * room. */
	if (!r->domains.k || r->todo.n == VV_REDUNDANCY_TRIES)
		return;
	r->todo.epoch[r->todo.n++] = epoch;
	r->pending = true;
}

static int protect_next(struct varve *v)
{
	struct vv_redundancy *r = of(v);
	struct vv_parity_built built = { 0 };
	double start = vv_clock_s();
	int rc = vv_parity_ranks_protect(&v->ctx, v->ctx.group->side, &r->domains, r->todo.epoch[0],
					 r->base ? v->tip.oldest + !v->tip.oldest : 0, &built);

	if (rc)
		return vv_err_context(rc, "parity of epoch %" PRIu64, r->todo.epoch[0]);
	if (r->base) {
		atomic_store(&r->epoch, r->todo.epoch[0]);
		r->spared = r->todo.epoch[0];
	}
	vv_metrics_file_count_parity(&v->background->metrics, atomic_load(&r->epoch), built.parity_bytes, vv_clock_s() - start);
	r->todo.n--;
	memmove(r->todo.epoch, r->todo.epoch + 1, r->todo.n * sizeof(*r->todo.epoch));
	return 0;
}

void vv_redundancy_run(struct varve *v)
{
	struct vv_redundancy *r = of(v);
	struct vv_err_state error;
	int rc = 0;

	if (!r->pending || v->ctx.group->side->broken)
		return;
	r->pending = false;
	vv_err_save(0, &error);
	while (rc == 0 && r->todo.n)
		rc = protect_next(v);
	vv_metrics_file_update(v);
	if (rc && v->ctx.rank == 0)
		vv_log_warn("the epoch is durable, but not protected: %s", vv_err_last());
	r->failures = rc ? r->failures + 1 : 0;
	if (r->failures == VV_REDUNDANCY_TRIES) {
		r->todo.n = 0;
		r->failures = 0;
		r->base = false;
		r->wants_full = true;
		r->spared = 0; /* the disk may be full */
	}
	vv_err_restore(&error);
}

/* ---- the next epoch -------------------------------------------------------------------------- */

void vv_redundancy_ask_again(struct varve *v)
{
	if (v->ctx.group)
		of(v)->asked = false;
}

/* May the next epoch refer to what is stored? The continued epoch and the newest one must be
 * protected with all that they refer to. All layers that the index of known content may name must
 * be protected, too. A job that died in a checkpoint leaves unprotected layers. */
int vv_redundancy_ask(struct varve *v, uint64_t parent)
{
	struct vv_redundancy *r = v->ctx.group ? of(v) : NULL;
	struct vv_parity_answer own = { 0 }, other = { .since = 1 };
	uint64_t newest = r ? r->newest_at_open : 0;
	int rc = 0;

	if (!r || !r->domains.k)
		return 0;
	rc = vv_parity_ranks_ask(&v->ctx, &r->domains, parent, &own);
	if (rc == 0 && newest && newest != parent)
		rc = vv_parity_ranks_ask(&v->ctx, &r->domains, newest, &other);
	if (rc)
		return rc;
	r->asked = true;
	atomic_store(&r->epoch, own.since ? parent : 0);
	r->spared = own.complete;
	r->base = own.since && other.since;
	r->wants_full = !r->base;
	vv_tip_refer_from(v, r->base ? own.since > other.since ? own.since : other.since : 0);
	return 0;
}

int vv_redundancy_prepare(struct varve *v, int rc)
{
	struct vv_redundancy *r = v->ctx.group ? of(v) : NULL;

	if (!r || !r->domains.k)
		return rc;
	if (!r->asked || r->wants_full)
		rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	if (rc == 0 && !r->asked)
		rc = vv_redundancy_ask(v, vv_tip_parent(v));
	if (rc || !r->wants_full)
		return rc;
	rc = vv_tip_agree_on_numbers(v);
	if (rc)
		return rc;
	vv_tip_begin_era(v);
	vv_tip_refer_from(v, v->tip.highest + 1);
	vv_owner_index_fini(&v->ctx.group->owners);
	v->ctx.group->owners_loaded = false;
	r->base = true;
	r->wants_full = false;
	return 0;
}

uint64_t vv_redundancy_spared(const struct varve *v)
{
	return v->ctx.group && of(v)->domains.k ? of(v)->spared : 0;
}

int vv_redundancy_limit(struct varve *v, int rc, uint64_t bytes, uint64_t needed)
{
	enum { SLACK = 64 << 10 };
	uint64_t sum[2] = { bytes, needed };

	rc = vv_group_sum(v->ctx.group, v->ctx.group->comm, rc, sum, 2);
	if (rc == 0 && of(v)->domains.k && sum[0] > 2 * sum[1] + SLACK)
		of(v)->wants_full = true;
	return rc;
}
