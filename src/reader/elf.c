/* Core files: ELF, 64 bits, little-endian, as written by the kernel and gdb's gcore. Loads are
 * areas of memory. Notes report mapped files (NT_FILE), the threads' stack pointers (NT_PRSTATUS)
 * and the position of the program (NT_AUXV). System V ABI, chapter 5; the kernel's
 * fs/binfmt_elf.c. */
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "reader/memory_areas.h"
#include "reader/peek.h"
#include <string.h>

enum {
	CORE = 4,
	HEADER_BYTES = 64, ENTRY_BYTES = 56,
	MANY = 0xffff, /* program headers: the first section's header has their number */
	SECTION_BYTES = 64, SECTION_INFO = 44,
	LOAD = 1, NOTE = 4,
	EXECUTE = 1, WRITE = 2,
	NOTE_BYTES = 12,
	NT_PRSTATUS = 1, NT_AUXV = 6, NT_FILE = 0x46494c45,
	MOST_HEADERS = 1 << 17,
	MOST_NOTES = 1 << 20, /* of all headers: several may name the same notes */
	MOST_AUXV = 64,
	MOST_FILE_NOTE = 64 << 20,
	MAX_STACKS = 4096,
	AT_PHDR = 3, AT_RANDOM = 25, AT_SYSINFO_EHDR = 33,
	X86_64 = 62, AARCH64 = 183,
};

struct elf_map { /* of a mapped file */
	uint64_t from, to;
	const char *path;
	size_t len;
};

struct core {
	struct vv_peek in;
	unsigned machine;
	struct vv_memory_areas memory;
	uint64_t header, n_headers;
	size_t n_notes; /* that were read */
	uint8_t *files; /* the note that lists the mapped files */
	struct elf_map *map;
	size_t n_maps, maps_cap;
	uint64_t *stack; /* stack pointers of threads */
	size_t n_stacks, stacks_cap;
	/* addresses in the executable, in the vdso, in the first stack; 0: unknown */
	uint64_t exe, vdso, start;
};

static uint64_t number(const uint8_t *p, size_t n)
{
	return vv_peek_number(p, n, false);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* Format: a count, the page size, then start, end and offset for each, then the names. */
static int read_maps(struct core *c, uint64_t at, uint64_t len)
{
	const uint8_t *p;
	uint64_t n;
	size_t used;

	if (c->files || len < 16 || len > MOST_FILE_NOTE)
		return 0;
	c->files = vv_mem_new((size_t)len, 1);
	if (!c->files)
		return VV_ENOMEM;
	c->in.rc = c->in.f->read(c->in.f->arg, at, c->files, (size_t)len);
	p = c->files;
	n = number(p, 8);
	if (c->in.rc || n > (len - 16) / 24)
		return c->in.rc;
	used = (size_t)(16 + n * 24);
	for (uint64_t i = 0; i < n && used < len; i++) {
		const char *path = (const char *)p + used;
		size_t name = strnlen(path, (size_t)len - used);

		if (vv_mem_room(&c->map, c->n_maps, &c->maps_cap, sizeof(*c->map)))
			return VV_ENOMEM;
		c->map[c->n_maps++] = (struct elf_map){ number(p + 16 + i * 24, 8), number(p + 24 + i * 24, 8), path, name };
		used += name + 1;
	}
	return 0;
}

static int read_registers(struct core *c, uint64_t at, uint64_t len)
{
	uint64_t pointer = c->machine == X86_64 ? 112 + 19 * 8 : c->machine == AARCH64 ? 112 + 31 * 8 : UINT64_MAX;
	const uint8_t *p = len >= 8 && pointer <= len - 8 ? vv_peek_at(&c->in, at + pointer, 8) : NULL;

	if (!p || c->n_stacks == MAX_STACKS)
		return c->in.rc;
	if (vv_mem_room(&c->stack, c->n_stacks, &c->stacks_cap, sizeof(*c->stack)))
		return VV_ENOMEM;
	c->stack[c->n_stacks++] = number(p, 8);
	return 0;
}

static int read_auxv(struct core *c, uint64_t at, uint64_t len)
{
	for (uint64_t i = 0; i < MOST_AUXV && (i + 1) * 16 <= len; i++) {
		const uint8_t *p = vv_peek_at(&c->in, at + i * 16, 16);
		uint64_t type, value;

		if (!p)
			return c->in.rc;
		type = number(p, 8);
		value = number(p + 8, 8);
		if (type == AT_PHDR)
			c->exe = value;
		else if (type == AT_RANDOM)
			c->start = value;
		else if (type == AT_SYSINFO_EHDR)
			c->vdso = value;
	}
	return 0;
}

static int read_notes(struct core *c, uint64_t at, uint64_t len)
{
	uint64_t end = at + len;
	int rc = 0;

	for (; rc == 0 && c->n_notes < MOST_NOTES && end - at >= NOTE_BYTES; c->n_notes++) {
		const uint8_t *p = vv_peek_at(&c->in, at, NOTE_BYTES);
		uint64_t name, body, type;

		if (!p)
			return c->in.rc;
		name = (number(p, 4) + 3) & ~3ull;
		body = number(p + 4, 4);
		type = number(p + 8, 4);
		at += NOTE_BYTES;
		if (name > end - at || body > end - at - name)
			return 0;
		at += name;
		if (type == NT_FILE)
			rc = read_maps(c, at, body);
		else if (type == NT_PRSTATUS)
			rc = read_registers(c, at, body);
		else if (type == NT_AUXV)
			rc = read_auxv(c, at, body);
		body = (body + 3) & ~3ull;
		at += body < end - at ? body : end - at;
	}
	return rc;
}

/* ---- loads ----------------------------------------------------------------------------------- */

struct elf_load {
	uint64_t type, flags, at, address, in_file, in_memory;
};

static bool read_header(struct core *c, uint64_t i, struct elf_load *l)
{
	const uint8_t *p = vv_peek_at(&c->in, c->header + i * ENTRY_BYTES, ENTRY_BYTES);

	if (!p)
		return false;
	*l = (struct elf_load){ number(p, 4), number(p + 4, 4), number(p + 8, 8), number(p + 16, 8), number(p + 32, 8), number(p + 40, 8) };
	if (l->at > c->in.f->len)
		l->in_file = 0;
	else if (l->in_file > c->in.f->len - l->at) /* the file was truncated */
		l->in_file = c->in.f->len - l->at;
	return true;
}

static int walk_notes(struct core *c)
{
	struct elf_load l;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < c->n_headers && read_header(c, i, &l); i++)
		if (l.type == NOTE)
			rc = read_notes(c, l.at, l.in_file);
	return rc ? rc : c->in.rc;
}

/* The kernel and gdb write maps in ascending order; otherwise some files are not found. */
static const struct elf_map *find_map(const struct core *c, uint64_t address)
{
	size_t i;

	VV_SEARCH(i, 0, c->n_maps, c->map[i].to <= address);
	return i < c->n_maps && c->map[i].from <= address ? &c->map[i] : NULL;
}

static int walk_areas(struct core *c)
{
	struct elf_load l;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < c->n_headers && read_header(c, i, &l); i++) {
		const struct elf_map *m = find_map(c, l.address);
		struct vv_memory_areas_area a = { .from = l.address, .executable = l.flags & EXECUTE, .writable = l.flags & WRITE };
		uint64_t len = l.in_memory > l.in_file ? l.in_memory : l.in_file;

		a.to = len < UINT64_MAX - l.address ? l.address + len : UINT64_MAX;
		if (l.type == LOAD)
			rc = vv_memory_areas_add(&c->memory, &a, m ? m->path : NULL, m ? m->len : 0);
	}
	return rc ? rc : c->in.rc;
}

static int walk_pieces(struct core *c)
{
	struct elf_load l;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < c->n_headers && read_header(c, i, &l); i++)
		if (l.type == LOAD && l.in_file)
			rc = vv_memory_areas_piece(&c->memory, l.address, l.in_file, l.at);
	return rc ? rc : c->in.rc;
}

static bool find_headers(struct core *c)
{
	const uint8_t *p = vv_peek_at(&c->in, 0, HEADER_BYTES);
	uint64_t sections;

	if (!p || number(p + 54, 2) != ENTRY_BYTES)
		return false;
	c->machine = (unsigned)number(p + 18, 2);
	c->header = number(p + 32, 8);
	sections = number(p + 40, 8);
	c->n_headers = number(p + 56, 2);
	if (c->n_headers == MANY) {
		p = vv_peek_at(&c->in, sections, SECTION_BYTES);
		c->n_headers = p ? number(p + SECTION_INFO, 4) : 0;
	}
	if (c->n_headers > MOST_HEADERS)
		c->n_headers = MOST_HEADERS;
	return c->header <= c->in.f->len;
}

static void name_areas(struct core *c)
{
	vv_memory_areas_finish(&c->memory, c->exe);
	vv_memory_areas_mark(&c->memory, c->vdso, VV_SEGMENT_VDSO);
	vv_memory_areas_mark(&c->memory, c->start, VV_SEGMENT_STACK);
	for (size_t i = 0; i < c->n_stacks; i++)
		vv_memory_areas_mark(&c->memory, c->stack[i], VV_SEGMENT_STACK);
	vv_memory_areas_guess_heap(&c->memory);
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct core *c = vv_mem_new(1, sizeof(*c));
	int rc = 0;

	if (!c)
		return VV_ENOMEM;
	vv_peek_init(&c->in, f);
	vv_memory_areas_init(&c->memory, out);
	if (find_headers(c)) {
		rc = walk_notes(c);
		if (rc == 0)
			rc = walk_areas(c);
		name_areas(c);
		if (rc == 0)
			rc = walk_pieces(c);
	}
	rc = rc ? rc : c->in.rc;
	vv_memory_areas_fini(&c->memory);
	vv_mem_free(c->files);
	vv_mem_free(c->map);
	vv_mem_free(c->stack);
	vv_mem_free(c);
	return rc;
}

static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	static const uint8_t magic[] = { 0x7f, 'E', 'L', 'F', 2, 1 };

	(void)f;
	return n >= HEADER_BYTES && memcmp(head, magic, sizeof(magic)) == 0 && number(head + 16, 2) == CORE;
}

extern const struct vv_reader vv_reader_elf;
const struct vv_reader vv_reader_elf = { .name = "elf", .is = is, .outline = outline };
