#include "cli/top/top_text.h"
#include "base/err.h"
#include "cli/base/show_labels.h"
#include "cli/base/text.h"
#include "cli/top/top.h"
#include "engine/lineage/label.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* INDENT: the width of the words in front of the lines above the table */
enum { BAR = 30, NARROW = 80, INDENT = 9 };

static void print_writer(const struct vv_top *t, struct vv_buf *out)
{
	const struct vv_top_process *p = &t->now.process;

	vv_buf_printf(out, "writer   ");
	if (!t->now.held) {
		vv_buf_printf(out, "none: no process has the lineage open\n");
		return;
	}
	vv_buf_printf(out, "%s", vv_text_safe(t->now.holder).s);
	if (p->name[0])
		vv_buf_printf(out, " (%s), %s resident", vv_text_safe(p->name).s, vv_text_size(p->resident).s);
	vv_buf_printf(out, "\n");
}

static void print_epochs(const struct vv_top *t, struct vv_buf *out)
{
	const struct vv_top_epoch *last = t->n_epochs ? &t->epoch[t->n_epochs - 1] : NULL;
	double pace = vv_top_pace(t);

	vv_buf_printf(out, "epochs   ");
	if (!last) {
		vv_buf_printf(out, "none yet\n");
		return;
	}
	vv_buf_printf(out, "%" PRIu64 " in the store, the newest is %" PRIu64 ", %s", t->count, last->epoch,
		      last->damaged ? "damaged" : vv_text_age(last->time_ns, t->now.wall_ns).s);
	if (pace > 0)
		vv_buf_printf(out, "; one every %s lately", vv_text_duration(pace).s);
	vv_buf_printf(out, "\n");
}

static void print_bar(uint64_t done, uint64_t whole, int wide, struct vv_buf *out)
{
	int full = (int)(wide * (done < whole ? (double)done / (double)whole : 1));

	vv_buf_printf(out, "[%.*s%.*s] ", full, "##############################", wide - full, "------------------------------");
}

/* The size of the pending epoch is not known before it is complete: the epochs before it give an
 * estimate. */
static void print_flush(const struct vv_top *t, size_t columns, struct vv_buf *out)
{
	const struct vv_top_read *w = &t->now;
	uint64_t whole = vv_top_expected(t);

	vv_buf_printf(out, "flush    ");
	if (!w->pending) {
		vv_buf_printf(out, "nothing is being stored");
		if (w->held && t->rate > 0)
			vv_buf_printf(out, "; the writer writes %s/s", vv_text_size((uint64_t)t->rate).s);
		vv_buf_printf(out, "\n");
		return;
	}
	vv_buf_printf(out, "epoch %" PRIu64 " ", w->pending);
	if (whole)
		print_bar(w->bytes, whole, columns < NARROW ? BAR / 3 : BAR, out);
	vv_buf_printf(out, "%s", vv_text_size(w->bytes).s);
	if (whole)
		vv_buf_printf(out, " of about %s", vv_text_size(whole).s);
	if (w->objects > 1)
		vv_buf_printf(out, " in %zu objects", w->objects);
	if (w->held && t->rate >= 0)
		vv_buf_printf(out, ", %s/s", vv_text_size((uint64_t)t->rate).s);
	if (!w->held)
		vv_buf_printf(out, "; left by a writer that is gone");
	vv_buf_printf(out, "\n");
}

static void print_next(const struct vv_top *t, struct vv_buf *out)
{
	bool sure = false;
	double in = 0;

	vv_buf_printf(out, "next     ");
	if (!t->now.held)
		vv_buf_printf(out, "none is to be expected\n");
	else if (!vv_top_next(t, &in, &sure))
		vv_buf_printf(out, "when the program calls; nothing is known of how often\n");
	else if (!sure && in < 1)
		vv_buf_printf(out, "at any moment (by the pace so far)\n");
	else
		vv_buf_printf(out, "%s%s %s (%s)\n", sure ? "due " : "about ", in < 0 ? "since" : "in", vv_text_duration(ceil(fabs(in))).s,
			      sure ? t->due_by : "by the pace so far");
}

static void print_failure(const struct vv_top *t, struct vv_buf *out)
{
	if (t->failed_ns)
		vv_buf_printf(out, "failed   %s: %s\n", vv_text_age(t->failed_ns, t->now.wall_ns).s, vv_text_safe(t->failure).s);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum column { EPOCH, AGE, RANKS, MEMORY, STORED, LAYER, LESS, BLOCKED, FLUSH, STORED_AT, LABELS, COLUMNS };

static const char *const heads[COLUMNS] = { ">EPOCH", ">AGE",  ">RANKS",   ">MEMORY", ">STORED",
					    ">LAYER", ">LESS", ">BLOCKED", ">FLUSH",  ">STORED AT", "<LABELS" };

/* The order in which columns are left out if there is no room: the epoch and its stored bytes
 * stay. The first one is left out if there are no labels. */
static const enum column spare[] = { LABELS, LAYER, STORED_AT, RANKS, MEMORY, LESS, AGE, FLUSH, BLOCKED };

enum { SPARE = sizeof(spare) / sizeof(spare[0]) };

static bool is_shown(enum column c, size_t left_out)
{
	for (size_t i = 0; i < left_out; i++)
		if (spare[i] == c)
			return false;
	return true;
}

/* The duration of the last step of storing, for example an upload, is not in the layer itself, but
 * in the next one. */
static void put_flush(struct vv_text_table *tab, const struct vv_top_epoch *e, enum column c)
{
	bool least = e->durable_s <= 0;
	double flush = least ? e->flush_s : e->durable_s;

	if (flush <= 0)
		vv_text_cell(tab, "-");
	else if (c == FLUSH)
		vv_text_cell(tab, "%s%s", least ? "> " : "", vv_text_duration(flush).s);
	else
		vv_text_cell(tab, "%s%s/s", least ? "< " : "", vv_text_size((uint64_t)fmin((double)e->stored / flush, 1e18)).s);
}

static void put_cell(struct vv_text_table *tab, const struct vv_top *t, const struct vv_top_epoch *e, enum column c)
{
	if (c == EPOCH)
		vv_text_cell(tab, "%" PRIu64, e->epoch);
	else if (c == LABELS)
		tab->failed |= vv_show_labels_cell(tab, &t->listing, e->epoch) < 0;
	else if (e->damaged)
		vv_text_cell(tab, "%s", c == STORED ? "damaged" : "-");
	else if (c == AGE)
		vv_text_cell(tab, "%s", vv_text_age(e->time_ns, t->now.wall_ns).s);
	else if (c == RANKS)
		vv_text_cell(tab, "%" PRIu32, e->ranks);
	else if (c == LESS)
		vv_text_cell(tab, "%s", vv_text_ratio(e->memory, e->layer).s);
	else if (c == BLOCKED)
		vv_text_cell(tab, "%s", e->has_stats ? vv_text_duration(e->blocked_s).s : "-");
	else if (c == FLUSH || c == STORED_AT)
		put_flush(tab, e, c);
	else
		vv_text_cell(tab, "%s", vv_text_size(c == MEMORY ? e->memory : c == STORED ? e->stored : e->layer).s);
}

static int put_table(const struct vv_top *t, size_t rows, size_t left_out, struct vv_buf *out)
{
	const char *column[COLUMNS + 1] = { NULL };
	struct vv_text_table tab;
	size_t n = 0;
	int rc;

	for (unsigned c = 0; c < COLUMNS; c++)
		if (is_shown(c, left_out))
			column[n++] = heads[c];
	vv_text_table_init(&tab, column, "");
	tab.window = 0; /* print_table leaves out columns */
	for (size_t i = t->n_epochs; i-- > 0 && t->n_epochs - i <= rows;)
		for (unsigned c = 0; c < COLUMNS; c++)
			if (is_shown(c, left_out))
				put_cell(&tab, t, &t->epoch[i], c);
	rc = vv_text_table_print(&tab, out);
	vv_text_table_fini(&tab);
	return rc;
}

static size_t first_line(const struct vv_buf *text)
{
	const uint8_t *end = text->n ? memchr(text->p, '\n', text->n) : NULL;

	return end ? (size_t)(end - text->p) : text->n;
}

static bool has_labels(const struct vv_top *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_epochs && !n; i++)
		(void)vv_label_of(&t->listing, t->epoch[i].epoch, &n);
	return n;
}

/* Prints as many columns as fit. */
static int print_table(const struct vv_top *t, size_t columns, size_t rows, struct vv_buf *out)
{
	struct vv_buf text = { 0 };
	int rc = 0;

	for (size_t left_out = has_labels(t) ? 0 : 1; rc == 0 && left_out <= SPARE; left_out++) {
		text.n = 0;
		rc = put_table(t, rows, left_out, &text);
		if (first_line(&text) <= columns)
			break;
	}
	if (rc == 0)
		vv_buf_add(out, text.p, text.n);
	vv_buf_fini(&text);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Lines are cut at the width of the terminal: a wrapped line would push others off the screen. */
static void cut(const struct vv_buf *text, size_t columns, struct vv_buf *out)
{
	size_t at = 0;

	for (size_t i = 0; i < text->n; i++) {
		uint8_t c = text->p[i];

		at = c == '\n' ? 0 : at + ((c & 0xc0) != 0x80);
		if (c == '\n' || at <= columns)
			vv_buf_add(out, &c, 1);
	}
}

/* The length of the part of the line that fits. It ends at a blank after the first `kept` bytes, or
 * else with the line. */
static size_t break_at(const char *s, size_t len, size_t kept, size_t columns)
{
	size_t at = 0, blank = len;

	for (size_t i = 0; i < len; i++) {
		at += ((uint8_t)s[i] & 0xc0) != 0x80;
		if (at > columns && blank < len)
			return blank;
		if (s[i] == ' ' && i > kept && s[i - 1] != ' ')
			blank = i;
	}
	return at > columns ? blank : len;
}

/* Sentences continue in the next line, indented behind their first word. */
static void fold(const struct vv_buf *text, size_t columns, struct vv_buf *out)
{
	const char *s = (const char *)text->p, *end = s + text->n;

	while (s < end) {
		size_t len = (size_t)((const char *)memchr(s, '\n', (size_t)(end - s)) - s), first = break_at(s, len, INDENT, columns);

		vv_buf_add(out, s, first);
		for (s += first, len -= first; len > 0; s += first, len -= first) {
			vv_buf_printf(out, "\n%*s", INDENT - 1, "");
			first = break_at(s, len, 0, columns > INDENT ? columns - INDENT + 1 : 1);
			vv_buf_add(out, s, first);
		}
		vv_buf_printf(out, "\n");
		s++;
	}
}

static size_t count_lines(const struct vv_buf *text)
{
	size_t n = 0;

	for (size_t i = 0; i < text->n; i++)
		n += text->p[i] == '\n';
	return n;
}

int vv_top_text_put(const struct vv_top *t, size_t columns, size_t lines, struct vv_buf *out)
{
	struct vv_buf said = { 0 }, text = { 0 };
	size_t above;
	int rc = 0;

	vv_buf_printf(&said, "varve top  %s  %s  %s\n\n", vv_text_safe(t->lin->store->url).s, t->lin->name, vv_text_time(t->now.wall_ns).s);
	print_writer(t, &said);
	print_epochs(t, &said);
	print_flush(t, columns, &said);
	print_next(t, &said);
	print_failure(t, &said);
	rc = vv_buf_check(&said);
	if (rc == 0)
		fold(&said, columns, &text);
	above = count_lines(&text) + 2; /* a line between, and the names of the columns */
	if (rc == 0 && t->n_epochs && lines > above) {
		vv_buf_printf(&text, "\n");
		rc = print_table(t, columns, lines - above, &text);
	}
	if (rc == 0)
		rc = vv_buf_check(&text);
	if (rc == 0)
		cut(&text, columns, out);
	vv_buf_fini(&said);
	vv_buf_fini(&text);
	return rc ? rc : vv_buf_check(out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_writer(const struct vv_top *t, struct vv_json *j)
{
	const struct vv_top_process *p = &t->now.process;

	vv_json_object(j, "writer");
	vv_json_bool(j, "held", t->now.held);
	if (t->now.held)
		vv_json_text(j, "holder", t->now.holder);
	if (p->pid) {
		vv_json_signed(j, "pid", p->pid);
		vv_json_text(j, "name", p->name);
		vv_json_number(j, "bytes_resident", p->resident);
	}
	if (p->has_written)
		vv_json_number(j, "bytes_written", p->written);
	vv_json_end(j);
}

static void put_pending(const struct vv_top *t, struct vv_json *j)
{
	if (!t->now.pending) {
		vv_json_text(j, "flush", NULL);
		return;
	}
	vv_json_object(j, "flush");
	vv_json_number(j, "epoch", t->now.pending);
	vv_json_number(j, "objects", t->now.objects);
	vv_json_number(j, "bytes", t->now.bytes);
	vv_json_number(j, "bytes_expected", vv_top_expected(t));
	vv_json_end(j);
}

static void put_next(const struct vv_top *t, struct vv_json *j)
{
	bool sure = false;
	double in = 0;

	if (!t->now.held || !vv_top_next(t, &in, &sure)) {
		vv_json_text(j, "next", NULL);
		return;
	}
	vv_json_object(j, "next");
	vv_json_real(j, "seconds", in);
	vv_json_text(j, "by", sure ? t->due_by : "pace");
	vv_json_end(j);
}

void vv_top_text_json(const struct vv_top *t, struct vv_json *j)
{
	vv_json_text(j, "store", t->lin->store->url);
	vv_json_text(j, "lineage", t->lin->name);
	vv_json_number(j, "time_ns", t->now.wall_ns);
	vv_json_number(j, "epochs_total", t->count);
	put_writer(t, j);
	put_pending(t, j);
	put_next(t, j);
	if (t->rate >= 0)
		vv_json_real(j, "bytes_per_second", t->rate);
	vv_json_real(j, "seconds_between_epochs", vv_top_pace(t));
	if (t->failed_ns) {
		vv_json_text(j, "failed", vv_text_iso(t->failed_ns).s);
		vv_json_text(j, "failure", t->failure);
	}
	vv_json_array(j, "epochs");
	for (size_t i = 0; i < t->n_epochs; i++) {
		const struct vv_top_epoch *e = &t->epoch[i];

		vv_json_object(j, NULL);
		vv_json_number(j, "epoch", e->epoch);
		vv_json_bool(j, "damaged", e->damaged);
		vv_json_number(j, "time_ns", e->time_ns);
		vv_json_number(j, "ranks", e->ranks);
		vv_json_number(j, "bytes_memory", e->memory);
		vv_json_number(j, "bytes_stored", e->stored);
		vv_json_number(j, "bytes_layer", e->layer);
		if (e->has_stats) {
			vv_json_real(j, "seconds_blocked", e->blocked_s);
			vv_json_real(j, "seconds_flush", e->flush_s);
		}
		if (e->durable_s > 0)
			vv_json_real(j, "seconds_durable", e->durable_s);
		vv_show_labels_put(j, &t->listing, e->epoch);
		vv_json_end(j);
	}
	vv_json_end(j);
}
