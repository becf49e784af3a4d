#include "engine/ranks/shared_samples.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/recipe_search.h"
#include "core/format/head.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/group.h"
#include <string.h>

enum {
	EVERY = 16, /* epochs, after which it is decided anew */
	LEAST = 4096, /* bytes of a sample */
};

static const uint32_t pays = 1150; /* thousandths: engine/files/recipes.c */

/* ---- what a rank knows ---------------------------------------------------------------------------------------------------------- */

void vv_shared_samples_free(struct vv_shared_samples *t)
{
	for (size_t i = 0; t && i < t->n; i++)
		vv_mem_free(t->form[i].sample);
	vv_mem_free(t);
}

static size_t find(const struct vv_shared_samples *t, const struct vv_form *form)
{
	size_t i = 0;

	while (i < t->n && !vv_recipe_same_form(&t->form[i].form, form))
		i++;
	return i;
}

/* Its place, new if need be; NULL: there are too many, or there is no memory. */
static struct vv_shared_samples_form *place_for(struct vv_shared_samples *t, const struct vv_form *form)
{
	size_t i = find(t, form);
	struct vv_shared_samples_form *f = &t->form[i];

	if (i < t->n || i == VV_SHARED_SAMPLES_FORMS)
		return i < t->n ? f : NULL;
	*f = (struct vv_shared_samples_form){ .form = *form, .sample = vv_mem_new(VV_RECIPE_SEARCH_BYTES, 1) };
	if (!f->sample)
		return NULL;
	t->n++;
	return f;
}

void vv_shared_samples_keep(struct vv_shared_samples *t, const struct vv_form *form, const uint8_t *p, size_t n)
{
	struct vv_shared_samples_form *f = n >= LEAST ? place_for(t, form) : NULL;

	if (!f)
		return;
	f->n = n < VV_RECIPE_SEARCH_BYTES ? n - n % vv_head_type_size(form->type) : VV_RECIPE_SEARCH_BYTES;
	memcpy(f->sample, p, f->n);
}

const struct vv_shared_samples_form *vv_shared_samples_find(const struct vv_shared_samples *t, const struct vv_form *form)
{
	size_t i = find(t, form);

	return i < t->n && t->form[i].shared ? &t->form[i] : NULL;
}

size_t vv_shared_samples_shared(const struct vv_shared_samples *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->form[i].shared;
	return n;
}

size_t vv_shared_samples_alike(const struct vv_shared_samples *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->form[i].shared && (uint64_t)t->form[i].together * 1000 >= (uint64_t)t->form[i].apart * pays;
	return n;
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------- */

/* To the leader: a form, and n bytes of sample behind it. From there: what was decided of it. */
struct note {
	uint64_t row, plane;
	uint32_t record, n;
	uint32_t stride[VV_RECIPE_STRIDES];
	uint32_t apart, together;
	uint16_t fields;
	uint8_t type, swapped, width, predictor, real, high_first, coder, window, n_strides;
	int8_t level;
};

static struct note note_of(const struct vv_shared_samples_form *f)
{
	struct note x = { .row = f->form.row, .plane = f->form.plane, .record = f->form.record, .n = (uint32_t)f->n, .apart = f->apart,
			  .together = f->together, .fields = f->how.record, .type = f->form.type, .swapped = f->form.swapped,
			  .width = f->how.width, .predictor = f->how.predictor, .real = f->how.real, .high_first = f->how.swapped,
			  .coder = f->how.coder, .window = f->how.window, .n_strides = f->how.n_strides, .level = f->how.level };

	memcpy(x.stride, f->how.stride, sizeof(x.stride));
	return x;
}

static struct vv_form form_of(const struct note *x)
{
	return (struct vv_form){ .type = x->type, .swapped = x->swapped != 0, .record = x->record, .row = x->row, .plane = x->plane };
}

/* Whatever it is: codecs refuse a recipe that is not sound. */
static void take_note(const struct note *x, struct vv_shared_samples_form *f)
{
	f->shared = true;
	f->apart = x->apart;
	f->together = x->together;
	f->how = (struct vv_recipe){ .width = x->width, .record = x->fields, .predictor = x->predictor, .real = x->real != 0,
				     .swapped = x->high_first != 0, .coder = x->coder, .level = x->level, .window = x->window,
				     .n_strides = x->n_strides };
	memcpy(f->how.stride, x->stride, sizeof(f->how.stride));
}

static int exchange(struct vv_exchange *m, struct vv_group *g, struct vv_comm *comm, int rc, uint64_t unit)
{
	rc = vv_group_agree(g, comm, rc);
	if (rc == 0)
		rc = vv_comm_alltoall(comm, m->out_len, m->in_len, sizeof(*m->out_len));
	if (rc)
		return rc;
	rc = vv_group_agree(g, comm, vv_exchange_room(m, g->size, unit));
	return rc ? rc : vv_comm_alltoallv(comm, m->out, m->out_len, m->in, m->in_len);
}

/* ---- the leader's part ---------------------------------------------------------------------------------------------------------- */

struct course { /* the samples of one form */
	struct vv_form form;
	struct vv_sample sample[VV_RECIPE_SEARCH_SAMPLES];
	size_t n;
};

static struct course *course_for(struct course *list, size_t *n, const struct vv_form *form)
{
	for (size_t i = 0; i < *n; i++)
		if (vv_recipe_same_form(&list[i].form, form))
			return &list[i];
	if (*n == VV_SHARED_SAMPLES_FORMS)
		return NULL;
	list[*n] = (struct course){ .form = *form };
	return &list[(*n)++];
}

static int read_samples(const struct vv_exchange *m, const struct vv_group *g, struct course *list, size_t *n)
{
	const uint8_t *p = m->in;

	for (uint32_t r = 0; r < g->size; r++) {
		const uint8_t *end = p + m->in_len[r];
		struct course *c;
		struct vv_form form;
		struct note x;

		for (; p < end; p += x.n) {
			if ((size_t)(end - p) < sizeof(x))
				return vv_err_set(VV_EPEER, "rank %u sends samples that cannot be", r);
			memcpy(&x, p, sizeof(x));
			p += sizeof(x);
			form = form_of(&x);
			if (x.n < LEAST || x.n > VV_RECIPE_SEARCH_BYTES || x.n > (size_t)(end - p) || vv_head_type_size(form.type) < 2 || form.record)
				return vv_err_set(VV_EPEER, "rank %u sends samples that cannot be", r);
			c = course_for(list, n, &form);
			if (c && c->n < VV_RECIPE_SEARCH_SAMPLES)
				c->sample[c->n++] = (struct vv_sample){ p, x.n };
		}
	}
	return 0;
}

static uint32_t thousandths(double ratio)
{
	return ratio < 4e6 ? (uint32_t)(ratio * 1000) : UINT32_MAX;
}

/* One sample tells nothing of the others. What they have in common is looked for as well as can be: it is only told. */
static int taste(const struct course *c, struct vv_buf *out)
{
	struct vv_recipe_search apart = { 0 }, together = { 0 };
	struct vv_shared_samples_form f = { .form = c->form, .shared = true };
	struct note x;
	int rc = c->n < 2 ? 0 : vv_recipe_search_choose(&c->form, VV_EFFORT_DEFAULT, false, c->sample, c->n, &apart);

	if (rc == 0 && c->n > 1)
		rc = vv_recipe_search_together(&c->form, VV_EFFORT_MAX, &apart, c->sample, c->n, &together);
	if (rc || c->n < 2)
		return rc;
	f.how = apart.recipe;
	f.apart = thousandths(apart.ratio);
	f.together = thousandths(together.ratio);
	x = note_of(&f);
	vv_buf_add(out, &x, sizeof(x));
	return vv_buf_check(out);
}

/* ---- all together --------------------------------------------------------------------------------------------------------------- */

/* As many ranks as there are samples in a taste. */
static int write_samples(const struct vv_shared_samples *t, const struct vv_group *g, uint32_t first, struct vv_exchange *m)
{
	size_t room = t->n * (sizeof(struct note) + VV_RECIPE_SEARCH_BYTES), at = 0;
	int rc = vv_exchange_new(m, g->size, room);

	for (size_t i = 0; rc == 0 && g->rank - first < VV_RECIPE_SEARCH_SAMPLES && i < t->n; i++) {
		const struct vv_shared_samples_form *f = &t->form[i];
		struct note x = note_of(f);

		if (f->n < LEAST)
			continue;
		memcpy(m->out + at, &x, sizeof(x));
		memcpy(m->out + at + sizeof(x), f->sample, f->n);
		at += sizeof(x) + f->n;
	}
	if (rc == 0)
		m->out_len[first] = at;
	return rc;
}

/* What was decided, to every rank of the group. */
static int write_notes(const struct vv_exchange *samples, const struct vv_group *g, uint32_t first, uint32_t last, struct vv_exchange *m)
{
	struct course *list = vv_mem_new(VV_SHARED_SAMPLES_FORMS, sizeof(*list));
	struct vv_buf notes = { 0 };
	size_t n = 0;
	int rc = list ? read_samples(samples, g, list, &n) : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = taste(&list[i], &notes);
	if (rc == 0)
		rc = vv_exchange_new(m, g->size, notes.n * (last - first + 1));
	for (uint32_t r = first; rc == 0 && notes.n && r <= last; r++) {
		memcpy(m->out + (r - first) * notes.n, notes.p, notes.n);
		m->out_len[r] = notes.n;
	}
	vv_buf_fini(&notes);
	vv_mem_free(list);
	return rc;
}

static void read_notes(struct vv_shared_samples *t, const struct vv_exchange *m)
{
	for (size_t at = 0; at + sizeof(struct note) <= m->in_sum; at += sizeof(struct note)) {
		struct vv_shared_samples_form *f;
		struct vv_form form;
		struct note x;

		memcpy(&x, m->in + at, sizeof(x));
		form = form_of(&x);
		f = place_for(t, &form);
		if (f)
			take_note(&x, f);
	}
}

int vv_shared_samples_share(struct vv_shared_samples *t, struct vv_group *g, struct vv_comm *comm, uint32_t first, uint32_t last)
{
	struct vv_exchange samples = { 0 }, notes = { 0 };
	int rc;

	if (t->epochs++ % EVERY != 1) /* there are no samples before the first */
		return 0;
	rc = exchange(&samples, g, comm, write_samples(t, g, first, &samples), 1);
	if (rc == 0) {
		rc = g->rank == first ? write_notes(&samples, g, first, last, &notes) : vv_exchange_new(&notes, g->size, 0);
		rc = exchange(&notes, g, comm, rc, sizeof(struct note));
	}
	if (rc == 0)
		read_notes(t, &notes);
	vv_exchange_free(&samples, g);
	vv_exchange_free(&notes, g);
	return rc;
}
