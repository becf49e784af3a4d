/* Memory for the work on a batch: device arrays for as many items as a slice can have, and host
 * memory that the device writes. */
#ifndef VV_GPU_WORK_H
#define VV_GPU_WORK_H

#include "gpu/kernels.h"
#include "gpu/outlet.h"

enum { VV_WORK_TURNS = 2 }; /* the data of a batch are in transit during the next batch */

struct vv_work_host {
	struct vv_gpu_counts judged;              /* of a batch, halfway */
	struct vv_gpu_counts done[VV_WORK_TURNS]; /* and at its end */
	uint64_t total[];                         /* per slice, as vv_fused_tally has it */
};

struct vv_work { /* all zero is nothing */
	uint32_t cap;   /* items */
	uint32_t slices;
	void *all;      /* one allocation of device memory for these */
	struct vv_gpu_batch batch;
	uint32_t *fresh[VV_WORK_TURNS];
	uint8_t *stage[VV_OUTLET_STAGES];
	size_t stage_len;
	struct vv_work_host *host;
	struct vv_piece *piece[VV_WORK_TURNS]; /* of the host */
};

void vv_work_fini(struct vv_work *w);
/* Fits the memory to sets of `end` numbers. */
int vv_work_fit(struct vv_work *w, uint32_t end, uint32_t chunk);

#endif
