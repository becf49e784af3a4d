/* Pages of CRIU's images. pages-N.img holds pages only. The pagemap-PID.img whose first entry names
 * N identifies their process, and mm-PID.img describes their addresses. Names of files are in
 * files.img, stack pointers in core-TID.img, and the processes in pstree.img. Formats: CRIU's
 * images/ (*.proto). */
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "reader/criu_entries.h"
#include "reader/pagemap.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAME = 64,
	MOST = 64 << 20,      /* bytes of such a file that are read */
	MOST_HEAD = 64,       /* and of one that may not be the right one */
	MOST_CORE = 1 << 20,
	MOST_CORES = 256 << 20, /* of all threads: their list may repeat some */
	MAX_TASKS = 1 << 16,
	STACK = 1 << 1, VSYSCALL = 1 << 2, VDSO = 1 << 3, HEAP = 1 << 5, FILE_PRIVATE = 1 << 6, FILE_SHARED = 1 << 7, ANON_SHARED = 1 << 8,
	SYSV = 1 << 10, VVAR = 1 << 12, MEMFD = 1 << 14, /* flags of areas */
	PROT_WRITE = 2, PROT_EXEC = 4,
	AUXV_PAGE = 6,
};

struct image { /* a file of entries */
	uint8_t *bytes;
	size_t n;
	struct vv_proto left;
};

struct criu_images_name {
	uint64_t id;
	struct vv_proto path;
};

struct criu {
	const struct vv_reader_file *f;
	struct vv_memory_areas memory;
	struct image tree, map, mm, files;
	struct criu_images_name *name;
	size_t n_names, names_cap;
	uint64_t exe, stack, page;
};

/* ---- images ---------------------------------------------------------------------------------- */

static int open_image(struct criu *c, const char *name, enum vv_criu_entries_magic magic, size_t most, struct image *out)
{
	int rc = c->f->sibling(c->f->arg, name, most, &out->bytes, &out->n);

	out->n = rc == 0 && out->bytes ? out->n : 0;
	out->left = vv_criu_entries_open(out->bytes, out->n, magic);
	return rc;
}

static void close_image(struct image *i)
{
	vv_mem_free(i->bytes);
	*i = (struct image){ 0 };
}

/* ---- process of the pages -------------------------------------------------------------------- */

/* The number in pages-N.img; 0: another name. */
static uint64_t pages_id(const char *path)
{
	const char *base = strrchr(path, '/'), *digit;
	uint64_t id = 0;

	base = base ? base + 1 : path;
	if (strncmp(base, "pages-", 6) != 0)
		return 0;
	for (digit = base + 6; *digit >= '0' && *digit <= '9' && id < UINT32_MAX; digit++)
		id = id * 10 + (uint64_t)(*digit - '0');
	return strcmp(digit, ".img") == 0 && id <= UINT32_MAX ? id : 0;
}

/* Opens the pagemap of this process; *found: it describes these pages. */
static int try_task(struct criu *c, uint64_t pid, uint64_t id, bool *found)
{
	char name[NAME];
	struct vv_proto head;
	int rc;

	snprintf(name, sizeof(name), "pagemap-%" PRIu64 ".img", pid);
	rc = open_image(c, name, VV_CRIU_PAGEMAP, MOST_HEAD, &c->map);
	*found = rc == 0 && vv_criu_entries_next(&c->map.left, &head) && vv_proto_number(head, 1) == id;
	close_image(&c->map);
	if (*found)
		rc = open_image(c, name, VV_CRIU_PAGEMAP, MOST, &c->map);
	if (*found && rc == 0)
		vv_criu_entries_next(&c->map.left, &head);
	return rc;
}

/* The entry of the process that owns these pages, empty if there is none. Pages are numbered
 * roughly in the order of the processes, so the process with the same number is tried first. */
static int find_task(struct criu *c, uint64_t id, struct vv_proto *out)
{
	struct vv_proto *task = NULL, entry;
	size_t n = 0, cap = 0;
	bool found = false;
	int rc = 0;

	while (rc == 0 && n < MAX_TASKS && vv_criu_entries_next(&c->tree.left, &entry)) {
		rc = vv_mem_room(&task, n, &cap, sizeof(*task));
		if (rc == 0)
			task[n++] = entry;
	}
	for (size_t i = 0; rc == 0 && !found && i < n; i++) {
		*out = task[(id - 1 + i) % n];
		rc = try_task(c, vv_proto_number(*out, 1), id, &found);
	}
	if (!found)
		*out = (struct vv_proto){ 0 };
	vv_mem_free(task);
	return rc;
}

/* ---- areas ----------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	const struct criu_images_name *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int read_names(struct criu *c)
{
	struct vv_proto entry;
	int rc = open_image(c, "files.img", VV_CRIU_FILES, MOST, &c->files);

	while (rc == 0 && vv_criu_entries_next(&c->files.left, &entry)) {
		struct criu_images_name x = { vv_proto_number(entry, 2), vv_proto_body(vv_proto_body(entry, 3), 6) };

		if (!x.path.p)
			continue;
		rc = vv_mem_room(&c->name, c->n_names, &c->names_cap, sizeof(*c->name));
		if (rc == 0)
			c->name[c->n_names++] = x;
	}
	if (c->n_names)
		qsort(c->name, c->n_names, sizeof(*c->name), by_id);
	return rc;
}

static const struct vv_proto *find_name(const struct criu *c, uint64_t id)
{
	size_t i;

	VV_SEARCH(i, 0, c->n_names, c->name[i].id < id);
	return i < c->n_names && c->name[i].id == id ? &c->name[i].path : NULL;
}

static uint8_t segment_of(uint64_t status)
{
	if (status & (VDSO | VVAR | VSYSCALL))
		return VV_SEGMENT_VDSO;
	if (status & (ANON_SHARED | SYSV | MEMFD))
		return VV_SEGMENT_SHARED;
	if (status & HEAP)
		return VV_SEGMENT_HEAP;
	return status & STACK ? VV_SEGMENT_STACK : VV_SEGMENT_NONE;
}

static int add_area(struct criu *c, struct vv_proto m, uint64_t exe_id)
{
	uint64_t id = vv_proto_number(m, 4), prot = vv_proto_number(m, 5), status = vv_proto_number(m, 7);
	struct vv_memory_areas_area a = {
		.from = vv_proto_number(m, 1),
		.to = vv_proto_number(m, 2),
		.executable = prot & PROT_EXEC,
		.writable = prot & PROT_WRITE,
		.segment = segment_of(status),
	};
	const struct vv_proto *path = status & (FILE_PRIVATE | FILE_SHARED) ? find_name(c, id) : NULL;

	if (path && id == exe_id)
		c->exe = a.from;
	return vv_memory_areas_add(&c->memory, &a, path ? (const char *)path->p : NULL, path ? path->n : 0);
}

static int read_areas(struct criu *c, uint64_t pid)
{
	char name[NAME];
	struct vv_proto mm = { 0 }, left;
	struct vv_proto_field f;
	uint64_t exe_id, auxv = 0, i = 0;
	int rc;

	snprintf(name, sizeof(name), "mm-%" PRIu64 ".img", pid);
	rc = open_image(c, name, VV_CRIU_MM, MOST, &c->mm);
	if (rc == 0)
		vv_criu_entries_next(&c->mm.left, &mm);
	exe_id = vv_proto_number(mm, 12);
	c->stack = vv_proto_number(mm, 5);
	for (left = mm; rc == 0 && vv_proto_next(&left, &f);) {
		if (f.number == 14) {
			rc = add_area(c, f.body, exe_id);
		} else if (f.number == 13) { /* types and values alternate */
			if (i++ % 2 && auxv == AUXV_PAGE)
				c->page = f.value;
			auxv = f.value;
		}
	}
	return rc;
}

/* Marks the stack of a thread by the stack pointer in its registers. *left: bytes that may be
 * read. */
static int mark_stack(struct criu *c, uint64_t tid, size_t *left)
{
	char name[NAME];
	struct image core = { 0 };
	struct vv_proto entry = { 0 }, x86, arm;
	int rc;

	snprintf(name, sizeof(name), "core-%" PRIu64 ".img", tid);
	rc = open_image(c, name, VV_CRIU_CORE, *left < MOST_CORE ? *left : MOST_CORE, &core);
	*left -= core.n < *left ? core.n : *left;
	if (rc == 0 && vv_criu_entries_next(&core.left, &entry)) {
		x86 = vv_proto_body(vv_proto_body(entry, 2), 2);
		arm = vv_proto_body(vv_proto_body(entry, 8), 3);
		vv_memory_areas_mark(&c->memory, arm.n ? vv_proto_number(arm, 2) : vv_proto_number(x86, 20), VV_SEGMENT_STACK);
	}
	close_image(&core);
	return rc;
}

static int mark_stacks(struct criu *c, struct vv_proto task)
{
	struct vv_proto_field f;
	size_t left = MOST_CORES;
	int rc = 0;

	vv_memory_areas_mark(&c->memory, c->stack, VV_SEGMENT_STACK);
	for (size_t i = 0; rc == 0 && left && i < MAX_TASKS && vv_proto_next(&task, &f); i++)
		if (f.number == 5)
			rc = mark_stack(c, f.value, &left);
	return rc;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static int read_pages(struct criu *c)
{
	uint64_t page = c->page >= VV_PAGEMAP_PAGE && c->page <= VV_PAGEMAP_PAGE_MOST ? c->page : VV_PAGEMAP_PAGE;

	return vv_pagemap_pieces(c->map.left, page, c->f->len, &c->memory);
}

/* Pages that belong to no single process are shared memory. */
static int add_shared(struct criu *c)
{
	const struct vv_memory_areas_area all = { .to = UINT64_MAX, .writable = true, .segment = VV_SEGMENT_SHARED };
	int rc = vv_memory_areas_add(&c->memory, &all, NULL, 0);

	return rc ? rc : vv_memory_areas_piece(&c->memory, 0, c->f->len, 0);
}

static int read_all(struct criu *c, uint64_t id)
{
	struct vv_proto task = { 0 };
	int rc = open_image(c, "pstree.img", VV_CRIU_PSTREE, MOST, &c->tree);

	if (rc || !c->tree.left.n)
		return rc;
	rc = find_task(c, id, &task);
	if (rc)
		return rc;
	if (!task.n)
		return add_shared(c);
	rc = read_names(c);
	if (rc == 0)
		rc = read_areas(c, vv_proto_number(task, 1));
	vv_memory_areas_finish(&c->memory, c->exe);
	if (rc == 0)
		rc = mark_stacks(c, task);
	return rc ? rc : read_pages(c);
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct criu c = { .f = f };
	int rc;

	vv_memory_areas_init(&c.memory, out);
	rc = read_all(&c, pages_id(f->name));
	vv_memory_areas_fini(&c.memory);
	close_image(&c.tree);
	close_image(&c.map);
	close_image(&c.mm);
	close_image(&c.files);
	vv_mem_free(c.name);
	return rc;
}

static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	(void)head;
	return n && f->sibling && f->len % VV_PAGEMAP_PAGE == 0 && pages_id(f->name);
}

extern const struct vv_reader vv_reader_criu;
const struct vv_reader vv_reader_criu = { .name = "criu", .is = is, .outline = outline };
