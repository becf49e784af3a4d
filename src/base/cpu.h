/* Levels of the processor's vector units. A package is built for the baseline of its architecture.
 * On x86_64, files with loops that gain by a higher level are compiled again for each level
 * (cmake/VarveLevels.cmake). The level is chosen at run time. The results of all levels are equal
 * to the last bit.
 *
 * Such a file has static loops and a table of them. Code that exists only once follows in
 * #ifndef VV_CPU_LEVEL:
 *	VV_CPU_TABLES(struct loops, vv_noun_loops);
 *	const struct loops VV_CPU_NAME(vv_noun_loops) = { ... };
 *	VV_CPU_UP_TO_AVX2(vv_noun_loops)->verb(...); */
#ifndef VV_BASE_CPU_H
#define VV_BASE_CPU_H

#include "vv_config.h"
#include <stdatomic.h>

enum vv_cpu_level { VV_CPU_BASELINE, VV_CPU_AVX2, VV_CPU_AVX512, VV_CPU_LEVELS };

/* Determines the level of the machine and reads $VARVE_CPU; warns if that is not the name of a
 * level. */
enum vv_cpu_level vv_cpu_choose(void);

#if VV_HAVE_LEVELS
extern _Atomic int vv_cpu_used; /* for vv_cpu_level; -1: not determined yet */

/* The level in use: the machine's, or a lower one set by $VARVE_CPU. */
static inline enum vv_cpu_level vv_cpu_level(void)
{
	int level = atomic_load_explicit(&vv_cpu_used, memory_order_relaxed);

	return level >= 0 ? (enum vv_cpu_level)level : vv_cpu_choose();
}
#else
static inline enum vv_cpu_level vv_cpu_level(void)
{
	return VV_CPU_BASELINE;
}
#endif

/* The highest level that was built and that this machine supports. */
enum vv_cpu_level vv_cpu_most(void);
/* For tests and benchmarks: limits the level from now on. Returns the level in use. */
enum vv_cpu_level vv_cpu_hold(enum vv_cpu_level most);
const char *vv_cpu_name(enum vv_cpu_level level);

/* ---- tables, one for each level. */

#define VV_CPU_JOIN_(name, level) name##_##level
#define VV_CPU_JOIN(name, level) VV_CPU_JOIN_(name, level)
#ifdef VV_CPU_LEVEL
#define VV_CPU_NAME(name) VV_CPU_JOIN(name, VV_CPU_LEVEL)
#else
#define VV_CPU_NAME(name) name##_baseline
#endif

/* Declares the tables; a file need not be compiled for the highest level. */
#define VV_CPU_TABLES(type, name) extern const type name##_baseline, name##_avx2, name##_avx512

/* The table to use. */
#if VV_HAVE_LEVELS
#define VV_CPU_UP_TO_AVX2(name) (vv_cpu_level() >= VV_CPU_AVX2 ? &name##_avx2 : &name##_baseline)
#define VV_CPU_UP_TO_AVX512(name) (vv_cpu_level() == VV_CPU_AVX512 ? &name##_avx512 : VV_CPU_UP_TO_AVX2(name))
#else
#define VV_CPU_UP_TO_AVX2(name) (&name##_baseline)
#define VV_CPU_UP_TO_AVX512(name) (&name##_baseline)
#endif

#endif
