#include "engine/read/block_plan.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdlib.h>

struct vv_block_plan_cut {
	struct vv_part part;
	size_t block;
};

int vv_block_plan_add(struct vv_block_plan *p, uint64_t pos, uint64_t len, struct vv_part first)
{
	for (uint64_t done = 0; done < len;) {
		struct vv_part part = first;
		int64_t n = vv_layer_file_locate(p->file, pos + done, len - done, &p->cursor, &part.from);

		if (n < 0)
			return (int)n;
		if (vv_mem_room(&p->cut, p->n, &p->cap, sizeof(*p->cut)) < 0)
			return VV_ENOMEM;
		part.pos = pos + done;
		if (part.region == VV_PART_MEMORY)
			part.to += done;
		else
			part.at += done;
		part.len = (uint32_t)n;
		p->cut[p->n++] = (struct vv_block_plan_cut){ part, p->cursor.block };
		done += (uint64_t)n;
	}
	return 0;
}

static int by_from(const void *a, const void *b)
{
	const struct vv_part *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

void vv_block_plan_sort(struct vv_part *part, size_t n, int (*compare)(const void *a, const void *b))
{
	for (size_t i = 1; i < n; i++)
		if (compare(&part[i - 1], &part[i]) > 0) {
			qsort(part, n, sizeof(*part), compare);
			return;
		}
}

static void finish_block(struct vv_block_plan *p, const struct vv_block *b, struct vv_part *part, size_t n)
{
	uint64_t used = 0;

	vv_block_plan_sort(part, n, by_from);
	for (size_t i = 0; i < n; i++)
		used += part[i].len;
	if (b->codec == 0 && used && used < b->raw_len)
		p->spare += b->raw_len - used;
}

/* A counting sort. */
int vv_block_plan_group(struct vv_block_plan *p)
{
	const struct vv_blocks *b = &p->file->blocks;

	p->end = vv_mem_new(b->n + 2, sizeof(*p->end));
	p->part = vv_mem_new(p->n, sizeof(*p->part));
	if (!p->end || !p->part)
		return VV_ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		p->end[p->cut[i].block + 1]++;
	for (size_t k = 1; k < b->n; k++)
		p->end[k] += p->end[k - 1];
	for (size_t i = 0; i < p->n; i++)
		p->part[p->end[p->cut[i].block]++] = p->cut[i].part;
	for (size_t k = 0, first = 0; k < b->n; first = p->end[k++])
		finish_block(p, &b->v[k], p->part + first, p->end[k] - first);
	vv_mem_free(p->cut);
	p->cut = NULL;
	return 0;
}

/* If the digests are damaged the blocks may still be intact. */
int vv_block_plan_digests(const struct vv_block_plan *p)
{
	uint64_t len = vv_layer_section(&p->file->frame, VV_SECTION_DIGESTS)->len;
	int rc = 0;

	if (p->file->head.digest_kind == VV_DIGEST_XXH3 && p->spare > 2 * len)
		rc = vv_layer_file_load_digests(p->file);
	if (rc && rc != VV_ENOMEM) {
		vv_err_clear();
		rc = 0;
	}
	return rc;
}

void vv_block_plan_fini(struct vv_block_plan *p)
{
	vv_mem_free(p->cut);
	vv_mem_free(p->part);
	vv_mem_free(p->end);
	*p = (struct vv_block_plan){ 0 };
}
