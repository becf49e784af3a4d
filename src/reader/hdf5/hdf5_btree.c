/* B-trees of both versions. A node's level is one less than its parent's and no node is entered
 * twice, so a walk ends. An invalid node is left out; the others are still walked. */
#include "reader/hdf5/hdf5_btree.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"
#include <string.h>

struct walk1 {
	unsigned kind;
	size_t key;
	vv_hdf5_each_child *each;
	void *arg;
};

static int walk_node1(struct vv_hdf5 *h, const struct walk1 *k, uint64_t at, int level);

static int enter1(struct vv_hdf5 *h, const struct walk1 *k, uint64_t at, int level)
{
	uint8_t text[VV_HDF5_RECORD];
	size_t size = k->key + h->address_size;
	struct vv_wire w;
	uint64_t child;
	int rc = vv_hdf5_file_get(h, at, text, size);

	if (rc)
		return rc;
	w = vv_wire_over(text + k->key, h->address_size);
	child = vv_hdf5_file_address(h, &w);
	return level ? walk_node1(h, k, child, level - 1) : k->each(h, k->arg, text, child);
}

/* level -1: the root, which holds its own level. */
static int walk_node1(struct vv_hdf5 *h, const struct walk1 *k, uint64_t at, int level)
{
	uint8_t text[8 + 2 * 8];
	size_t head = 8 + 2u * h->address_size, size = k->key + h->address_size;
	struct vv_wire w;
	unsigned kind, own, n;
	int rc = vv_hdf5_file_first(h, at), worst = 0;

	if (rc == 0)
		rc = vv_hdf5_file_block(h, at, "TREE", text, head, &w);
	if (rc)
		return rc;
	kind = vv_wire_u8(&w);
	own = vv_wire_u8(&w);
	n = vv_wire_u16(&w);
	if (kind != k->kind || own >= VV_HDF5_LEVELS || (level >= 0 && own != (unsigned)level))
		return VV_HDF5_BROKEN;
	for (unsigned i = 0; i < n; i++) {
		rc = enter1(h, k, at + head + i * size, (int)own);
		if (rc < 0)
			return rc;
		worst = rc ? rc : worst;
	}
	return worst;
}

int vv_hdf5_btree_each_child(struct vv_hdf5 *h, uint64_t at, unsigned kind, size_t key, vv_hdf5_each_child *each, void *arg)
{
	struct walk1 k = { .kind = kind, .key = key, .each = each, .arg = arg };

	if (key + h->address_size > VV_HDF5_RECORD)
		return VV_HDF5_BROKEN;
	return walk_node1(h, &k, at, -1);
}

struct walk2 {
	uint8_t kind;
	size_t record;
	uint8_t count_size;                 /* bytes of a child's record count */
	uint8_t total_size[VV_HDF5_LEVELS]; /* the same for the records of its subtree, by level */
	bool once;
	vv_hdf5_each_record *each;
	void *arg;
};

static uint8_t bytes_for(uint64_t most)
{
	uint8_t n = 1;

	while (n < 8 && most >> (8 * n))
		n++;
	return n;
}

/* The width of counts follows from the maximum number of records in a node of each level. */
static int measure(const struct vv_hdf5 *h, struct walk2 *k, uint32_t node, unsigned depth)
{
	const size_t around = 10; /* magic, version, kind, checksum */
	uint64_t here, total;

	if (depth >= VV_HDF5_LEVELS || k->record == 0 || k->record > VV_HDF5_RECORD || node < around + k->record)
		return VV_HDF5_BROKEN;
	total = (node - around) / k->record;
	k->count_size = bytes_for(total);
	k->total_size[0] = 0;
	for (unsigned i = 1; i <= depth; i++) {
		size_t child = (size_t)h->address_size + k->count_size + k->total_size[i - 1];

		if (node < around + child)
			return VV_HDF5_BROKEN;
		here = (node - around - child) / (k->record + child);
		if (total >= (UINT64_MAX - here) / (here + 1))
			return VV_HDF5_BROKEN;
		total = (here + 1) * total + here;
		k->total_size[i] = bytes_for(total);
	}
	return 0;
}

static int walk_node2(struct vv_hdf5 *h, const struct walk2 *k, uint64_t at, uint64_t n, unsigned level);

static int walk_records(struct vv_hdf5 *h, const struct walk2 *k, uint64_t at, uint64_t n)
{
	uint8_t text[VV_HDF5_RECORD];
	int rc = 0, worst = 0;

	for (uint64_t i = 0; i < n; i++, at += k->record) {
		rc = vv_hdf5_file_get(h, at, text, k->record);
		if (rc == 0)
			rc = k->each(h, k->arg, k->kind, text, k->record);
		if (rc < 0 || rc == VV_HDF5_FOUND)
			return rc;
		worst = rc ? rc : worst;
	}
	return worst;
}

static int walk_children(struct vv_hdf5 *h, const struct walk2 *k, uint64_t at, uint64_t n, unsigned level)
{
	uint8_t text[3 * 8];
	size_t size = (size_t)h->address_size + k->count_size + k->total_size[level - 1];
	int rc = 0, worst = 0;

	for (uint64_t i = 0; i <= n; i++, at += size) {
		struct vv_wire w = vv_wire_over(text, size);
		uint64_t child;

		rc = vv_hdf5_file_get(h, at, text, size);
		child = rc ? 0 : vv_hdf5_file_address(h, &w);
		if (rc == 0)
			rc = walk_node2(h, k, child, vv_hdf5_file_uint(&w, k->count_size), level - 1);
		if (rc < 0 || rc == VV_HDF5_FOUND)
			return rc;
		worst = rc ? rc : worst;
	}
	return worst;
}

static int walk_node2(struct vv_hdf5 *h, const struct walk2 *k, uint64_t at, uint64_t n, unsigned level)
{
	uint8_t text[6];
	struct vv_wire w;
	int rc = k->once ? vv_hdf5_file_first(h, at) : 0, below;

	if (rc == 0)
		rc = vv_hdf5_file_block(h, at, level ? "BTIN" : "BTLF", text, sizeof(text), &w);
	if (rc)
		return rc;
	vv_wire_u8(&w);
	if (vv_wire_u8(&w) != k->kind || n > h->f->len / k->record)
		return VV_HDF5_BROKEN;
	rc = walk_records(h, k, at + sizeof(text), n);
	if (level == 0 || rc < 0 || rc == VV_HDF5_FOUND)
		return rc;
	below = walk_children(h, k, at + sizeof(text) + n * k->record, n, level);
	return below ? below : rc;
}

int vv_hdf5_btree_each_record(struct vv_hdf5 *h, uint64_t at, bool once, vv_hdf5_each_record *each, void *arg)
{
	struct walk2 k = { .once = once, .each = each, .arg = arg };
	uint8_t text[4 + 12 + 8 + 2];
	unsigned depth, n;
	uint32_t node;
	uint64_t root;
	struct vv_wire w;
	int rc = vv_hdf5_file_block(h, at, "BTHD", text, 18u + h->address_size, &w);

	if (rc)
		return rc;
	vv_wire_u8(&w);
	k.kind = vv_wire_u8(&w);
	node = vv_wire_u32(&w);
	k.record = vv_wire_u16(&w);
	depth = vv_wire_u16(&w);
	vv_wire_u16(&w);
	root = vv_hdf5_file_address(h, &w);
	n = vv_wire_u16(&w);
	rc = measure(h, &k, node, depth);
	if (rc || root == VV_HDF5_NOWHERE || n == 0)
		return rc;
	return walk_node2(h, &k, root, n, depth);
}
