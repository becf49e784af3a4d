/* Device memory as a space. Without a driver or a device, every call of the runtime returns an
 * error, which counts as "no". */
#include "base/mem.h"
#include "gpu/gpu_sieve.h"
#include "gpu/cuda_inlet.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { IDLE = 8 }; /* limit of idle streams kept for copies */

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

static int get_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof(info->dlpi_adds))
		*(unsigned long long *)loads = info->dlpi_adds;
	return 1;
}

/* The driver, if the process has loaded it. The search of the linker for a library that is not
 * loaded takes a while. So it is repeated only after other libraries were loaded. */
static void *find_driver(void)
{
	static _Atomic unsigned long long absent_at;
	unsigned long long loads = 0;
	void *driver;

	dl_iterate_phdr(get_loads, &loads);
	if (loads && atomic_load(&absent_at) == loads)
		return NULL;
	driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!driver)
		atomic_store(&absent_at, loads);
	return driver;
}

/* Might p be memory of a device? A program without use of devices must not get a context on one by
 * declaring a region. The runtime makes a context when asked. So the driver is asked, if it is
 * loaded at all: the first call of any runtime loads it. */
static bool may_be_device(const void *p)
{
	enum { MEMORY_TYPE = 2, DEVICE = 2 }; /* of the driver's cuPointerGetAttribute */
	int (*ask_driver)(void *answer, int what, unsigned long long p) = NULL;
	void *driver = find_driver(), *symbol = driver ? dlsym(driver, "cuPointerGetAttribute") : NULL;
	unsigned type = 0;
	bool may;

	memcpy(&ask_driver, &symbol, sizeof(symbol));
	may = ask_driver && ask_driver(&type, MEMORY_TYPE, (uintptr_t)p) == 0 && type == DEVICE;
	if (driver)
		dlclose(driver);
	return may;
}

static bool owns(const void *p, size_t len, int *device)
{
	int last;

	if (!may_be_device(p) || !devices() || !on_device(p, device))
		return false;
	return len == 0 || (on_device((const uint8_t *)p + len - 1, &last) && last == *device);
}

/* Large pages of our own are pinned in a fraction of the runtime's time for its own memory. It is
 * faster still if the pages exist already: many threads can fault pages at once, but pin only one
 * after the other. If pinning fails, copies are merely slower; give_back checks again whether it
 * succeeded. */
static void *rent(int device, size_t len)
{
	void *p = vv_mem_map_wide(len);
	struct vv_cuda_before before;

	if (p)
		/* a child's copy must not take the device's pages away */
		(void)madvise(p, len, MADV_DONTFORK);
	if (p && devices())
		vv_mem_populate(p, len);
	if (p && devices() && vv_cuda_enter(device, &before) == 0) {
		if (cudaHostRegister(p, len, cudaHostRegisterPortable) != cudaSuccess)
			cudaGetLastError();
		vv_cuda_leave(before);
	}
	return p;
}

static void unpin(void *p)
{
	struct cudaPointerAttributes a;

	if (cudaPointerGetAttributes(&a, p) == cudaSuccess && a.type == cudaMemoryTypeHost)
		cudaHostUnregister(p);
	cudaGetLastError();
}

static void give_back(int device, void *p, size_t len)
{
	struct vv_cuda_before before;

	if (!p)
		return;
	if (devices() && vv_cuda_enter(device, &before) == 0) {
		unpin(p);
		vv_cuda_leave(before);
	}
	vv_mem_unmap(p, len);
}

/* Streams for copies, independent of other work: the thread's own stream would wait for the default
 * stream. */
static struct {
	pthread_mutex_t lock;
	struct {
		cudaStream_t stream;
		int device;
	} idle[IDLE];
	size_t n;
} streams = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A stream of the current device, which is `device`. */
static int take_stream(int device, cudaStream_t *out)
{
	size_t i;
	bool found;

	pthread_mutex_lock(&streams.lock);
	for (i = 0; i < streams.n && streams.idle[i].device != device; i++)
		;
	found = i < streams.n;
	if (found) {
		*out = streams.idle[i].stream;
		streams.idle[i] = streams.idle[--streams.n];
	}
	pthread_mutex_unlock(&streams.lock);
	return found ? 0 : vv_cuda_check(cudaStreamCreateWithFlags(out, cudaStreamNonBlocking), "a stream for copies");
}

static void return_stream(int device, cudaStream_t stream)
{
	bool kept;

	pthread_mutex_lock(&streams.lock);
	kept = streams.n < IDLE;
	if (kept) {
		streams.idle[streams.n].stream = stream;
		streams.idle[streams.n++].device = device;
	}
	pthread_mutex_unlock(&streams.lock);
	if (!kept)
		cudaStreamDestroy(stream);
}

static int copy_on(int device, void *to, const void *from, size_t len, const char *what)
{
	cudaStream_t stream;
	int rc = take_stream(device, &stream);

	if (rc)
		return rc;
	rc = vv_cuda_check(cudaMemcpyAsync(to, from, len, cudaMemcpyDefault, stream), what);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamSynchronize(stream), what);
	return_stream(device, stream);
	return rc;
}

static int copy(void *to, const void *from, size_t len, const void *there, const char *what)
{
	struct vv_cuda_before before;
	int device = 0, rc;

	if (!on_device(there, &device))
		return vv_err_set(VV_EINVAL, "%s: %p is not device memory", what, there);
	rc = vv_cuda_enter(device, &before);
	if (rc)
		return rc;
	rc = copy_on(device, to, from, len, what);
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
	struct vv_cuda_before before;
	int rc = vv_cuda_enter(device, &before);

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
		.inlet = &vv_inlet_cuda,
		.sync = settle,
		.open = vv_gpu_sieve_open,
		.close = vv_gpu_sieve_close,
		.pass = vv_gpu_sieve_pass,
		.begin = vv_gpu_sieve_begin,
		.learn = vv_gpu_sieve_learn,
		.adopt = vv_gpu_sieve_adopt,
		.forget = vv_gpu_sieve_forget,
	};

	return &cuda;
}
