#include "engine/lineage/provenance.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/lineage/catalog.h"
#include <inttypes.h>
#include <pthread.h>

struct vv_provenance {
	struct vv_store_attachment attachment;
	pthread_mutex_t lock;
	struct vv_era_table eras;   /* of the layers being read together */
	struct vv_era_table known;  /* of all layers read so far */
	struct vv_era_table silent; /* epochs with eras that cannot be known */
	bool turned;
	uint64_t serial; /* how often `eras` was emptied */
};

static void end(struct vv_store_attachment *attachment)
{
	struct vv_provenance *a = (struct vv_provenance *)attachment;

	vv_era_table_fini(&a->eras);
	vv_era_table_fini(&a->known);
	vv_era_table_fini(&a->silent);
	pthread_mutex_destroy(&a->lock);
	vv_mem_free(a);
}

int vv_provenance_new(struct vv_store *store, struct vv_provenance **out)
{
	struct vv_provenance *a = vv_mem_new(1, sizeof(*a));

	if (!a)
		return VV_ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	a->attachment.end = end;
	vv_store_attach(store, &a->attachment);
	*out = a;
	return 0;
}

static bool fits(const struct vv_era_table *e, const struct vv_era_table *said, uint64_t *other)
{
	for (size_t i = 0; i < said->n; i++)
		if (!vv_era_table_fits(e, &said->v[i], other))
			return false;
	return true;
}

static int add(struct vv_era_table *e, const struct vv_era_table *said)
{
	uint64_t other;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < said->n; i++)
		rc = vv_era_table_add(e, &said->v[i], &other);
	return rc;
}

/* If the layer does not belong to the others, none of its eras is used. */
int vv_provenance_add(const struct vv_lineage *lin, const struct vv_era_table *said)
{
	struct vv_provenance *a = lin->provenance;
	uint64_t epoch = 0, other;
	bool belongs;
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	belongs = fits(&a->eras, said, &epoch);
	if (belongs) {
		rc = add(&a->eras, said);
		if (!fits(&a->known, said, &other))
			a->turned = true;
		else if (rc == 0)
			rc = add(&a->known, said);
	}
	pthread_mutex_unlock(&a->lock);
	if (belongs)
		return rc;
	return vv_err_set(VV_EDAMAGED,
			  "it belongs to another copy of the lineage than the layers read with it: epoch %" PRIu64 " is not the same for both (two copies went on, and their files have been mixed: keep those of one)",
			  epoch);
}

void vv_provenance_forget(const struct vv_lineage *lin)
{
	pthread_mutex_lock(&lin->provenance->lock);
	lin->provenance->eras.n = 0;
	lin->provenance->serial++;
	pthread_mutex_unlock(&lin->provenance->lock);
}

uint64_t vv_provenance_serial(const struct vv_lineage *lin)
{
	uint64_t serial;

	pthread_mutex_lock(&lin->provenance->lock);
	serial = lin->provenance->serial;
	pthread_mutex_unlock(&lin->provenance->lock);
	return serial;
}

uint64_t vv_provenance_token(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_provenance *a = lin->provenance;
	const struct vv_era *era;
	uint64_t token;

	pthread_mutex_lock(&a->lock);
	era = vv_era_table_find(&a->eras, epoch);
	token = era ? era->token : 0;
	pthread_mutex_unlock(&a->lock);
	return token;
}

bool vv_provenance_was_replaced(const struct vv_lineage *lin)
{
	bool turned;

	pthread_mutex_lock(&lin->provenance->lock);
	turned = lin->provenance->turned;
	pthread_mutex_unlock(&lin->provenance->lock);
	return turned;
}

void vv_provenance_reset(const struct vv_lineage *lin)
{
	struct vv_provenance *a = lin->provenance;

	pthread_mutex_lock(&a->lock);
	a->known.n = 0;
	a->silent.n = 0;
	/* If there is no memory, less is known. */
	a->turned = add(&a->known, &a->eras) < 0;
	pthread_mutex_unlock(&a->lock);
}

bool vv_provenance_is_known(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_provenance *a = lin->provenance;
	bool knows;

	pthread_mutex_lock(&a->lock);
	knows = vv_era_table_find(&a->known, epoch) || vv_era_table_find(&a->silent, epoch);
	pthread_mutex_unlock(&a->lock);
	return knows;
}

int vv_provenance_copy_all(const struct vv_lineage *lin, struct vv_era_table *out)
{
	int rc;

	pthread_mutex_lock(&lin->provenance->lock);
	rc = add(out, &lin->provenance->known);
	pthread_mutex_unlock(&lin->provenance->lock);
	return rc;
}

void vv_provenance_mark_unknown(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_provenance *a = lin->provenance;
	uint64_t other;

	pthread_mutex_lock(&a->lock);
	if (vv_era_table_add(&a->silent, &(struct vv_era){ epoch, epoch, 0 }, &other) < 0)
		vv_err_clear(); /* it will be searched again */
	pthread_mutex_unlock(&a->lock);
}

/* Adds the era of the epoch, if it is known and of an earlier session. */
static int list(struct vv_provenance *a, uint64_t epoch, struct vv_era_table *out)
{
	const struct vv_era *era = NULL;
	uint64_t other;

	if (!vv_era_table_find(out, epoch))
		era = vv_era_table_find(&a->known, epoch);
	return era && era->last < out->v[out->n - 1].first ? vv_era_table_add(out, era, &other) : 0;
}

int vv_provenance_list(const struct vv_lineage *lin, const struct vv_era *own, const struct vv_head *head, const struct vv_delta_bases *bases,
		       struct vv_era_table *out)
{
	struct vv_provenance *a = lin->provenance;
	uint64_t epoch = 0;
	int rc = vv_era_table_add(out, own, &epoch);

	pthread_mutex_lock(&a->lock);
	if (rc == 0 && head->parent)
		rc = list(a, head->parent, out);
	for (size_t i = 0; i < head->n_regions; i++)
		for (size_t n = 0; rc == 0 && n < head->region[i].runs.n; n++) {
			uint64_t layer = head->region[i].runs.v[n].layer;

			if (!layer || vv_run_epoch(layer) == epoch)
				continue;
			epoch = vv_run_epoch(layer);
			rc = list(a, epoch, out);
		}
	for (size_t i = 0; rc == 0 && i < bases->n; i++)
		rc = bases->v[i].epoch ? list(a, bases->v[i].epoch, out) : 0;
	pthread_mutex_unlock(&a->lock);
	return rc;
}
