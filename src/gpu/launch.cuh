/* Launches kernels. */
#ifndef VV_GPU_LAUNCH_CUH
#define VV_GPU_LAUNCH_CUH

#include "gpu/kernels.h"

static inline uint32_t blocks_for(uint64_t things, uint32_t each)
{
	return (uint32_t)((things + each - 1) / each);
}

template <class... P, class... A>
static int launch_wide(const char *what, void (*kernel)(P...), uint32_t blocks, uint32_t threads, cudaStream_t stream, A... args)
{
	cudaLaunchConfig_t c = {};
	cudaError_t e;

	if (blocks == 0)
		return 0;
	c.gridDim = dim3(blocks);
	c.blockDim = dim3(threads);
	c.stream = stream;
	vv_cuda_lock();
	e = cudaLaunchKernelEx(&c, kernel, static_cast<P>(args)...);
	vv_cuda_unlock();
	return vv_cuda_check(e, what);
}

template <class... P, class... A>
static int launch(const char *what, void (*kernel)(P...), uint32_t blocks, cudaStream_t stream, A... args)
{
	return launch_wide(what, kernel, blocks, VV_GPU_BLOCK, stream, args...);
}

#endif
