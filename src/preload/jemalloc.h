/* jemalloc as it is linked into libvarve_preload.so: from the distribution's static library, its names out of the program's way
 * (cmake/VarvePreload.cmake). */
#ifndef VV_PRELOAD_JEMALLOC_H
#define VV_PRELOAD_JEMALLOC_H

#include <jemalloc/jemalloc.h>
#include <stdbool.h>
#include <sys/types.h>

void *vv_je_malloc(size_t n);
void *vv_je_calloc(size_t n, size_t size);
void *vv_je_realloc(void *p, size_t n);
void *vv_je_memalign(size_t align, size_t n);
void vv_je_free(void *p);
void *vv_je_mallocx(size_t n, int flags);
void vv_je_dallocx(void *p, int flags);
void vv_je_sdallocx(void *p, size_t n, int flags);
size_t vv_je_malloc_usable_size(const void *p);
int vv_je_mallctl(const char *name, void *old, size_t *n_old, void *value, size_t n);
extern const char *vv_je_malloc_conf;
/* Large objects begin at offsets by chance. An option for this was forgotten in 5.3.0, so it is set where jemalloc keeps it, before it starts. */
extern bool je_opt_cache_oblivious;
/* Memory is asked for in more than is needed, and each such piece stays one of its own; false: as much as is needed, and pieces are merged. */
extern bool je_opt_retain;
/* A small object takes no part of a free piece that is larger by more than 2 to this power. 63: it takes the first piece that is large enough. After a
 * restart free memory is few large pieces, which small objects could not use otherwise. */
extern size_t je_opt_lg_extent_max_active_fit;

/* How long an arena keeps free memory; -1: for ever, so that what is used again does not depend on time. */
void vv_je_set_decay(unsigned arena, ssize_t ms);
/* It would take ever more at a time, of which much is never used, but looked at in every checkpoint. */
enum { VV_JE_GROWTH = 1 << 21 };
void vv_je_limit_growth(unsigned arena);

/* What it calls, instead of the C library's (jemalloc.c). */
void *vv_je_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
char *vv_je_secure_getenv(const char *name);
ssize_t vv_je_readlink(const char *path, char *buf, size_t n);

#endif
