/* What a flush has written: the blocks of a layer, as they follow one another. Plain bytes that are written piece by piece, because somebody waits for each, are one block in
 * the end: else a program that writes while its memory is stored would get blocks of a few pages, and tables as long as those of all its pages. */
#ifndef VV_ENGINE_WRITE_BLOCK_LIST_H
#define VV_ENGINE_WRITE_BLOCK_LIST_H

#include "core/format/payload.h"
#include <stdbool.h>
#include <sys/uio.h>

struct vv_block_list {
	struct vv_blocks blocks;
	uint64_t pos; /* end of the payload */
	bool open;    /* the last block may go on; its check so far lies in here, aligned as it must be, which the heap is not: */
	uint8_t check[sizeof(struct vv_digest_stream) + _Alignof(struct vv_digest_stream)];
};

void vv_block_list_fini(struct vv_block_list *l);
/* A piece of plain bytes, to be added next: the check of the block that they will be in, which has no more than `most` bytes. */
uint64_t vv_block_list_check_piece(struct vv_block_list *l, const struct iovec *part, int n, size_t len, size_t most);
/* It has been written. */
int vv_block_list_add_piece(struct vv_block_list *l, size_t len, uint64_t check);
/* A block has been written. */
int vv_block_list_add(struct vv_block_list *l, uint32_t codec, size_t raw_len, size_t stored_len, uint64_t check);

#endif
