/* Reads every layer that a live epoch reaches, from the first byte to the last. A writer may drop
 * epochs and remove their layers meanwhile, so problems are kept until the end of a pass. If an
 * epoch is gone by then, it may be their cause, and everything is read again. */
#include "engine/upkeep/verify.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/copies_lookup.h"
#include "engine/lineage/provenance.h"
#include "engine/upkeep/gc.h"
#include "engine/write/index_cache.h"
#include "engine/lineage/layer_file.h"
#include "engine/upkeep/reachable.h"
#include "engine/upkeep/verify_parity.h"
#include "base/budget.h"
#include "engine/lineage/run_table.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	PASSES = 5,
	MAX_REPORTED = 10000,
	MISSING_REPORTED = 16,
	/* Of the blocks in progress and of decoding them, on all threads. Block sizes come from the
	 * file. */
	MEMORY = 208 << 20,
};

struct problem {
	uint64_t hash;
	char *text;
};

struct problems {
	struct problem *v; /* each text once */
	size_t n, cap;
	size_t more;  /* beyond MAX_REPORTED */
	size_t noted; /* all, including repeated ones */
};

struct verifier {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	const struct vv_progress *progress;
	struct problems found;
	struct vv_verify_report report;
	const struct vv_listing *all;
	bool whole;
	uint64_t total, done;
	struct {        /* ranks whose layers of an epoch are here; of the last requested epoch */
		uint64_t epoch; /* 0: none */
		int rc;         /* of reading its record */
		uint32_t n;
		uint8_t *where;
	} known;
	pthread_mutex_t lock;
	struct vv_budget rooms;
	/* the layer in progress */
	struct vv_layer_file *file;
	struct vv_err_state failure; /* of a block, other than damage */
};

/* ---- problems -------------------------------------------------------------------------------- */

static void problems_fini(struct problems *p)
{
	for (size_t i = 0; i < p->n; i++)
		vv_mem_free(p->v[i].text);
	vv_mem_free(p->v);
	*p = (struct problems){ 0 };
}

static bool problems_has(const struct problems *p, uint64_t hash, const char *text)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].hash == hash && strcmp(p->v[i].text, text) == 0)
			return true;
	return false;
}

static int problems_add(struct problems *p, const char *text)
{
	struct problem new = { .hash = vv_digest_check(text, strlen(text)) };

	p->noted++;
	if (problems_has(p, new.hash, text))
		return 0;
	if (p->n == MAX_REPORTED) {
		p->more++;
		return 0;
	}
	if (p->n == p->cap) {
		struct problem *v = vv_mem_grow(p->v, p->cap * 2 + 16, sizeof(*v));

		if (!v)
			return VV_ENOMEM;
		p->v = v;
		p->cap = p->cap * 2 + 16;
	}
	new.text = vv_mem_strdup(text);
	if (!new.text)
		return VV_ENOMEM;
	p->v[p->n++] = new;
	return 0;
}

/* Keeps only those that are in `other` too. */
static void problems_cut(struct problems *p, const struct problems *other)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (problems_has(other, p->v[i].hash, p->v[i].text))
			p->v[n++] = p->v[i];
		else
			vv_mem_free(p->v[i].text);
	}
	p->n = n;
	p->more = 0;
}

static void problems_report(const struct problems *p, vv_verify_report_fn tell, void *arg)
{
	char text[64];

	for (size_t i = 0; tell && i < p->n; i++)
		tell(arg, p->v[i].text);
	if (!tell || p->more == 0)
		return;
	snprintf(text, sizeof(text), "and %zu problems more", p->more);
	tell(arg, text);
}

/* After damage the run continues; other errors end it. */
static int note(struct verifier *v, int rc)
{
	if (rc != VV_EDAMAGED && rc != VV_ENOENT && rc != VV_ENOTSUP)
		return rc;
	pthread_mutex_lock(&v->lock);
	rc = problems_add(&v->found, vv_err_last());
	pthread_mutex_unlock(&v->lock);
	return rc;
}

/* The same for damage in a layer: at these positions, or (NULL) anywhere. */
static int note_layer(struct verifier *v, int rc, uint64_t layer, const struct vv_extent *at)
{
	bool damaged = rc == VV_EDAMAGED || rc == VV_ENOENT || rc == VV_ENOTSUP;

	rc = note(v, rc);
	if (rc || !damaged)
		return rc;
	pthread_mutex_lock(&v->lock);
	rc = vv_affected_epochs_damage(&v->report.affected, layer, at);
	pthread_mutex_unlock(&v->lock);
	return rc;
}

/* ---- one layer ------------------------------------------------------------------------------- */

/* Checks the digests of the chunks in the block. A chunk in two blocks (only where chunks are
 * larger than blocks) is left to the checks of the blocks. */
static int check_chunks(struct verifier *v, size_t k, const uint8_t *raw)
{
	const struct vv_digests *d = &v->file->digests;
	const struct vv_blocks *b = &v->file->blocks;
	const struct vv_extent *first = &b->extent.v[b->v[k].extent];
	const struct vv_extent *last = first + b->v[k].n_extents - 1;
	vv_digest_fn fn = vv_digest_of_kind(v->file->head.digest_kind);

	for (size_t g = 0; g < d->n_groups; g++) {
		const struct vv_digest_group *group = &d->group[g];
		uint64_t i = first->pos > group->pos ? (first->pos - group->pos) / group->chunk : 0;

		if (group->pos >= last->pos + last->len)
			break;
		for (; i < group->count && group->pos + i * group->chunk < last->pos + last->len; i++) {
			uint64_t pos = group->pos + i * group->chunk;
			const uint8_t *p = vv_payload_inside(b, k, raw, pos, group->chunk);
			struct vv_digest got;

			if (!p)
				continue;
			fn(p, group->chunk, &got);
			if (!vv_digest_equal(&got, &d->v[group->digest + i])) {
				vv_err_set(VV_EDAMAGED, "section DIGESTS: the chunk at position %" PRIu64 " has another digest",
					   pos);
				return vv_layer_file_name_in_error(v->file, VV_EDAMAGED);
			}
		}
	}
	return 0;
}

static void check_block(void *arg, size_t k)
{
	struct verifier *v = arg;
	const struct vv_block *b = &v->file->blocks.v[k];
	struct vv_budget_buffer *room = vv_budget_take(&v->rooms, (size_t)b->raw_len + (b->codec ? b->stored_len : 0),
					     vv_layer_file_decode_takes(v->file, k));
	const struct vv_extent *first = &v->file->blocks.extent.v[b->extent], *last = first + b->n_extents - 1;
	int rc = room ? vv_layer_file_read_block(v->file, k, room->bytes, room->bytes + b->raw_len) : VV_ENOMEM;

	if (rc == 0)
		rc = check_chunks(v, k, room->bytes);
	if (room)
		vv_budget_give(&v->rooms, room);
	rc = note_layer(v, rc, v->file->layer, &(struct vv_extent){ first->pos, last->pos + last->len - first->pos });
	pthread_mutex_lock(&v->lock);
	if (rc && !v->failure.code)
		vv_err_save(rc, &v->failure);
	v->done += b->stored_len;
	vv_progress_report(v->progress, v->done, v->total);
	pthread_mutex_unlock(&v->lock);
}

/* Invariant 2: all referenced positions exist. */
static int check_needed(const struct vv_layer_file *f, const struct vv_extents *need)
{
	for (size_t i = 0; i < need->n; i++)
		if (!vv_payload_extent_has(&f->blocks.extent, need->v[i].pos, need->v[i].len)) {
			vv_err_set(VV_EDAMAGED,
				   "section BLOCKS: positions %" PRIu64 "..%" PRIu64 " are referred to but not all there",
				   need->v[i].pos, need->v[i].pos + need->v[i].len);
			return vv_layer_file_name_in_error(f, VV_EDAMAGED);
		}
	return 0;
}

static int check_copies(struct verifier *v)
{
	struct vv_copies_section c = { 0 };
	int rc = vv_copies_lookup_read(v->file, &c);

	vv_copies_section_fini(&c);
	return rc;
}

static int check_layer(struct verifier *v, const struct vv_reachable_layer *l)
{
	int rc = vv_layer_file_open(v->lin, l->layer, VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS | VV_LAYER_FILE_DIGESTS, &v->file);

	v->report.layers++;
	if (rc)
		return note_layer(v, rc, l->layer, NULL);
	v->report.blocks += v->file->blocks.n;
	v->report.bytes += v->file->get->size;
	rc = note_layer(v, vv_layer_file_check_header(v->file), l->layer, NULL);
	if (rc == 0)
		rc = note_layer(v, vv_layer_file_check_sections(v->file), l->layer, NULL);
	if (rc == 0)
		rc = note_layer(v, check_copies(v), l->layer, NULL);
	if (rc == 0)
		rc = note_layer(v, check_needed(v->file, &l->need), l->layer, NULL);
	if (rc == 0) {
		vv_store_each(v->lin->store, v->pool, false, v->file->blocks.n, check_block, v);
		rc = v->failure.code ? vv_err_restore(&v->failure) : 0;
	}
	vv_layer_file_close(v->file);
	v->file = NULL;
	return rc;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

/* Invariant 1: each rank's runs cover its regions; and the record, the head and the file agree. */
static int check_rank(struct verifier *v, const struct vv_commit *c, uint32_t rank)
{
	struct vv_run_table t = { 0 };
	int rc = vv_run_table_load(v->lin, c->epoch, rank, &(struct vv_run_table_how){ .commit = c }, &t);

	vv_run_table_fini(&t);
	return note(v, rc);
}

static int note_elsewhere(struct verifier *v, const struct vv_commit *c, const uint8_t *where)
{
	char ranks[VV_CATALOG_RANKS];
	uint32_t n = vv_catalog_name_ranks(where, c->n_ranks, VV_CATALOG_ELSEWHERE, ranks);

	if (!n)
		return 0;
	v->report.elsewhere += n;
	v->report.ranks = c->n_ranks;
	memcpy(v->report.elsewhere_ranks, ranks, sizeof(ranks));
	if (!v->whole)
		return 0;
	return note(v, vv_err_set(VV_EDAMAGED, "'%s/%s': epoch %" PRIu64 " is not whole: the layers of %u of its %u ranks are not in this "
				  "store (%s)", v->lin->store->url, v->lin->name, c->epoch, n, c->n_ranks, ranks));
}

static void forget_known(struct verifier *v)
{
	vv_mem_free(v->known.where);
	memset(&v->known, 0, sizeof(v->known));
}

static void load_commit(struct verifier *v, uint64_t epoch)
{
	struct vv_commit c = { 0 };

	if (v->known.epoch == epoch)
		return;
	forget_known(v);
	v->known.epoch = epoch;
	v->known.rc = vv_catalog_commit(v->lin, epoch, &c);
	if (v->known.rc == 0)
		v->known.rc = vv_catalog_locate_layers(v->all, &c, &v->known.where);
	v->known.n = v->known.rc ? 0 : c.n_ranks;
	vv_commit_fini(&c);
	vv_err_clear();
}

/* A layer that is referred to and not here: is it missing, or in another store? For a dropped epoch
 * that is unknown, and the layer counts as elsewhere. */
static bool is_elsewhere(struct verifier *v, const struct vv_reachable_layer *l)
{
	if (l->present || v->whole || !v->report.elsewhere)
		return false;
	load_commit(v, vv_run_epoch(l->layer));
	if (v->known.rc == 0 && vv_run_rank(l->layer) < v->known.n)
		return v->known.where[vv_run_rank(l->layer)] == VV_CATALOG_ELSEWHERE;
	return v->known.rc == VV_ENOENT;
}

/* Looks for missing layers and names the first ones; the rest is only counted. */
static int check_ranks(struct verifier *v, const struct vv_commit *c, const uint8_t *where)
{
	size_t missing = 0, more = 0;
	int rc = 0;

	for (uint32_t rank = 0; rc == 0 && rank < c->n_ranks; rank++) {
		size_t before = v->found.noted;

		if (where[rank] == VV_CATALOG_ELSEWHERE)
			continue;
		if (where[rank] == VV_CATALOG_MISSING && missing == MISSING_REPORTED) {
			more++;
			continue;
		}
		rc = check_rank(v, c, rank);
		missing += where[rank] == VV_CATALOG_MISSING && v->found.noted > before;
	}
	if (rc || !more)
		return rc;
	return note(v, vv_err_set(VV_EDAMAGED, "'%s/%s': epoch %" PRIu64 ": the layers of %zu more of its %u ranks are missing",
				  v->lin->store->url, v->lin->name, c->epoch, more, c->n_ranks));
}

static int check_epoch(struct verifier *v, struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	uint8_t *where = NULL;
	size_t before = v->found.noted;
	int rc = vv_catalog_commit(v->lin, epoch, &c);

	v->report.epochs++;
	if (rc)
		return note(v, rc);
	rc = vv_catalog_locate_layers(v->all, &c, &where);
	if (rc == 0)
		rc = check_ranks(v, &c, where);
	for (uint32_t rank = 0; rc == 0 && v->found.noted == before && rank < c.n_ranks; rank++)
		if (where[rank] != VV_CATALOG_ELSEWHERE)
			rc = note(v, vv_reachable_add_rank(r, live, epoch, rank));
	if (rc == 0)
		rc = note_elsewhere(v, &c, where);
	vv_mem_free(where);
	vv_commit_fini(&c);
	return rc;
}

static int check_reached(struct verifier *v, struct vv_reachable *r, bool all)
{
	uint64_t newest = vv_gc_newest(v->all, r);
	int rc = vv_reachable_sort(r);

	for (size_t i = 0; i < r->n; i++)
		v->total += r->v[i].chain || r->v[i].need.n ? r->v[i].size : 0;
	for (size_t i = 0; rc == 0 && i < r->n; i++) {
		if (is_elsewhere(v, &r->v[i]))
			continue;
		if (r->v[i].chain || r->v[i].need.n)
			rc = check_layer(v, &r->v[i]);
		else if (all && !vv_gc_is_placeholder(&r->v[i], newest))
			v->report.orphans++;
	}
	return rc;
}

/* A layer with the number of a live epoch is reached even if the epoch's own data are too damaged
 * to refer to it. */
static void reach_own(struct vv_reachable *r, uint64_t epoch)
{
	for (size_t i = 0; i < r->n; i++)
		if (vv_run_epoch(r->v[i].layer) == epoch)
			r->v[i].chain = true;
}

/* The caches are replaced in one step; a gc has removed one that is gone since the listing. */
static int check_caches(struct verifier *v)
{
	struct vv_names names = { 0 };
	int rc = vv_store_list(v->lin->store, v->lin->name, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		unsigned rank;
		char end;

		if (names.v[i].is_dir || sscanf(names.v[i].name, "index.r%7u%c", &rank, &end) != 1)
			continue;
		rc = vv_index_cache_check(v->lin, rank);
		if (rc == 0)
			v->report.bytes += names.v[i].size;
		rc = rc == VV_ENOENT ? 0 : note(v, rc);
	}
	vv_names_fini(&names);
	return rc;
}

/* Checks all parity of the lineage, or of the one epoch. Damaged parity makes no epoch unreadable:
 * the layers are checked by themselves. */
static int check_parity(struct verifier *v, const struct vv_listing *live)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < v->all->n_parity; i++) {
		const struct vv_parity_name *p = &v->all->parity[i];

		if (live != v->all && vv_run_epoch(p->layer) != live->epoch[0])
			continue;
		v->report.parity++;
		v->report.bytes += p->size;
		rc = note(v, vv_verify_parity_object(v->lin, p));
	}
	return rc;
}

static int check_live(struct verifier *v, const struct vv_listing *all, const struct vv_listing *live)
{
	struct vv_reachable r = { 0 };
	int rc = vv_reachable_init(&r, v->lin, all);

	r.tolerant = true;
	if (rc == 0 && v->lin->recovered) {
		vv_err_set(VV_EDAMAGED, "'%s/%s/lineage': the record is missing or damaged (the next writer restores it)",
			   v->lin->store->url, v->lin->name);
		rc = note(v, VV_EDAMAGED);
	}
	for (size_t i = 0; rc == 0 && i < live->n_epochs; i++) {
		size_t before = v->found.noted;

		rc = check_epoch(v, &r, live, live->epoch[i]);
		if (rc == 0 && v->found.noted > before)
			rc = vv_affected_epochs_add(&v->report.affected, live->epoch[i]);
		reach_own(&r, live->epoch[i]);
	}
	if (rc == 0)
		rc = check_reached(v, &r, live == all);
	if (rc == 0)
		rc = check_parity(v, live);
	if (rc == 0 && live == all)
		rc = check_caches(v);
	if (rc == 0 && live == all)
		rc = vv_gc_find_unfinished(v->lin, 0, &v->report.unfinished);
	vv_reachable_fini(&r);
	return rc;
}

/* Is any of these epochs no longer there? */
static int look_again(const struct vv_lineage *lin, const struct vv_listing *live, bool *gone)
{
	struct vv_listing now = { 0 };
	int rc = vv_catalog_list(lin, live->n_epochs ? live->epoch[0] : 0, &now);
	size_t i = 0;

	for (size_t k = 0; k < now.n_epochs && i < live->n_epochs; k++)
		i += now.epoch[k] == live->epoch[i];
	*gone = rc == 0 && i < live->n_epochs;
	vv_catalog_listing_fini(&now);
	return rc;
}

static int make_pass(struct verifier *v, uint64_t epoch, bool *gone)
{
	struct vv_listing all = { 0 }, one = { .epoch = &epoch, .n_epochs = 1 };
	const struct vv_listing *live = epoch ? &one : &all;
	int rc = vv_catalog_list(v->lin, 0, &all);

	vv_provenance_forget(v->lin);
	vv_affected_epochs_fini(&v->report.affected);
	v->report = (struct vv_verify_report){ 0 };
	v->all = &all;
	v->total = v->done = 0;
	*gone = false;
	if (rc == 0)
		rc = check_live(v, &all, live);
	if (rc == 0)
		rc = vv_affected_epochs_find(&v->report.affected, v->lin, live);
	if (rc == 0 && v->found.noted)
		rc = look_again(v->lin, live, gone);
	if (rc == 0 && *gone && epoch) {
		problems_fini(&v->found);
		rc = vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' was dropped while it was read", epoch,
				v->lin->name);
	}
	forget_known(v);
	vv_catalog_listing_fini(&all);
	return rc;
}

int vv_verify_run(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, bool whole, vv_verify_report_fn tell, void *arg,
		  const struct vv_progress *progress, struct vv_verify_report *out)
{
	struct verifier v = { .lin = lin, .pool = pool, .whole = whole, .progress = progress, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct problems before = { 0 };
	bool gone = true;
	int rc = 0;

	vv_budget_init(&v.rooms, MEMORY);
	for (int i = 0; rc == 0 && gone && i < PASSES; i++) {
		problems_fini(&before);
		before = v.found;
		v.found = (struct problems){ 0 };
		rc = make_pass(&v, epoch, &gone);
	}
	/* The writer is too fast. Removed layers are not reported missing twice, and damage
	 * stays. */
	if (rc == 0 && gone)
		problems_cut(&v.found, &before);
	problems_report(&v.found, tell, arg);
	v.report.problems = v.found.n + v.found.more;
	problems_fini(&v.found);
	problems_fini(&before);
	vv_budget_fini(&v.rooms);
	if (rc == 0)
		*out = v.report;
	else
		vv_affected_epochs_fini(&v.report.affected);
	return rc;
}
