/* Groups. An old group has a tree of symbol table nodes, and names in a local heap. A new group has
 * links in the object header, or in a fractal heap with a tree over them. */
#include "reader/hdf5/hdf5_group.h"
#include "base/err.h"
#include "reader/hdf5/hdf5.h"
#include "reader/hdf5/hdf5_btree.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_heap.h"
#include "reader/hdf5/hdf5_link.h"
#include "reader/hdf5/hdf5_priv.h"
#include <string.h>

enum { SLICE = 64, ENTRY_MAX = 2 * 8 + 24, SOFT_SYMBOL = 2 };

struct hdf5_group_members {
	uint32_t node;
	uint64_t heap, heap_len; /* names */
	struct vv_hdf5_heap links;
	struct vv_buf text, target;
};

/* A soft link holds a path. A link into another file holds a byte, the file's name and the path
 * there, each with a zero byte behind it. */
static int note_link(struct vv_hdf5 *h, uint32_t parent, unsigned kind, const uint8_t *name, uint64_t len, struct vv_wire *w)
{
	struct vv_hdf5_link k = { .parent = parent, .kind = (uint8_t)kind, .len = len };
	const uint8_t *target;

	k.target_len = vv_wire_u16(w);
	target = vv_wire_bytes(w, k.target_len);
	if (!target || k.target_len < 2 * (kind == VV_HDF5_OUTSIDE))
		return VV_HDF5_BROKEN;
	if (kind == VV_HDF5_OUTSIDE) {
		target++;
		k.target_len = strnlen((const char *)target, k.target_len - 1);
	}
	return vv_hdf5_link_note(h, &k, (const char *)name, (const char *)target);
}

int vv_hdf5_group_link(struct vv_hdf5 *h, uint32_t parent, const uint8_t *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	unsigned version = vv_wire_u8(&w), flags = vv_wire_u8(&w);
	unsigned kind = flags & 8 ? vv_wire_u8(&w) : VV_HDF5_HARD;
	const uint8_t *name;
	uint64_t len, at;

	/* order of creation, character set */
	vv_wire_bytes(&w, (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0));
	len = vv_hdf5_file_uint(&w, 1u << (flags & 3));
	if (w.bad || version != 1 || len > vv_wire_left(&w))
		return VV_HDF5_BROKEN;
	name = vv_wire_bytes(&w, len);
	if (kind == VV_HDF5_SOFT || kind == VV_HDF5_OUTSIDE)
		return note_link(h, parent, kind, name, len, &w);
	if (kind != VV_HDF5_HARD)
		return 0;
	at = vv_hdf5_file_address(h, &w);
	return w.bad ? VV_HDF5_BROKEN : vv_hdf5_found(h, parent, at, (const char *)name, len);
}

/* Reads a name in the local heap, up to its zero byte. */
static int get_name(struct vv_hdf5 *h, struct hdf5_group_members *m, uint64_t offset, struct vv_buf *to)
{
	to->n = 0;
	while (offset < m->heap_len && to->n < VV_HDF5_PATH) {
		uint64_t left = m->heap_len - offset;
		size_t n = left < SLICE ? left : SLICE;
		uint8_t *room = vv_buf_room(to, n), *end;
		int rc = room ? vv_hdf5_file_get(h, m->heap + offset, room, n) : VV_ENOMEM;

		if (rc)
			return rc;
		end = memchr(room, 0, n);
		to->n += end ? (size_t)(end - room) : n;
		if (end)
			return 0;
		offset += n;
	}
	return VV_HDF5_BROKEN;
}

static int add_symbol(struct vv_hdf5 *h, struct hdf5_group_members *m, uint64_t at, size_t size)
{
	uint8_t text[ENTRY_MAX];
	struct vv_wire w = vv_wire_over(text, size);
	struct vv_hdf5_link k = { .parent = m->node, .kind = VV_HDF5_SOFT };
	uint64_t name, object;
	uint32_t kind;
	int rc = vv_hdf5_file_get(h, at, text, size);

	if (rc)
		return rc;
	name = vv_hdf5_file_length(h, &w);
	object = vv_hdf5_file_address(h, &w);
	kind = vv_wire_u32(&w);
	vv_wire_u32(&w);
	rc = get_name(h, m, name, &m->text);
	if (rc == 0 && kind == SOFT_SYMBOL) { /* the position of its path follows */
		rc = get_name(h, m, vv_wire_u32(&w), &m->target);
		k.len = m->text.n;
		k.target_len = m->target.n;
		return rc ? rc : vv_hdf5_link_note(h, &k, (const char *)m->text.p, (const char *)m->target.p);
	}
	if (rc == 0 && object == VV_HDF5_NOWHERE)
		return 0;
	return rc ? rc : vv_hdf5_found(h, m->node, object, (const char *)m->text.p, m->text.n);
}

static int each_symbols(struct vv_hdf5 *h, void *arg, const uint8_t *key, uint64_t child)
{
	uint8_t text[8];
	/* in the specification, the offset of a name is as long as an address */
	size_t size = h->length_size + h->address_size + 24u;
	struct vv_wire w;
	unsigned n;
	int rc = vv_hdf5_file_first(h, child);

	(void)key;
	if (rc == 0)
		rc = vv_hdf5_file_block(h, child, "SNOD", text, sizeof(text), &w);
	if (rc)
		return rc;
	vv_wire_u16(&w);
	n = vv_wire_u16(&w);
	for (unsigned i = 0; i < n; i++) {
		rc = add_symbol(h, arg, child + sizeof(text) + i * size, size);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int walk_symbols(struct vv_hdf5 *h, const struct vv_hdf5_object *o, struct hdf5_group_members *m)
{
	uint8_t text[8 + 3 * 8];
	struct vv_wire w;
	int rc = vv_hdf5_file_block(h, o->names, "HEAP", text, 8u + 2u * h->length_size + h->address_size, &w);

	if (rc)
		return rc;
	vv_wire_u32(&w);
	m->heap_len = vv_hdf5_file_length(h, &w);
	vv_hdf5_file_length(h, &w);
	m->heap = vv_hdf5_file_address(h, &w);
	if (!vv_hdf5_file_has(h, m->heap, m->heap_len))
		return VV_HDF5_BROKEN;
	return vv_hdf5_btree_each_child(h, o->tree, 0, h->length_size, each_symbols, m);
}

/* A record of the name index: a hash, an ID. */
static int each_link(struct vv_hdf5 *h, void *arg, unsigned kind, const uint8_t *p, size_t n)
{
	struct hdf5_group_members *m = arg;
	int rc;

	if (kind != 5 || n < 4)
		return VV_HDF5_BROKEN;
	m->text.n = 0;
	rc = vv_hdf5_heap_get(h, &m->links, p + 4, n - 4, &m->text);
	return rc ? rc : vv_hdf5_group_link(h, m->node, m->text.p, m->text.n);
}

int vv_hdf5_group_members(struct vv_hdf5 *h, const struct vv_hdf5_object *o)
{
	struct hdf5_group_members m = { .node = o->node };
	int rc = 0;

	if (o->tree != VV_HDF5_NOWHERE)
		rc = walk_symbols(h, o, &m);
	if (rc >= 0 && o->heap != VV_HDF5_NOWHERE && o->index != VV_HDF5_NOWHERE) {
		rc = vv_hdf5_heap_open(h, o->heap, &m.links);
		if (rc == 0)
			rc = vv_hdf5_btree_each_record(h, o->index, true, each_link, &m);
	}
	vv_buf_fini(&m.text);
	vv_buf_fini(&m.target);
	return rc < 0 ? rc : 0;
}
