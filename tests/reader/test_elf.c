// Core files made by hand: what each part of the memory is called, on two machines; what is missing, cut, forged.
#include "base/wire.h"
#include "support/outlines.h"
#include "support/process.h"
#include "vv_test.h"

enum { HEADER = 64, ENTRY = 56, X86_64 = 62, AARCH64 = 183, NT_PRSTATUS = 1, NT_AUXV = 6, NT_FILE = 0x46494c45 };

struct shape {
	unsigned machine;
	bool files, threads, auxv; // notes that are there
	bool many;                 // headers: their number is in a section
	uint64_t skew;             // bytes before the first page: gcore aligns nothing
};

static void put_note(struct vv_buf *b, unsigned type, struct vv_buf *body)
{
	vv_wire_put_u32(b, 5);
	vv_wire_put_u32(b, (uint32_t)body->n);
	vv_wire_put_u32(b, type);
	vv_buf_add(b, "CORE\0\0\0", 8);
	vv_buf_add(b, body->p, body->n);
	while (b->n % 4)
		vv_wire_put_u8(b, 0);
	vv_buf_fini(body);
}

static void put_registers(struct vv_buf *b, unsigned machine, uint64_t stack)
{
	struct vv_buf body = { 0 };
	size_t at = machine == X86_64 ? 264 : 360, all = machine == X86_64 ? 336 : 392;

	for (size_t i = 0; i < all; i += 8)
		vv_wire_put_u64(&body, i == at ? stack : 0x1111);
	put_note(b, NT_PRSTATUS, &body);
}

static void put_files(struct vv_buf *b)
{
	struct vv_buf body = { 0 };
	uint64_t n = 0;

	for (size_t i = 0; i < PROCESS_AREAS; i++)
		n += process_areas[i].path != NULL;
	vv_wire_put_u64(&body, n);
	vv_wire_put_u64(&body, PROCESS_PAGE);
	for (size_t i = 0; i < PROCESS_AREAS; i++)
		if (process_areas[i].path) {
			vv_wire_put_u64(&body, process_areas[i].from);
			vv_wire_put_u64(&body, process_areas[i].from + (uint64_t)process_areas[i].pages * PROCESS_PAGE);
			vv_wire_put_u64(&body, 0);
		}
	for (size_t i = 0; i < PROCESS_AREAS; i++)
		if (process_areas[i].path)
			vv_buf_add(&body, process_areas[i].path, strlen(process_areas[i].path) + 1);
	put_note(b, NT_FILE, &body);
}

static struct vv_buf notes_of(const struct shape *s)
{
	const uint64_t auxv[] = { 33, process_vdso, 6, PROCESS_PAGE, 3, process_exe, 25, process_first_stack, 0, 0 };
	struct vv_buf b = { 0 }, body = { 0 };

	if (s->threads) {
		put_registers(&b, s->machine, process_first_stack - 100);
		put_registers(&b, s->machine, process_thread_stack);
	}
	for (size_t i = 0; s->auxv && i < sizeof(auxv) / sizeof(auxv[0]); i++)
		vv_wire_put_u64(&body, auxv[i]);
	if (s->auxv)
		put_note(&b, NT_AUXV, &body);
	if (s->files)
		put_files(&b);
	return b;
}

static void put_header(struct vv_buf *b, unsigned type, unsigned flags, uint64_t at, uint64_t address, uint64_t in_file, uint64_t in_memory)
{
	vv_wire_put_u32(b, type);
	vv_wire_put_u32(b, flags);
	vv_wire_put_u64(b, at);
	vv_wire_put_u64(b, address);
	vv_wire_put_u64(b, 0);
	vv_wire_put_u64(b, in_file);
	vv_wire_put_u64(b, in_memory);
	vv_wire_put_u64(b, 1);
}

static void put_front(struct vv_buf *b, const struct shape *s, unsigned headers, uint64_t sections)
{
	static const uint8_t ident[16] = { 0x7f, 'E', 'L', 'F', 2, 1, 1 };

	vv_buf_add(b, ident, sizeof(ident));
	vv_wire_put_u16(b, 4);
	vv_wire_put_u16(b, (uint16_t)s->machine);
	vv_wire_put_u32(b, 1);
	vv_wire_put_u64(b, 0);
	vv_wire_put_u64(b, HEADER);
	vv_wire_put_u64(b, s->many ? sections : 0);
	vv_wire_put_u32(b, 0);
	vv_wire_put_u16(b, HEADER);
	vv_wire_put_u16(b, ENTRY);
	vv_wire_put_u16(b, s->many ? 0xffff : (uint16_t)headers);
	vv_wire_put_u16(b, 64);
	vv_wire_put_u16(b, s->many);
	vv_wire_put_u16(b, 0);
}

// *first: where the pages begin.
static struct vv_buf make(const struct shape *s, uint64_t *first)
{
	unsigned headers = PROCESS_AREAS + 2;
	struct vv_buf b = { 0 }, notes = notes_of(s);
	uint64_t at = HEADER + (uint64_t)headers * ENTRY, sections = at + notes.n, pages = sections + (s->many ? 64 : 0) + s->skew;

	put_front(&b, s, headers, sections);
	put_header(&b, 4, 0, at, 0, notes.n, 0);
	*first = at = pages;
	for (size_t i = 0; i < PROCESS_AREAS; i++) {
		const struct process_area *a = &process_areas[i];
		uint64_t len = (uint64_t)a->pages * PROCESS_PAGE;

		put_header(&b, 1, a->flags, at, a->from, len, len);
		at += len;
	}
	put_header(&b, 1, PROCESS_READ, at, 0x7f8000000000, 0, 1 << 20); // nothing of it was written
	vv_buf_add(&b, notes.p, notes.n);
	for (size_t i = 0; s->many && i < 64; i += 4)
		vv_wire_put_u32(&b, i == 44 ? headers : 0);
	while (b.n < at)
		vv_wire_put_u8(&b, (uint8_t)(b.n * 7));
	vv_buf_fini(&notes);
	CHECK_EQ(b.n, at);
	return b;
}

static const char *name_at(const struct vv_outline *o, uint64_t at)
{
	for (size_t i = 0; i < o->n_pieces; i++)
		if (o->piece[i].at <= at && at - o->piece[i].at < o->piece[i].len)
			return o->variable[o->piece[i].variable].name;
	return "";
}

static void knows_all_areas(const struct shape *s)
{
	uint64_t at;
	struct vv_buf b = make(s, &at);
	struct vv_outline o = outlines_get(b.p, b.n, "core.1234", "elf");

	CHECK_STR(name_at(&o, at - 1), "");
	for (size_t i = 0; i < PROCESS_AREAS; i++) {
		const struct process_area *a = &process_areas[i];

		for (unsigned k = 0; k < a->pages; k++, at += PROCESS_PAGE) {
			CHECK_STR(name_at(&o, at), a->name);
			CHECK_STR(name_at(&o, at + PROCESS_PAGE - 1), a->name);
		}
		CHECK_EQ(outlines_find(&o, a->name, NULL)->segment, a->segment);
	}
	CHECK_EQ(at, b.n);
	CHECK_EQ(outlines_find(&o, "/stack", NULL)->dim[0], 5 * PROCESS_PAGE);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

// Without notes there are still pages.
static void knows_less(void)
{
	static const struct shape bare = { .machine = X86_64 }, files = { .machine = X86_64, .files = true }, other = { .machine = 8, .threads = true };
	const struct shape *const shapes[] = { &bare, &files, &other };

	for (size_t i = 0; i < 3; i++) {
		uint64_t at, sum = 0;
		struct vv_buf b = make(shapes[i], &at);
		struct vv_outline o = outlines_get(b.p, b.n, "core", "elf");

		for (size_t k = 0; k < o.n_pieces; k++)
			sum += o.piece[k].len;
		CHECK_EQ(sum, b.n - at);
		CHECK_STR(name_at(&o, at), i == 1 ? "/file" : "/anon"); // which of the files is the program is not known
		vv_reader_outline_fini(&o);
		vv_buf_fini(&b);
	}
}

// Many headers name the same million notes: they are read once.
static void repeats_notes(void)
{
	enum { HEADERS = 100, NOTES = 1 << 20 };
	const struct shape s = { .machine = X86_64 };
	uint64_t at = HEADER + (uint64_t)HEADERS * ENTRY;
	struct vv_buf b = { 0 };
	struct outlines_bytes bytes;
	struct vv_reader_file f;
	struct vv_outline o = { 0 };

	put_front(&b, &s, HEADERS, 0);
	for (int i = 0; i < HEADERS; i++)
		put_header(&b, 4, 0, at, 0, (uint64_t)NOTES * 12, 0);
	memset(vv_buf_room(&b, (size_t)NOTES * 12), 0, (size_t)NOTES * 12);
	bytes = (struct outlines_bytes){ .p = b.p, .n = (size_t)at + (size_t)NOTES * 12 };
	f = outlines_file(&bytes, "core");
	CHECK_EQ(vv_reader_outline(&f, &o), 0);
	CHECK(bytes.reads < 5000);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

static void is_not_a_core(struct vv_buf *b, size_t at, uint8_t value)
{
	uint8_t was = b->p[at];
	struct vv_outline o;

	b->p[at] = value;
	o = outlines_get(b->p, b->n, "core", "opaque");
	CHECK_EQ(o.n_pieces, 0);
	vv_reader_outline_fini(&o);
	b->p[at] = was;
}

int main(void)
{
	static const struct shape whole = { X86_64, true, true, true, false, 0 }, arm = { AARCH64, true, true, true, false, 0x58 },
				  many = { AARCH64, true, true, true, true, 4 };
	uint64_t at;
	struct vv_buf b;

	knows_all_areas(&whole);
	knows_all_areas(&arm);
	knows_all_areas(&many);
	knows_less();
	repeats_notes();
	b = make(&many, &at);
	is_not_a_core(&b, 4, 1);  // 32 bits
	is_not_a_core(&b, 5, 2);  // high byte first
	is_not_a_core(&b, 16, 2); // a program
	outlines_damage(b.p, b.n, (size_t)at, "core");
	vv_buf_fini(&b);
	return 0;
}
