// CRIU's images made by hand: pages by what they are, from the files beside them; those that are missing, damaged, forged.
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "support/gen.h"
#include "support/outlines.h"
#include "support/process.h"
#include "support/proto.h"
#include "vv_test.h"

enum {
	PSTREE = 0x50273030, PAGEMAP = 0x56084025, MM = 0x57492820, FILES = 0x56303138, CORE = 0x55053847,
	PID = 4711, OTHER = 4712, TID = 4720,
	REGULAR = 1, VDSO = 8, HEAP = 32, FILE_PRIVATE = 64, ANON_PRIVATE = 512,
	SIBLINGS = 8,
};

struct sibling {
	char name[32];
	struct vv_buf b;
};

struct folder {
	struct sibling file[SIBLINGS];
	size_t n;
	uint8_t pages[64 * PROCESS_PAGE];
	uint64_t len;
	uint64_t asked, fail_at; // siblings
	uint64_t given;          // their bytes
};

static int read_pages(void *arg, uint64_t at, void *to, size_t n)
{
	struct folder *d = arg;

	CHECK(at <= d->len && n <= d->len - at);
	memcpy(to, d->pages + at, n);
	return 0;
}

static int read_sibling(void *arg, const char *name, size_t most, uint8_t **out, size_t *n)
{
	struct folder *d = arg;

	*out = NULL;
	*n = 0;
	if (++d->asked == d->fail_at)
		return vv_err_set(VV_EIO, "it was to fail");
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->file[i].name, name) == 0) {
			*n = d->file[i].b.n < most ? d->file[i].b.n : most;
			d->given += *n;
			*out = vv_mem_new(*n, 1);
			if (!*out)
				return VV_ENOMEM;
			if (*n)
				memcpy(*out, d->file[i].b.p, *n);
		}
	return 0;
}

static int look(struct folder *d, const char *name, struct vv_outline *o)
{
	struct vv_reader_file f = { .name = name, .len = d->len, .read = read_pages, .arg = d, .sibling = read_sibling };

	*o = (struct vv_outline){ 0 };
	return vv_reader_outline(&f, o);
}

static struct vv_buf *add(struct folder *d, const char *name, uint32_t magic)
{
	struct sibling *s = &d->file[d->n++];

	CHECK(d->n <= SIBLINGS);
	*s = (struct sibling){ 0 };
	snprintf(s->name, sizeof(s->name), "%s", name);
	proto_magic(&s->b, magic);
	return &s->b;
}

static void drop(struct folder *d)
{
	for (size_t i = 0; i < d->n; i++)
		vv_buf_fini(&d->file[i].b);
	free(d);
}

static void put_task(struct vv_buf *b, unsigned pid, unsigned thread, unsigned times)
{
	struct vv_buf m = { 0 };

	proto_number(&m, 1, pid);
	proto_number(&m, 2, 0);
	proto_number(&m, 5, pid);
	for (unsigned i = 0; i < times; i++)
		proto_number(&m, 5, thread);
	proto_entry(b, &m);
}

static void put_area(struct vv_buf *mm, const struct process_area *a, uint64_t file)
{
	struct vv_buf m = { 0 };
	unsigned prot = (a->flags & PROCESS_READ ? 1 : 0) | (a->flags & PROCESS_WRITE ? 2 : 0) | (a->flags & PROCESS_EXECUTE ? 4 : 0);
	unsigned status = REGULAR | (a->path ? FILE_PRIVATE : ANON_PRIVATE);

	status |= a->segment == VV_SEGMENT_HEAP ? HEAP : a->segment == VV_SEGMENT_VDSO ? VDSO : 0;
	proto_number(&m, 1, a->from);
	proto_number(&m, 2, a->from + (uint64_t)a->pages * PROCESS_PAGE);
	proto_number(&m, 3, 0);
	proto_number(&m, 4, a->path ? file : 0);
	proto_number(&m, 5, prot);
	proto_number(&m, 6, 2);
	proto_number(&m, 7, status);
	proto_number(&m, 8, 1);
	proto_message(mm, 14, &m);
}

// The number of a file is that of its first area, from 100 on.
static uint64_t file_id(const char *path)
{
	size_t i = 0;

	while (!process_areas[i].path || strcmp(process_areas[i].path, path) != 0)
		i++;
	return 100 + i;
}

static void put_files(struct folder *d)
{
	struct vv_buf *b = add(d, "files.img", FILES);

	for (size_t i = PROCESS_AREAS; i-- > 0;) { // in any order
		const char *path = process_areas[i].path;
		struct vv_buf reg = { 0 }, m = { 0 };

		if (!path || file_id(path) != 100 + i)
			continue;
		proto_number(&reg, 1, 100 + i);
		proto_bytes(&reg, 6, path, strlen(path));
		proto_number(&m, 1, 1);
		proto_number(&m, 2, 100 + i);
		proto_message(&m, 3, &reg);
		proto_entry(b, &m);
	}
}

static void put_mm(struct folder *d)
{
	struct vv_buf *b = add(d, "mm-4711.img", MM), m = { 0 };

	proto_number(&m, 5, process_first_stack);
	proto_number(&m, 12, file_id("/usr/bin/prog"));
	proto_number(&m, 13, 6);
	proto_number(&m, 13, PROCESS_PAGE);
	for (size_t i = 0; i < PROCESS_AREAS; i++)
		put_area(&m, &process_areas[i], process_areas[i].path ? file_id(process_areas[i].path) : 0);
	proto_entry(b, &m);
}

// aarch64's registers: as a thread of the process has them.
static void put_core(struct folder *d)
{
	struct vv_buf *b = add(d, "core-4720.img", CORE), m = { 0 }, info = { 0 }, gp = { 0 };

	proto_number(&gp, 1, 0x1111);
	proto_number(&gp, 2, process_thread_stack);
	proto_message(&info, 3, &gp);
	proto_number(&m, 1, 3);
	proto_message(&m, 8, &info);
	proto_entry(b, &m);
}

static void put_pages(struct vv_buf *b, uint64_t at, unsigned n, int flags)
{
	struct vv_buf m = { 0 };

	proto_number(&m, 1, at);
	proto_number(&m, 2, n);
	if (flags >= 0)
		proto_number(&m, 4, (unsigned)flags);
	proto_entry(b, &m);
}

static struct vv_buf *put_map(struct folder *d, const char *name, unsigned id)
{
	struct vv_buf *b = add(d, name, PAGEMAP), m = { 0 };

	proto_number(&m, 1, id);
	proto_entry(b, &m);
	return b;
}

// pages-2.img are those of PID. Areas that touch are in one entry, and some pages are with the parent or lazy.
static struct folder *make(void)
{
	struct folder *d = calloc(1, sizeof(*d));
	uint64_t state = 3;
	struct vv_buf *b;

	CHECK(d != NULL);
	b = add(d, "pstree.img", PSTREE);
	put_task(b, OTHER, 0, 0);
	put_task(b, PID, TID, 1);
	put_map(d, "pagemap-4712.img", 1);
	b = put_map(d, "pagemap-4711.img", 2);
	for (size_t i = 0, run; i < PROCESS_AREAS; i += run) {
		unsigned n = process_areas[i].pages;

		for (run = 1; i + run < PROCESS_AREAS && process_areas[i + run].from == process_areas[i].from + (uint64_t)n * PROCESS_PAGE; run++)
			n += process_areas[i + run].pages;
		put_pages(b, 0x3000000 + i * 0x10000, 5, 1); // in the parent
		put_pages(b, 0x3100000 + i * 0x10000, 5, 2); // lazy, and not there
		put_pages(b, process_areas[i].from, n, i % 3 == 0 ? -1 : i % 3 == 1 ? 4 : 6);
		d->len += (uint64_t)n * PROCESS_PAGE;
	}
	CHECK(d->len <= sizeof(d->pages));
	gen_bytes(&state, d->pages, d->len);
	put_files(d);
	put_mm(d);
	put_core(d);
	return d;
}

// A thread of which much is said is listed again and again: what is read of it has a limit.
static void repeats_threads(void)
{
	enum { TIMES = 1000, MUCH = 1 << 20, LIMIT = 300 << 20 };
	struct folder *d = make();
	struct vv_outline o;
	struct vv_buf *core = &d->file[d->n - 1].b;

	vv_buf_fini(&d->file[0].b);
	proto_magic(&d->file[0].b, PSTREE);
	put_task(&d->file[0].b, PID, TID, TIMES);
	memset(vv_buf_room(core, MUCH), 0, MUCH);
	core->n += MUCH;
	CHECK_EQ(look(d, "pages-2.img", &o), 0);
	CHECK(d->given > MUCH && d->given < LIMIT);
	vv_reader_outline_fini(&o);
	drop(d);
}

static const char *name_at(const struct vv_outline *o, uint64_t at)
{
	for (size_t i = 0; i < o->n_pieces; i++)
		if (o->piece[i].at <= at && at - o->piece[i].at < o->piece[i].len)
			return o->variable[o->piece[i].variable].name;
	return "";
}

static void knows_all_areas(void)
{
	struct folder *d = make();
	struct vv_outline o;
	uint64_t at = 0;

	CHECK_EQ(look(d, "some/where/pages-2.img", &o), 0);
	CHECK_STR(o.format, "criu");
	outlines_check(&o, d->len);
	for (size_t i = 0; i < PROCESS_AREAS; i++)
		for (unsigned k = 0; k < process_areas[i].pages; k++, at += PROCESS_PAGE) {
			CHECK_STR(name_at(&o, at), process_areas[i].name);
			CHECK_EQ(outlines_find(&o, process_areas[i].name, NULL)->segment, process_areas[i].segment);
		}
	CHECK_EQ(at, d->len);
	vv_reader_outline_fini(&o);
	drop(d);
}

// Pages that are of no process are shared by several.
static void knows_shared_memory(void)
{
	struct folder *d = make();
	struct vv_outline o;

	CHECK_EQ(look(d, "pages-7.img", &o), 0);
	CHECK_EQ(o.n_pieces, 1);
	CHECK_EQ(o.piece[0].len, d->len);
	CHECK_EQ(outlines_find(&o, "/shared", NULL)->segment, VV_SEGMENT_SHARED);
	vv_reader_outline_fini(&o);
	drop(d);
}

static void is_opaque(struct folder *d, const char *name, const char *format)
{
	struct vv_outline o;

	CHECK_EQ(look(d, name, &o), 0);
	CHECK_STR(o.format, format);
	CHECK_EQ(o.n_pieces, 0);
	vv_reader_outline_fini(&o);
}

static void says_nothing(void)
{
	static const char *const names[] = { "pages-2.img.old", "pages-.img", "pages-0.img", "pages--2.img", "xpages-2.img", "pages-2x.img", "pages-12345678901.img" };
	struct folder *d = make();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is_opaque(d, names[i], "opaque");
	d->len--;
	is_opaque(d, "pages-2.img", "opaque");
	d->len++;
	d->file[0].name[0] = 'x'; // without pstree.img
	is_opaque(d, "pages-2.img", "criu");
	drop(d);
}

// What is missing costs names, not pages.
static void does_without(void)
{
	for (size_t i = 3; i < 6; i++) {
		struct folder *d = make();
		struct vv_outline o;
		uint64_t sum = 0;

		d->file[i].name[0] = 'x';
		CHECK_EQ(look(d, "pages-2.img", &o), 0);
		for (size_t k = 0; k < o.n_pieces; k++)
			sum += o.piece[k].len;
		CHECK_EQ(sum, d->len);
		vv_reader_outline_fini(&o);
		drop(d);
	}
}

static void try(struct folder *d)
{
	struct vv_outline o;

	CHECK_EQ(look(d, "pages-2.img", &o), 0);
	outlines_check(&o, d->len);
	vv_reader_outline_fini(&o);
}

// Every file beside the pages: cut everywhere, each of its bytes changed, many changed at random.
static void survives_damage(void)
{
	static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct folder *d = make();
	uint64_t state = 11;

	for (size_t f = 0; f < d->n; f++) {
		struct vv_buf *b = &d->file[f].b;
		size_t n = b->n;

		for (b->n = 0; b->n < n; b->n++)
			try(d);
		for (size_t i = 0; i < n * sizeof(odd); i++) {
			uint8_t was = b->p[i / sizeof(odd)];

			b->p[i / sizeof(odd)] = odd[i % sizeof(odd)];
			try(d);
			b->p[i / sizeof(odd)] = was;
		}
	}
	for (size_t i = 0; i < 3000; i++) {
		struct vv_buf *b = &d->file[gen_below(&state, d->n)].b;

		b->p[8 + gen_below(&state, b->n - 8)] = (uint8_t)gen_next(&state);
		try(d);
		if (i % 8 == 7) {
			drop(d);
			d = make();
		}
	}
	drop(d);
}

static void survives_failures(void)
{
	struct folder *d = make();
	struct vv_outline o;
	int rc = VV_EIO;

	for (d->fail_at = 1; rc; d->fail_at++, d->asked = 0) {
		rc = look(d, "pages-2.img", &o);
		CHECK(rc == 0 || rc == VV_EIO);
		CHECK(d->fail_at < 20);
	}
	vv_reader_outline_fini(&o);
	d->fail_at = 0;
	rc = VV_ENOMEM;
	for (long i = 1; rc; i++) {
		vv_mem_fail_at(i);
		rc = look(d, "pages-2.img", &o);
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		CHECK(i < 100);
	}
	vv_reader_outline_fini(&o);
	drop(d);
}

int main(void)
{
	knows_all_areas();
	knows_shared_memory();
	repeats_threads();
	says_nothing();
	does_without();
	survives_damage();
	survives_failures();
	return 0;
}
