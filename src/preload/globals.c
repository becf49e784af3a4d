#include "preload/globals.h"
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#if defined(__aarch64__)
enum { COPIED = R_AARCH64_COPY, IN_TABLE = R_AARCH64_GLOB_DAT };
#elif defined(__x86_64__)
enum { COPIED = R_X86_64_COPY, IN_TABLE = R_X86_64_GLOB_DAT };
#else
enum { COPIED = -1, IN_TABLE = -2 };
#endif

/* Removes [lo, hi), which the loader has made read-only, from the beginning of a part. */
static void cut(struct vv_globals *g, uintptr_t lo, uintptr_t hi)
{
	for (uint32_t i = 0; i < g->n; i++) {
		uintptr_t a = g->part[i].lo, b = a + g->part[i].size;

		if (lo <= a && hi > a) {
			g->part[i].lo = hi < b ? hi : b;
			g->part[i].size = hi < b ? b - hi : 0;
		}
	}
}

static int find(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct vv_globals *g = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_W && g->n < VV_GLOBALS_MAX) {
			g->part[g->n].lo = info->dlpi_addr + p->p_vaddr;
			g->part[g->n++].size = p->p_memsz;
		}
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_GNU_RELRO)
			cut(g, info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz);
	}
	return 1; /* the executable comes first; stop after it */
}

void vv_globals_find(struct vv_globals *out)
{
	memset(out, 0, sizeof(*out));
	dl_iterate_phdr(find, out);
}

struct borrowed {
	const struct vv_globals *globals;
	int (*fn)(void *arg, uintptr_t lo, size_t n);
	void *arg;
	uintptr_t lo, hi; /* addresses of functions, to be combined with the next ones */
	int rc;
};

struct loader_tables { /* of the dynamic section */
	const ElfW(Rela) *rela, *jumps;
	const ElfW(Sym) *sym;
	size_t n, n_jumps;
	uintptr_t got; /* the loader's own words, before those of the jumps */
};

enum { GOT_WORDS = 3 };

/* Some loaders do not relocate the addresses in the dynamic section. */
static const void *place(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static void find_tables(const struct dl_phdr_info *info, struct loader_tables *t)
{
	const ElfW(Dyn) *d = NULL;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			t->rela = place(info, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			t->n = d->d_un.d_val / sizeof(*t->rela);
		else if (d->d_tag == DT_JMPREL)
			t->jumps = place(info, d->d_un.d_ptr);
		else if (d->d_tag == DT_PLTRELSZ)
			t->n_jumps = d->d_un.d_val / sizeof(*t->jumps);
		else if (d->d_tag == DT_PLTGOT)
			t->got = (uintptr_t)place(info, d->d_un.d_ptr);
		else if (d->d_tag == DT_SYMTAB)
			t->sym = place(info, d->d_un.d_ptr);
	}
}

static bool is_global(const struct vv_globals *g, uintptr_t lo, size_t n)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (lo >= g->part[i].lo && lo - g->part[i].lo < g->part[i].size && n <= g->part[i].size - (lo - g->part[i].lo))
			return true;
	return false;
}

static void tell_functions(struct borrowed *b)
{
	if (b->rc == 0 && b->hi > b->lo)
		b->rc = b->fn(b->arg, b->lo, b->hi - b->lo);
	b->lo = b->hi = 0;
}

/* The loader's words mostly lie one after another. */
static void add_functions(struct borrowed *b, uintptr_t lo, size_t n)
{
	if (!is_global(b->globals, lo, n))
		return;
	if (lo != b->hi) {
		tell_functions(b);
		b->lo = lo;
	}
	b->hi = lo + n;
}

/* Addresses of functions belong to one process: libraries may lie elsewhere in the next one, and
 * be others. The linker makes them constant only if it was asked to (-z now). */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct borrowed *b = arg;
	struct loader_tables t = { 0 };

	(void)size;
	find_tables(info, &t);
	for (size_t i = 0; t.rela && t.sym && b->rc == 0 && i < t.n; i++)
		if ((int)ELF64_R_TYPE(t.rela[i].r_info) == COPIED)
			b->rc = b->fn(b->arg, info->dlpi_addr + t.rela[i].r_offset, t.sym[ELF64_R_SYM(t.rela[i].r_info)].st_size);
		else if ((int)ELF64_R_TYPE(t.rela[i].r_info) == IN_TABLE)
			add_functions(b, info->dlpi_addr + t.rela[i].r_offset, sizeof(ElfW(Addr)));
	tell_functions(b);
	if (t.got)
		add_functions(b, t.got, GOT_WORDS * sizeof(ElfW(Addr)));
	for (size_t i = 0; t.jumps && i < t.n_jumps; i++)
		add_functions(b, info->dlpi_addr + t.jumps[i].r_offset, sizeof(ElfW(Addr)));
	tell_functions(b);
	return 1;
}

int vv_globals_borrowed(const struct vv_globals *g, int (*fn)(void *arg, uintptr_t lo, size_t n), void *arg)
{
	struct borrowed b = { .globals = g, .fn = fn, .arg = arg };

	dl_iterate_phdr(look, &b);
	return b.rc;
}
