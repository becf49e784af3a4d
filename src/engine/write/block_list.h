/* The blocks of a layer that a flush has written, in order. Plain bytes that are written in pieces,
 * because a thread waits for each, become one block in the end. Otherwise a program that writes
 * during a flush would cause blocks of a few pages. The tables would be as long as those of all its
 * pages. */
#ifndef VV_ENGINE_WRITE_BLOCK_LIST_H
#define VV_ENGINE_WRITE_BLOCK_LIST_H

#include "core/format/payload.h"
#include <stdbool.h>
#include <sys/uio.h>

struct vv_block_list {
	struct vv_blocks blocks;
	uint64_t pos; /* end of the payload */
	/* The last block may continue. Its check so far is stored here, aligned as required, which
	 * the heap is not: */
	bool open;
	uint8_t check[sizeof(struct vv_digest_stream) + _Alignof(struct vv_digest_stream)];
};

void vv_block_list_fini(struct vv_block_list *l);
/* For a piece of plain bytes that is added next: the check of its block, which has at most `most`
 * bytes. */
uint64_t vv_block_list_check_piece(struct vv_block_list *l, const struct iovec *part, int n, size_t len, size_t most);
/* The piece has been written. */
int vv_block_list_add_piece(struct vv_block_list *l, size_t len, uint64_t check);
/* A block has been written. */
int vv_block_list_add(struct vv_block_list *l, uint32_t codec, size_t raw_len, size_t stored_len, uint64_t check);

#endif
