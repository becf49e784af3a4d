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
	uintptr_t lo, hi;
};

/* The executable comes first. */
static int measure(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	if (s->name && !begins(base_name(info->dlpi_name), s->name, strlen(s->name)))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t lo = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		s->lo = lo < s->lo ? lo : s->lo;
		s->hi = lo + p->p_memsz > s->hi ? lo + p->p_memsz : s->hi;
	}
	return 1;
}

bool vv_caller_find(const char *name, uintptr_t *lo, size_t *size)
{
	struct search s = { name, UINTPTR_MAX, 0 };

	dl_iterate_phdr(measure, &s);
	if (s.hi <= s.lo)
		return false;
	*lo = s.lo;
	*size = s.hi - s.lo;
	return true;
}
