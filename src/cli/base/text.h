/* Readable text: sizes, times, shapes, names with any characters, aligned tables. */
#ifndef VV_CLI_BASE_TEXT_H
#define VV_CLI_BASE_TEXT_H

#include "base/buf.h"
#include "core/format/head.h"

/* a short text by value: vv_text_size(n).s lives to the end of the full expression */
struct vv_text {
	char s[48];
};

struct vv_text_long {
	char s[1100];
};

struct vv_text vv_text_size(uint64_t bytes);                  /* 999 B, 12.3 MiB */
struct vv_text vv_text_share(uint64_t part, uint64_t whole);  /* 12.3 % */
struct vv_text vv_text_ratio(uint64_t a, uint64_t b);         /* 12.3x, or - */
struct vv_text vv_text_duration(double seconds);              /* 12.3 ms */
struct vv_text vv_text_time(uint64_t wall_ns);                /* 2024-05-01 12:33:05, local */
struct vv_text vv_text_iso(uint64_t wall_ns);                 /* 2024-05-01T10:33:05.123456789Z */
struct vv_text vv_text_age(uint64_t wall_ns, uint64_t now_ns); /* 3 min ago */
struct vv_text_long vv_text_shape(const struct vv_shape *s);  /* [10,20], or - */
/* The element's position in an array: [3,17]; just 77 if there is no shape. */
struct vv_text_long vv_text_index(const struct vv_shape *s, uint64_t element);
/* Control characters and invalid UTF-8 become \xNN: a name cannot control the terminal. */
struct vv_text_long vv_text_safe(const char *name);

struct vv_text_table { /* rows of cells, with columns as wide as needed */
	const char *const *column; /* '<' or '>' for the side, then the heading; NULL at the end */
	size_t n_columns;
	const char *indent;
	char **cell;
	size_t n, cap;
	bool bare; /* without the headings */
	bool failed;
	/* The window of the standard output; 0: none. If the table is wider, these columns are left
	 * out one by one, and then text in the last column continues in further lines. */
	size_t window;
	const char *spare; /* headings, as "PARENT;RANKS"; may be NULL */
};

void vv_text_table_init(struct vv_text_table *t, const char *const *column, const char *indent);
void vv_text_table_fini(struct vv_text_table *t);
/* Adds the next cell of the row; a row is complete when it has a cell for each column. Text that is
 * followed by empty cells only may have any length: it makes no column wider. */
void vv_text_cell(struct vv_text_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int vv_text_table_print(const struct vv_text_table *t, struct vv_buf *out);

#endif
