/* The host's memory as a space: no transfer is needed. */
#include "base/mem.h"
#include "space/host_sieve.h"
#include <string.h>

static int present(void)
{
	return 0;
}

static bool owns(const void *p, size_t len, int *device)
{
	(void)p;
	(void)len;
	*device = 0;
	return true;
}

static void *rent(int device, size_t len)
{
	(void)device;
	return vv_mem_map(len);
}

static void give_back(int device, void *p, size_t len)
{
	(void)device;
	vv_mem_unmap(p, len);
}

static int copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return 0;
}

static int settle(int device, void *stream)
{
	(void)device;
	(void)stream;
	return 0;
}

const struct vv_space *vv_space_host(void)
{
	static const struct vv_space host = {
		.name = "host",
		.present = present,
		.owns = owns,
		.rent = rent,
		.give_back = give_back,
		.copy_out = copy,
		.copy_in = copy,
		.sync = settle,
		.open = vv_host_sieve_open,
		.close = vv_host_sieve_close,
		.pass = vv_host_sieve_pass,
		.holds = vv_host_sieve_holds,
		.begin = vv_host_sieve_begin,
		.learn = vv_host_sieve_learn,
		.adopt = vv_host_sieve_adopt,
		.forget = vv_host_sieve_forget,
	};

	return &host;
}
