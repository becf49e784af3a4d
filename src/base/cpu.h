/* Levels of the processor's vector units. A package is built for the least that its architecture has, the baseline. Files with loops that gain by more are
 * compiled again for each further level, on x86_64 (cmake/VarveLevels.cmake), and the machine is asked which one it can take. What the loops of all levels give is the
 * same to the last bit.
 *
 * Such a file has its loops, all of them static, a table of them, and behind it, in #ifndef VV_CPU_LEVEL, what there is only once:
 *	VV_CPU_TABLES(struct loops, vv_noun_loops);
 *	const struct loops VV_CPU_NAME(vv_noun_loops) = { ... };
 *	VV_CPU_UP_TO_AVX2(vv_noun_loops)->verb(...); */
#ifndef VV_BASE_CPU_H
#define VV_BASE_CPU_H

#include "vv_config.h"
#include <stdatomic.h>

enum vv_cpu_level { VV_CPU_BASELINE, VV_CPU_AVX2, VV_CPU_AVX512, VV_CPU_LEVELS };

/* Asks the machine, and looks at $VARVE_CPU, with a warning where that says what no level is called. */
enum vv_cpu_level vv_cpu_choose(void);

#if VV_HAVE_LEVELS
extern _Atomic int vv_cpu_used; /* for vv_cpu_level; -1: not asked yet */

/* The level in use: the machine's, or what $VARVE_CPU holds it to. */
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

/* The highest one that was built and that this machine can take. */
enum vv_cpu_level vv_cpu_most(void);
/* For tests and benchmarks: from now on no more than this. Returns what is used now. */
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

/* Declares them; a file need not be compiled for the highest. */
#define VV_CPU_TABLES(type, name) extern const type name##_baseline, name##_avx2, name##_avx512

/* The table to be used. */
#if VV_HAVE_LEVELS
#define VV_CPU_UP_TO_AVX2(name) (vv_cpu_level() >= VV_CPU_AVX2 ? &name##_avx2 : &name##_baseline)
#define VV_CPU_UP_TO_AVX512(name) (vv_cpu_level() == VV_CPU_AVX512 ? &name##_avx512 : VV_CPU_UP_TO_AVX2(name))
#else
#define VV_CPU_UP_TO_AVX2(name) (&name##_baseline)
#define VV_CPU_UP_TO_AVX512(name) (&name##_baseline)
#endif

#endif
