#include "engine/write/block_list.h"

void vv_block_list_fini(struct vv_block_list *l)
{
	vv_payload_blocks_fini(&l->blocks);
	l->open = false;
}

static struct vv_digest_stream *check_of(struct vv_block_list *l)
{
	uintptr_t unit = _Alignof(struct vv_digest_stream), at = (uintptr_t)l->check;

	return (struct vv_digest_stream *)(void *)(l->check + (unit - at % unit) % unit);
}

static struct vv_block *last_block(struct vv_block_list *l)
{
	return &l->blocks.v[l->blocks.n - 1];
}

uint64_t vv_block_list_check_piece(struct vv_block_list *l, const struct iovec *part, int n, size_t len, size_t most)
{
	l->open = l->open && last_block(l)->raw_len + len <= most;
	if (!l->open)
		vv_digest_stream_init(check_of(l));
	for (int i = 0; i < n; i++)
		vv_digest_stream_add(check_of(l), part[i].iov_base, part[i].iov_len);
	return vv_digest_stream_check(check_of(l));
}

int vv_block_list_add_piece(struct vv_block_list *l, size_t len, uint64_t check)
{
	int rc;

	if (l->open) {
		last_block(l)->raw_len += (uint32_t)len;
		last_block(l)->stored_len += (uint32_t)len;
		last_block(l)->check = check;
		rc = vv_payload_extent_add(&l->blocks.extent, l->pos, len, 1);
		l->pos += len;
		return rc;
	}
	rc = vv_block_list_add(l, 0, len, len, check);
	l->open = rc == 0;
	return rc;
}

int vv_block_list_add(struct vv_block_list *l, uint32_t codec, size_t raw_len, size_t stored_len, uint64_t check)
{
	int rc = vv_payload_extent_add(&l->blocks.extent, l->pos, raw_len, 0);

	if (rc == 0)
		rc = vv_payload_block_add(&l->blocks, codec, (uint32_t)raw_len, (uint32_t)stored_len, check);
	l->pos += raw_len;
	l->open = false;
	return rc;
}
