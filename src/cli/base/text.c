#include "cli/base/text.h"
#include "base/utf8.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

struct vv_text vv_text_size(uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes / 1024;
	struct vv_text t;
	size_t u = 0;

	if (bytes < 1024) {
		snprintf(t.s, sizeof(t.s), "%" PRIu64 " B", bytes);
		return t;
	}
	for (; v >= 999.5 && u < 5; u++)
		v /= 1024;
	snprintf(t.s, sizeof(t.s), "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[u]);
	return t;
}

struct vv_text vv_text_share(uint64_t part, uint64_t whole)
{
	struct vv_text t;
	double percent = whole ? 100.0 * (double)part / (double)whole : 0;

	if (whole && part && percent < 0.05)
		snprintf(t.s, sizeof(t.s), "< 0.1 %%");
	else if (whole)
		snprintf(t.s, sizeof(t.s), "%.1f %%", percent);
	else
		snprintf(t.s, sizeof(t.s), "-");
	return t;
}

struct vv_text vv_text_ratio(uint64_t a, uint64_t b)
{
	double v = b ? (double)a / (double)b : 0;
	struct vv_text t;

	if (b)
		snprintf(t.s, sizeof(t.s), "%.*fx", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v);
	else
		snprintf(t.s, sizeof(t.s), "-");
	return t;
}

/* A value that would be rounded to a thousand of a unit is shown as one of the next unit. */
struct vv_text vv_text_duration(double s)
{
	struct vv_text t;

	if (s < 999.5e-6)
		snprintf(t.s, sizeof(t.s), "%.3g us", s * 1e6);
	else if (s < 999.5e-3)
		snprintf(t.s, sizeof(t.s), "%.3g ms", s * 1e3);
	else if (s < 120)
		snprintf(t.s, sizeof(t.s), "%.3g s", s);
	else if (s < 7200)
		snprintf(t.s, sizeof(t.s), "%.0f min", s / 60);
	else if (s < 48 * 3600)
		snprintf(t.s, sizeof(t.s), "%.0f h", s / 3600);
	else
		snprintf(t.s, sizeof(t.s), "%.0f days", s / 86400);
	return t;
}

struct vv_text vv_text_time(uint64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / 1000000000);
	struct vv_text t = { "?" };
	struct tm tm;

	if (localtime_r(&s, &tm))
		strftime(t.s, sizeof(t.s), "%Y-%m-%d %H:%M:%S", &tm);
	return t;
}

struct vv_text vv_text_iso(uint64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / 1000000000);
	struct vv_text t = { "?" };
	struct tm tm;
	size_t n;

	if (gmtime_r(&s, &tm)) {
		n = strftime(t.s, sizeof(t.s), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(t.s + n, sizeof(t.s) - n, ".%09" PRIu64 "Z", wall_ns % 1000000000);
	}
	return t;
}

struct vv_text vv_text_age(uint64_t wall_ns, uint64_t now_ns)
{
	struct vv_text t, d;

	if (now_ns < wall_ns) {
		snprintf(t.s, sizeof(t.s), "in the future");
		return t;
	}
	d = vv_text_duration(floor((double)(now_ns - wall_ns) / 1e9));
	snprintf(t.s, sizeof(t.s), "%.40s ago", now_ns - wall_ns < 1000000000 ? "0 s" : d.s);
	return t;
}

static struct vv_text_long list(const uint64_t *v, unsigned n)
{
	struct vv_text_long t;
	size_t used = (size_t)snprintf(t.s, sizeof(t.s), "[");

	for (unsigned i = 0; i < n; i++)
		used += (size_t)snprintf(t.s + used, sizeof(t.s) - used, "%s%" PRIu64, i ? "," : "", v[i]);
	snprintf(t.s + used, sizeof(t.s) - used, "]");
	return t;
}

struct vv_text_long vv_text_shape(const struct vv_shape *s)
{
	return s->ndim ? list(s->dim, s->ndim) : (struct vv_text_long){ "-" };
}

struct vv_text_long vv_text_index(const struct vv_shape *s, uint64_t element)
{
	uint64_t at[VV_MAX_DIMS];
	struct vv_text_long t;

	if (!s->ndim) {
		snprintf(t.s, sizeof(t.s), "%" PRIu64, element);
		return t;
	}
	for (unsigned i = s->ndim; i-- > 0;) {
		at[i] = s->dim[i] ? element % s->dim[i] : 0;
		element = s->dim[i] ? element / s->dim[i] : 0;
	}
	return list(at, s->ndim);
}

struct vv_text_long vv_text_safe(const char *name)
{
	struct vv_text_long t;
	size_t used = 0;

	while (*name && used + 5 < sizeof(t.s)) {
		size_t n = vv_utf8_len(name);
		unsigned char c = (unsigned char)*name;
		/* U+0080..U+009F are control characters too */
		bool control = c < 0x20 || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)name[1] < 0xa0);

		if (n == 0 || control) {
			used += (size_t)snprintf(t.s + used, sizeof(t.s) - used, "\\x%02x", c);
			name++;
			continue;
		}
		memcpy(t.s + used, name, n);
		used += n;
		name += n;
	}
	t.s[used] = '\0';
	return t;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* LEAST: the room for text below which it is not divided into lines */
enum { COLUMNS = 32, LEAST = 16 };

void vv_text_table_init(struct vv_text_table *t, const char *const *column, const char *indent)
{
	struct winsize w;

	*t = (struct vv_text_table){ .column = column, .indent = indent };
	t->window = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
	while (column[t->n_columns])
		t->n_columns++;
}

void vv_text_table_fini(struct vv_text_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		vv_mem_free(t->cell[i]);
	vv_mem_free(t->cell);
	*t = (struct vv_text_table){ 0 };
}

void vv_text_cell(struct vv_text_table *t, const char *fmt, ...)
{
	struct vv_text_long text;
	va_list ap;

	if (t->n == t->cap && !t->failed) {
		size_t cap = t->cap ? t->cap * 2 : 128;
		char **p = vv_mem_grow(t->cell, cap, sizeof(char *));

		t->failed = !p;
		t->cell = p ? p : t->cell;
		t->cap = p ? cap : t->cap;
	}
	if (t->failed)
		return;
	va_start(ap, fmt);
	vsnprintf(text.s, sizeof(text.s), fmt, ap);
	va_end(ap);
	t->cell[t->n] = vv_mem_strdup(text.s);
	t->failed = !t->cell[t->n];
	t->n += !t->failed;
}

static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* The columns to be printed, and their widths. */
struct layout {
	size_t wide[COLUMNS], last;
	bool hidden[COLUMNS];
};

/* Is it text, followed by empty cells only? */
static bool is_free(const struct vv_text_table *t, const char *const *cell, size_t c)
{
	size_t k = c + 1;

	while (k < t->n_columns && !cell[k][0])
		k++;
	return t->column[c][0] == '<' && c + 1 < t->n_columns && k == t->n_columns;
}

static size_t row_width(const struct vv_text_table *t, const struct layout *l)
{
	size_t n = width(t->indent);

	for (size_t c = 0; c < t->n_columns; c++)
		n += l->hidden[c] ? 0 : l->wide[c] + (c < l->last ? 2 : 0);
	return n;
}

static size_t find_column(const struct vv_text_table *t, const char *name, size_t len)
{
	size_t c = 0;

	while (c < t->n_columns && (strlen(t->column[c] + 1) != len || memcmp(t->column[c] + 1, name, len) != 0))
		c++;
	return c;
}

static void leave_out(const struct vv_text_table *t, struct layout *l)
{
	const char *s = t->spare ? t->spare : "";

	for (size_t len; t->window && *s && row_width(t, l) > t->window; s += len + (s[len] == ';')) {
		size_t c;

		len = strcspn(s, ";");
		c = find_column(t, s, len);
		if (c == t->n_columns)
			continue;
		l->hidden[c] = true;
		while (l->last && l->hidden[l->last])
			l->last--;
	}
}

static void measure(const struct vv_text_table *t, struct layout *l)
{
	l->last = t->n_columns - 1;
	for (size_t c = 0; c < t->n_columns; c++) {
		l->wide[c] = t->bare ? 0 : width(t->column[c] + 1);
		for (size_t i = c; i - c + t->n_columns <= t->n; i += t->n_columns)
			if (width(t->cell[i]) > l->wide[c] && !is_free(t, (const char *const *)&t->cell[i - c], c))
				l->wide[c] = width(t->cell[i]);
	}
	leave_out(t, l);
}

/* The bytes of s that fit into `room` columns: up to a blank, or all if there is none. */
static size_t part(const char *s, size_t room)
{
	size_t at = 0, blank = 0, i = 0;

	for (; s[i] && (at <= room || !blank); i++) {
		if (s[i] == ' ' && i)
			blank = i;
		at += ((unsigned char)s[i] & 0xc0) != 0x80;
	}
	return at <= room || !blank ? i : blank;
}

/* Text of the last column, in as many lines as it needs. */
static void print_last(const char *s, size_t at, size_t window, struct vv_buf *out)
{
	size_t n = window > at + LEAST ? part(s, window - at) : strlen(s);

	vv_buf_add(out, s, n);
	for (s += n; *s; s += n) {
		s += *s == ' ';
		n = part(s, window - at);
		vv_buf_printf(out, "\n%*s%.*s", (int)at, "", (int)n, s);
	}
}

static void print_row(const struct vv_text_table *t, const struct layout *l, const char *const *cell, size_t skip, struct vv_buf *out)
{
	size_t at = width(t->indent);

	vv_buf_printf(out, "%s", t->indent);
	for (size_t c = 0; c <= l->last; c++) {
		const char *s = cell[c] + skip;
		int pad = width(s) < l->wide[c] ? (int)(l->wide[c] - width(s)) : 0;
		bool left = t->column[c][0] == '<', ends = is_free(t, cell, c);

		if (l->hidden[c])
			continue;
		if (left && (ends || c == l->last)) {
			print_last(s, at, t->window, out);
			break;
		}
		vv_buf_printf(out, "%*s%s%*s%s", left ? 0 : pad, "", s, left ? pad : 0, "", c < l->last ? "  " : "");
		at += l->wide[c] + 2;
	}
	while (out->n && out->p[out->n - 1] == ' ') /* the last cells may be empty */
		out->n--;
	vv_buf_printf(out, "\n");
}

int vv_text_table_print(const struct vv_text_table *t, struct vv_buf *out)
{
	struct layout l = { .last = 0 };

	if (t->failed || !t->n_columns || t->n_columns > COLUMNS)
		return vv_err_set(VV_ENOMEM, "no memory for a table");
	measure(t, &l);
	if (!t->bare)
		print_row(t, &l, t->column, 1, out);
	for (size_t i = 0; i + t->n_columns <= t->n; i += t->n_columns)
		print_row(t, &l, (const char *const *)&t->cell[i], 0, out);
	return vv_buf_check(out);
}
