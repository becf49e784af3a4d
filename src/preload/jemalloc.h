/* The jemalloc that is linked into libvarve_preload.so: the distribution's static library, with
 * renamed symbols (cmake/VarvePreload.cmake). */
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
/* Large objects begin at random offsets by default. Version 5.3.0 lacks the option for this, so
 * jemalloc's variable is set before its start. */
extern bool je_opt_cache_oblivious;
/* true: jemalloc requests more memory than needed, and each such piece stays separate; false: it
 * requests as much as needed and merges pieces. */
extern bool je_opt_retain;
/* A small object does not use a free piece that is larger by a factor of more than 2 to this power.
 * With 63 it uses the first piece that is large enough. After a restart, free memory consists of
 * few large pieces, which small objects could not use otherwise. */
extern size_t je_opt_lg_extent_max_active_fit;

/* Sets how long an arena keeps free memory; -1: for ever, so that reuse does not depend on time. */
void vv_je_set_decay(unsigned arena, ssize_t ms);
/* Without a limit jemalloc would request ever larger pieces, of which much is never used, but
 * examined in every checkpoint. */
enum { VV_JE_GROWTH = 1 << 21 };
void vv_je_limit_growth(unsigned arena);

/* Called by jemalloc instead of the C library's functions (jemalloc.c). */
void *vv_je_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
char *vv_je_secure_getenv(const char *name);
ssize_t vv_je_readlink(const char *path, char *buf, size_t n);

#endif
