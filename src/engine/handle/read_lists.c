/* The lists of a reader: the lineages of a store, and the epochs of a lineage. */
#include "engine/handle/reader_handle.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/lineage/label.h"
#include "engine/threads.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int varve_reader_lineages(varve_reader *r, const char *const **out, size_t *n)
{
	struct vv_names names = { 0 };
	const char **list = NULL;
	int rc = vv_reader_handle_enter(r, "varve_reader_lineages", false);

	if (rc)
		return rc;
	rc = out && n ? vv_catalog_lineages(r->ctx.store, &names) : vv_err_set(VV_EINVAL, "varve_reader_lineages: out and n are needed");
	if (rc == 0 && names.n == 0)
		rc = vv_catalog_check_store(r->ctx.store);
	if (rc == 0) {
		list = vv_mem_new(names.n, sizeof(*list));
		rc = list ? 0 : VV_ENOMEM;
	}
	if (rc) {
		vv_names_fini(&names);
		return vv_reader_handle_leave(r, rc);
	}
	for (size_t i = 0; i < names.n; i++)
		list[i] = names.v[i].name;
	vv_names_fini(&r->lineages);
	vv_mem_free(r->lineage);
	r->lineages = names;
	r->lineage = list;
	*out = list;
	*n = names.n;
	return vv_reader_handle_leave(r, 0);
}

/* ---- the epochs of a lineage ----------------------------------------------------------------- */

struct epoch_list {
	const struct vv_lineage *lin;
	struct vv_listing listing;
	struct varve_stored_epoch *out; /* epoch 0: dropped since it was listed */
	pthread_mutex_t lock;
	struct vv_err_state error; /* the first */
};

static int set_problem(struct varve_stored_epoch *e, const char *text)
{
	e->problem = vv_mem_strdup(text);
	return e->problem ? 0 : VV_ENOMEM;
}

/* A layer that appeared during the listing may not be in it. */
static int look_again(const struct vv_lineage *lin, const struct vv_commit *c, uint8_t *where)
{
	for (uint32_t k = 0; k < c->n_ranks; k++) {
		char object[VV_NAME_MAX];
		struct vv_get *get = NULL;
		int rc;

		if (where[k] != VV_CATALOG_MISSING)
			continue;
		vv_name_layer(object, lin->name, c->epoch, k);
		rc = vv_store_get_open(lin->store, object, &get);
		vv_store_get_close(get);
		if (rc && rc != VV_ENOENT)
			return rc;
		if (rc == 0)
			where[k] = VV_CATALOG_HERE;
	}
	return 0;
}

/* Finds layers that are not in this store. */
static int check_layers(const struct epoch_list *l, const struct vv_commit *c, struct varve_stored_epoch *e)
{
	char ranks[VV_CATALOG_RANKS], text[VV_CATALOG_RANKS + 100];
	uint8_t *where = NULL;
	int rc = vv_catalog_locate_layers(&l->listing, c, &where);

	if (rc == 0)
		rc = look_again(l->lin, c, where);
	if (rc == 0 && vv_catalog_name_ranks(where, c->n_ranks, VV_CATALOG_MISSING, ranks)) {
		snprintf(text, sizeof(text), "the layers of these ranks are missing: %s", ranks);
		rc = vv_catalog_is_dropped(l->lin, c->epoch) ? VV_ENOENT : set_problem(e, text);
	} else if (rc == 0 && vv_catalog_name_ranks(where, c->n_ranks, VV_CATALOG_ELSEWHERE, ranks)) {
		snprintf(text, sizeof(text), "the layers of these ranks are in other stores: %s", ranks);
		rc = set_problem(e, text);
	}
	vv_mem_free(where);
	return rc;
}

static int describe_epoch(const struct epoch_list *l, uint64_t epoch, struct varve_stored_epoch *e)
{
	struct vv_commit c = { 0 };
	struct vv_commit_sums sum;
	int rc = vv_catalog_commit(l->lin, epoch, &c);

	e->epoch = epoch;
	if (rc == VV_EDAMAGED)
		return set_problem(e, vv_err_last());
	if (rc == 0) {
		sum = vv_commit_sum(&c);
		*e = (struct varve_stored_epoch){ .epoch = epoch, .parent = c.parent, .time_ns = c.time_ns, .bytes_memory = sum.memory,
						  .bytes_stored = sum.stored, .bytes_layer = sum.file_len, .ranks = c.n_ranks };
		rc = check_layers(l, &c, e);
		e->complete = rc == 0 && !e->problem;
	}
	vv_commit_fini(&c);
	return rc;
}

/* One block of memory has the pointers and the texts. */
static int set_labels(const struct vv_listing *l, struct varve_stored_epoch *e)
{
	size_t n = 0;
	const struct vv_label_name *of = vv_label_of(l, e->epoch, &n);
	char **label;

	if (!n)
		return 0;
	label = vv_mem_new(n, sizeof(*label) + sizeof(of->label));
	if (!label)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++)
		label[i] = strcpy((char *)(label + n) + i * sizeof(of->label), of[i].label);
	e->label = (const char *const *)label;
	e->n_labels = n;
	return 0;
}

static void describe(void *arg, size_t i)
{
	struct epoch_list *l = arg;
	int rc = describe_epoch(l, l->listing.epoch[i], &l->out[i]);

	if (rc == 0)
		rc = set_labels(&l->listing, &l->out[i]);
	if (rc == VV_ENOENT) {
		l->out[i].epoch = 0;
		rc = 0;
	}
	if (rc == 0)
		return;
	pthread_mutex_lock(&l->lock);
	if (!l->error.code)
		vv_err_save(rc, &l->error);
	pthread_mutex_unlock(&l->lock);
}

/* Makes the list the reader's, without the dropped epochs. */
static int keep_list(struct varve_reader *r, struct epoch_list *l)
{
	size_t n = 0;

	vv_reader_handle_free_epochs(r->epochs, r->n_epochs);
	vv_mem_free(r->epoch);
	r->epoch = vv_mem_new(l->listing.n_epochs, sizeof(*r->epoch));
	for (size_t i = 0; i < l->listing.n_epochs; i++)
		if (l->out[i].epoch)
			l->out[n++] = l->out[i];
	r->epochs = l->out;
	r->n_epochs = n;
	l->out = NULL;
	for (size_t i = 0; r->epoch && i < n; i++)
		r->epoch[i] = &r->epochs[i];
	return r->epoch ? 0 : VV_ENOMEM;
}

static int list_epochs(struct varve_reader *r)
{
	struct epoch_list l = { .lin = &r->ctx.lineage, .lock = PTHREAD_MUTEX_INITIALIZER };
	int rc = vv_catalog_list(l.lin, 0, &l.listing);

	if (rc == 0) {
		l.out = vv_mem_new(l.listing.n_epochs, sizeof(*l.out));
		rc = l.out ? 0 : VV_ENOMEM;
	}
	if (rc == 0) {
		vv_store_each(r->ctx.store, r->ctx.pool, false, l.listing.n_epochs, describe, &l);
		rc = l.error.code ? vv_err_restore(&l.error) : 0;
	}
	if (rc == 0)
		rc = keep_list(r, &l);
	vv_reader_handle_free_epochs(l.out, l.listing.n_epochs);
	vv_catalog_listing_fini(&l.listing);
	return rc;
}

/* All listed epochs may have been dropped meanwhile, though there are newer ones. */
static int list_until_found(struct varve_reader *r)
{
	enum { TRIES = 50 };
	uint64_t newest = 1;
	int rc = vv_threads_start(&r->ctx);

	for (int i = 0; rc == 0 && newest && i < TRIES; i++) {
		rc = list_epochs(r);
		newest = 0;
		if (rc == 0 && !r->n_epochs)
			rc = vv_catalog_newest(&r->ctx.lineage, UINT64_MAX, &newest);
	}
	if (rc == 0 && newest)
		rc = vv_err_set(VV_ENOENT, "lineage '%s' of store '%s': its writer drops epochs faster than they can be listed",
				r->ctx.lineage.name, r->ctx.store->url);
	return rc;
}

int varve_reader_epochs(varve_reader *r, const struct varve_stored_epoch *const **out, size_t *n)
{
	int rc = vv_reader_handle_enter(r, "varve_reader_epochs", true);

	if (rc)
		return rc;
	rc = out && n ? list_until_found(r) : vv_err_set(VV_EINVAL, "varve_reader_epochs: out and n are needed");
	if (rc == 0) {
		*out = (const struct varve_stored_epoch *const *)r->epoch;
		*n = r->n_epochs;
	}
	return vv_reader_handle_leave(r, rc);
}

static int find_newest(const struct vv_lineage *lin, uint64_t *epoch)
{
	int rc = vv_catalog_newest(lin, UINT64_MAX, epoch);

	return rc || *epoch ? rc : vv_err_set(VV_ENOENT, "lineage '%s' of store '%s' has no epoch", lin->name, lin->store->url);
}

int varve_reader_latest(varve_reader *r, uint64_t *epoch)
{
	uint64_t found = 0;
	int rc = vv_reader_handle_enter(r, "varve_reader_latest", true);

	if (rc)
		return rc;
	rc = epoch ? find_newest(&r->ctx.lineage, &found) : vv_err_set(VV_EINVAL, "varve_reader_latest: epoch is needed");
	if (rc == 0)
		*epoch = found;
	return vv_reader_handle_leave(r, rc);
}

static int find(const struct vv_lineage *lin, const char *label, uint64_t *epoch)
{
	int rc;

	if (strcmp(label, "latest") == 0)
		return find_newest(lin, epoch);
	rc = vv_name_check_label(label);
	return rc ? rc : vv_label_find(lin, label, epoch);
}

int varve_reader_find(varve_reader *r, const char *label, uint64_t *epoch)
{
	uint64_t found = 0;
	int rc = vv_reader_handle_enter(r, "varve_reader_find", true);

	if (rc)
		return rc;
	rc = label && epoch ? find(&r->ctx.lineage, label, &found) : vv_err_set(VV_EINVAL, "varve_reader_find: label and epoch are needed");
	if (rc == 0)
		*epoch = found;
	return vv_reader_handle_leave(r, rc);
}
