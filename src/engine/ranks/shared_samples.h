/* Ranks that write one file (engine/write/shared_file.h) decide together how numbers are coded. Each keeps a sample of the first numbers of each form; before the next
 * epoch, and then now and again, one rank of the group tastes those of all: with the recipe that is best for all of them each begins, and
 * need not taste. And it is told whether they would be smaller if they were coded together. */
#ifndef VV_ENGINE_RANKS_SHARED_SAMPLES_H
#define VV_ENGINE_RANKS_SHARED_SAMPLES_H

#include "comm/comm.h"
#include "core/format/recipe.h"
#include <stddef.h>

struct vv_group;

enum { VV_SHARED_SAMPLES_FORMS = 8 };

struct vv_shared_samples_form {
	struct vv_form form;
	uint8_t *sample; /* of this rank */
	size_t n;
	bool shared;     /* the group has decided: */
	struct vv_recipe how;
	uint32_t apart, together; /* a thousand times the ratio that the samples have by it, and coded together as is best then */
};

struct vv_shared_samples {
	struct vv_shared_samples_form form[VV_SHARED_SAMPLES_FORMS];
	size_t n;
	uint64_t epochs; /* that were begun */
};

void vv_shared_samples_free(struct vv_shared_samples *t); /* NULL is fine */
/* These are the first numbers of that form in an epoch. Not kept if there is no room. */
void vv_shared_samples_keep(struct vv_shared_samples *t, const struct vv_form *form, const uint8_t *p, size_t n);
const struct vv_shared_samples_form *vv_shared_samples_find(const struct vv_shared_samples *t, const struct vv_form *form); /* NULL: nothing was decided */
/* All ranks of the session, before an epoch: those of first .. last decide together, when it is time to. */
int vv_shared_samples_share(struct vv_shared_samples *t, struct vv_group *g, struct vv_comm *comm, uint32_t first, uint32_t last);
/* Forms that were decided on; and such of them as would be smaller together by enough to be worth it. */
size_t vv_shared_samples_shared(const struct vv_shared_samples *t);
size_t vv_shared_samples_alike(const struct vv_shared_samples *t);

#endif
