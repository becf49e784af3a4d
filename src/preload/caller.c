#include "preload/caller.h"
#include "engine/terms.h"
#include <dlfcn.h>
#include <link.h>
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
	"libnl-", "libudev", "libpciaccess", "libibumad", "libOpenCL",
	/* devices */
	"libcuda", "libcudart", "libnccl", "libnvidia", "libnvml", "libcublas", "libcufft", "libhip", "libamdhip", "librocm", "libhsa",
	/* files and networks */
	"libhdf5", "libnetcdf", "libpnetcdf", "libadios", "libsz.so", "libaec", "libcurl", "libssl", "libcrypto", "libgnutls", "libssh",
	"libz.so", "libzstd", "liblz4", "liblzma", "libbz2",
	/* ourselves, and allocators */
	"libvarve", "libjemalloc", "libtcmalloc", "libmimalloc",
};

static const char *more; /* VV_TERMS_OUTSIDE */

_Atomic(uintptr_t) vv_caller_known[VV_CALLER_PAGES];

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

/* A page has two places: the second, which is another's first, is for one that lost its own to a page that called later. */
static _Atomic(uintptr_t) *place(uintptr_t page, bool second)
{
	return &vv_caller_known[(page ^ (second ? VV_CALLER_PAGES / 2 : 0)) % VV_CALLER_PAGES];
}

static uintptr_t recall(uintptr_t at)
{
	uintptr_t page = at >> VV_CALLER_PAGE_BITS, word = atomic_load_explicit(place(page, false), memory_order_relaxed);

	if (word >> VV_CALLER_WHOSE_BITS != page)
		word = atomic_load_explicit(place(page, true), memory_order_relaxed);
	return word >> VV_CALLER_WHOSE_BITS == page ? word : 0;
}

static void keep(uintptr_t word)
{
	_Atomic(uintptr_t) *at = place(word >> VV_CALLER_WHOSE_BITS, false);
	uintptr_t other = atomic_load_explicit(at, memory_order_relaxed);

	if (other && other >> VV_CALLER_WHOSE_BITS != word >> VV_CALLER_WHOSE_BITS)
		atomic_store_explicit(place(other >> VV_CALLER_WHOSE_BITS, true), other, memory_order_relaxed);
	atomic_store(at, word);
}

/* A phase that ends just now must not be known after vv_caller_forget. */
void vv_caller_note(uintptr_t at, uintptr_t phase, const _Atomic(int) *now)
{
	keep(vv_caller_word(at, phase));
	if ((uintptr_t)atomic_load(now) != phase)
		keep(vv_caller_word(at, VV_CALLER_PROGRAM));
}

/* Code that is no library's is made by the program at run time. */
bool vv_caller_is_program(uintptr_t at)
{
	uintptr_t word = recall(at);
	const char *file;

	if (!word) {
		file = file_of(at);
		word = vv_caller_word(at, !file || !vv_caller_is_outside(base_name(file)) ? VV_CALLER_PROGRAM : VV_CALLER_OUTSIDE);
		keep(word);
	}
	return word != vv_caller_word(at, VV_CALLER_OUTSIDE);
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
	for (size_t i = 0; i < VV_CALLER_PAGES; i++)
		atomic_store(&vv_caller_known[i], 0);
}

void vv_caller_begin(void)
{
	more = getenv(VV_TERMS_OUTSIDE);
	vv_caller_forget();
}

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

/* It comes first. */
static int measure(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	extent(info, arg);
	return 1;
}

uintptr_t vv_caller_executable(void)
{
	uintptr_t lo = 0;

	dl_iterate_phdr(measure, &lo);
	return lo;
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
