/* The commit record, which commits an epoch, and the record that marks a lineage. docs/format.md,
 * sections 6, 7. */
#ifndef VV_CORE_FORMAT_COMMIT_H
#define VV_CORE_FORMAT_COMMIT_H

#include "base/wire.h"
#include "core/format/digest.h"

struct vv_commit_rank {
	struct vv_digest head;
	uint64_t file_len;
	uint64_t payload;
	uint64_t memory; /* bytes of its regions */
	uint64_t stored; /* bytes of its blocks */
	/* 0, or for ranks with stores of their own: 1 + the lowest rank that stored in the same
	 * one */
	uint64_t storage_node;
};

struct vv_commit {
	uint8_t lineage[16];
	uint64_t epoch;
	uint64_t parent;
	uint64_t time_ns;
	uint32_t n_ranks;
	struct vv_commit_rank *rank;
};

struct vv_commit_sums { /* over all ranks */
	uint64_t memory, stored, file_len;
};

enum { VV_COMMIT_FIXED = 64, VV_COMMIT_PER_RANK = 64, VV_COMMIT_LINEAGE = 56 };

void vv_commit_fini(struct vv_commit *c);
struct vv_commit_sums vv_commit_sum(const struct vv_commit *c);
void vv_commit_put(const struct vv_commit *c, struct vv_buf *out);
int vv_commit_get(struct vv_commit *c, const void *p, size_t n);
/* Are the records the same, byte for byte? */
bool vv_commit_is_same(const struct vv_commit *a, const struct vv_commit *b);

void vv_commit_put_lineage(const uint8_t id[16], uint64_t time_ns, struct vv_buf *out);
int vv_commit_get_lineage(uint8_t id[16], uint64_t *time_ns, const void *p, size_t n);

#endif
