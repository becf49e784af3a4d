#include "engine/ranks/part_sources.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void vv_part_sources_fini(struct vv_part_sources *s)
{
	vv_mem_free(s->v);
	*s = (struct vv_part_sources){ 0 };
}

static int add_source(struct vv_part_sources *s, uint32_t rank, const struct vv_head_region *from, const struct vv_box *memory, const struct vv_box *provided)
{
	if (vv_mem_room(&s->v, s->n, &s->cap, sizeof(*s->v)) < 0)
		return VV_ENOMEM;
	s->v[s->n++] = (struct vv_part_source){ rank, from, *memory, *provided };
	return 0;
}

static int check_kind(const struct vv_part_wanted *w, uint32_t rank, const struct vv_head_region *from)
{
	if ((w->part ? w->part->kind : 0) != (from->part ? from->part->kind : 0))
		return vv_err_set(VV_EMISMATCH, "region '%s' is declared as %s, in epoch %" PRIu64 " rank %u stored it as %s; declare it in the same way, or run it with %u ranks",
				  w->name, vv_distribution_kind_name(w->part), w->epoch, rank, vv_distribution_kind_name(from->part), w->stored->ranks);
	if (!vv_head_types_agree(w->shape.type, from->shape.type))
		return vv_err_set(VV_EMISMATCH, "region '%s' is declared as %s, in epoch %" PRIu64 " it is %s", w->name, vv_head_type_name(w->shape.type), w->epoch,
				  vv_head_type_name(from->shape.type));
	if (w->shape.record && from->shape.record && w->shape.record != from->shape.record)
		return vv_err_set(VV_EMISMATCH, "region '%s': the fields of its records differ from those that rank %u stored in epoch %" PRIu64 " ('varve show' lists them)",
				  w->name, rank, w->epoch);
	return 0;
}

int vv_part_sources_whole(const struct vv_part_wanted *w, uint32_t rank, struct vv_part_sources *out)
{
	const struct vv_head_region *from = vv_rank_parts_region(&w->stored->rank[rank], w->name);
	int rc = from ? check_kind(w, rank, from) :
			vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no region '%s' of rank %u", w->epoch, w->lineage, w->name, rank);

	if (rc == 0 && from->shape.len != w->shape.len)
		rc = vv_err_set(VV_EMISMATCH, "region '%s' has %" PRIu64 " bytes, in epoch %" PRIu64 " it has %" PRIu64 " bytes; declare it with that size", w->name,
				w->shape.len, w->epoch, from->shape.len);
	out->memory = (struct vv_box){ 1, { 0 }, { (int64_t)w->shape.len } };
	out->element = 1;
	return rc ? rc : add_source(out, rank, from, &out->memory, &out->memory);
}

bool vv_part_sources_count_items(const struct vv_rank_parts *p, const char *name, uint32_t rank, uint64_t *before, uint64_t *total)
{
	bool found = false;

	*before = *total = 0;
	for (uint32_t k = 0; k < p->ranks; k++) {
		const struct vv_head_region *r = vv_rank_parts_region(&p->rank[k], name);

		if (k == rank)
			*before = *total;
		if (!r || !r->part || r->part->kind != VV_DISTRIBUTION_LIST)
			continue;
		*total += r->shape.len / r->part->item;
		found = true;
	}
	return found;
}

int vv_part_sources_list(const struct vv_part_wanted *w, uint64_t first, uint64_t declared, struct vv_part_sources *out)
{
	uint64_t at = 0, total, items = w->shape.len / w->part->item;
	int rc = 0;

	if (!vv_part_sources_count_items(w->stored, w->name, 0, &at, &total))
		return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no list '%s'", w->epoch, w->lineage, w->name);
	if (declared != total)
		return vv_err_set(VV_EMISMATCH, "list '%s' has %" PRIu64 " items in epoch %" PRIu64 ", and all ranks together declare %" PRIu64
				  "; varve_list_share gives the number for each rank", w->name, total, w->epoch, declared);
	out->memory = (struct vv_box){ 1, { (int64_t)first }, { (int64_t)(first + items) } };
	out->element = w->part->item;
	for (uint32_t k = 0; rc == 0 && k < w->stored->ranks; k++) {
		const struct vv_head_region *from = vv_rank_parts_region(&w->stored->rank[k], w->name);
		struct vv_box all = { 1, { (int64_t)at }, { 0 } }, both;

		if (!from)
			continue;
		rc = check_kind(w, k, from);
		if (rc == 0 && from->part->item != w->part->item)
			rc = vv_err_set(VV_EMISMATCH, "list '%s' has items of %" PRIu64 " bytes, in epoch %" PRIu64 " rank %u has items of %" PRIu64 " bytes", w->name,
					w->part->item, w->epoch, k, from->part->item);
		if (rc)
			return rc;
		at += from->shape.len / from->part->item;
		all.end[0] = (int64_t)at;
		if (vv_distribution_intersect(&all, &out->memory, &both))
			rc = add_source(out, k, from, &all, &all);
	}
	return rc;
}

/* ---- global arrays --------------------------------------------------------------------------- */

static bool is_slab(const struct vv_head_region *r)
{
	return r->part && r->part->kind == VV_DISTRIBUTION_SLAB;
}

static int check_global(const struct vv_part_wanted *w, uint32_t rank, const struct vv_head_region *from)
{
	int64_t ours[VV_MAX_DIMS] = { 0 }, theirs[VV_MAX_DIMS] = { 0 };
	char a[VV_DISTRIBUTION_TEXT], b[VV_DISTRIBUTION_TEXT];
	int rc = check_kind(w, rank, from);

	if (rc)
		return rc;
	if (vv_head_element_size(&w->shape) != vv_head_element_size(&from->shape))
		return vv_err_set(VV_EMISMATCH, "array '%s' has elements of %zu bytes, in epoch %" PRIu64 " rank %u stored elements of %zu bytes", w->name,
				  vv_head_element_size(&w->shape), w->epoch, rank, vv_head_element_size(&from->shape));
	if (w->shape.ndim == from->shape.ndim && memcmp(w->part->global, from->part->global, w->shape.ndim * sizeof(w->part->global[0])) == 0)
		return 0;
	for (unsigned i = 0; i < w->shape.ndim; i++)
		ours[i] = (int64_t)w->part->global[i];
	for (unsigned i = 0; i < from->shape.ndim; i++)
		theirs[i] = (int64_t)from->part->global[i];
	return vv_err_set(VV_EMISMATCH, "array '%s' has the lengths %s, in epoch %" PRIu64 " rank %u stored a part of lengths %s", w->name,
			  vv_distribution_text(w->shape.ndim, ours, a), w->epoch, rank, vv_distribution_text(from->shape.ndim, theirs, b));
}

static int by_first(const void *a, const void *b)
{
	const struct vv_part_source *x = a, *y = b;

	return (x->provided.start[0] > y->provided.start[0]) - (x->provided.start[0] < y->provided.start[0]);
}

static int check_disjoint(const struct vv_part_wanted *w, const struct vv_part_sources *p)
{
	char text[VV_DISTRIBUTION_TEXT];
	struct vv_box both;

	for (size_t i = 0; i < p->n; i++)
		for (size_t k = i + 1; k < p->n && p->v[k].provided.start[0] < p->v[i].provided.end[0]; k++)
			if (vv_distribution_intersect(&p->v[i].provided, &p->v[k].provided, &both))
				return vv_err_set(VV_EMISMATCH, "array '%s': in epoch %" PRIu64 " both rank %u ('%s') and rank %u ('%s') own element %s; each element has one owner",
						  w->name, w->epoch, p->v[i].rank, p->v[i].region->name, p->v[k].rank,
						  p->v[k].region->name, vv_distribution_text(both.ndim, both.start, text));
	return 0;
}

/* Finds an element of the box that no source from `first` on has. Divides the box at the borders of
 * the first source that overlaps it. */
static bool find_gap(const struct vv_part_sources *p, size_t first, struct vv_box box, int64_t *at)
{
	struct vv_box both;

	for (size_t i = first; i < p->n; i++) {
		if (!vv_distribution_intersect(&box, &p->v[i].provided, &both))
			continue;
		for (unsigned k = 0; k < box.ndim; k++) {
			struct vv_box low = box, high = box;

			low.end[k] = both.start[k];
			high.start[k] = both.end[k];
			if ((!vv_distribution_is_empty(&low) && find_gap(p, i + 1, low, at)) ||
			    (!vv_distribution_is_empty(&high) && find_gap(p, i + 1, high, at)))
				return true;
			box.start[k] = both.start[k];
			box.end[k] = both.end[k];
		}
		return false;
	}
	memcpy(at, box.start, sizeof(box.start));
	return true;
}

/* The sources are disjoint: so their volumes tell whether they cover the region. */
static int check_covered(const struct vv_part_wanted *w, const struct vv_part_sources *p)
{
	struct vv_box inside = p->memory, both;
	int64_t at[VV_MAX_DIMS] = { 0 };
	char text[VV_DISTRIBUTION_TEXT];
	uint64_t got = 0;

	for (unsigned i = 0; i < inside.ndim; i++) {
		inside.start[i] = inside.start[i] < 0 ? 0 : inside.start[i];
		if (inside.end[i] > (int64_t)w->part->global[i])
			inside.end[i] = (int64_t)w->part->global[i];
	}
	for (size_t i = 0; i < p->n; i++)
		got += vv_distribution_intersect(&inside, &p->v[i].provided, &both) ? vv_distribution_volume(&both) : 0;
	if (got == vv_distribution_volume(&inside) || !find_gap(p, 0, inside, at))
		return 0;
	vv_err_set(VV_EMISMATCH, "array '%s': no rank of epoch %" PRIu64 " owns element %s", w->name, w->epoch, vv_distribution_text(inside.ndim, at, text));
	return w->rank == UINT32_MAX ? VV_EMISMATCH : vv_err_set(VV_EMISMATCH, "%s, which rank %u needs", vv_err_last(), w->rank);
}

int vv_part_sources_slab(const struct vv_part_wanted *w, struct vv_part_sources *out)
{
	struct vv_box owned, memory, provided, both;
	bool found = false;
	int rc = 0;

	vv_distribution_owned(&w->shape, w->part, &owned);
	vv_distribution_memory(&w->shape, w->part, &out->memory);
	out->element = vv_head_element_size(&w->shape);
	for (uint32_t k = 0; rc == 0 && k < w->stored->ranks; k++) {
		const struct vv_head_region *const *part;
		size_t n = vv_rank_parts_array(&w->stored->rank[k], w->name, &part);

		for (size_t i = 0; rc == 0 && i < n; i++) {
			const struct vv_head_region *from = part[i];

			/* The part of another region's name after '#' may mean anything. */
			if (!is_slab(from) && strcmp(from->name, w->name) != 0)
				continue;
			found = true;
			rc = check_global(w, k, from);
			if (rc || vv_distribution_is_empty(&owned))
				continue;
			vv_distribution_memory(&from->shape, from->part, &memory);
			vv_distribution_provided(&from->shape, from->part, &provided);
			if (!vv_distribution_is_empty(&provided) && vv_distribution_intersect(&provided, &out->memory, &both))
				rc = add_source(out, k, from, &memory, &provided);
		}
	}
	if (rc == 0 && !found)
		rc = vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no array '%s'", w->epoch, w->lineage, w->name);
	if (rc || vv_distribution_is_empty(&owned))
		return rc;
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_first);
	rc = check_disjoint(w, out);
	return rc ? rc : check_covered(w, out);
}
