/* The sizes that the ranks of an epoch hold and store, a line for each rank, and their totals. */
#ifndef VV_CLI_BASE_SUMMARY_H
#define VV_CLI_BASE_SUMMARY_H

#include "base/json.h"
#include "cli/base/out.h"
#include "cli/base/text.h"
#include "core/format/commit.h"
#include "core/format/payload.h"

/* memory = unchanged + known + of_others + fresh, of a rank whose layer was read. */
struct vv_summary_sums {
	uint64_t memory, stored, layer; /* by the commit record */
	uint64_t unchanged;
	uint64_t known;      /* zero, or this rank has it elsewhere */
	uint64_t of_others;  /* other ranks store it, or have stored it */
	uint64_t fresh;      /* stored by this rank, and new */
	uint64_t for_others; /* the part of that which other ranks refer to */
};

struct vv_summary {
	struct vv_text_table table;
	struct vv_summary_sums all;
	uint32_t ranks;
	uint32_t elsewhere; /* ranks whose layers are not in this store */
	uint64_t most;      /* bytes that one rank stored */
	uint32_t most_rank;
	uint32_t codecs;    /* of all blocks, a bit for each number */
	uint64_t ranks_ns, blocked_ns; /* the longest of all ranks */
};

void vv_summary_init(struct vv_summary *s);
void vv_summary_fini(struct vv_summary *s);
/* Adds the next rank; head is NULL if its layer is not in this store. */
void vv_summary_add(struct vv_summary *s, const struct vv_commit_rank *rank, const struct vv_head *head, const struct vv_blocks *blocks);
/* The names of the codecs of these blocks: "zstd", "none, zstd"; "-" without blocks. */
struct vv_text vv_summary_codecs(const struct vv_blocks *b);

int vv_summary_print(struct vv_summary *s, struct vv_out *out);
void vv_summary_put(const struct vv_summary *s, struct vv_json *out); /* as "totals" */

#endif
