/* scanf and its family, which allocate for %ms, %m[ and %mc (and, in C before C99, for %as): the
 * results are moved to the heap. All arguments are pointers, so the format identifies the allocated
 * ones. */
#include "preload/libc_memory.h"

enum { WIDE = 1, OLD = 2 }; /* the format has wide characters; it allows %as */

typedef int scan_fn(const void *from, const void *format, va_list ap);

static unsigned at(const void *format, int how, size_t i)
{
	return how & WIDE ? (unsigned)((const wchar_t *)format)[i] : ((const unsigned char *)format)[i];
}

struct libc_memory_scan_item {
	unsigned kind;  /* the conversion letter */
	size_t number;  /* number of its argument; 0: the next */
	size_t width;   /* 0: none */
	bool skipped, allocated, wide;
};

static size_t read_number(const void *format, int how, size_t *i)
{
	size_t n = 0;

	for (; at(format, how, *i) - '0' < 10; ++*i)
		n = n < SIZE_MAX / 32 ? n * 10 + at(format, how, *i) - '0' : n;
	return n;
}

/* Returns the position after the letter; after [ a set follows, in which a leading ] is a
 * member. */
static size_t behind(const void *format, int how, size_t i)
{
	if (at(format, how, i++) != '[')
		return i;
	i += at(format, how, i) == '^';
	i += at(format, how, i) == ']';
	while (at(format, how, i) && at(format, how, i) != ']')
		i++;
	return i + (at(format, how, i) == ']');
}

static bool is_old_mark(const void *format, int how, size_t i)
{
	unsigned next = at(format, how, i + 1);

	return how & OLD && at(format, how, i) == 'a' && (next == 's' || next == 'S' || next == '[');
}

/* Parses the conversion after the % at i - 1; returns the position after it. */
static size_t read_item(const void *format, int how, size_t i, struct libc_memory_scan_item *out)
{
	size_t begin = i, n = read_number(format, how, &i);
	unsigned c;

	*out = (struct libc_memory_scan_item){ .number = 0 };
	if (n && at(format, how, i) == '$') {
		out->number = n;
		begin = ++i;
	}
	i = begin;
	for (; (c = at(format, how, i)) == '*' || c == '\'' || c == 'I'; i++)
		out->skipped |= c == '*';
	out->width = read_number(format, how, &i);
	for (; (c = at(format, how, i)) && (c == 'm' || c == 'h' || c == 'l' || c == 'q' || c == 'j' || c == 'z' || c == 't' || c == 'L' ||
					   is_old_mark(format, how, i)); i++) {
		out->allocated |= c == 'm' || c == 'a';
		out->wide |= c == 'l';
	}
	out->kind = c;
	return c ? behind(format, how, i) : i;
}

static void *argument(const struct libc_memory_scan_item *item, va_list first, va_list *next)
{
	va_list ap;
	void *p = NULL;

	if (!item->number)
		return va_arg(*next, void *);
	va_copy(ap, first);
	for (size_t k = 0; k < item->number; k++)
		p = va_arg(ap, void *);
	va_end(ap);
	return p;
}

static void move_one(const struct libc_memory_scan_item *item, void **p)
{
	size_t size = item->wide || item->kind == 'S' || item->kind == 'C' ? sizeof(wchar_t) : 1, n;

	if (!p || !*p)
		return;
	if (item->kind == 's' || item->kind == 'S' || item->kind == '[')
		n = size == 1 ? strlen(*p) + 1 : (wcslen(*p) + 1) * size;
	else if (item->kind == 'c' || item->kind == 'C') /* fewer at the end of the input */
		n = (item->width ? item->width : 1) * size;
	else
		return;
	*p = vv_libc_memory_move(*p, n);
}

/* Moves the results of the first `got` counted conversions. */
static void move_all(const void *format, int how, va_list first, int got)
{
	struct libc_memory_scan_item item;
	va_list next;

	va_copy(next, first);
	for (size_t i = 0; got > 0 && at(format, how, i);) {
		void *p;

		if (at(format, how, i++) != '%')
			continue;
		i = read_item(format, how, i, &item);
		if (item.kind == '%' || item.skipped)
			continue;
		p = argument(&item, first, &next);
		if (item.allocated)
			move_one(&item, p);
		got -= item.kind != 'n';
	}
	va_end(next);
}

static bool may_allocate(const void *format, int how)
{
	if (how & WIDE)
		return wcschr(format, 'm') || (how & OLD && wcschr(format, 'a'));
	return strchr(format, 'm') || (how & OLD && strchr(format, 'a'));
}

static int scan(scan_fn *theirs, const void *from, const void *format, va_list ap, int how, bool program)
{
	va_list first;
	int got;

	if (!program || !may_allocate(format, how))
		return theirs(from, format, ap);
	va_copy(first, ap);
	got = theirs(from, format, ap);
	move_all(format, how, first, got);
	va_end(first);
	return got;
}

/* Defined under our own names, because the headers redirect the original ones; the source is a
 * stream or a string. */
#define DEFINE(of, name, params)                                                                                                                 \
	int vv_libc_memory_scan_##of##name params __asm__(#of #name) __attribute__((visibility("default")));                                     \
	int vv_libc_memory_scan_##of##name params

#define SCAN(of, through, from, how) scan((scan_fn *)vv_libc_memory_real(VV_LIBC_MEMORY_##of##through), from, format, ap, how, program)

#define SCAN_ARGUMENTS(of, through, from, how)                                                                                                   \
	bool program = FOR_PROGRAM();                                                                                                            \
	va_list ap;                                                                                                                              \
	int got;                                                                                                                                 \
                                                                                                                                                 \
	va_start(ap, format);                                                                                                                    \
	got = SCAN(of, through, from, how);                                                                                                      \
	va_end(ap);                                                                                                                              \
	return got

#define SCAN_LIST(of, through, from, how)                                                                                                        \
	bool program = FOR_PROGRAM();                                                                                                            \
                                                                                                                                                 \
	return SCAN(of, through, from, how)

#define FAMILY(of, how, from_input, from_stream, from_string)                                                                                    \
	DEFINE(of, from_input, (const void *format, ...)) { SCAN_ARGUMENTS(of, v##from_stream, stdin, how); }                                    \
	DEFINE(of, from_stream, (const void *from, const void *format, ...)) { SCAN_ARGUMENTS(of, v##from_stream, from, how); }                  \
	DEFINE(of, from_string, (const void *from, const void *format, ...)) { SCAN_ARGUMENTS(of, v##from_string, from, how); }                  \
	DEFINE(of, v##from_input, (const void *format, va_list ap)) { SCAN_LIST(of, v##from_stream, stdin, how); }                               \
	DEFINE(of, v##from_stream, (const void *from, const void *format, va_list ap)) { SCAN_LIST(of, v##from_stream, from, how); }             \
	DEFINE(of, v##from_string, (const void *from, const void *format, va_list ap)) { SCAN_LIST(of, v##from_string, from, how); }

FAMILY(, OLD, scanf, fscanf, sscanf)
FAMILY(, OLD | WIDE, wscanf, fwscanf, swscanf)
FAMILY(__isoc99_, 0, scanf, fscanf, sscanf)
FAMILY(__isoc99_, WIDE, wscanf, fwscanf, swscanf)
#if __GLIBC_PREREQ(2, 38)
FAMILY(__isoc23_, 0, scanf, fscanf, sscanf)
FAMILY(__isoc23_, WIDE, wscanf, fwscanf, swscanf)
#endif
