/* Messages that are stored once for several objects. A named datatype is a separate object. A file
 * may keep other messages in heaps, one for each set of message types. */
#include "reader/hdf5/hdf5_shared.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_heap.h"
#include "reader/hdf5/hdf5_object.h"
#include "reader/hdf5/hdf5_priv.h"

enum { OLD_FILL = 4, FILL = 5, TABLE = 0x0f, ID = 8, INDEXES = 8, IN_HEAP = 1 };

static int find_table(struct vv_hdf5 *h, void *arg, const struct vv_hdf5_message *m)
{
	struct vv_wire w = vv_wire_over(m->p, m->n);

	(void)arg;
	if (m->type != TABLE)
		return 0;
	vv_wire_u8(&w);
	h->shared = vv_hdf5_file_address(h, &w);
	return w.bad ? VV_HDF5_BROKEN : VV_HDF5_FOUND;
}

int vv_hdf5_shared_open(struct vv_hdf5 *h)
{
	int rc;

	h->shared = VV_HDF5_NOWHERE;
	if (h->extension == VV_HDF5_NOWHERE)
		return 0;
	rc = vv_hdf5_object_each(h, h->extension, find_table, NULL);
	return rc < 0 ? rc : 0;
}

/* Finds the heap of messages of a type. The number of entries of the table is stored elsewhere; the
 * requested one exists. */
static int find_heap(struct vv_hdf5 *h, unsigned type, uint64_t *heap)
{
	uint8_t text[14 + 2 * 8];
	size_t entry = 14 + 2u * h->address_size;
	struct vv_wire w;
	int rc = vv_hdf5_file_block(h, h->shared, "SMTB", text, 4, &w);

	type = type == OLD_FILL ? FILL : type;
	for (unsigned i = 0; rc == 0 && i < INDEXES; i++) {
		rc = vv_hdf5_file_get(h, h->shared + 4 + i * entry, text, entry);
		w = vv_wire_over(text, entry);
		vv_wire_u16(&w); /* version, kind of index */
		if (rc || !(type < 16 && vv_wire_u16(&w) >> type & 1))
			continue;
		vv_wire_bytes(&w, 10); /* sizes, counts */
		vv_hdf5_file_address(h, &w);
		*heap = vv_hdf5_file_address(h, &w);
		return 0;
	}
	return rc ? rc : VV_HDF5_BROKEN;
}

static int from_heap(struct vv_hdf5 *h, unsigned type, struct vv_wire *w, struct vv_buf *to)
{
	const uint8_t *id = vv_wire_bytes(w, ID);
	struct vv_hdf5_heap heap;
	uint64_t at;
	int rc = id ? find_heap(h, type, &at) : VV_HDF5_BROKEN;

	if (rc == 0)
		rc = vv_hdf5_heap_open(h, at, &heap);
	return rc ? rc : vv_hdf5_heap_get(h, &heap, id, ID, to);
}

struct hdf5_shared_wanted {
	unsigned type;
	struct vv_buf *to;
};

static int take(struct vv_hdf5 *h, void *arg, const struct vv_hdf5_message *m)
{
	struct hdf5_shared_wanted *want = arg;

	(void)h;
	if (m->type != want->type || m->at == VV_HDF5_NOWHERE)
		return 0;
	vv_buf_add(want->to, m->p, m->n);
	return want->to->failed ? VV_ENOMEM : VV_HDF5_FOUND;
}

/* Reads the same message of another object; a message that is itself shared is not followed
 * further. */
static int from_object(struct vv_hdf5 *h, unsigned type, uint64_t at, struct vv_buf *to)
{
	struct hdf5_shared_wanted want = { type, to };
	int rc;

	if (h->following)
		return VV_HDF5_BROKEN;
	h->following = true;
	rc = vv_hdf5_object_each(h, at, take, &want);
	h->following = false;
	return rc == VV_HDF5_FOUND ? 0 : rc ? rc : VV_HDF5_BROKEN;
}

int vv_hdf5_shared_get(struct vv_hdf5 *h, const struct vv_hdf5_message *m, struct vv_buf *to)
{
	struct vv_wire w = vv_wire_over(m->p, m->n);
	unsigned version = vv_wire_u8(&w), kind = vv_wire_u8(&w);
	uint64_t at;

	if (version == 3 && kind == IN_HEAP)
		return from_heap(h, m->type, &w, to);
	if (version == 1) /* an entry of a symbol table: reserved bytes, the offset of a name */
		vv_wire_bytes(&w, 6u + h->length_size);
	at = vv_hdf5_file_address(h, &w);
	return w.bad || version < 1 || version > 3 ? VV_HDF5_BROKEN : from_object(h, m->type, at, to);
}
