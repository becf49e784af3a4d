/* Device memory as a space. Without a driver or a device every call of the runtime answers with an error, which we take for "no". */
#include "base/mem.h"
#include "gpu/gpu_sieve.h"
#include <pthread.h>

static struct {
	pthread_once_t once;
	cudaError_t error;
	int devices;
} known = { PTHREAD_ONCE_INIT, cudaSuccess, 0 };

static void ask(void)
{
	known.error = cudaGetDeviceCount(&known.devices);
	cudaGetLastError();
	if (known.error != cudaSuccess)
		known.devices = 0;
}

static int devices(void)
{
	pthread_once(&known.once, ask);
	return known.devices;
}

static int present(void)
{
	if (devices())
		return 0;
	return vv_err_set(VV_ENOTSUP, "no CUDA device can be used: %s",
			  known.error == cudaSuccess ? "there is none" : cudaGetErrorString(known.error));
}

static bool on_device(const void *p, int *device)
{
	struct cudaPointerAttributes a;

	if (cudaPointerGetAttributes(&a, p) != cudaSuccess) {
		cudaGetLastError();
		return false;
	}
	*device = a.device;
	return a.type == cudaMemoryTypeDevice;
}

static bool owns(const void *p, size_t len, int *device)
{
	int last;

	if (!devices() || !on_device(p, device))
		return false;
	return len == 0 || (on_device((const uint8_t *)p + len - 1, &last) && last == *device);
}

/* Pinned memory, or where there is none of it plain pages; which it was is asked again when it goes back. */
static void *rent(size_t len)
{
	void *p = NULL;

	if (devices() && cudaHostAlloc(&p, len, cudaHostAllocPortable) == cudaSuccess)
		return p;
	cudaGetLastError();
	return vv_mem_map(len);
}

static void give_back(void *p, size_t len)
{
	struct cudaPointerAttributes a;

	if (!p)
		return;
	if (devices() && cudaPointerGetAttributes(&a, p) == cudaSuccess && a.type == cudaMemoryTypeHost) {
		cudaFreeHost(p);
		return;
	}
	cudaGetLastError();
	vv_mem_unmap(p, len);
}

/* On a stream of this thread, so that it waits for nobody else's work. */
static int copy(void *to, const void *from, size_t len, const void *there, const char *what)
{
	int device = 0, before, rc;

	if (!on_device(there, &device))
		return vv_err_set(VV_EINVAL, "%s: %p is not device memory", what, there);
	rc = vv_cuda_enter(device, &before);
	if (rc)
		return rc;
	rc = vv_cuda_check(cudaMemcpyAsync(to, from, len, cudaMemcpyDefault, cudaStreamPerThread), what);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamSynchronize(cudaStreamPerThread), what);
	vv_cuda_leave(before);
	return rc;
}

static int copy_out(void *host, const void *p, size_t len)
{
	return len ? copy(host, p, len, p, "copying from the device") : 0;
}

static int copy_in(void *p, const void *host, size_t len)
{
	return len ? copy(p, host, len, p, "copying to the device") : 0;
}

static int settle(int device, void *stream)
{
	int before, rc = vv_cuda_enter(device, &before);

	if (rc)
		return rc;
	rc = vv_cuda_check(stream ? cudaStreamSynchronize((cudaStream_t)stream) : cudaDeviceSynchronize(), "waiting for the program's work on the device");
	vv_cuda_leave(before);
	return rc;
}

const struct vv_space *vv_space_cuda(void)
{
	static const struct vv_space cuda = {
		.name = "cuda",
		.present = present,
		.owns = owns,
		.rent = rent,
		.give_back = give_back,
		.copy_out = copy_out,
		.copy_in = copy_in,
		.settle = settle,
		.open = vv_gpu_sieve_open,
		.close = vv_gpu_sieve_close,
		.pass = vv_gpu_sieve_pass,
		.adopt = vv_gpu_sieve_adopt,
		.readopt = vv_gpu_sieve_readopt,
		.forget = vv_gpu_sieve_forget,
	};

	return &cuda;
}
