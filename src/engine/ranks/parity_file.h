/* The objects of a parity job, open for reading: layers, and the parity of their ranks. */
#ifndef VV_ENGINE_RANKS_PARITY_FILE_H
#define VV_ENGINE_RANKS_PARITY_FILE_H

#include "engine/lineage_handle.h"
#include "engine/ranks/parity_job.h"
#include "store/store.h"

/* Reads the head of a parity object. VV_EDAMAGED, VV_ENOENT or an error of the store. */
int vv_parity_file_head(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, uint32_t ranks, struct vv_parity_head *out);
/* Reads the end of a member's parity object, which must be of the job's set. The same errors. */
int vv_parity_file_checks(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, struct vv_parity_checks *out);

struct vv_parity_file {
	struct vv_get *layer, *parity; /* opened at the first read */
	struct vv_parity_checks checks; /* as the member's parity object has them, */
	bool asked;                     /* if it is in this store and intact */
	uint64_t *found;   /* checks of the layer's blocks as they were read, */
	uint8_t *was_read; /* if they were */
};

int vv_parity_file_init(struct vv_parity_file *f, const struct vv_parity_job *j, size_t member);
void vv_parity_file_fini(struct vv_parity_file *f);
/* Reads a block of the layer or the parity, of b->len bytes. VV_EDAMAGED if it is not as it was
 * written. */
int vv_parity_file_read(struct vv_parity_file *f, const struct vv_lineage *lin, const struct vv_parity_job *j, bool parity,
			const struct vv_parity_block *b, uint8_t *to);

#endif
