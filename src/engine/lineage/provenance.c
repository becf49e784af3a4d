#include "engine/lineage/provenance.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/lineage/catalog.h"
#include <inttypes.h>
#include <pthread.h>

struct vv_annals {
	struct vv_store_guest guest;
	pthread_mutex_t lock;
	struct vv_eras eras;   /* of what is being read */
	struct vv_eras known;  /* of all that was met */
	struct vv_eras silent; /* epochs of which nothing can be known */
	bool turned;
};

static void end(struct vv_store_guest *guest)
{
	struct vv_annals *a = (struct vv_annals *)guest;

	vv_eras_fini(&a->eras);
	vv_eras_fini(&a->known);
	vv_eras_fini(&a->silent);
	pthread_mutex_destroy(&a->lock);
	vv_mem_free(a);
}

int vv_annals_new(struct vv_store *store, struct vv_annals **out)
{
	struct vv_annals *a = vv_mem_new(1, sizeof(*a));

	if (!a)
		return VV_ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	a->guest.end = end;
	vv_store_lodge(store, &a->guest);
	*out = a;
	return 0;
}

static bool fits(const struct vv_eras *e, const struct vv_eras *said, uint64_t *other)
{
	for (size_t i = 0; i < said->n; i++)
		if (!vv_eras_fits(e, &said->v[i], other))
			return false;
	return true;
}

static int add(struct vv_eras *e, const struct vv_eras *said)
{
	uint64_t other;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < said->n; i++)
		rc = vv_eras_add(e, &said->v[i], &other);
	return rc;
}

/* Of a layer that does not belong here nothing is believed. */
int vv_annals_meet(const struct vv_lineage *lin, const struct vv_eras *said)
{
	struct vv_annals *a = lin->annals;
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

void vv_annals_forget(const struct vv_lineage *lin)
{
	pthread_mutex_lock(&lin->annals->lock);
	lin->annals->eras.n = 0;
	pthread_mutex_unlock(&lin->annals->lock);
}

uint64_t vv_annals_token(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_annals *a = lin->annals;
	const struct vv_era *era;
	uint64_t token;

	pthread_mutex_lock(&a->lock);
	era = vv_eras_find(&a->eras, epoch);
	token = era ? era->token : 0;
	pthread_mutex_unlock(&a->lock);
	return token;
}

bool vv_annals_turned(const struct vv_lineage *lin)
{
	bool turned;

	pthread_mutex_lock(&lin->annals->lock);
	turned = lin->annals->turned;
	pthread_mutex_unlock(&lin->annals->lock);
	return turned;
}

void vv_annals_turn(const struct vv_lineage *lin)
{
	struct vv_annals *a = lin->annals;

	pthread_mutex_lock(&a->lock);
	a->known.n = 0;
	a->silent.n = 0;
	a->turned = add(&a->known, &a->eras) < 0; /* for want of memory: less is known */
	pthread_mutex_unlock(&a->lock);
}

bool vv_annals_knows(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_annals *a = lin->annals;
	bool knows;

	pthread_mutex_lock(&a->lock);
	knows = vv_eras_find(&a->known, epoch) || vv_eras_find(&a->silent, epoch);
	pthread_mutex_unlock(&a->lock);
	return knows;
}

int vv_annals_claims(const struct vv_lineage *lin, struct vv_eras *out)
{
	int rc;

	pthread_mutex_lock(&lin->annals->lock);
	rc = add(out, &lin->annals->known);
	pthread_mutex_unlock(&lin->annals->lock);
	return rc;
}

void vv_annals_cannot(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_annals *a = lin->annals;
	uint64_t other;

	pthread_mutex_lock(&a->lock);
	if (vv_eras_add(&a->silent, &(struct vv_era){ epoch, epoch, 0 }, &other) < 0)
		vv_err_clear(); /* it is asked for again */
	pthread_mutex_unlock(&a->lock);
}

/* If it is of an earlier session, and known. */
static int list(struct vv_annals *a, uint64_t epoch, struct vv_eras *out)
{
	const struct vv_era *era = NULL;
	uint64_t other;

	if (!vv_eras_find(out, epoch))
		era = vv_eras_find(&a->known, epoch);
	return era && era->last < out->v[out->n - 1].first ? vv_eras_add(out, era, &other) : 0;
}

int vv_annals_list(const struct vv_lineage *lin, const struct vv_era *own, const struct vv_head *head, struct vv_eras *out)
{
	struct vv_annals *a = lin->annals;
	uint64_t epoch = 0;
	int rc = vv_eras_add(out, own, &epoch);

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
	pthread_mutex_unlock(&a->lock);
	return rc;
}
