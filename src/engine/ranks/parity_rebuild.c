#include "engine/ranks/parity_rebuild.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/parity_scan.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the places of the ranks' delta chains --------------------------------------------------- */

static int new_chains(struct vv_parity_sets *s)
{
	s->n_chains = 0;
	s->seen = 0;
	for (size_t i = 0; i < s->n; i++) {
		uint32_t rank = vv_run_rank(s->v[i].layer), ranks = s->v[i].ranks > rank ? s->v[i].ranks : rank + 1;

		s->n_chains = ranks > s->n_chains ? ranks : s->n_chains;
	}
	vv_mem_free(s->chain);
	s->chain = vv_mem_new(s->n_chains, sizeof(*s->chain));
	for (uint32_t r = 0; s->chain && r < s->n_chains; r++)
		s->chain[r] = (struct vv_parity_chain){ .place = VV_PARITY_NO_PLACE, .newest = VV_PARITY_NO_PLACE };
	return s->chain ? 0 : VV_ENOMEM;
}

/* Finds the newest layers. Those of epochs above `last` are left from a job that did not commit. */
static int begin_chains(struct vv_parity_sets *s, uint64_t last)
{
	int rc = new_chains(s);

	for (size_t i = 0; rc == 0 && i < s->n && vv_run_epoch(s->v[i].layer) <= last; i++) {
		uint32_t *newest = &s->chain[vv_run_rank(s->v[i].layer)].newest;

		if (!s->v[i].ranks && !vv_parity_sets_holds(s, s->v[i].layer, *newest))
			*newest = s->v[i].place;
	}
	return rc;
}

/* The layers of epochs below this one. If several places hold a layer, the place of its parent
 * counts. */
static void advance_chains(struct vv_parity_sets *s, uint64_t epoch)
{
	for (; s->seen < s->n && vv_run_epoch(s->v[s->seen].layer) < epoch; s->seen++) {
		const struct vv_parity_holder *h = &s->v[s->seen];
		struct vv_parity_chain *c = &s->chain[vv_run_rank(h->layer)];

		if (h->ranks)
			continue;
		if (!vv_parity_sets_holds(s, h->layer, c->place))
			c->place = h->place;
		c->domain[0] = '\0';
	}
}

/* Where the layers of a set are now. A copy that does not match is of another job. */
static void update_chains(struct vv_parity_sets *s, const struct vv_parity_job *j)
{
	for (size_t i = 0; i < j->head.n_layers; i++) {
		const struct vv_parity_layer *l = &j->head.layer[i];
		const struct vv_parity_object *o = &j->data[i];
		struct vv_parity_chain *c;

		if (l->rank >= s->n_chains)
			continue;
		c = &s->chain[l->rank];
		if (!o->continues && (o->there || o->wanted))
			c->place = o->there ? o->place : o->to;
		memcpy(c->domain, l->domain_name, sizeof(c->domain));
	}
}

/* ---- rebuilding ------------------------------------------------------------------------------ */

void vv_parity_rebuild_free_report(struct vv_parity_report *r)
{
	vv_mem_free(r->lost);
	*r = (struct vv_parity_report){ 0 };
}

static bool is_lost(const struct vv_parity_object *o)
{
	return !o->there || o->bad;
}

/* Names the ranks and domains whose layers are lost or damaged. Parity may never have been made. */
static int report_lost(const struct vv_parity_job *j, struct vv_parity_report *out)
{
	struct vv_parity_lost *l;
	char scheme[VV_PARITY_SCHEME];
	size_t n, layers = 0, parity = 0;

	if (vv_mem_room(&out->lost, out->n_lost, &out->lost_cap, sizeof(*out->lost)) < 0)
		return VV_ENOMEM;
	l = &out->lost[out->n_lost++];
	l->epoch = j->head.epoch;
	n = (size_t)snprintf(l->text, sizeof(l->text), "of epoch %" PRIu64 " the layers of", j->head.epoch);
	for (size_t i = 0; i < j->head.n_layers; i++) {
		parity += is_lost(&j->parity[i]);
		if (is_lost(&j->data[i]) && n < sizeof(l->text) / 2)
			n += (size_t)snprintf(l->text + n, sizeof(l->text) - n, "%s rank %u (%s)", layers++ ? "," : "", j->head.layer[i].rank,
					      j->head.layer[i].domain_name);
	}
	vv_parity_sets_scheme(j->head.k, j->head.m, scheme);
	snprintf(l->text + n, sizeof(l->text) - n, " and the parity of %zu rank%s are lost or damaged; %s bears the loss of %u failure domain%s",
		 parity, parity == 1 ? "" : "s", scheme, j->head.m, j->head.m > 1 ? "s" : "");
	return 0;
}

static bool is_in(const struct vv_parity_sets *s, const struct vv_parity_object *o, uint32_t domain)
{
	return (o->there || o->wanted) && s->domain[o->to] == domain;
}

/* Has the domain, now or soon, an object of a member from another domain than that of member i? */
static bool is_taken(const struct vv_parity_sets *s, const struct vv_parity_job *j, size_t i, uint32_t domain)
{
	for (size_t k = 0; k < j->head.n_layers; k++)
		if (j->head.layer[k].domain != j->head.layer[i].domain &&
		    (is_in(s, &j->data[k], domain) || is_in(s, &j->parity[k], domain)))
			return true;
	return false;
}

/* May the member's objects go there? */
static bool is_free(const struct vv_parity_sets *s, const struct vv_parity_job *j, size_t i, uint32_t place)
{
	return s->domain[place] != VV_PARITY_NO_PLACE && !is_taken(s, j, i, s->domain[place]);
}

/* The place of the layer before that of the member, or VV_PARITY_NO_PLACE. A delta is read together
 * with its parents, so that another place is worse than one with objects of other members. A rank
 * that has moved since then has stored its whole state: the place counts only if it is free. */
static uint32_t place_of_parent(const struct vv_parity_sets *s, const struct vv_parity_job *j, size_t i)
{
	const struct vv_parity_layer *l = &j->head.layer[i];
	const struct vv_parity_chain *c = vv_parity_sets_chain(s, l->rank);

	if (c->place >= s->places || s->domain[c->place] == VV_PARITY_NO_PLACE)
		return VV_PARITY_NO_PLACE;
	return !*c->domain || strcmp(c->domain, l->domain_name) == 0 || is_free(s, j, i, c->place) ? c->place : VV_PARITY_NO_PLACE;
}

/* The place of the member's other object, or of the rank's layer before. Else the rank's own place
 * now, or the first one in a domain that has nothing of other members. So the set bears as many
 * losses as before, if there are enough domains. */
static uint32_t choose_place(const struct vv_parity_sets *s, const struct vv_parity_job *j, size_t i)
{
	uint32_t home, parent = place_of_parent(s, j, i);

	if (j->data[i].there || j->parity[i].there)
		return j->data[i].there ? j->data[i].place : j->parity[i].place;
	if (parent != VV_PARITY_NO_PLACE)
		return parent;
	home = s->target(s->arg, j->head.epoch, &j->head.layer[i]);
	if (!is_taken(s, j, i, s->domain[home]))
		return home;
	for (uint32_t p = 0; p < s->places; p++)
		if (is_free(s, j, i, p))
			return p;
	return home;
}

/* With `others`, intact objects are written over those of the same name that do not match. */
static bool want(const struct vv_parity_sets *s, struct vv_parity_job *j, bool others)
{
	bool any = false;

	for (size_t i = 0; i < j->head.n_layers; i++) {
		j->data[i].wanted = j->parity[i].wanted = false;
		j->data[i].to = j->data[i].place;
		j->parity[i].to = j->parity[i].place;
	}
	for (size_t i = 0; i < j->head.n_layers; i++) {
		struct vv_parity_object *pair[2] = { &j->data[i], &j->parity[i] };
		uint32_t to = choose_place(s, j, i);

		for (int k = 0; k < 2; k++) {
			bool over = others && !is_lost(pair[k]) && pair[k]->has_other;

			pair[k]->wanted = is_lost(pair[k]) || over;
			pair[k]->to = over ? pair[k]->other : pair[k]->there ? pair[k]->place : to;
			any |= pair[k]->wanted;
		}
	}
	return any;
}

static int rebuild_set(const struct vv_parity_sets *s, struct vv_parity_job *j, bool scan, struct vv_parity_report *out)
{
	struct vv_parity_built built = { 0 };
	int rc = scan ? vv_parity_scan_run(&s->io, j) : 0;

	if (rc || !want(s, j, scan))
		return rc;
	if (!vv_parity_job_is_possible(j))
		return report_lost(j, out);
	rc = vv_parity_build_run(&s->io, j, &built);
	if (rc == VV_EDAMAGED && !scan)
		return rebuild_set(s, j, true, out);
	out->built.parity_bytes += built.parity_bytes;
	out->built.layer_bytes += built.layer_bytes;
	out->built.read_bytes += built.read_bytes;
	out->built.n_objects += built.n_objects;
	return rc;
}

/* Other sets may be in other stores. Without the other ranks nothing can be made. */
static int go_on_after(const struct vv_parity_sets *s, int rc, struct vv_err_state *first)
{
	if (rc && !first->code)
		vv_err_save(rc, first);
	return rc && s->io.group && s->io.group->comm->broken ? rc : 0;
}

static int rebuild_epoch(struct vv_parity_sets *s, uint64_t epoch, bool scan, struct vv_parity_report *out, struct vv_err_state *first)
{
	struct vv_parity_job *j = NULL;
	size_t n = 0;
	int rc;

	advance_chains(s, epoch);
	rc = go_on_after(s, vv_parity_sets_load(s, epoch, &j, &n), first);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = go_on_after(s, rebuild_set(s, &j[i], scan, out), first);
	advance_chains(s, epoch + 1);
	for (size_t i = 0; i < n; i++) {
		update_chains(s, &j[i]);
		vv_parity_job_fini(&j[i]);
	}
	vv_mem_free(j);
	return rc;
}

int vv_parity_rebuild_run(struct vv_parity_sets *s, uint64_t last, bool scan, struct vv_parity_report *out)
{
	struct vv_err_state first = { 0 };
	size_t missing = 0;
	int rc = begin_chains(s, last);

	if (s->io.group)
		rc = vv_group_agree(s->io.group, s->io.group->comm, rc);
	if (rc)
		return rc;
	for (uint64_t e = vv_parity_sets_next(s, 0); rc == 0 && e && e <= last; e = vv_parity_sets_next(s, e)) {
		bool wanted = vv_parity_sets_epoch(s, e, &missing) && (missing || scan);

		if (wanted)
			rc = rebuild_epoch(s, e, scan, out, &first);
		if (rc == 0)
			rc = go_on_after(s, s->spread(s->arg, e, wanted), &first);
	}
	return first.code ? vv_err_restore(&first) : 0;
}
