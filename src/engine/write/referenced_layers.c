#include "engine/write/referenced_layers.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/lineage/provenance.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/run_table.h"
#include "engine/write/layer_writer.h"
#include "engine/ranks/group.h"
#include <inttypes.h>

/* A look is a stat, except the first: a microsecond on a local disk, slow on a parallel file
 * system. After LEAST looks and LONG_NS, the rest waits for later epochs. The OLDEST, which are
 * purged first, are checked every time. */
enum { OLDEST = 8, LEAST = 32 };
#define LONG_NS 2000000ull

void vv_referenced_layers_fini(struct vv_referenced_layers *f)
{
	vv_mem_free(f->v);
	*f = (struct vv_referenced_layers){ 0 };
}

/* In a store with expensive looks, nothing is checked. Layers of other storage nodes are not
 * visible here, and the storage nodes of an earlier session's layers are unknown. */
static bool can_see(const struct varve *v, uint64_t layer)
{
	const struct vv_group *g = v->ctx.group;
	uint32_t rank = vv_run_rank(layer);

	if (!v->ctx.store->ops->size)
		return false;
	return !g || !g->has_local_stores || (vv_run_epoch(layer) > v->tip.highest_at_open && rank < g->size && g->storage_node[rank] == g->storage_node[g->rank]);
}

static int look(const struct varve *v, uint64_t layer, uint64_t *size)
{
	char object[VV_NAME_MAX];

	vv_name_layer(object, v->ctx.lineage.name, vv_run_epoch(layer), vv_run_rank(layer));
	return v->ctx.store->ops->size(v->ctx.store, object, size);
}

/* The index of the layer, or for its insertion. */
static size_t place_of(const struct vv_referenced_layers *f, uint64_t layer)
{
	size_t i;

	if (f->n && f->v[f->n - 1].layer < layer)
		return f->n;
	VV_SEARCH(i, 0, f->n, f->v[i].layer < layer);
	return i;
}

/* The layer, which is added if it is absent; NULL: no memory. */
static struct vv_referenced_layers_layer *get(struct vv_referenced_layers *f, uint64_t layer)
{
	size_t i = place_of(f, layer);

	if (i < f->n && f->v[i].layer == layer)
		return &f->v[i];
	if (vv_mem_room(&f->v, f->n, &f->cap, sizeof(*f->v)) < 0)
		return NULL;
	for (size_t k = f->n++; k > i; k--)
		f->v[k] = f->v[k - 1];
	f->v[i] = (struct vv_referenced_layers_layer){ .layer = layer };
	return &f->v[i];
}

static int ask(struct varve *v, uint64_t layer)
{
	struct vv_referenced_layers_layer *l;

	if (!layer || !can_see(v, layer))
		return 0;
	l = get(v->referenced, layer);
	if (!l)
		return VV_ENOMEM;
	l->is_needed_next = true;
	return 0;
}

/* Marks all layers of the runs. */
static int ask_runs(struct varve *v, const struct vv_runs *runs, uint64_t but)
{
	uint64_t last = but;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < runs->n; i++) {
		uint64_t layer = runs->v[i].layer;

		if (layer == last || layer == but)
			continue;
		rc = ask(v, layer);
		last = layer;
	}
	return rc;
}

static void ask_none(struct vv_referenced_layers *f)
{
	for (size_t i = 0; i < f->n; i++)
		f->v[i].is_needed_next = false;
}

static void commit_needed(struct vv_referenced_layers *f)
{
	for (size_t i = 0; i < f->n; i++)
		f->v[i].is_needed = f->v[i].is_needed_next;
}

int vv_referenced_layers_load(struct varve *v)
{
	const struct vv_run_table *t = v->tip.table;
	struct vv_referenced_layers *f = v->referenced;
	int rc = 0;

	ask_none(f);
	for (size_t i = 0; rc == 0 && t->layer && i < t->layers; i++)
		rc = ask(v, t->layer[i]);
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = ask_runs(v, &t->region[i].runs, 0);
	if (rc)
		return rc;
	commit_needed(f);
	return 0;
}

static int err_layer_gone(struct vv_layer_writer *p, uint64_t layer, const char *how)
{
	char object[VV_NAME_MAX];

	p->v->referenced->lost = true;
	vv_name_layer(object, p->v->ctx.lineage.name, vv_run_epoch(layer), vv_run_rank(layer));
	return vv_err_set(VV_EDAMAGED,
			  "layer '%s' of store '%s' %s under the running session (by hand? a purge of old files?), and epoch %" PRIu64 " would refer to it: the epoch is discarded. The next checkpoint stores everything again; 'varve verify' says which older epochs are still intact",
			  object, p->v->ctx.store->url, how, p->epoch);
}

/* A layer of another copy of the lineage was found, now or in an earlier look. It is unknown
 * whether this epoch needs that layer. */
static int turned(struct vv_layer_writer *p)
{
	p->v->referenced->lost = true;
	return vv_err_set(VV_EDAMAGED,
			  "layers of lineage '%s' in store '%s' are of another copy of it than those met before (mixed, or replaced under the running session), and epoch %" PRIu64 " might refer to them: the epoch is discarded. The next checkpoint stores everything again; 'varve verify' says which older epochs are still intact",
			  p->v->ctx.lineage.name, p->v->ctx.store->url, p->epoch);
}

/* Learns the era from the layer itself, where it is visible, or from this rank's layer of the same
 * epoch. False: this layer, or another one, has been replaced. */
static bool learn(struct varve *v, uint64_t layer)
{
	uint64_t epoch = vv_run_epoch(layer);

	if (vv_provenance_is_known(&v->ctx.lineage, epoch))
		return !vv_provenance_was_replaced(&v->ctx.lineage);
	if (vv_layer_file_read_eras(&v->ctx.lineage, layer) < 0 || !vv_provenance_is_known(&v->ctx.lineage, epoch))
		vv_layer_file_read_eras(&v->ctx.lineage, vv_run_layer(epoch, v->ctx.rank));
	if (!vv_provenance_is_known(&v->ctx.lineage, epoch))
		vv_provenance_mark_unknown(&v->ctx.lineage, epoch);
	return !vv_provenance_was_replaced(&v->ctx.lineage);
}

int vv_referenced_layers_read_eras(struct vv_layer_writer *p)
{
	bool holds = !vv_provenance_was_replaced(&p->v->ctx.lineage);
	struct vv_err_state error;
	uint64_t last = 0;

	vv_err_save(0, &error);
	if (holds && p->head.parent)
		holds = learn(p->v, vv_run_layer(p->head.parent, p->v->ctx.rank));
	for (size_t i = 0; holds && i < p->head.n_regions; i++)
		for (size_t n = 0; holds && n < p->head.region[i].runs.n; n++) {
			uint64_t layer = p->head.region[i].runs.v[n].layer;

			if (layer && layer != last && vv_run_epoch(layer) < p->v->tip.era)
				holds = learn(p->v, layer);
			last = layer;
		}
	for (size_t i = 0; holds && i < p->blocks.bases.n; i++)
		if (p->blocks.bases.v[i].epoch && p->blocks.bases.v[i].epoch < p->v->tip.era)
			holds = learn(p->v, vv_run_layer(p->blocks.bases.v[i].epoch, p->v->ctx.rank));
	vv_err_restore(&error);
	return holds ? 0 : turned(p);
}

/* A layer that continues others needs their layers, too. It has an entry here from now on. */
static int ask_pass(struct vv_layer_writer *p)
{
	struct vv_referenced_layers *f = p->v->referenced;
	int rc = ask(p->v, p->layer);

	for (size_t i = 0; i < f->n; i++)
		f->v[i].is_needed_next = f->v[i].is_needed && !p->keyframe;
	for (size_t i = 0; rc == 0 && i < p->n_regions; i++)
		rc = ask_runs(p->v, &p->head.region[i].runs, p->layer);
	for (size_t i = 0; rc == 0 && i < p->blocks.bases.n; i++)
		if (p->blocks.bases.v[i].epoch)
			rc = ask(p->v, vv_run_layer(p->blocks.bases.v[i].epoch, p->v->ctx.rank));
	return rc; /* the layer itself has just been written */
}

static int check_layer(struct vv_layer_writer *p, struct vv_referenced_layers_layer *l)
{
	uint64_t size = 0;
	int rc = look(p->v, l->layer, &size);

	if (rc == VV_ENOENT)
		return err_layer_gone(p, l->layer, "was removed");
	/* The first look, where a truncated layer has lost its trailer; or the layer has been
	 * replaced. */
	if (rc == 0 && size != l->size)
		rc = vv_layer_file_read_eras(&p->v->ctx.lineage, l->layer);
	if (rc == 0 && vv_provenance_was_replaced(&p->v->ctx.lineage))
		return turned(p);
	if (rc == VV_EDAMAGED || (rc == 0 && size < l->size))
		return err_layer_gone(p, l->layer, "was cut short, or overwritten,");
	if (rc == 0)
		l->size = size;
	return rc;
}

/* Layers of the same epoch are not due: other ranks still write them. */
static bool is_due(const struct vv_layer_writer *p, const struct vv_referenced_layers_layer *l)
{
	return l->is_needed_next && vv_run_epoch(l->layer) < p->epoch;
}

/* Checks that no other process has written an epoch of this session. */
static int check_own(struct vv_layer_writer *p)
{
	struct vv_era own = { p->v->tip.era, p->epoch, p->v->tip.token };
	int rc = vv_provenance_add(&p->v->ctx.lineage, &(struct vv_era_table){ &own, 1, 1 });

	return rc == VV_EDAMAGED || vv_provenance_was_replaced(&p->v->ctx.lineage) ? turned(p) : rc;
}

int vv_referenced_layers_check(struct vv_layer_writer *p)
{
	struct vv_referenced_layers *f = p->v->referenced;
	uint64_t start = vv_clock_ns();
	size_t looked = 0, i;
	int rc = check_own(p);

	if (rc == 0)
		rc = ask_pass(p);
	for (i = 0; rc == 0 && i < f->n && looked < OLDEST; i++)
		if (is_due(p, &f->v[i])) {
			rc = check_layer(p, &f->v[i]);
			looked++;
		}
	for (size_t n = f->n - i; rc == 0 && n > 0; n--) {
		f->next_check = f->next_check >= i && f->next_check < f->n ? f->next_check : i;
		if (is_due(p, &f->v[f->next_check])) {
			if (looked >= LEAST && vv_clock_ns() - start > LONG_NS)
				break;
			rc = check_layer(p, &f->v[f->next_check]);
			looked++;
		}
		f->next_check++;
	}
	return rc;
}

void vv_referenced_layers_accept(struct vv_layer_writer *p)
{
	/* ask_pass() has added its entry */
	struct vv_referenced_layers_layer *l = can_see(p->v, p->layer) ? get(p->v->referenced, p->layer) : NULL;

	if (!l)
		return;
	l->size = p->st.bytes_layer;
	l->is_needed_next = true;
	commit_needed(p->v->referenced);
}

void vv_referenced_layers_after_gc(struct varve *v)
{
	struct vv_referenced_layers *f = v->referenced;
	struct vv_err_state error;
	size_t kept = 0;

	vv_err_save(0, &error);
	for (size_t i = 0; i < f->n; i++) {
		uint64_t size = 0; /* if the look fails, the next epoch learns it */
		int rc = f->v[i].is_needed ? look(v, f->v[i].layer, &size) : VV_ENOENT;

		f->v[i].size = size;
		if (rc != VV_ENOENT)
			f->v[kept++] = f->v[i];
	}
	f->n = kept;
	vv_err_restore(&error);
}
