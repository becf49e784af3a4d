#include "preload/caller.h"
#include "engine/terms.h"
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* How their file names begin. */
static const char *const outside[] = {
	/* the C library, threads, the languages' own records of files and threads */
	"ld-linux", "ld64", "libc.so", "libc-", "libm.so", "libpthread", "libdl.so", "librt.so", "libresolv", "libnss_", "libutil.so",
	"libgcc_s", "libgomp", "libomp", "libiomp", "libgfortran", "libquadmath", "libtbb",
	/* MPI, and what it speaks through */
	"libmpi", "libmca", "mca_", "libopen-", "libpmix", "pmix_", "libprrte", "libpmi", "libmpich", "libuc", "libfabric", "libibverbs", "librdmacm",
	"libmlx", "libpsm", "libhcoll", "libevent", "libhwloc", "libnuma", "libmunge", "libslurm", "libxpmem", "libze_",
	/* devices */
	"libcuda", "libcudart", "libnccl", "libnvidia", "libnvml", "libcublas", "libcufft", "libhip", "libamdhip", "librocm", "libhsa",
	/* files and networks */
	"libhdf5", "libnetcdf", "libpnetcdf", "libadios", "libsz.so", "libaec", "libcurl", "libssl", "libcrypto", "libgnutls", "libssh",
	"libz.so", "libzstd", "liblz4", "liblzma", "libbz2",
	/* ourselves, and allocators */
	"libvarve", "libjemalloc", "libtcmalloc", "libmimalloc",
};

static const char *more; /* VV_TERMS_OUTSIDE */

/* What was found of a page of code: its number twice, and 1 if it is the program's. A page may be another's after a dlclose: hence
 * vv_caller_forget. */
enum { PAGES = 4096 };
static _Atomic(uintptr_t) known[PAGES];

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins(const char *file, const char *name, size_t n)
{
	return n && strncmp(file, name, n) == 0;
}

bool vv_caller_is_outside(const char *file)
{
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		if (begins(file, outside[i], strlen(outside[i])))
			return true;
	for (const char *p = more ? more : ""; *p;) {
		size_t n = strcspn(p, ":");

		if (begins(file, p, n))
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

/* NULL: nobody's. Asks neither for locks nor for memory where the C library can do without. */
static const char *file_of(uintptr_t at)
{
#if __GLIBC_PREREQ(2, 35)
	struct dl_find_object found;

	return _dl_find_object((void *)at, &found) == 0 ? found.dlfo_link_map->l_name : NULL;
#else
	Dl_info found;

	return dladdr((void *)at, &found) ? found.dli_fname : NULL;
#endif
}

/* Code that is no library's is made by the program at run time. */
bool vv_caller_is_program(uintptr_t at)
{
	uintptr_t page = at >> 12, seen = atomic_load_explicit(&known[page % PAGES], memory_order_relaxed);
	const char *file;
	bool program;

	if (seen >> 1 == page && page)
		return seen & 1;
	file = file_of(at);
	program = !file || !vv_caller_is_outside(base_name(file));
	atomic_store_explicit(&known[page % PAGES], page << 1 | program, memory_order_relaxed);
	return program;
}

bool vv_caller_makes_workers(uintptr_t at)
{
	static const char *const makers[] = { "libgomp", "libomp", "libiomp", "libtbb" };
	const char *file = file_of(at);

	for (size_t i = 0; file && i < sizeof(makers) / sizeof(makers[0]); i++)
		if (begins(base_name(file), makers[i], strlen(makers[i])))
			return true;
	return vv_caller_is_program(at);
}

void vv_caller_forget(void)
{
	for (size_t i = 0; i < PAGES; i++)
		atomic_store_explicit(&known[i], 0, memory_order_relaxed);
}

void vv_caller_begin(void)
{
	more = getenv(VV_TERMS_OUTSIDE);
	vv_caller_forget();
}

struct search {
	const char *name;
	uintptr_t lo;
	size_t size;
};

static size_t extent(const struct dl_phdr_info *info, uintptr_t *lo)
{
	uintptr_t hi = 0;

	*lo = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		*lo = at < *lo ? at : *lo;
		hi = at + p->p_memsz > hi ? at + p->p_memsz : hi;
	}
	return hi > *lo ? hi - *lo : 0;
}

/* The executable comes first. */
static int measure(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	if (s->name && !begins(base_name(info->dlpi_name), s->name, strlen(s->name)))
		return 0;
	s->size = extent(info, &s->lo);
	return 1;
}

bool vv_caller_find(const char *name, uintptr_t *lo, size_t *size)
{
	struct search s = { .name = name };

	dl_iterate_phdr(measure, &s);
	if (s.size == 0)
		return false;
	*lo = s.lo;
	*size = s.size;
	return true;
}

struct visit {
	void (*fn)(void *arg, const char *name, uintptr_t at, size_t size);
	void *arg;
};

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = base_name(info->dlpi_name);
	const struct visit *v = arg;
	uintptr_t lo;
	size_t n = extent(info, &lo);

	(void)size;
	if (!vv_caller_is_outside(name) && strncmp(name, "linux-vdso", 10) != 0)
		v->fn(v->arg, name, lo, n);
	return 0;
}

void vv_caller_each_program(void (*fn)(void *arg, const char *name, uintptr_t at, size_t size), void *arg)
{
	struct visit v = { fn, arg };

	dl_iterate_phdr(visit, &v);
}
