/* HDF5, and netCDF-4, which is HDF5: the superblock, and a walk over all objects reachable from the
 * root. Each object is visited once, by the first of its names (the others are links). An invalid
 * object is skipped without effect on others. */
#include "reader/hdf5/hdf5.h"
#include "base/err.h"
#include "base/mem.h"
#include "reader/hdf5/hdf5_dataset.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_group.h"
#include "reader/hdf5/hdf5_link.h"
#include "reader/hdf5/hdf5_object.h"
#include "reader/hdf5/hdf5_priv.h"
#include "reader/hdf5/hdf5_shared.h"
#include <string.h>

enum { SUPERBLOCK = 96, FIRST_PLACE = 512, SYMBOLS = 0x11, LINK = 6, LINK_INFO = 2 };

static const uint8_t magic[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };

static uint64_t next_place(uint64_t at)
{
	return at ? 2 * at : FIRST_PLACE;
}

/* Searches from *at on, which is one of 0, 512, 1024, 2048, ...: the bytes before are the user
 * block. */
static int find_superblock(const struct vv_reader_file *f, uint64_t *at)
{
	uint8_t text[sizeof(magic)];

	for (; *at < f->len && f->len - *at >= sizeof(magic); *at = next_place(*at)) {
		int rc = f->read(f->arg, *at, text, sizeof(text));

		if (rc || memcmp(text, magic, sizeof(magic)) == 0)
			return rc;
		if (*at >> 62)
			break;
	}
	return VV_HDF5_BROKEN;
}

static bool is_hdf5(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	uint64_t at = 0;

	for (; at + sizeof(magic) <= n; at = next_place(at))
		if (memcmp(head + at, magic, sizeof(magic)) == 0)
			return true;
	return find_superblock(f, &at) == 0;
}

/* Versions 0 and 1: the root group is an entry of a symbol table. */
static void parse_old(struct vv_hdf5 *h, struct vv_wire *w, unsigned version)
{
	vv_wire_bytes(w, 4); /* versions of parts */
	h->address_size = vv_wire_u8(w);
	h->length_size = vv_wire_u8(w);
	vv_wire_bytes(w, 1 + 4 + 4 + (version ? 4u : 0));
	/* base, free space, end, driver; a name */
	vv_wire_bytes(w, 4u * h->address_size + h->length_size);
}

static void parse_new(struct vv_hdf5 *h, struct vv_wire *w)
{
	h->address_size = vv_wire_u8(w);
	h->length_size = vv_wire_u8(w);
	vv_wire_u8(w);
	vv_wire_bytes(w, h->address_size); /* base */
}

static bool size_known(unsigned size)
{
	return size == 2 || size == 4 || size == 8;
}

/* The base is the position of the superblock, whatever its own field contains: a user block may
 * have been added later. */
static int open_superblock(struct vv_hdf5 *h)
{
	uint8_t text[SUPERBLOCK];
	struct vv_wire w;
	size_t n;
	unsigned version;
	int rc = find_superblock(h->f, &h->base);

	if (rc)
		return rc;
	n = h->f->len - h->base < sizeof(text) ? h->f->len - h->base : sizeof(text);
	rc = vv_hdf5_file_get(h, 0, text, n);
	if (rc)
		return rc;
	w = vv_wire_over(text + sizeof(magic), n - sizeof(magic));
	version = vv_wire_u8(&w);
	h->extension = VV_HDF5_NOWHERE;
	if (version > 3)
		return VV_HDF5_BROKEN;
	if (version < 2)
		parse_old(h, &w, version);
	else
		parse_new(h, &w);
	if (!size_known(h->address_size) || !size_known(h->length_size))
		return VV_HDF5_BROKEN;
	if (version >= 2) {
		h->extension = vv_hdf5_file_address(h, &w);
		vv_hdf5_file_address(h, &w); /* the end of the file */
	}
	h->root = vv_hdf5_file_address(h, &w);
	return w.bad ? VV_HDF5_BROKEN : 0;
}

int vv_hdf5_found(struct vv_hdf5 *h, uint32_t parent, uint64_t at, const char *name, size_t len)
{
	uint32_t depth = h->n_nodes ? h->node[parent].depth + 1 : 0;
	int rc;

	if (h->n_nodes >= VV_HDF5_OBJECTS || len > VV_HDF5_PATH || depth > VV_HDF5_PATH || h->names.n > VV_HDF5_NAMES)
		return VV_HDF5_BROKEN;
	rc = vv_hdf5_file_first(h, at);
	if (rc > 0)
		return vv_hdf5_link_note(h, &(struct vv_hdf5_link){ .parent = parent, .kind = VV_HDF5_HARD, .at = at, .len = len }, name, NULL);
	if (rc)
		return rc;
	if (vv_mem_room(&h->node, h->n_nodes, &h->nodes_cap, sizeof(*h->node)))
		return VV_ENOMEM;
	h->node[h->n_nodes++] = (struct vv_hdf5_node){ at, parent, depth, h->names.n, len };
	vv_buf_add(&h->names, name, len);
	return h->names.failed ? VV_ENOMEM : 0;
}

/* The path is assembled from its end. */
int vv_hdf5_path(struct vv_hdf5 *h, uint32_t node, char to[VV_HDF5_PATH], size_t *len)
{
	size_t n = 0;

	for (uint32_t i = node; i; i = h->node[i].parent) {
		const struct vv_hdf5_node *k = &h->node[i];

		if (n + k->len + 1 > VV_HDF5_PATH)
			return VV_HDF5_BROKEN;
		n += k->len + 1;
		if (k->len)
			memcpy(to + VV_HDF5_PATH - n + 1, h->names.p + k->name, k->len);
		to[VV_HDF5_PATH - n] = '/';
	}
	if (n == 0)
		to[VV_HDF5_PATH - ++n] = '/';
	*len = n;
	return vv_hdf5_file_spend(h, n);
}

static int parse_symbols(struct vv_hdf5 *h, struct vv_hdf5_object *o, struct vv_wire *w)
{
	uint64_t tree = vv_hdf5_file_address(h, w), names = vv_hdf5_file_address(h, w);

	if (w->bad)
		return VV_HDF5_BROKEN;
	o->tree = tree;
	o->names = names;
	return 0;
}

static int parse_link_info(struct vv_hdf5 *h, struct vv_hdf5_object *o, struct vv_wire *w)
{
	unsigned version = vv_wire_u8(w), flags = vv_wire_u8(w);
	uint64_t heap, index;

	vv_wire_bytes(w, flags & 1 ? 8 : 0);
	heap = vv_hdf5_file_address(h, w);
	index = vv_hdf5_file_address(h, w);
	if (w->bad || version != 0)
		return VV_HDF5_BROKEN;
	o->heap = heap;
	o->index = index;
	return 0;
}

static int each_message(struct vv_hdf5 *h, void *arg, const struct vv_hdf5_message *m)
{
	struct vv_hdf5_object *o = arg;
	struct vv_wire w = vv_wire_over(m->p, m->n);

	switch (m->type) {
	case SYMBOLS:
		return parse_symbols(h, o, &w);
	case LINK_INFO:
		return parse_link_info(h, o, &w);
	case LINK:
		return vv_hdf5_group_link(h, o->node, m->p, m->n);
	}
	return vv_hdf5_dataset_message(h, o, m);
}

static int visit(struct vv_hdf5 *h, uint32_t node)
{
	struct vv_hdf5_object o = {
		.node = node, .tree = VV_HDF5_NOWHERE, .names = VV_HDF5_NOWHERE, .heap = VV_HDF5_NOWHERE, .index = VV_HDF5_NOWHERE
	};
	char path[VV_HDF5_PATH];
	size_t len;
	int rc = vv_hdf5_object_each(h, h->node[node].at, each_message, &o);

	if (rc < 0)
		return rc;
	/* a group, which may have lost some of its members */
	if (rc || (o.has & VV_HDF5_HAS_PARTS) != VV_HDF5_HAS_PARTS)
		return vv_hdf5_group_members(h, &o);
	rc = vv_hdf5_path(h, node, path, &len);
	return rc ? rc : vv_hdf5_dataset_add(h, &o, path + VV_HDF5_PATH - len, len);
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct vv_hdf5 h = { .f = f, .out = out };
	int rc = vv_hdf5_file_open(&h);

	if (rc == 0)
		rc = open_superblock(&h);
	if (rc == 0)
		rc = vv_hdf5_shared_open(&h);
	if (rc == 0)
		rc = vv_hdf5_found(&h, 0, h.root, "", 0);
	for (uint32_t i = 0; rc >= 0 && i < h.n_nodes; i++)
		rc = visit(&h, i);
	if (rc >= 0)
		rc = vv_hdf5_link_add_all(&h);
	vv_hdf5_file_close(&h);
	vv_mem_free(h.node);
	vv_mem_free(h.link);
	vv_buf_fini(&h.names);
	return rc < 0 ? rc : 0;
}

const struct vv_reader vv_reader_hdf5 = { .name = "hdf5", .is = is_hdf5, .outline = outline };
