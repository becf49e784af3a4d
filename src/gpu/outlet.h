/* Transfers the epoch's data from the device into the sink: gathered in one of a few stages, then
 * copied into a room of the sink. Meanwhile other stages are filled. At most VV_OUTLET_ROOMS rooms
 * are in progress. Each is reported to the sink, in order, when its data have arrived. */
#ifndef VV_GPU_OUTLET_H
#define VV_GPU_OUTLET_H

#include "gpu/kernels.h"

enum { VV_OUTLET_STAGES = 4, VV_OUTLET_ROOMS = 4 };

struct vv_outlet_room {
	uint8_t *p;
	size_t len;  /* whole grains */
	size_t used; /* bytes in transit or arrived */
	cudaEvent_t done;
};

struct vv_outlet { /* set by vv_outlet_init; sink and of are set for a pass */
	const struct vv_sink *sink;
	const struct vv_gpu_numbers *of;
	uint64_t expected; /* bytes still to come */
	struct vv_outlet_room room[VV_OUTLET_ROOMS];
	unsigned first, n; /* rooms in progress; the last may not be full */
	uint8_t *stage[VV_OUTLET_STAGES];
	size_t stage_len;
	unsigned next; /* next stage */
	cudaEvent_t gathered[VV_OUTLET_STAGES], empty[VV_OUTLET_STAGES];
	cudaStream_t gather, copy;
};

int vv_outlet_init(struct vv_outlet *o);
void vv_outlet_fini(struct vv_outlet *o);
/* All bytes announced before have come; n more will come. */
void vv_outlet_expect(struct vv_outlet *o, uint64_t n);
/* The next data: the grains of these numbers. The array in device memory must stay until the work
 * on o->gather is done. */
int vv_outlet_gather(struct vv_outlet *o, const uint32_t *number, size_t n);
/* The next data: contiguous whole grains in device memory. */
int vv_outlet_copy(struct vv_outlet *o, const uint8_t *p, size_t len);
/* Reports full rooms to the sink, and waits until at most `most` are in progress. */
int vv_outlet_deliver(struct vv_outlet *o, unsigned most);
/* After a failure: ends all writing into rooms of the sink. */
void vv_outlet_stop(struct vv_outlet *o);

#endif
