/* The parity object of a rank in an epoch: docs/format.md, section 11. core/ranks/parity_plan.h has
 * the layout of the blocks. */
#ifndef VV_CORE_FORMAT_PARITY_H
#define VV_CORE_FORMAT_PARITY_H

#include "base/wire.h"
#include "core/format/digest.h"
#include <stdbool.h>

enum { VV_PARITY_DOMAIN = 64, VV_PARITY_LAYERS = 1 << 16 };

struct vv_parity_layer { /* a layer of the set */
	uint64_t len;
	uint32_t rank;
	uint32_t storage_node; /* 1 + the lowest rank that stored in the same store */
	uint32_t domain; /* the first layer of the set in the same failure domain */
	struct vv_digest head; /* as in the commit record */
	char domain_name[VV_PARITY_DOMAIN];
};

struct vv_parity_head {
	uint8_t lineage[16];
	uint64_t epoch;
	/* All layers that the epoch refers to have parity, and later epochs may refer to those from
	 * this one on. 0: some have none. */
	uint64_t since;
	uint32_t n_ranks, rank; /* of the epoch; whose object it is */
	uint8_t k, m;
	uint32_t block_len;
	size_t n_layers, own; /* own: the place of `rank` */
	struct vv_parity_layer *layer; /* by ascending rank */
};

/* The end of the object. */
struct vv_parity_checks {
	size_t n_parity, n_data;
	uint64_t *parity; /* of its own blocks */
	uint64_t *data;   /* of the blocks of its rank's layer; none if they were not known */
	struct vv_digest *digest; /* of each layer of the set */
};

void vv_parity_head_fini(struct vv_parity_head *h);
void vv_parity_head_put(const struct vv_parity_head *h, struct vv_buf *out);
/* Reads the head of an object of which p[0..n-1] is the beginning. Returns the length of the head,
 * or an error; VV_EDAMAGED. If more than n bytes are needed, returns their number and leaves *h
 * empty. */
int64_t vv_parity_head_get(struct vv_parity_head *h, const void *p, size_t n, uint64_t file_len);
/* Do both describe the same set? */
bool vv_parity_head_same(const struct vv_parity_head *a, const struct vv_parity_head *b);

void vv_parity_checks_fini(struct vv_parity_checks *c);
void vv_parity_checks_put(const struct vv_parity_checks *c, size_t n_layers, struct vv_buf *out);
/* n_parity: the number of blocks by the plan; n_data: of the rank's layer. */
int vv_parity_checks_get(struct vv_parity_checks *c, const void *p, size_t n, size_t n_parity, size_t n_data, size_t n_layers);
static inline uint64_t vv_parity_checks_len(size_t n_parity, size_t n_data, size_t n_layers)
{
	return 8 * (n_parity + 1 + n_data + 2 * n_layers + 1);
}
/* The digest of a layer: that of the checks of its blocks. */
void vv_parity_layer_digest(const uint64_t *check, size_t n, struct vv_digest *out);

#endif
