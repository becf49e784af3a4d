#include "engine/lineage/catalog.h"
#include "base/clock.h"
#include "base/did_you_mean.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/lineage/provenance.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MAX_COMMIT (VV_COMMIT_FIXED + (size_t)VV_MAX_RANKS * VV_COMMIT_PER_RANK)

/* The record is missing or damaged. If there are epochs, each of them contains the id. Returns 1 if
 * found, 0 if there are no epochs. */
static int recover(struct vv_lineage *lin)
{
	uint64_t epoch = UINT64_MAX, damaged = 0;
	int rc = vv_catalog_newest(lin, epoch, &epoch);

	for (; rc == 0 && epoch; rc = vv_catalog_newest(lin, epoch, &epoch)) {
		struct vv_commit c = { 0 };
		char object[VV_NAME_MAX];
		uint8_t *p = NULL;
		size_t n = 0;

		vv_name_commit(object, lin->name, epoch);
		rc = vv_store_get(lin->store, object, MAX_COMMIT, &p, &n);
		if (rc == 0 && vv_commit_get(&c, p, n) == 0) {
			memcpy(lin->id, c.lineage, sizeof(lin->id));
			lin->created_ns = c.time_ns;
			lin->recovered = true;
		}
		vv_commit_fini(&c);
		vv_mem_free(p);
		if (rc == VV_EDAMAGED || (rc == 0 && !lin->recovered))
			damaged = epoch;
		if (rc == VV_EDAMAGED || rc == VV_ENOENT) { /* an older record has the same identity */
			vv_err_clear();
			rc = 0;
		}
		if (rc || lin->recovered)
			return rc ? rc : 1;
	}
	if (rc == 0 && damaged)
		rc = vv_err_set(VV_EDAMAGED, "'%s/%s': the record of the lineage is missing, and no commit record can be read, such as that of epoch %" PRIu64
				"; to begin a new lineage, choose another name", lin->store->url, lin->name, damaged);
	return rc;
}

static int put_record(struct vv_lineage *lin, const char *object)
{
	struct vv_buf b = { 0 };
	int rc;

	vv_commit_put_lineage(lin->id, lin->created_ns, &b);
	rc = vv_buf_check(&b);
	if (rc == 0)
		rc = vv_store_put(lin->store, object, b.p, b.n);
	vv_buf_fini(&b);
	return rc;
}

/* Recognizes a lineage by its record or, if that is lost, by a folder of epochs. */
static int is_lineage(struct vv_store *store, const char *name)
{
	char object[VV_NAME_MAX];
	struct vv_names inside = { 0 };
	struct vv_get *g = NULL;
	int rc, found = 0;

	if (vv_name_check_lineage(name) < 0)
		return 0;
	vv_name_record(object, name);
	rc = vv_store_get_open(store, object, &g);
	vv_store_get_close(g);
	if (rc == VV_EDENIED) /* those that open it get the reason; it does not hide the others */
		return 1;
	if (rc != VV_ENOENT)
		return rc ? rc : 1;
	rc = vv_store_list(store, name, &inside);
	if (rc == VV_EDENIED)
		rc = 0;
	for (size_t i = 0; rc == 0 && i < inside.n; i++)
		found |= inside.v[i].is_dir && vv_name_parse_folder(inside.v[i].name) >= 0;
	vv_names_fini(&inside);
	return rc ? rc : found;
}

/* Does a folder hold commit records or layers? */
static int holds_epochs(struct vv_store *store, const char *folder)
{
	struct vv_names names = { 0 };
	int rc = vv_store_list(store, folder, &names), found = 0;
	uint64_t epoch;
	uint32_t rank;

	for (size_t i = 0; rc == 0 && i < names.n; i++)
		found |= !names.v[i].is_dir && vv_name_parse(names.v[i].name, &epoch, &rank) != VV_NAME_OTHER;
	vv_names_fini(&names);
	return rc ? rc : found;
}

/* A folder of epochs at the top of the store: the caller has named a lineage. */
int vv_catalog_check_store(struct vv_store *store)
{
	struct vv_names names = { 0 };
	int rc = vv_store_list(store, "", &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = names.v[i].is_dir && vv_name_parse_folder(names.v[i].name) >= 0 ? holds_epochs(store, names.v[i].name) : 0;
	vv_names_fini(&names);
	return rc == 1 ? vv_err_set(VV_EINVAL, "'%s' is a lineage itself: name the folder above it as the store", store->url) : rc;
}

/* Sets the error for a missing lineage. Suggests one with a similar name. */
static int not_there(struct vv_lineage *lin)
{
	struct vv_names names = { 0 };
	const char *best = NULL;
	int rc = vv_catalog_lineages(lin->store, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++)
		best = vv_did_you_mean_best(lin->name, names.v[i].name, best);
	vv_err_set(VV_ENOENT, "store '%s' has no lineage '%s'%s%s%s ('varve ls %s' lists what it has)", lin->store->url, lin->name,
		   best ? "; did you mean '" : "", best ? best : "", best ? "'?" : "", lin->store->url);
	vv_names_fini(&names);
	return VV_ENOENT;
}

/* There is no readable record. why: VV_ENOENT if it is missing, else it is damaged. */
static int open_without(struct vv_lineage *lin, const char *object, int why, bool create)
{
	struct vv_err_state error;
	int rc;

	vv_err_save(why, &error);
	rc = recover(lin);
	if (rc < 0)
		return rc;
	if (rc == 0 && why == VV_ENOENT && create) {
		if (getrandom(lin->id, sizeof(lin->id), 0) != (ssize_t)sizeof(lin->id))
			return vv_err_sys(errno, "no random numbers");
		lin->created_ns = vv_clock_wall_ns();
		rc = vv_catalog_check_store(lin->store);
		return rc ? rc : put_record(lin, object);
	}
	if (rc == 0 && why == VV_ENOENT)
		return not_there(lin);
	if (rc == 0)
		return vv_err_restore(&error);
	vv_log_warn("'%s/%s' is missing or damaged; the epochs say what was in it", lin->store->url, object);
	return create ? put_record(lin, object) : 0;
}

int vv_catalog_open(struct vv_store *store, const char *name, bool create, struct vv_lineage *out)
{
	struct vv_lineage lin = { .store = store };
	char object[VV_NAME_MAX];
	uint8_t *p = NULL;
	size_t n = 0;
	int rc = vv_name_check_lineage(name);

	if (rc)
		return rc;
	snprintf(lin.name, sizeof(lin.name), "%s", name);
	vv_name_record(object, name);
	rc = vv_store_get(store, object, 4096, &p, &n);
	if (rc == 0) {
		rc = vv_commit_get_lineage(lin.id, &lin.created_ns, p, n);
		if (rc)
			vv_err_context(rc, "'%s/%s'", store->url, object);
	}
	vv_mem_free(p);
	if (rc == VV_ENOENT || rc == VV_EDAMAGED)
		rc = open_without(&lin, object, rc, create);
	if (rc == 0)
		rc = vv_provenance_new(store, &lin.provenance);
	if (rc == 0)
		*out = lin;
	return rc;
}

int vv_catalog_adopt(struct vv_store *store, const char *name, const uint8_t id[16], uint64_t created_ns,
		     struct vv_lineage *out)
{
	struct vv_lineage lin = { .store = store, .created_ns = created_ns };
	char object[VV_NAME_MAX];
	int rc;

	snprintf(lin.name, sizeof(lin.name), "%s", name);
	memcpy(lin.id, id, sizeof(lin.id));
	vv_name_record(object, name);
	rc = vv_catalog_check_store(store);
	if (rc == 0)
		rc = put_record(&lin, object);
	if (rc == 0)
		rc = vv_provenance_new(store, &lin.provenance);
	if (rc == 0)
		*out = lin;
	return rc;
}

int vv_catalog_lineages(struct vv_store *store, struct vv_names *out)
{
	struct vv_names all = { 0 }, found = { 0 };
	int rc = vv_store_list(store, "", &all);

	for (size_t i = 0; rc >= 0 && i < all.n; i++) {
		rc = all.v[i].is_dir ? is_lineage(store, all.v[i].name) : 0;
		if (rc == 1)
			rc = vv_names_add(&found, all.v[i].name, strlen(all.v[i].name), 0, true);
	}
	vv_names_fini(&all);
	if (rc < 0) {
		vv_names_fini(&found);
		return rc;
	}
	*out = found;
	return 0;
}

static int add_label(struct vv_listing *l, const struct vv_name *name, uint64_t folder, uint64_t from)
{
	struct vv_label_name found;

	if (name->is_dir || !vv_name_parse_label(name->name, &found.epoch, found.label) || found.epoch < from ||
	    found.epoch / VV_NAME_EPOCHS_PER_FOLDER != folder)
		return 0;
	if (vv_mem_room(&l->label, l->n_labels, &l->labels_cap, sizeof(*l->label)) < 0)
		return VV_ENOMEM;
	l->label[l->n_labels++] = found;
	return 0;
}

static int add_parity(struct vv_listing *l, const struct vv_name *name, uint64_t folder, uint64_t from)
{
	struct vv_parity_name found = { .size = name->size };
	uint64_t epoch;
	uint32_t rank;

	if (name->is_dir || !vv_name_parse_parity(name->name, &epoch, &rank, &found.ranks))
		return add_label(l, name, folder, from);
	if (epoch < from || epoch / VV_NAME_EPOCHS_PER_FOLDER != folder)
		return 0;
	if (vv_mem_room(&l->parity, l->n_parity, &l->parity_cap, sizeof(*l->parity)) < 0)
		return VV_ENOMEM;
	found.layer = vv_run_layer(epoch, rank);
	l->parity[l->n_parity++] = found;
	return 0;
}

/* An object outside the folder of its number is ignored. */
static int add_name(struct vv_listing *l, const struct vv_name *name, uint64_t folder, uint64_t from)
{
	uint64_t epoch = 0;
	uint32_t rank = 0;
	enum vv_name_kind kind = name->is_dir ? VV_NAME_OTHER : vv_name_parse(name->name, &epoch, &rank);

	if (kind == VV_NAME_OTHER)
		return add_parity(l, name, folder, from);
	if (epoch < from || epoch / VV_NAME_EPOCHS_PER_FOLDER != folder)
		return 0;
	if (kind == VV_NAME_IS_COMMIT) {
		if (vv_mem_room(&l->epoch, l->n_epochs, &l->epochs_cap, sizeof(*l->epoch)) < 0)
			return VV_ENOMEM;
		l->epoch[l->n_epochs++] = epoch;
		return 0;
	}
	if (vv_mem_room(&l->layer, l->n_layers, &l->layers_cap, sizeof(*l->layer)) < 0)
		return VV_ENOMEM;
	l->layer[l->n_layers++] = (struct vv_layer_name){ vv_run_layer(epoch, rank), name->size };
	return 0;
}

static int list_folder(const struct vv_lineage *lin, uint64_t folder, uint64_t from, struct vv_listing *out)
{
	char dir[VV_NAME_MAX];
	struct vv_names names = { 0 };
	int rc;

	vv_name_folder(dir, lin->name, folder);
	rc = vv_store_list(lin->store, dir, &names);
	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = add_name(out, &names.v[i], folder, from);
	vv_names_fini(&names);
	return rc;
}

static int by_parity(const void *a, const void *b)
{
	uint64_t x = ((const struct vv_parity_name *)a)->layer, y = ((const struct vv_parity_name *)b)->layer;

	return (x > y) - (x < y);
}

static int by_layer(const void *a, const void *b)
{
	uint64_t x = ((const struct vv_layer_name *)a)->layer, y = ((const struct vv_layer_name *)b)->layer;

	return (x > y) - (x < y);
}

int vv_catalog_list(const struct vv_lineage *lin, uint64_t from, struct vv_listing *out)
{
	struct vv_names folders = { 0 };
	struct vv_listing l = { 0 };
	int rc = vv_store_list(lin->store, lin->name, &folders);

	for (size_t i = 0; rc == 0 && i < folders.n; i++) {
		int64_t folder = folders.v[i].is_dir ? vv_name_parse_folder(folders.v[i].name) : -1;

		if (folder >= 0 && ((uint64_t)folder + 1) * VV_NAME_EPOCHS_PER_FOLDER > from)
			rc = list_folder(lin, (uint64_t)folder, from, &l);
	}
	vv_names_fini(&folders);
	if (rc) {
		vv_catalog_listing_fini(&l);
		return rc;
	}
	if (l.n_layers) /* names sort "r10" before "r2" */
		qsort(l.layer, l.n_layers, sizeof(*l.layer), by_layer);
	if (l.n_parity)
		qsort(l.parity, l.n_parity, sizeof(*l.parity), by_parity);
	*out = l;
	return 0;
}

bool vv_catalog_has_layer(const struct vv_listing *l, uint64_t layer)
{
	struct vv_layer_name key = { .layer = layer };

	return l->n_layers && bsearch(&key, l->layer, l->n_layers, sizeof(key), by_layer);
}

bool vv_catalog_has_epoch(const struct vv_listing *l, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, l->n_epochs, l->epoch[i] < epoch);
	return i < l->n_epochs && l->epoch[i] == epoch;
}

int vv_catalog_each_folder(const struct vv_lineage *lin, int (*fn)(struct vv_store *s, const char *dir))
{
	struct vv_names names = { 0 };
	char dir[VV_NAME_MAX];
	int rc = vv_store_list(lin->store, lin->name, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		int64_t folder = names.v[i].is_dir ? vv_name_parse_folder(names.v[i].name) : -1;

		if (folder < 0)
			continue;
		vv_name_folder(dir, lin->name, (uint64_t)folder);
		rc = fn(lin->store, dir);
	}
	vv_names_fini(&names);
	return rc;
}

static size_t first_of_epoch(const struct vv_listing *l, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, l->n_layers, vv_run_epoch(l->layer[i].layer) < epoch);
	return i;
}

/* If any layer of a storage node is here, all of its layers should be. */
int vv_catalog_locate_layers(const struct vv_listing *l, const struct vv_commit *c, uint8_t **where)
{
	/* Set for a storage node's lowest rank: one of its layers is here. */
	enum { PLACE = 4 };
	uint8_t *w = vv_mem_new(c->n_ranks, sizeof(*w));

	if (!w)
		return VV_ENOMEM;
	for (size_t i = first_of_epoch(l, c->epoch); i < l->n_layers && vv_run_epoch(l->layer[i].layer) == c->epoch; i++) {
		uint32_t r = vv_run_rank(l->layer[i].layer);

		if (r >= c->n_ranks)
			continue;
		w[r] |= VV_CATALOG_HERE;
		if (c->rank[r].storage_node)
			w[c->rank[r].storage_node - 1] |= PLACE;
	}
	for (uint32_t r = 0; r < c->n_ranks; r++)
		if (!(w[r] & VV_CATALOG_HERE) && c->rank[r].storage_node && !(w[c->rank[r].storage_node - 1] & PLACE))
			w[r] |= VV_CATALOG_ELSEWHERE;
	for (uint32_t r = 0; r < c->n_ranks; r++)
		w[r] &= (uint8_t)~PLACE;
	*where = w;
	return 0;
}

uint32_t vv_catalog_name_ranks(const uint8_t *where, uint32_t n, uint8_t there, char ranks[VV_CATALOG_RANKS])
{
	uint32_t count = 0;
	size_t used = 0;

	ranks[0] = '\0';
	for (uint32_t r = 0; r < n; r++) {
		uint32_t first = r;

		while (r < n && where[r] == there)
			r++;
		if (r == first)
			continue;
		count += r - first;
		if (used < VV_CATALOG_RANKS)
			used += (size_t)snprintf(ranks + used, VV_CATALOG_RANKS - used, r - first > 1 ? "%s%u-%u" : "%s%u",
						 used ? ", " : "", first, r - 1);
	}
	if (used >= VV_CATALOG_RANKS)
		memcpy(ranks + VV_CATALOG_RANKS - 4, "...", 4);
	return count;
}

void vv_catalog_listing_fini(struct vv_listing *l)
{
	vv_mem_free(l->epoch);
	vv_mem_free(l->layer);
	vv_mem_free(l->label);
	vv_mem_free(l->parity);
	*l = (struct vv_listing){ 0 };
}

/* Searches the folders from the newest down until `pick` finds an epoch in one. */
static int walk_down(const struct vv_lineage *lin, uint64_t before,
		     int (*pick)(const struct vv_lineage *lin, const struct vv_listing *l, uint64_t before, uint64_t *found), uint64_t *out)
{
	struct vv_names folders = { 0 };
	uint64_t found = 0;
	int rc = vv_store_list(lin->store, lin->name, &folders);

	for (size_t i = folders.n; rc == 0 && !found && i-- > 0;) {
		int64_t folder = folders.v[i].is_dir ? vv_name_parse_folder(folders.v[i].name) : -1;
		struct vv_listing l = { 0 };

		if (folder < 0 || (uint64_t)folder * VV_NAME_EPOCHS_PER_FOLDER >= before)
			continue;
		rc = list_folder(lin, (uint64_t)folder, 0, &l);
		if (rc == 0)
			rc = pick(lin, &l, before, &found);
		vv_catalog_listing_fini(&l);
	}
	vv_names_fini(&folders);
	if (rc == 0)
		*out = found;
	return rc;
}

static int pick_commit(const struct vv_lineage *lin, const struct vv_listing *l, uint64_t before, uint64_t *found)
{
	(void)lin;
	for (size_t i = l->n_epochs; !*found && i-- > 0;)
		if (l->epoch[i] < before)
			*found = l->epoch[i];
	return 0;
}

/* A damaged or foreign record without layers does not use up a number. */
static int pick_used(const struct vv_lineage *lin, const struct vv_listing *l, uint64_t before, uint64_t *found)
{
	uint64_t layer = 0;
	int rc = 0;

	(void)before;
	for (size_t i = 0; i < l->n_layers; i++)
		if (vv_run_epoch(l->layer[i].layer) > layer)
			layer = vv_run_epoch(l->layer[i].layer);
	/* the label of an epoch that was not committed, and whose layer has been removed */
	if (l->n_labels && l->label[l->n_labels - 1].epoch > layer)
		layer = l->label[l->n_labels - 1].epoch;
	*found = layer;
	for (size_t i = l->n_epochs; rc == 0 && i-- > 0 && l->epoch[i] > layer;) {
		struct vv_commit c = { 0 };

		rc = vv_catalog_commit(lin, l->epoch[i], &c);
		vv_commit_fini(&c);
		if (rc == 0) {
			*found = l->epoch[i];
			break;
		}
		if (rc == VV_EDAMAGED || rc == VV_ENOENT)
			rc = 0;
	}
	return rc;
}

/* A listing during the commit of one epoch and the removal of another may contain neither. So the
 * search is repeated. */
int vv_catalog_newest(const struct vv_lineage *lin, uint64_t before, uint64_t *epoch)
{
	enum { LOOKS = 10 };
	uint64_t used = 0;
	int rc = walk_down(lin, before, pick_commit, epoch), empty = 0;

	for (int i = 0; rc == 0 && !*epoch && before > VV_MAX_EPOCH && empty < 2 && i < LOOKS; i++) {
		rc = vv_catalog_highest(lin, &used);
		empty += !used;
		if (rc == 0)
			rc = walk_down(lin, before, pick_commit, epoch);
	}
	return rc;
}

int vv_catalog_highest(const struct vv_lineage *lin, uint64_t *epoch)
{
	return walk_down(lin, UINT64_MAX, pick_used, epoch);
}

int vv_catalog_commit(const struct vv_lineage *lin, uint64_t epoch, struct vv_commit *out)
{
	struct vv_commit c = { 0 };
	char object[VV_NAME_MAX];
	uint8_t *p = NULL;
	size_t n = 0;
	int rc;

	vv_name_commit(object, lin->name, epoch);
	rc = vv_store_get(lin->store, object, MAX_COMMIT, &p, &n);
	if (rc == VV_ENOENT)
		return vv_err_set(rc, "lineage '%s' has no epoch %" PRIu64 " ('varve ls %s %s' lists its epochs)", lin->name,
				  epoch, lin->store->url, lin->name);
	if (rc)
		return rc;
	rc = vv_commit_get(&c, p, n);
	if (rc == 0 && (c.epoch != epoch || memcmp(c.lineage, lin->id, sizeof(lin->id)) != 0))
		rc = vv_err_set(VV_EDAMAGED, "the record is of another epoch or lineage");
	vv_mem_free(p);
	if (rc) {
		vv_commit_fini(&c);
		return vv_err_context(rc, "'%s/%s'", lin->store->url, object);
	}
	*out = c;
	return 0;
}

bool vv_catalog_is_dropped(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_err_state error;
	struct vv_commit c = { 0 };
	int rc;

	vv_err_save(0, &error);
	rc = vv_catalog_commit(lin, epoch, &c);
	vv_commit_fini(&c);
	vv_err_restore(&error);
	return rc == VV_ENOENT;
}

int vv_catalog_time(const struct vv_lineage *lin, uint64_t epoch, uint64_t *time_ns)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(lin, epoch, &c);

	*time_ns = c.time_ns;
	vv_commit_fini(&c);
	return rc;
}

int vv_catalog_put_commit(const struct vv_lineage *lin, const struct vv_commit *c)
{
	char object[VV_NAME_MAX];
	struct vv_buf b = { 0 };
	int rc;

	vv_commit_put(c, &b);
	vv_name_commit(object, lin->name, c->epoch);
	rc = vv_buf_check(&b);
	if (rc == 0)
		rc = vv_store_put(lin->store, object, b.p, b.n);
	vv_buf_fini(&b);
	return rc;
}

int vv_catalog_drop_epoch(const struct vv_lineage *lin, uint64_t epoch, uint64_t *bytes)
{
	struct vv_commit c = { 0 };
	char object[VV_NAME_MAX];
	uint64_t sum;
	int rc = vv_catalog_commit(lin, epoch, &c);

	if (rc && rc != VV_EDAMAGED)
		return rc;
	sum = vv_commit_sum(&c).file_len;
	vv_commit_fini(&c);
	vv_name_commit(object, lin->name, epoch);
	rc = vv_store_remove(lin->store, object);
	if (rc == 0 && bytes)
		*bytes = sum;
	return rc;
}
