/* Links without an object of their own: further names of a known object, soft links, links into
 * other files. Their targets may be found later, so they are recorded, and resolved to paths at the
 * end. */
#include "reader/hdf5/hdf5_link.h"
#include "base/err.h"
#include "base/mem.h"
#include "reader/hdf5/hdf5.h"
#include "reader/hdf5/hdf5_priv.h"
#include <stdlib.h>
#include <string.h>

struct hdf5_link_place {
	uint64_t at;
	uint32_t node;
};

int vv_hdf5_link_note(struct vv_hdf5 *h, const struct vv_hdf5_link *k, const char *name, const char *target)
{
	struct vv_hdf5_link new = *k;

	if (h->n_links >= VV_HDF5_OBJECTS || k->len > VV_HDF5_PATH || k->target_len > VV_HDF5_PATH ||
	    h->names.n > VV_HDF5_NAMES)
		return VV_HDF5_BROKEN;
	if (vv_mem_room(&h->link, h->n_links, &h->links_cap, sizeof(*h->link)))
		return VV_ENOMEM;
	new.name = h->names.n;
	vv_buf_add(&h->names, name, k->len);
	new.target = h->names.n;
	if (k->target_len)
		vv_buf_add(&h->names, target, k->target_len);
	h->link[h->n_links++] = new;
	return h->names.failed ? VV_ENOMEM : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct hdf5_link_place *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Sets `to` to the path of a node, a slash, and `len` bytes of `name`. */
static int join(struct vv_hdf5 *h, uint32_t node, const char *name, size_t len, struct vv_buf *to)
{
	char path[VV_HDF5_PATH];
	size_t n;
	int rc = vv_hdf5_path(h, node, path, &n);

	if (rc)
		return rc;
	to->n = 0;
	/* the path "/" of the root is omitted */
	vv_buf_add(to, path + VV_HDF5_PATH - n, n > 1 ? n : 0);
	vv_buf_add(to, "/", 1);
	if (len)
		vv_buf_add(to, name, len);
	return to->failed ? VV_ENOMEM : 0;
}

static int find_target(struct vv_hdf5 *h, const struct vv_hdf5_link *k, const struct hdf5_link_place *places, struct vv_buf *to)
{
	const char *text = (const char *)h->names.p + k->target;
	const struct hdf5_link_place *found;

	if (k->kind == VV_HDF5_HARD) {
		found = bsearch(&(struct hdf5_link_place){.at = k->at}, places, h->n_nodes, sizeof(*places), by_place);
		return found ? join(h, found->node, NULL, 0, to) : VV_HDF5_BROKEN;
	}
	if (k->kind == VV_HDF5_SOFT && (k->target_len == 0 || text[0] != '/'))
		return join(h, k->parent, text, k->target_len, to);
	to->n = 0;
	vv_buf_add(to, text, k->target_len);
	return to->failed ? VV_ENOMEM : 0;
}

int vv_hdf5_link_add_all(struct vv_hdf5 *h)
{
	struct hdf5_link_place *places = h->n_links ? vv_mem_new(h->n_nodes, sizeof(*places)) : NULL;
	struct vv_buf name = {0}, target = {0};
	int rc = h->n_links && !places ? VV_ENOMEM : 0;

	for (uint32_t i = 0; rc == 0 && places && i < h->n_nodes; i++)
		places[i] = (struct hdf5_link_place){h->node[i].at, i};
	if (rc == 0 && places)
		qsort(places, h->n_nodes, sizeof(*places), by_place);
	for (size_t i = 0; rc >= 0 && i < h->n_links; i++) {
		const struct vv_hdf5_link *k = &h->link[i];

		rc = join(h, k->parent, (const char *)h->names.p + k->name, k->len, &name);
		if (rc == 0)
			rc = find_target(h, k, places, &target);
		if (rc == 0)
			rc = vv_reader_add_link(h->out, (const char *)name.p, name.n, (const char *)target.p, target.n,
						k->kind == VV_HDF5_OUTSIDE);
	}
	vv_mem_free(places);
	vv_buf_fini(&name);
	vv_buf_fini(&target);
	return rc;
}
