/* The CUDA runtime, and the headers of ours that CUDA C++ must read as C. */
#ifndef VV_GPU_CUDA_H
#define VV_GPU_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define restrict __restrict__
#define _Alignas alignas
extern "C" {
#endif

#include "base/err.h"
#include "space/space.h"

/* Returns 0, or the error as one of ours, and clears it in the runtime. `what`: the failed
 * operation. */
int vv_cuda_check(cudaError_t e, const char *what);
/* Memory of the current device; VV_ENOMEM if there is none. */
int vv_cuda_new(void *out, size_t n, size_t size, const char *what);
void vv_cuda_free(void *p); /* NULL is fine */
/* Held around launches: the compiler's code for a kernel's first launch has statics. The C++
 * runtime guards them, or nothing does. */
void vv_cuda_lock(void);
void vv_cuda_unlock(void);
/* The settings of a thread before calls of ours. */
struct vv_cuda_before {
	int device;
	enum cudaStreamCaptureMode capture;
};

/* Makes `device` the current one. Allows calls that would end the capture of a graph by another
 * thread: none of ours uses a stream of the program. *before is for vv_cuda_leave. */
int vv_cuda_enter(int device, struct vv_cuda_before *before);
void vv_cuda_leave(struct vv_cuda_before before);

#ifdef __cplusplus
}
#undef restrict
#undef _Alignas
#endif

#endif
