#include "gpu/cuda.h"
#include <pthread.h>

int vv_cuda_check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return 0;
	cudaGetLastError();
	if (e == cudaErrorMemoryAllocation)
		return vv_err_set(VV_ENOMEM, "%s: the device has no memory left", what);
	return vv_err_set(VV_EIO, "%s: %s", what, cudaGetErrorString(e));
}

int vv_cuda_new(void *out, size_t n, size_t size, const char *what)
{
	void *p = NULL;
	int rc;

	if (size && n > SIZE_MAX / size)
		return vv_err_set(VV_ENOMEM, "%s: more than there can be", what);
	rc = vv_cuda_check(cudaMalloc(&p, n ? n * size : 1), what);
	if (rc == VV_ENOMEM)
		return vv_err_set(rc, "%s: the device has no %zu bytes left", what, n * size);
	if (rc == 0)
		*(void **)out = p;
	return rc;
}

void vv_cuda_free(void *p)
{
	if (p)
		vv_cuda_check(cudaFree(p), "freeing device memory");
}

enum { SAME = -1 }; /* the device was the current one already */

static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;

void vv_cuda_lock(void)
{
	pthread_mutex_lock(&launching);
}

void vv_cuda_unlock(void)
{
	pthread_mutex_unlock(&launching);
}

int vv_cuda_enter(int device, struct vv_cuda_before *before)
{
	int rc = vv_cuda_check(cudaGetDevice(&before->device), "asking for the current device");

	if (rc == 0 && before->device != device)
		rc = vv_cuda_check(cudaSetDevice(device), "changing to the region's device");
	else if (rc == 0)
		before->device = SAME;
	if (rc)
		return rc;
	before->capture = cudaStreamCaptureModeRelaxed;
	rc = vv_cuda_check(cudaThreadExchangeStreamCaptureMode(&before->capture), "leaving captures of graphs alone");
	if (rc && before->device != SAME)
		cudaSetDevice(before->device);
	return rc;
}

void vv_cuda_leave(struct vv_cuda_before before)
{
	vv_cuda_check(cudaThreadExchangeStreamCaptureMode(&before.capture), "restoring the mode of captures");
	if (before.device != SAME)
		vv_cuda_check(cudaSetDevice(before.device), "changing back to the program's device");
}
