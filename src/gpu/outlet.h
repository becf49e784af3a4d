/* The way of the epoch's data from the device into the sink: gathered in one of a few stages, copied into a room of the sink while the others
 * are filled. At most VV_OUTLET_ROOMS rooms are under way, and the sink is told of each, in order, when its data are there. */
#ifndef VV_GPU_OUTLET_H
#define VV_GPU_OUTLET_H

#include "gpu/kernels.h"

enum { VV_OUTLET_STAGES = 4, VV_OUTLET_ROOMS = 4 };

struct vv_outlet_room {
	uint8_t *p;
	size_t len;  /* whole grains */
	size_t used; /* on their way, or there */
	cudaEvent_t done;
};

struct vv_outlet { /* what vv_outlet_init made, and of the pass: sink, of */
	const struct vv_sink *sink;
	const struct vv_gpu_numbers *of;
	uint64_t expected; /* bytes that are still to come */
	struct vv_outlet_room room[VV_OUTLET_ROOMS];
	unsigned first, n; /* rooms under way; the last may not be full */
	uint8_t *stage[VV_OUTLET_STAGES];
	size_t stage_len;
	unsigned next; /* stage */
	cudaEvent_t gathered[VV_OUTLET_STAGES], empty[VV_OUTLET_STAGES];
	cudaStream_t gather, copy;
};

int vv_outlet_init(struct vv_outlet *o);
void vv_outlet_fini(struct vv_outlet *o);
/* All that was announced before is there; n more bytes will come. */
void vv_outlet_expect(struct vv_outlet *o, uint64_t n);
/* The next data: the grains of these numbers, an array in device memory that must stay until o->gather has done its work. */
int vv_outlet_gather(struct vv_outlet *o, const uint32_t *number, size_t n);
/* The next data: whole grains that lie together in device memory. */
int vv_outlet_copy(struct vv_outlet *o, const uint8_t *p, size_t len);
/* Tells the sink of rooms that are full, and waits until at most so many are under way. */
int vv_outlet_deliver(struct vv_outlet *o, unsigned most);
/* After a failure: nothing of ours writes into rooms of the sink any more. */
void vv_outlet_stop(struct vv_outlet *o);

#endif
