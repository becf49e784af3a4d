#include "preload/state.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/format/digest.h"
#include "engine/lineage/catalog.h"
#include "engine/ranks/group.h"
#include "engine/read/restore.h"
#include "engine/context.h"
#include "engine/run_protocol.h"
#include "preload/argv.h"
#include "preload/census.h"
#include "preload/globals.h"
#include "preload/heap.h"
#include "preload/library.h"
#include "preload/outside_pointers.h"
#include "preload/unreachable.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAN VV_RUN_PROTOCOL_PLAN
#define CENSUS "heap.census"
#define LIBRARIES "heap.libraries"

/* The facts that must be known before a state can be restored. The struct is stored as it is: a
 * state belongs to one kind of machine anyway. */
struct state_plan {
	char magic[8];
	uint32_t version, page;
	uint64_t heap, program, c_library; /* their addresses */
	struct vv_digest executable, arguments;
	uint64_t n_libraries;
	uint64_t used[VV_HEAP_LANES];
	uint64_t census_bytes, census_objects;
	struct vv_globals globals;
};

enum { VERSION = 5, MOST_LIBRARIES = 1 << 20 };
static const char magic[8] = "varvHEAP";

struct named {
	char *name; /* NULL: an exception */
	void *p;
	size_t len;
};

static struct state_plan plan;
static struct vv_census census;
/* plan.n_libraries libraries of the program; objects have pointers into them. */
static struct vv_library *library;
static struct named *named;
static size_t n_named, named_cap;
static size_t declared[VV_HEAP_LANES]; /* number of pieces */
static bool begun;

static int add(const char *name, void *p, size_t len)
{
	int rc;

	if (begun)
		return vv_err_set(VV_EINVAL, "what belongs to the state is said before the first varve_checkpoint_here");
	rc = vv_mem_room(&named, n_named, &named_cap, sizeof(*named));
	if (rc)
		return rc;
	named[n_named] = (struct named){ name ? vv_mem_strdup(name) : NULL, p, len };
	if (name && !named[n_named].name)
		return VV_ENOMEM;
	n_named++;
	return 0;
}

int vv_state_protect(const char *name, void *p, size_t len)
{
	if (!name || !*name || (!p && len))
		return vv_err_set(VV_EINVAL, "varve_protect_here: a name and memory are needed");
	if (strlen(name) > VV_MAX_NAME)
		return vv_err_set(VV_EINVAL, "varve_protect_here: a name has at most %d bytes", VV_MAX_NAME);
	if (strncmp(name, "heap.", 5) == 0 || strncmp(name, "heap/", 5) == 0 || strncmp(name, VV_RUN_PROTOCOL_MARKS, strlen(VV_RUN_PROTOCOL_MARKS)) == 0 || strncmp(name, "globals/", 8) == 0)
		return vv_err_set(VV_EINVAL, "varve_protect_here: '%s' is a name of the heap's own", name);
	return add(name, p, len);
}

int vv_state_except(void *p, size_t len)
{
	return p || !len ? add(NULL, p, len) : vv_err_set(VV_EINVAL, "varve_except_here: no memory (NULL)");
}

static int except_borrowed(void *arg, uintptr_t lo, size_t n)
{
	(void)arg;
	return add(NULL, (void *)lo, n);
}

/* ---- identity of the program ----------------------------------------------------------------- */

static int digest_executable(struct vv_digest *out)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) != 0) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return vv_err_sys(error, "the executable (/proc/self/exe)");
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return vv_err_sys(errno, "the executable (/proc/self/exe)");
	vv_digest_xxh3(p, (size_t)st.st_size, out);
	munmap(p, (size_t)st.st_size);
	return 0;
}

/* For a program that was started by naming the loader: /proc/self/exe is then the loader. The
 * read-only segments of the program also distinguish its builds. */
static int digest_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct vv_digest *out = arg, part;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || p->p_flags & PF_W || !(p->p_flags & PF_R))
			continue;
		vv_digest_xxh3((const void *)(info->dlpi_addr + p->p_vaddr), p->p_filesz, &part);
		vv_digest_xxh3(&(struct vv_digest[]){ *out, part }, 2 * sizeof(part), out);
	}
	return 1; /* the executable comes first; stop after it */
}

static int digest_program(struct vv_digest *out)
{
	int rc = digest_executable(out);

	if (rc == 0 && getauxval(AT_BASE) == 0)
		dl_iterate_phdr(digest_code, out);
	return rc;
}

static int list_libraries(void)
{
	size_t n = 0;
	int rc = vv_library_list(&library, &n);

	plan.n_libraries = n;
	return rc;
}

static void digest_arguments(struct vv_digest *out)
{
	char words[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, words, sizeof(words));

	if (fd >= 0)
		close(fd);
	vv_digest_xxh3(words, n > 0 ? (size_t)n : 0, out);
}

/* The executable may contain its own allocator, which cannot be replaced. */
static void warn_if_empty(void)
{
	if (!vv_heap_error()[0] && census.objects == vv_argv_is_moved() && plan.globals.n == 0 && n_named == 0)
		vv_log_warn("the program has allocated nothing that could be saved: is it linked statically, or with an allocator of its own?");
}

int vv_state_begin(struct varve *v, bool globals)
{
	int rc = vv_heap_error()[0] ? vv_err_set(VV_ENOTSUP, "the heap is not captured: %s", vv_heap_error()) : 0;

	if (rc == 0)
		rc = digest_program(&plan.executable);
	memcpy(plan.magic, magic, sizeof(magic));
	plan.version = VERSION;
	plan.page = (uint32_t)sysconf(_SC_PAGESIZE);
	plan.heap = vv_heap.lo;
	plan.program = vv_library_executable();
	plan.c_library = (uint64_t)(uintptr_t)&puts;
	if (rc == 0 && globals) {
		vv_globals_find(&plan.globals);
		rc = vv_globals_borrowed(&plan.globals, except_borrowed, NULL);
	}
	begun = true;
	vv_heap_walk(vv_census_add, &census);
	rc = rc ? rc : census.rc;
	plan.census_bytes = census.n;
	plan.census_objects = census.objects;
	if (rc == 0)
		rc = list_libraries();
	digest_arguments(&plan.arguments);
	warn_if_empty();
	return rc ? rc : varve_protect(v, PLAN, &plan, sizeof(plan));
}

/* ---- regions --------------------------------------------------------------------------------- */

static int declare_lane(struct varve *v, unsigned lane, size_t used)
{
	int rc = 0;

	while (rc == 0) {
		char name[64];
		uintptr_t lo, first;
		size_t n = vv_heap_piece(lane, declared[lane], &lo);

		vv_heap_piece(lane, 0, &first);
		if (lo - first >= used)
			break;
		snprintf(name, sizeof(name), "heap/%02u/%05zu", lane, declared[lane]);
		rc = varve_protect(v, name, (void *)lo, n);
		snprintf(name, sizeof(name), VV_RUN_PROTOCOL_MARKS "%02u/%05zu", lane, declared[lane]);
		if (rc == 0)
			rc = varve_protect(v, name, vv_heap_mark((void *)lo), n / VV_HEAP_GRAIN);
		if (rc == 0)
			declared[lane]++;
	}
	return rc;
}

int vv_state_declare(struct varve *v)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < VV_HEAP_LANES; i++) {
		plan.used[i] = vv_heap_used(i);
		rc = declare_lane(v, i, plan.used[i]);
	}
	return rc;
}

/* Declares everything except the heap. */
static int declare_others(struct varve *v)
{
	int rc = varve_protect(v, CENSUS, census.p, census.n);
	char name[32];

	if (rc == 0)
		rc = varve_protect(v, LIBRARIES, library, plan.n_libraries * sizeof(*library));
	for (uint32_t i = 0; rc == 0 && i < plan.globals.n; i++) {
		snprintf(name, sizeof(name), "globals/%u", i);
		rc = varve_protect(v, name, (void *)(uintptr_t)plan.globals.part[i].lo, plan.globals.part[i].size);
	}
	for (size_t i = 0; rc == 0 && i < n_named; i++)
		if (named[i].name)
			rc = varve_protect(v, named[i].name, named[i].p, named[i].len);
	return rc;
}

/* Returns whether `at` is in an exception, or `target` in a named region. */
static bool is_exempt(uintptr_t at, uintptr_t target)
{
	for (size_t i = 0; i < n_named; i++)
		if ((named[i].name ? target : at) - (uintptr_t)named[i].p < named[i].len)
			return true;
	return false;
}

void vv_state_look(void)
{
	bool first = false;
	char name[32];

	if (!vv_outside_pointers_begin(is_exempt, &first))
		return;
	for (uint32_t i = 0; first && i < plan.globals.n; i++) {
		snprintf(name, sizeof(name), "globals/%u", i);
		vv_outside_pointers_look(name, (uintptr_t)plan.globals.part[i].lo, plan.globals.part[i].size);
	}
	for (size_t i = 0; first && i < n_named; i++)
		if (named[i].name)
			vv_outside_pointers_look(named[i].name, (uintptr_t)named[i].p, named[i].len);
	vv_outside_pointers_look_heap();
}

/* Either all ranks continue, or none does. */
static int agree(struct varve *v, int rc)
{
	return v->ctx.group ? vv_group_agree(v->ctx.group, v->ctx.group->comm, rc) : rc;
}

int vv_state_start(struct varve *v)
{
	int rc = vv_heap_run(false);

	return agree(v, rc ? rc : declare_others(v));
}

/* ---- restoring ------------------------------------------------------------------------------- */

static int check_plan(const struct state_plan *now, const struct state_plan *then)
{
	if (memcmp(then->magic, magic, sizeof(magic)) != 0 || then->version != VERSION)
		return vv_err_set(VV_EMISMATCH, "the heap was stored by another version of varve");
	if (memcmp(&then->executable, &now->executable, sizeof(now->executable)) != 0)
		return vv_err_set(VV_EMISMATCH, "the executable is not the one whose heap was stored: it was built again, or is another program");
	if (then->heap != now->heap || then->page != now->page)
		return vv_err_set(VV_EMISMATCH, "the heap lay at %#" PRIx64 " with pages of %u bytes, it lies at %#" PRIx64 " with pages of %u", then->heap,
				  then->page, now->heap, now->page);
	if (then->program != now->program || then->c_library != now->c_library)
		return vv_err_set(VV_EMISMATCH, "the program or the C library lies at another address (%#" PRIx64 " and %#" PRIx64 "; it was %#" PRIx64 " and %#" PRIx64
				  "): start it by `varve run`, which switches address randomisation off, with the same libraries",
				  now->program, now->c_library, then->program, then->c_library);
	if (memcmp(&then->globals, &now->globals, sizeof(now->globals)) != 0)
		return vv_err_set(VV_EMISMATCH, "variables of the executable %s", then->globals.n && !now->globals.n ? "are part of what is stored: give --globals, as before" :
				  !then->globals.n ? "are not part of what is stored: leave --globals out, as before" : "are of another size");
	for (unsigned i = 0; i < VV_HEAP_LANES; i++)
		if (then->used[i] > vv_heap_lane_size(i))
			return vv_err_set(VV_EDAMAGED, "the plan of the heap is damaged");
	if ((then->census_bytes != now->census_bytes && then->census_bytes > ((uint64_t)1 << 40)) || then->n_libraries > MOST_LIBRARIES)
		return vv_err_set(VV_EDAMAGED, "the plan of the heap is damaged");
	return 0;
}

/* Fills the declared regions. VARVE_LATEST is never passed here: a state belongs to one epoch. */
static int fill(struct varve *v, uint64_t epoch)
{
	int rc = varve_restart(v, epoch);

	return rc < 0 ? rc : 0;
}

static int check_libraries(struct varve *v, uint64_t epoch, size_t n, size_t n_then)
{
	struct vv_library *then = vv_mem_new(n_then + 1, sizeof(*then));
	int rc = agree(v, then ? varve_protect(v, LIBRARIES, then, n_then * sizeof(*then)) : VV_ENOMEM);

	if (rc == 0)
		rc = fill(v, epoch);
	if (rc == 0)
		rc = agree(v, vv_library_compare(library, n, then, n_then));
	varve_unprotect(v, LIBRARIES);
	if (rc == 0) { /* more may be loaded now; the state needs only these */
		vv_mem_free(library);
		library = then;
	} else {
		vv_mem_free(then);
	}
	return rc;
}

static int check_census(struct varve *v, uint64_t epoch, uint64_t bytes)
{
	struct vv_census then = { .n = bytes };
	int rc = 0;

	then.p = vv_mem_new(bytes + 1, 1);
	rc = agree(v, then.p ? varve_protect(v, CENSUS, then.p, bytes) : VV_ENOMEM);
	if (rc == 0)
		rc = fill(v, epoch);
	if (rc == 0)
		rc = agree(v, vv_census_compare(&census, &then));
	varve_unprotect(v, CENSUS);
	vv_census_fini(&then);
	return rc;
}

static int reach_all(void)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < VV_HEAP_LANES; i++)
		if (plan.used[i])
			rc = vv_heap_extend(i, plan.used[i]);
	return rc;
}

/* Reports objects of the start-up that had been freed by then to the allocator. */
static int give_back(void)
{
	struct vv_census_cursor c = { census.p, census.p + census.n, 0, 0 };
	int more;

	while ((more = vv_census_next(&c)) > 0)
		if (*vv_heap_mark((void *)(uintptr_t)c.at) == 0)
			vv_heap_free_startup(c.at);
	return more;
}

/* Makes exceptions writable. The program may have protected some of them, and they would be
 * protected again before they are put back. */
static int open_exceptions(struct vv_make_writable *writable)
{
	struct vv_memory_range *r = vv_mem_new(n_named + 1, sizeof(*r)), bad;
	size_t n = 0;
	int rc;

	for (size_t i = 0; r && i < n_named; i++)
		if (!named[i].name && named[i].len)
			r[n++] = (struct vv_memory_range){ (uintptr_t)named[i].p, (uintptr_t)named[i].p + named[i].len, false };
	rc = r ? vv_make_writable_begin(writable, r, n, &bad) : VV_ENOMEM;
	vv_mem_free(r);
	return rc == VV_EINVAL ? vv_err_context(rc, "varve_except_here") : rc;
}

/* Saves the exceptions before they are overwritten. */
static int keep_exceptions(uint8_t **out)
{
	size_t n = 0;

	for (size_t i = 0; i < n_named; i++)
		n += named[i].name ? 0 : named[i].len;
	*out = vv_mem_new(n + 1, 1);
	if (!*out)
		return VV_ENOMEM;
	n = 0;
	for (size_t i = 0; i < n_named; i++)
		if (!named[i].name) {
			memcpy(*out + n, named[i].p, named[i].len);
			n += named[i].len;
		}
	return 0;
}

static void put_exceptions(const uint8_t *from)
{
	for (size_t i = 0; i < n_named; i++)
		if (!named[i].name) {
			memcpy(named[i].p, from, named[i].len);
			from += named[i].len;
		}
}

static void add_root(struct vv_memory_range *root, size_t *n, uintptr_t lo, size_t len)
{
	if (len)
		root[(*n)++] = (struct vv_memory_range){ lo, lo + len, false };
}

/* The search takes as long as the restart does: without the request it covers heaps of this
 * size. */
static const uint64_t most_for_report = (uint64_t)1 << 30;

/* Searches the restored heap. Without memory for the search it finds nothing. */
static void find_unreachable(bool free_them, struct vv_unreachable *out)
{
	uint64_t used = 0;
	struct vv_memory_range *root = vv_mem_new(plan.globals.n + n_named, sizeof(*root));
	size_t n = 0;

	for (unsigned i = 0; i < VV_HEAP_LANES; i++)
		used += plan.used[i];
	if (!root || (used > most_for_report && !free_them)) {
		vv_mem_free(root);
		return;
	}
	for (uint32_t i = 0; i < plan.globals.n; i++)
		add_root(root, &n, (uintptr_t)plan.globals.part[i].lo, plan.globals.part[i].size);
	for (size_t i = 0; i < n_named; i++)
		if (named[i].name)
			add_root(root, &n, (uintptr_t)named[i].p, named[i].len);
	vv_unreachable_find(root, n, free_them, out);
	vv_mem_free(root);
}

/* Nothing is overwritten before all ranks are ready. After a failure of fill, the program cannot
 * continue. */
static int overwrite(struct varve *v, uint64_t epoch, bool free_them, struct vv_unreachable *unreachable)
{
	struct vv_make_writable writable = { 0 };
	uint8_t *kept = NULL;
	int rc = reach_all();

	if (rc == 0)
		rc = open_exceptions(&writable);
	if (rc == 0)
		rc = keep_exceptions(&kept);
	if (rc == 0)
		rc = declare_others(v);
	if (rc == 0)
		rc = vv_state_declare(v);
	rc = agree(v, rc);
	if (rc == 0)
		rc = fill(v, epoch);
	if (rc == 0) {
		put_exceptions(kept);
		vv_argv_restored();
		find_unreachable(free_them, unreachable);
		rc = vv_heap_run(true);
	}
	if (rc == 0)
		rc = give_back();
	vv_mem_free(kept);
	return vv_restore_protect_again(&writable, rc);
}

/* An epoch without a plan is intact, but holds no heap. */
static int check_kind(struct varve *v, uint64_t epoch, int rc)
{
	struct vv_err_state error;
	struct vv_commit c = { 0 };
	int found;

	if (rc != VV_ENOENT)
		return rc;
	vv_err_save(rc, &error);
	found = epoch == VARVE_LATEST ? 0 : vv_catalog_commit(&v->ctx.lineage, epoch, &c);
	vv_commit_fini(&c);
	return found ? vv_err_restore(&error) :
		       vv_err_set(VV_EMISMATCH, "lineage '%s' holds no heap there, but regions that a program declared, or packed files", v->ctx.lineage.name);
}

int vv_state_restore(struct varve *v, uint64_t epoch, bool free_them, struct vv_unreachable *unreachable)
{
	struct state_plan now = plan;
	int rc = check_kind(v, epoch, varve_restart(v, epoch)); /* the plan alone */

	if (rc <= 0)
		return rc;
	epoch = varve_epoch(v);
	rc = agree(v, check_plan(&now, &plan));
	if (rc == 0 && v->ctx.rank == 0 && memcmp(&now.arguments, &plan.arguments, sizeof(now.arguments)) != 0)
		vv_log_warn("the program continues from epoch %" PRIu64 " with other arguments than it had then; what it made of those is part of its state. For a "
			    "new run give another --lineage, or --restart none", epoch);
	plan.arguments = now.arguments;
	if (rc == 0)
		rc = check_libraries(v, epoch, now.n_libraries, plan.n_libraries);
	if (rc == 0)
		rc = check_census(v, epoch, plan.census_bytes);
	if (rc == 0)
		rc = overwrite(v, epoch, free_them, unreachable);
	return rc ? rc : 1;
}
