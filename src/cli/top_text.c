#include "base/err.h"
#include "cli/text.h"
#include "cli/top.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 30, HEAD = 8 }; /* lines that are not rows of the table */

static void say_writer(const struct vv_top *t, struct vv_buf *out)
{
	const struct vv_top_process *p = &t->now.process;

	vv_buf_printf(out, "writer   ");
	if (!t->now.held) {
		vv_buf_printf(out, "none: nobody has the lineage open\n");
		return;
	}
	vv_buf_printf(out, "%s", vv_text_safe(t->now.holder).s);
	if (p->name[0])
		vv_buf_printf(out, " (%s), %s resident", vv_text_safe(p->name).s, vv_text_size(p->resident).s);
	vv_buf_printf(out, "\n");
}

static void say_epochs(const struct vv_top *t, struct vv_buf *out)
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

static void say_bar(uint64_t done, uint64_t whole, struct vv_buf *out)
{
	int full = (int)(BAR * (done < whole ? (double)done / (double)whole : 1));

	vv_buf_printf(out, "[%.*s%.*s] ", full, "##############################", BAR - full, "------------------------------");
}

/* How much there will be is not known before it is there: those before it tell about how much. */
static void say_flush(const struct vv_top *t, struct vv_buf *out)
{
	const struct vv_top_look *w = &t->now;
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
		say_bar(w->bytes, whole, out);
	vv_buf_printf(out, "%s", vv_text_size(w->bytes).s);
	if (whole)
		vv_buf_printf(out, " of about %s", vv_text_size(whole).s);
	if (w->objects > 1)
		vv_buf_printf(out, " in %zu objects", w->objects);
	if (t->rate >= 0)
		vv_buf_printf(out, ", %s/s", vv_text_size((uint64_t)t->rate).s);
	if (!w->held)
		vv_buf_printf(out, "; left by a writer that is gone");
	vv_buf_printf(out, "\n");
}

static void say_next(const struct vv_top *t, struct vv_buf *out)
{
	bool sure = false;
	double in = 0;

	vv_buf_printf(out, "next     ");
	if (!t->now.held)
		vv_buf_printf(out, "none is to be expected\n");
	else if (!vv_top_next(t, &in, &sure))
		vv_buf_printf(out, "when the program calls; nothing is known of how often\n");
	else if (!sure && in < 0)
		vv_buf_printf(out, "at any moment (by the pace so far)\n");
	else
		vv_buf_printf(out, "%s%s %s (%s)\n", sure ? "due " : "about ", in < 0 ? "since" : "in", vv_text_duration(ceil(fabs(in))).s,
			      sure ? t->due_by : "by the pace so far");
}

static void say_failure(const struct vv_top *t, struct vv_buf *out)
{
	if (t->failed_ns)
		vv_buf_printf(out, "failed   %s: %s\n", vv_text_age(t->failed_ns, t->now.wall_ns).s, vv_text_safe(t->failure).s);
}

/* How long the last step of storing took, an upload maybe, is not in the layer itself, but in the next one. */
static void row(struct vv_text_table *tab, const struct vv_top *t, const struct vv_top_epoch *e)
{
	bool least = e->durable_s <= 0;
	double flush = least ? e->flush_s : e->durable_s;

	vv_text_cell(tab, "%" PRIu64, e->epoch);
	vv_text_cell(tab, "%s", e->damaged ? "damaged" : vv_text_age(e->time_ns, t->now.wall_ns).s);
	vv_text_cell(tab, "%" PRIu32, e->ranks);
	vv_text_cell(tab, "%s", vv_text_size(e->memory).s);
	vv_text_cell(tab, "%s", vv_text_size(e->stored).s);
	vv_text_cell(tab, "%s", vv_text_size(e->layer).s);
	vv_text_cell(tab, "%s", vv_text_ratio(e->memory, e->layer).s);
	vv_text_cell(tab, "%s", e->told ? vv_text_duration(e->blocked_s).s : "-");
	if (flush > 0) {
		vv_text_cell(tab, "%s%s", least ? "> " : "", vv_text_duration(flush).s);
		vv_text_cell(tab, "%s%s/s", least ? "< " : "", vv_text_size((uint64_t)fmin((double)e->stored / flush, 1e18)).s);
	} else {
		vv_text_cell(tab, "-");
		vv_text_cell(tab, "-");
	}
}

static int say_table(const struct vv_top *t, size_t rows, struct vv_buf *out)
{
	static const char *const columns[] = { ">EPOCH", ">AGE",   ">RANKS",   ">MEMORY", ">STORED",    ">LAYER",
					       ">LESS",  ">BLOCKED", ">FLUSH", ">STORED AT", NULL };
	struct vv_text_table tab;
	int rc;

	vv_text_table_init(&tab, columns, "");
	for (size_t i = t->n_epochs; i-- > 0 && t->n_epochs - i <= rows;)
		row(&tab, t, &t->epoch[i]);
	rc = vv_text_table_print(&tab, out);
	vv_text_table_fini(&tab);
	return rc;
}

/* Lines are cut where the terminal ends: one that wraps would push the others off. */
static void cut(struct vv_buf *text, size_t columns, struct vv_buf *out)
{
	size_t at = 0;

	for (size_t i = 0; i < text->n; i++) {
		uint8_t c = text->p[i];

		at = c == '\n' ? 0 : at + ((c & 0xc0) != 0x80);
		if (c == '\n' || at <= columns)
			vv_buf_add(out, &c, 1);
	}
}

int vv_top_text_put(const struct vv_top *t, size_t columns, size_t lines, struct vv_buf *out)
{
	size_t head = HEAD + (t->failed_ns > 0), rows = lines > head ? lines - head : 0;
	struct vv_buf text = { 0 };
	int rc = 0;

	vv_buf_printf(&text, "varve top  %s  %s  %s\n\n", vv_text_safe(t->lin->store->url).s, t->lin->name, vv_text_time(t->now.wall_ns).s);
	say_writer(t, &text);
	say_epochs(t, &text);
	say_flush(t, &text);
	say_next(t, &text);
	say_failure(t, &text);
	if (t->n_epochs && rows) {
		vv_buf_printf(&text, "\n");
		rc = say_table(t, rows, &text);
	}
	cut(&text, columns, out);
	if (rc == 0)
		rc = vv_buf_check(&text);
	vv_buf_fini(&text);
	return rc ? rc : vv_buf_check(out);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

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
		if (e->told) {
			vv_json_real(j, "seconds_blocked", e->blocked_s);
			vv_json_real(j, "seconds_flush", e->flush_s);
		}
		if (e->durable_s > 0)
			vv_json_real(j, "seconds_durable", e->durable_s);
		vv_json_end(j);
	}
	vv_json_end(j);
}
