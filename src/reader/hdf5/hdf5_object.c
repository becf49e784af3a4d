/* Object headers of both kinds: a block of messages, and continuation blocks. */
#include "reader/hdf5/hdf5_object.h"
#include "base/err.h"
#include "base/mem.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"
#include "reader/hdf5/hdf5_shared.h"
#include <string.h>

enum { NOTHING = 0, ATTRIBUTE = 12, CONTINUATION = 16, BLOCKS = 4096, SHARED = 2 };

struct hdf5_object_block {
	uint64_t at, len; /* of its messages */
};

struct hdf5_object_walk {
	bool new_kind;      /* version 2 */
	unsigned head;      /* bytes before a message's body */
	struct hdf5_object_block *block;
	size_t n, cap;
	struct vv_buf body; /* of a message */
	vv_hdf5_each_message *each;
	void *arg;
};

static int add_block(struct hdf5_object_walk *k, uint64_t at, uint64_t len)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->block[i].at == at)
			return VV_HDF5_BROKEN;
	if (k->n == BLOCKS || len < k->head)
		return VV_HDF5_BROKEN;
	if (vv_mem_room(&k->block, k->n, &k->cap, sizeof(*k->block)))
		return VV_ENOMEM;
	k->block[k->n++] = (struct hdf5_object_block){ at, len };
	return 0;
}

/* Blocks of version 2 have a magic word before the messages, and a checksum behind them. */
static int continue_at(struct vv_hdf5 *h, struct hdf5_object_walk *k, const struct vv_hdf5_message *m)
{
	struct vv_wire w = vv_wire_over(m->p, m->n);
	uint64_t at = vv_hdf5_file_address(h, &w), len = vv_hdf5_file_length(h, &w);
	uint8_t magic[4];
	int rc;

	if (w.bad || !vv_hdf5_file_has(h, at, len))
		return VV_HDF5_BROKEN;
	if (!k->new_kind)
		return add_block(k, at, len);
	if (len < 8)
		return VV_HDF5_BROKEN;
	rc = vv_hdf5_file_block(h, at, "OCHK", magic, sizeof(magic), &w);
	return rc ? rc : add_block(k, at + 4, len - 8);
}

/* Passes on the message at m->at. */
static int hand_over(struct vv_hdf5 *h, struct hdf5_object_walk *k, struct vv_hdf5_message *m, unsigned flags)
{
	struct vv_buf shared = { 0 };
	int rc;

	k->body.n = 0;
	m->p = vv_buf_room(&k->body, m->n + 1);
	if (!m->p)
		return VV_ENOMEM;
	rc = vv_hdf5_file_get(h, m->at, k->body.p, m->n);
	if (rc)
		return rc;
	if (m->type == CONTINUATION)
		return continue_at(h, k, m);
	if (!(flags & SHARED))
		return k->each(h, k->arg, m);
	rc = vv_hdf5_shared_get(h, m, &shared);
	if (rc == 0) {
		m->p = shared.p;
		m->n = shared.n;
		m->at = VV_HDF5_NOWHERE;
		rc = k->each(h, k->arg, m);
	}
	vv_buf_fini(&shared);
	return rc;
}

/* An unreadable message may define the meaning of others: the rest is walked, but the object is
 * treated as incomplete. */
static int walk_block(struct vv_hdf5 *h, struct hdf5_object_walk *k, struct hdf5_object_block b)
{
	uint8_t head[8];
	int worst = 0;

	while (b.len >= k->head) {
		struct vv_hdf5_message m;
		struct vv_wire w = vv_wire_over(head, k->head);
		int rc = vv_hdf5_file_get(h, b.at, head, k->head);
		unsigned flags;

		if (rc)
			return rc;
		m.type = k->new_kind ? vv_wire_u8(&w) : vv_wire_u16(&w);
		m.n = vv_wire_u16(&w);
		m.at = b.at + k->head;
		flags = vv_wire_u8(&w);
		if (m.n > b.len - k->head)
			return VV_HDF5_BROKEN;
		b.at += k->head + m.n;
		b.len -= k->head + m.n;
		if (m.type == NOTHING || m.type == ATTRIBUTE)
			continue;
		rc = hand_over(h, k, &m, flags);
		if (rc < 0 || rc == VV_HDF5_FOUND)
			return rc;
		worst = rc ? rc : worst;
	}
	return worst;
}

static int open_old(struct vv_hdf5 *h, uint64_t at, struct hdf5_object_walk *k, const uint8_t *prefix)
{
	struct vv_wire w = vv_wire_over(prefix + 8, 4);
	uint32_t len = vv_wire_u32(&w);

	k->head = 8;
	return prefix[0] == 1 && vv_hdf5_file_has(h, at, 16 + (uint64_t)len) ? add_block(k, at + 16, len) : VV_HDF5_BROKEN;
}

static int open_new(struct vv_hdf5 *h, uint64_t at, struct hdf5_object_walk *k, const uint8_t *prefix)
{
	unsigned flags = prefix[5], size = 1u << (flags & 3);
	uint64_t len_at = at + 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0), len;
	uint8_t text[8];
	struct vv_wire w = vv_wire_over(text, size);
	int rc = prefix[4] == 2 ? vv_hdf5_file_get(h, len_at, text, size) : VV_HDF5_BROKEN;

	if (rc)
		return rc;
	len = vv_hdf5_file_uint(&w, size);
	k->new_kind = true;
	k->head = flags & 4 ? 6 : 4;
	return vv_hdf5_file_has(h, len_at + size, len) ? add_block(k, len_at + size, len) : VV_HDF5_BROKEN;
}

int vv_hdf5_object_each(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_message *each, void *arg)
{
	struct hdf5_object_walk k = { .each = each, .arg = arg };
	uint8_t prefix[12];
	int rc = vv_hdf5_file_get(h, at, prefix, sizeof(prefix)), worst;

	if (rc == 0)
		rc = memcmp(prefix, "OHDR", 4) == 0 ? open_new(h, at, &k, prefix) : open_old(h, at, &k, prefix);
	worst = rc;
	for (size_t i = 0; rc >= 0 && rc != VV_HDF5_FOUND && i < k.n; i++) {
		rc = walk_block(h, &k, k.block[i]);
		worst = rc ? rc : worst;
	}
	vv_mem_free(k.block);
	vv_buf_fini(&k.body);
	return worst;
}
