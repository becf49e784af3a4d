#include "base/cpu.h"
#include "base/env.h"
#include "base/log.h"
#include <strings.h>

static const char *const names[] = { "baseline", "avx2", "avx512" };

const char *vv_cpu_name(enum vv_cpu_level level)
{
	return names[level];
}

#if VV_HAVE_LEVELS

_Atomic int vv_cpu_used = -1;

/* The flags of cmake/VarveLevels.cmake. The compiler's runtime also checks that the kernel saves
 * these registers. */
enum vv_cpu_level vv_cpu_most(void)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
		return VV_CPU_BASELINE;
	return __builtin_cpu_supports("avx512f") ? VV_CPU_AVX512 : VV_CPU_AVX2;
}

enum vv_cpu_level vv_cpu_hold(enum vv_cpu_level most)
{
	enum vv_cpu_level level = vv_cpu_most();

	level = most < level ? most : level;
	atomic_store_explicit(&vv_cpu_used, (int)level, memory_order_relaxed);
	return level;
}

#else

enum vv_cpu_level vv_cpu_most(void)
{
	return VV_CPU_BASELINE;
}

enum vv_cpu_level vv_cpu_hold(enum vv_cpu_level most)
{
	(void)most;
	return VV_CPU_BASELINE;
}

#endif

/* Concurrent callers get the same answer. */
enum vv_cpu_level vv_cpu_choose(void)
{
	const char *text = vv_env_get("VARVE_CPU");
	enum vv_cpu_level most = VV_CPU_BASELINE;

	while (text && most < VV_CPU_LEVELS && strcasecmp(text, names[most]) != 0)
		most++;
	if (text && most == VV_CPU_LEVELS && *text)
		vv_log_warn("VARVE_CPU=%s is passed over: it is baseline, avx2 or avx512", text);
	return vv_cpu_hold(text ? most : VV_CPU_LEVELS);
}
