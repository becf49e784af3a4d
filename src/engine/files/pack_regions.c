#include "engine/files/pack_regions.h"
#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SHORT = 200 }; /* a region has the full name of its file up to this length */

static int by_place(const void *a, const void *b)
{
	const struct vv_run *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts the runs and joins adjacent ones. */
static int sort_and_join(struct vv_runs *from, struct vv_runs *out)
{
	int rc = 0;

	if (from->n)
		qsort(from->v, from->n, sizeof(*from->v), by_place);
	for (size_t i = 0; rc == 0 && i < from->n; i++)
		rc = vv_run_add(out, from->v[i]);
	vv_run_fini(from);
	return rc;
}

static int copy_runs(const struct vv_runs *from, struct vv_runs *out)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < from->n; i++)
		rc = vv_run_add(out, from->v[i]);
	return rc;
}

static struct vv_head_region *add_region(struct vv_head *h, const char *name, uint64_t len, size_t chunk)
{
	struct vv_head_region *r = &h->region[h->n_regions];

	r->name = vv_mem_strdup(name);
	if (!r->name)
		return NULL;
	r->shape = (struct vv_shape){ .len = len, .chunk = (uint32_t)chunk };
	h->n_regions++;
	return r;
}

/* A region has the name of its file. If that is too long, it has the end of the name and the number
 * of the file. */
static void region_name(const char *name, size_t i, char out[VV_MAX_NAME + 1])
{
	size_t n = strlen(name);

	if (n > NAME_SHORT)
		snprintf(out, VV_MAX_NAME + 1, "...%s#%zu", name + n - NAME_SHORT, i);
	else if (strncmp(name, "...", 3) == 0) /* must not be confused with a shortened name */
		snprintf(out, VV_MAX_NAME + 1, "%s#%zu", name, i);
	else
		snprintf(out, VV_MAX_NAME + 1, "%s", name);
}

int vv_pack_regions_write(struct vv_file_set *c, struct vv_runs *manifest, size_t manifest_len, size_t chunk, struct vv_layer_writer *p)
{
	struct vv_head *h = &p->head;
	struct vv_head_region *r;
	int rc = 0;

	vv_mem_free(h->region);
	h->n_regions = 0;
	h->region = vv_mem_new(c->n_files + 1, sizeof(*h->region));
	if (!h->region)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < c->n_files; i++) {
		struct vv_file_set_file *f = &c->file[i];
		char name[VV_MAX_NAME + 1];

		region_name(f->name, i, name);
		r = add_region(h, name, (uint64_t)f->st.st_size, chunk);
		if (!r)
			return VV_ENOMEM;
		if (!f->repeats) {
			rc = sort_and_join(&f->runs, &r->runs);
			continue;
		}
		rc = copy_runs(&h->region[f->repeats - 1].runs, &r->runs);
		p->st.bytes_dup_space += r->shape.len;
	}
	r = rc ? NULL : add_region(h, VV_MANIFEST_REGION, manifest_len, chunk);
	if (rc == 0 && !r)
		rc = VV_ENOMEM;
	if (rc == 0) {
		r->runs = *manifest;
		*manifest = (struct vv_runs){ 0 };
	}
	p->st.bytes_memory = p->st.bytes_dirty = c->bytes + manifest_len;
	return rc;
}
