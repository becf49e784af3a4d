/* For a rehearsal (engine/session/rehearse.h): adds memory that the program has not declared to its
 * last epoch, as regions. These are objects of the heap, and variables of the executable with the
 * names of its symbol table. */
#include "base/mem.h"
#include "engine/session/rehearse.h"
#include "engine/context.h"
#include "preload/globals.h"
#include "preload/heap.h"
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 4096 }; /* only the largest ones: each is a region, which needs some KiB */

struct range {
	uintptr_t lo, hi;
	const char *name; /* of a variable; NULL: an object of the heap */
};

struct undeclared_ranges {
	struct range *at;
	size_t n, cap;
};

static void add(struct undeclared_ranges *r, uintptr_t lo, uintptr_t hi, const char *name)
{
	if (hi > lo && vv_mem_room(&r->at, r->n, &r->cap, sizeof(*r->at)) == 0)
		r->at[r->n++] = (struct range){ lo, hi, name };
}

static void add_object(void *arg, uintptr_t at, uint8_t mark)
{
	add(arg, at, at + vv_heap_mark_room(mark), NULL);
}

/* ---- variables ------------------------------------------------------------------------------- */

static int take_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1; /* the executable comes first */
}

static bool is_global(const struct vv_globals *g, uintptr_t lo, uintptr_t hi)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (lo >= g->part[i].lo && hi <= g->part[i].lo + g->part[i].size)
			return true;
	return false;
}

/* Returns whether [off, off + n) is inside of the file. */
static bool is_within(size_t len, uint64_t off, uint64_t n)
{
	return off <= len && n <= len - off;
}

static void add_symbols(struct undeclared_ranges *r, const uint8_t *file, size_t len, const ElfW(Shdr) * table,
			const ElfW(Shdr) * names)
{
	struct vv_globals g;
	uintptr_t bias = 0;

	if (!is_within(len, table->sh_offset, table->sh_size) || !is_within(len, names->sh_offset, names->sh_size) ||
	    !names->sh_size || file[names->sh_offset + names->sh_size - 1] != '\0')
		return;
	vv_globals_find(&g);
	dl_iterate_phdr(take_bias, &bias);
	for (size_t i = 0; i < table->sh_size / sizeof(ElfW(Sym)); i++) {
		ElfW(Sym) s;

		memcpy(&s, file + table->sh_offset + i * sizeof(s), sizeof(s));
		if (ELF64_ST_TYPE(s.st_info) == STT_OBJECT && s.st_shndx != SHN_UNDEF && s.st_name < names->sh_size &&
		    is_global(&g, bias + s.st_value, bias + s.st_value + s.st_size))
			add(r, bias + s.st_value, bias + s.st_value + s.st_size,
			    (const char *)file + names->sh_offset + s.st_name);
	}
}

static void add_variables(struct undeclared_ranges *r, const uint8_t *file, size_t len)
{
	ElfW(Ehdr) head;
	ElfW(Shdr) table, names;

	if (!is_within(len, 0, sizeof(head)))
		return;
	memcpy(&head, file, sizeof(head));
	if (head.e_shentsize != sizeof(table) || !is_within(len, head.e_shoff, (uint64_t)head.e_shnum * sizeof(table)))
		return;
	for (unsigned i = 0; i < head.e_shnum; i++) {
		memcpy(&table, file + head.e_shoff + i * sizeof(table), sizeof(table));
		if (table.sh_type != SHT_SYMTAB || table.sh_link >= head.e_shnum)
			continue;
		memcpy(&names, file + head.e_shoff + table.sh_link * sizeof(names), sizeof(names));
		add_symbols(r, file, len, &table, &names);
	}
}

/* Maps the executable for ever, because names point into it. */
static const uint8_t *map_executable(size_t *len)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st = { .st_size = 0 };
	void *p = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	*len = (size_t)st.st_size;
	return p == MAP_FAILED ? NULL : p;
}

/* ---- regions --------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static int by_size(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	uintptr_t n = x->hi - x->lo, m = y->hi - y->lo;

	return n > m ? -1 : n < m ? 1 : by_address(a, b);
}

static void protect(struct varve *v, const struct range *whole, uintptr_t lo, uintptr_t hi)
{
	char name[VV_MAX_NAME + 1], part[32] = "";

	if (lo >= hi)
		return;
	if (lo > whole->lo)
		snprintf(part, sizeof(part), " from byte %zu on", (size_t)(lo - whole->lo));
	snprintf(name, sizeof(name), VV_REHEARSE_UNDECLARED "%s%.140s of %s%zu bytes at %#" PRIxPTR "%s",
		 whole->name ? "variable " : "heap object", whole->name ? whole->name : "", whole->name ? "" : "up to ",
		 (size_t)(whole->hi - whole->lo), whole->lo, part);
	varve_protect(v, name, (void *)lo, hi - lo);
}

/* Protects the parts of a range between the declared ranges, which are in the order of
 * addresses. */
static void protect_gaps(struct varve *v, const struct undeclared_ranges *declared, const struct range *r)
{
	uintptr_t at = r->lo;

	for (size_t i = 0; i < declared->n && declared->at[i].lo < r->hi; i++) {
		if (declared->at[i].hi <= at)
			continue;
		protect(v, r, at, declared->at[i].lo);
		at = declared->at[i].hi;
	}
	protect(v, r, at, r->hi);
}

static void declare(struct varve *v)
{
	struct undeclared_ranges declared = { 0 }, all = { 0 };
	size_t len;
	const uint8_t *file = map_executable(&len);

	for (size_t i = 0; i < v->n_regions; i++)
		add(&declared, (uintptr_t)v->region[i]->p, (uintptr_t)v->region[i]->p + v->region[i]->shape.len, NULL);
	if (file)
		add_variables(&all, file, len);
	if (!*vv_heap_error())
		vv_heap_walk(add_object, &all);
	if (declared.n)
		qsort(declared.at, declared.n, sizeof(*declared.at), by_address);
	if (all.n)
		qsort(all.at, all.n, sizeof(*all.at), by_size);
	for (size_t i = 0; i < all.n && i < MOST; i++)
		protect_gaps(v, &declared, &all.at[i]);
	vv_mem_free(declared.at);
	vv_mem_free(all.at);
}

__attribute__((constructor)) static void offer(void)
{
	vv_rehearse_declare = declare;
}
