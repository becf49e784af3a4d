#include "preload/globals.h"
#include <elf.h>
#include <link.h>
#include <string.h>

#if defined(__aarch64__)
enum { COPIED = R_AARCH64_COPY };
#elif defined(__x86_64__)
enum { COPIED = R_X86_64_COPY };
#else
enum { COPIED = -1 };
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
	int (*fn)(void *arg, uintptr_t lo, size_t n);
	void *arg;
};

/* Some loaders do not relocate the addresses in the dynamic section. */
static const void *place(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct borrowed *b = arg;
	const ElfW(Rela) *rela = NULL;
	const ElfW(Sym) *sym = NULL;
	const ElfW(Dyn) *d = NULL;
	size_t n = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			rela = place(info, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			n = d->d_un.d_val / sizeof(*rela);
		else if (d->d_tag == DT_SYMTAB)
			sym = place(info, d->d_un.d_ptr);
	}
	for (size_t i = 0; rela && sym && i < n; i++)
		if ((int)ELF64_R_TYPE(rela[i].r_info) == COPIED &&
		    b->fn(b->arg, info->dlpi_addr + rela[i].r_offset, sym[ELF64_R_SYM(rela[i].r_info)].st_size))
			break;
	return 1;
}

void vv_globals_borrowed(int (*fn)(void *arg, uintptr_t lo, size_t n), void *arg)
{
	struct borrowed b = { fn, arg };

	dl_iterate_phdr(look, &b);
}
