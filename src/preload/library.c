#include "preload/library.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/run_protocol.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Prefixes of the file names of outside libraries. */
static const char *const outside[] = {
	/* the C library, threads, the languages' records of files and threads */
	"ld-linux", "ld64", "libc.so", "libc-", "libm.so", "libpthread", "libdl.so", "librt.so", "libresolv", "libnss_", "libutil.so",
	"libgcc_s", "libgomp", "libomp", "libiomp", "libgfortran", "libquadmath", "libtbb",
	/* MPI, and its transports */
	"libmpi", "libmca", "mca_", "libopen-", "libpmix", "pmix_", "libprrte", "libpmi", "libmpich", "libuc", "libfabric", "libibverbs", "librdmacm",
	"libmlx", "libpsm", "libhcoll", "libevent", "libhwloc", "hwloc_", "libnuma", "libmunge", "libslurm", "libxpmem", "libze_",
	"libnl-", "libudev", "libpciaccess", "libibumad", "libOpenCL",
	/* devices */
	"libcuda", "libcudart", "libnccl", "libnvidia", "libnvml", "libcublas", "libcufft", "libhip", "libamdhip", "librocm", "libhsa",
	/* files and networks */
	"libhdf5", "libnetcdf", "libpnetcdf", "libadios", "libsz.so", "libaec", "libcurl", "libssl", "libcrypto", "libgnutls", "libssh",
	"libz.so", "libzstd", "liblz4", "liblzma", "libbz2",
	/* varve, and allocators */
	"libvarve", "libjemalloc", "libtcmalloc", "libmimalloc",
};
static const char *const workers[] = { "libgomp", "libomp", "libiomp", "libtbb" };

static const char *more; /* VV_RUN_PROTOCOL_OUTSIDE */

/* ---- loaded libraries ------------------------------------------------------------------------ */

/* All of this is written and read under the lock that dl_iterate_phdr holds during our callback.
 * A malloc inside of another callback comes here with that lock held. A lock of our own could
 * then be held by a thread that waits for the first one.
 *
 * A child of fork is different: another thread of the parent may have held that lock. Nothing
 * unlocks it, because the C library's fork does not reset it. So a child reads the known list
 * without the lock, and locks only for libraries that it has loaded itself. There are two lists
 * in turn, so that one is complete whenever a child is created. */

enum { MOST = 4096, MOST_BUILD_ID = sizeof(((struct vv_library *)0)->build_id) };
enum { OF_PROGRAM = 1, OF_OUTSIDE = 2, NEEDED = 4, NAMED_OUTSIDE = 8 };

struct library_object {
	uintptr_t at;
	size_t size;
	const char *file;        /* without folders */
	const char *strings;     /* of its dynamic section */
	const ElfW(Dyn) *dynamic; /* NULL: it has none */
	const uint8_t *build_id; /* NULL: it has none */
	size_t build_id_len;
	uint32_t hash, soname;   /* hashes of `file` and of its DT_SONAME; 0: none */
	unsigned is;
};

struct library_list {
	size_t n;
	unsigned long long added, removed; /* the C library's counters */
	struct library_object object[MOST];
};

static struct library_list lists[2];
static struct library_list *next = &lists[1]; /* collected, or to be collected */
static _Atomic(struct library_list *) known = &lists[0];
static atomic_bool in_child;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins_with(const char *file, const char *name, size_t n)
{
	return n && strncmp(file, name, n) == 0;
}

static bool is_among(const char *file, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (begins_with(file, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool is_named_outside(const char *file)
{
	if (is_among(file, outside, sizeof(outside) / sizeof(outside[0])))
		return true;
	for (const char *p = more ? more : ""; *p;) {
		size_t n = strcspn(p, ":");

		if (begins_with(file, p, n))
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

/* FNV-1a; never 0. */
static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h ? h : 1;
}

static void measure(struct library_object *o, const struct dl_phdr_info *info)
{
	uintptr_t lo = UINTPTR_MAX, hi = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_DYNAMIC)
			o->dynamic = (const ElfW(Dyn) *)at;
		if (p->p_type != PT_LOAD)
			continue;
		lo = at < lo ? at : lo;
		hi = at + p->p_memsz > hi ? at + p->p_memsz : hi;
	}
	o->at = lo;
	o->size = hi > lo ? hi - lo : 0;
}

/* On most machines the dynamic section has addresses; on some it is read-only and has offsets. */
static void read_names(struct library_object *o, uintptr_t base)
{
	size_t name = 0;

	for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			o->strings = (const char *)(d->d_un.d_ptr < base ? base + d->d_un.d_ptr : d->d_un.d_ptr);
		if (d->d_tag == DT_SONAME)
			name = d->d_un.d_val;
	}
	if (!o->strings)
		o->dynamic = NULL;
	o->soname = name && o->strings ? hash(o->strings + name) : 0;
}

/* Finds the build-id among the notes in [p, p + n). */
static void read_notes(struct library_object *o, const uint8_t *p, size_t n, size_t align)
{
	ElfW(Nhdr) h;

	for (size_t len; n >= sizeof(h); p += len, n -= len) {
		size_t name, value;

		memcpy(&h, p, sizeof(h));
		name = sizeof(h) + (size_t)h.n_namesz;
		value = (name + align - 1) & ~(align - 1);
		len = (value + h.n_descsz + align - 1) & ~(align - 1);
		if (len > n)
			return;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == sizeof("GNU") && memcmp(p + sizeof(h), "GNU", sizeof("GNU")) == 0) {
			o->build_id = p + value;
			o->build_id_len = h.n_descsz < MOST_BUILD_ID ? h.n_descsz : MOST_BUILD_ID;
			return;
		}
	}
}

static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) *part)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_R && part->p_vaddr >= p->p_vaddr && part->p_vaddr + part->p_memsz <= p->p_vaddr + p->p_filesz)
			return true;
	}
	return false;
}

static void read_build_id(struct library_object *o, const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum && !o->build_id; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE && is_loaded(info, p))
			read_notes(o, (const uint8_t *)(info->dlpi_addr + p->p_vaddr), p->p_memsz, p->p_align == 8 ? 8 : 4);
	}
}

static bool is_in(const struct library_object *o, uintptr_t at)
{
	return at - o->at < o->size;
}

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	bool *first = arg;
	struct library_object *o;

	(void)size;
	if (*first)
		next->n = 0;
	*first = false;
	next->added = info->dlpi_adds;
	next->removed = info->dlpi_subs;
	if (next->n == MOST || strncmp(info->dlpi_name, "linux-vdso", 10) == 0)
		return 0;
	o = &next->object[next->n++];
	*o = (struct library_object){ .file = base_name(info->dlpi_name) };
	measure(o, info);
	read_names(o, info->dlpi_addr);
	read_build_id(o, info);
	o->hash = hash(o->file);
	/* Varve itself, under any name. */
	o->is = is_named_outside(o->file) || is_in(o, (uintptr_t)lists) ? NAMED_OUTSIDE : 0;
	return 0;
}

/* Sets the bits `to` in all libraries that a library with the bits `from` needs. Returns whether a
 * bit has changed. */
static bool spread(struct library_list *l, unsigned from, unsigned to)
{
	struct library_object *object = l->object;
	bool changed = false;

	for (size_t i = 0; i < l->n; i++) {
		if ((object[i].is & from) != from)
			continue;
		for (const ElfW(Dyn) *d = object[i].dynamic; d && d->d_tag != DT_NULL; d++) {
			uint32_t name = d->d_tag == DT_NEEDED ? hash(object[i].strings + d->d_un.d_val) : 0;

			for (size_t j = 0; name && j < l->n; j++) {
				struct library_object *o = &object[j];
				/* a library that is outside by its name stays so for all users */
				unsigned bits = o->is & NAMED_OUTSIDE ? to & ~(unsigned)OF_PROGRAM : to;

				if (j == i || (o->soname != name && o->hash != name) || (o->is & bits) == bits)
					continue;
				o->is |= bits;
				changed = true;
			}
		}
	}
	return changed;
}

/* The program's libraries are the executable, those loaded separately (dlopen), and those that they
 * need. */
static void resolve(struct library_list *l)
{
	struct library_object *object = l->object;

	spread(l, 0, NEEDED);
	for (size_t i = 0; i < l->n; i++)
		if (object[i].is & NAMED_OUTSIDE)
			object[i].is |= OF_OUTSIDE;
		else if (i == 0 || !(object[i].is & NEEDED))
			object[i].is |= OF_PROGRAM;
	while (spread(l, OF_PROGRAM, OF_PROGRAM))
		;
	while (spread(l, OF_OUTSIDE, OF_OUTSIDE))
		;
}

static bool is_program(const struct library_object *o)
{
	return o->is & OF_PROGRAM || !(o->is & OF_OUTSIDE);
}

struct library_look {
	bool stale;
	uintptr_t at;
	bool found, program, workers; /* found: the address is in a library */
	uintptr_t executable;
	struct vv_library *list; /* may be NULL */
	size_t n, room;
};

static void list_one(struct library_look *l, const struct library_object *o)
{
	if (l->n < l->room) {
		struct vv_library *to = &l->list[l->n];

		*to = (struct vv_library){ .at = o->at, .size = o->size };
		strncpy(to->name, o->file, sizeof(to->name) - 1);
		if (o->build_id)
			memcpy(to->build_id, o->build_id, o->build_id_len);
	}
	l->n++;
}

static void consult(const struct library_list *list, struct library_look *l)
{
	l->program = true;
	for (size_t i = 0; i < list->n; i++) {
		const struct library_object *o = &list->object[i];

		if (is_in(o, l->at)) {
			l->found = true;
			l->program = is_program(o);
			l->workers = is_among(o->file, workers, sizeof(workers) / sizeof(workers[0]));
		}
		if (is_program(o))
			list_one(l, o);
	}
	l->executable = list->object[0].at;
}

static bool is_of_now(const struct library_list *l, const struct dl_phdr_info *info)
{
	return l->n && l->added == info->dlpi_adds && l->removed == info->dlpi_subs;
}

static void turn(void)
{
	struct library_list *old = atomic_load(&known);

	resolve(next);
	atomic_store(&known, next);
	next = old;
}

/* Runs under the lock, for the first object only. */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct library_look *l = arg;

	(void)size;
	if (!is_of_now(atomic_load(&known), info) && is_of_now(next, info))
		turn();
	l->stale = !is_of_now(atomic_load(&known), info);
	if (!l->stale)
		consult(atomic_load(&known), l);
	return 1;
}

/* For one address in a child. An address outside of all libraries cannot be in a newly loaded one;
 * dladdr finds that out, by a lock that fork resets. */
static bool remember(struct library_look *l)
{
	Dl_info info;

	consult(atomic_load(&known), l);
	return l->found || !dladdr((const void *)l->at, &info);
}

static void look_up(struct library_look *l)
{
	if (l->at && atomic_load(&in_child) && remember(l))
		return;
	l->n = 0;
	for (dl_iterate_phdr(look, l); l->stale; dl_iterate_phdr(look, l)) {
		bool first = true;

		dl_iterate_phdr(collect, &first);
	}
	if (atomic_load_explicit(&in_child, memory_order_relaxed))
		atomic_store(&in_child, false); /* the lock is available: like any other process */
}

static void begin_child(void)
{
	atomic_store(&in_child, true);
}

void vv_library_begin(void)
{
	more = getenv(VV_RUN_PROTOCOL_OUTSIDE);
	/* Earlier answers, to constructors, were given without VV_RUN_PROTOCOL_OUTSIDE. */
	lists[0].n = lists[1].n = 0;
	pthread_atfork(NULL, NULL, begin_child);
}

bool vv_library_is_program(uintptr_t at)
{
	struct library_look l = { .at = at };

	look_up(&l);
	return l.program;
}

bool vv_library_makes_workers(uintptr_t at)
{
	struct library_look l = { .at = at };

	look_up(&l);
	return l.workers;
}

uintptr_t vv_library_executable(void)
{
	struct library_look l = { 0 };

	look_up(&l);
	return l.executable;
}

int vv_library_list(struct vv_library **out, size_t *n)
{
	struct library_look l = { .room = 0 };

	look_up(&l);
	do { /* another thread may load a library in between */
		vv_mem_free(l.list);
		l = (struct library_look){ .room = l.n, .list = vv_mem_new(l.n + 1, sizeof(*l.list)) };
		if (!l.list)
			return VV_ENOMEM;
		look_up(&l);
	} while (l.n > l.room);
	*out = l.list;
	*n = l.n;
	return 0;
}

static const struct vv_library *find(const struct vv_library *l, size_t n, const struct vv_library *like, size_t after)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(l[i].name, like->name, sizeof(like->name) - 1) == 0 && after-- == 0)
			return &l[i];
	return NULL;
}

/* Are the builds known, and different? A long name that was stored before goes on in build_id. */
static bool is_other_build(const struct vv_library *a, const struct vv_library *b)
{
	static const uint8_t none[sizeof(a->build_id)];
	size_t last = sizeof(a->name) - 1;

	return !a->name[last] && !b->name[last] && memcmp(a->build_id, none, sizeof(none)) != 0 && memcmp(b->build_id, none, sizeof(none)) != 0 &&
	       memcmp(a->build_id, b->build_id, sizeof(none)) != 0;
}

int vv_library_compare(const struct vv_library *now, size_t n_now, const struct vv_library *then, size_t n_then)
{
	for (size_t i = 0; i < n_then; i++) {
		const struct vv_library *t = &then[i], *o = NULL;
		int length = (int)strnlen(t->name, sizeof(t->name));
		size_t k = 0;

		if (is_named_outside(t->name)) /* it is named outside since then */
			continue;
		for (const struct vv_library *c; (c = find(now, n_now, t, k)); k++)
			if (!o || c->at == t->at)
				o = c;
		if (!o)
			return vv_err_set(VV_EMISMATCH, "the library '%.*s', which the program had, is not loaded: the same files are needed", length, t->name);
		if (o->size != t->size)
			return vv_err_set(VV_EMISMATCH, "the library '%.*s' is another one: it has %" PRIu64 " bytes, it had %" PRIu64 "; the same files are needed", length,
					  t->name, o->size, t->size);
		if (is_other_build(o, t))
			return vv_err_set(VV_EMISMATCH, "the library '%.*s' is another one: it was built again (its build-id differs); the same files are needed", length,
					  t->name);
		if (o->at != t->at)
			return vv_err_set(VV_EMISMATCH, "the library '%.*s' lies at %#" PRIx64 ", it lay at %#" PRIx64 ": the same libraries are needed, loaded in the same "
					  "order, and the same limit of the stack (ulimit -s); if none of the program's state points into it, name it in VARVE_RUN_OUTSIDE",
					  length, t->name, o->at, t->at);
	}
	return 0;
}
