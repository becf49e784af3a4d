#include "cli/base/summary.h"
#include <inttypes.h>

static const char *const columns[] = { ">RANK", ">MEMORY", ">UNCHANGED",  ">KNOWN", ">OF OTHERS",
				       ">NEW",  ">STORED", ">FOR OTHERS", ">LAYER", NULL };

void vv_summary_init(struct vv_summary *s)
{
	*s = (struct vv_summary){ 0 };
	vv_text_table_init(&s->table, columns, "  ");
}

void vv_summary_fini(struct vv_summary *s)
{
	vv_text_table_fini(&s->table);
}

static struct vv_summary_sums sums_of(const struct vv_commit_rank *rank, const struct vv_head *h)
{
	struct vv_summary_sums n = { .memory = rank->memory, .stored = rank->stored, .layer = rank->file_len };

	if (!h)
		return n;
	n.unchanged = vv_head_stat(h, "bytes.unchanged");
	n.known = vv_head_stat(h, "bytes.zero") + vv_head_stat(h, "bytes.dup_time") + vv_head_stat(h, "bytes.dup_space");
	n.of_others = vv_head_stat(h, "bytes.dup_ranks");
	n.fresh = vv_head_stat(h, "bytes.new");
	n.for_others = vv_head_stat(h, "bytes.lent");
	return n;
}

static void cell(struct vv_text_table *t, bool known, uint64_t bytes)
{
	vv_text_cell(t, "%s", known ? vv_text_size(bytes).s : "-");
}

static void row(struct vv_text_table *t, const struct vv_summary_sums *n, bool here)
{
	cell(t, true, n->memory);
	cell(t, here, n->unchanged);
	cell(t, here, n->known);
	cell(t, here, n->of_others);
	cell(t, here, n->fresh);
	cell(t, true, n->stored);
	cell(t, here, n->for_others);
	cell(t, true, n->layer);
}

static void longest(uint64_t *ns, const struct vv_head *h, const char *stat)
{
	uint64_t v = vv_head_stat(h, stat);

	*ns = v > *ns ? v : *ns;
}

void vv_summary_add(struct vv_summary *s, const struct vv_commit_rank *rank, const struct vv_head *head)
{
	struct vv_summary_sums n = sums_of(rank, head);

	vv_text_cell(&s->table, "%" PRIu32, s->ranks);
	row(&s->table, &n, head);
	if (n.stored > s->most) {
		s->most = n.stored;
		s->most_rank = s->ranks;
	}
	s->all.memory += n.memory;
	s->all.unchanged += n.unchanged;
	s->all.known += n.known;
	s->all.of_others += n.of_others;
	s->all.fresh += n.fresh;
	s->all.stored += n.stored;
	s->all.for_others += n.for_others;
	s->all.layer += n.layer;
	s->ranks++;
	if (!head) {
		s->elsewhere++;
		return;
	}
	longest(&s->ranks_ns, head, "ns.ranks");
	longest(&s->blocked_ns, head, "ns.blocked");
}

/* Content that a rank holds twice and others store counts twice, so this is no less than it would have been. */
static uint64_t alone(const struct vv_summary *s)
{
	return s->all.fresh + s->all.of_others;
}

static double balance(const struct vv_summary *s)
{
	return s->all.stored ? (double)s->most * s->ranks / (double)s->all.stored : 1;
}

static void say_sharing(const struct vv_summary *s, struct vv_out *out)
{
	vv_out_printf(out, "  alone         up to %s would be new if the ranks did not share", vv_text_size(alone(s)).s);
	if (s->all.fresh)
		vv_out_printf(out, ", %s as much", vv_text_ratio(alone(s), s->all.fresh).s);
	vv_out_printf(out, "\n  blocked       %s at most, asking ranks %s at most\n",
		      vv_text_duration((double)s->blocked_ns / 1e9).s, vv_text_duration((double)s->ranks_ns / 1e9).s);
}

int vv_summary_say(struct vv_summary *s, struct vv_out *out)
{
	int rc;

	vv_text_cell(&s->table, "all");
	row(&s->table, &s->all, s->elsewhere == 0);
	vv_out_printf(out, "\n");
	rc = vv_text_table_print(&s->table, &out->buf);
	if (rc)
		return rc;
	vv_out_printf(out, "\n");
	if (s->all.stored)
		vv_out_printf(out, "  balance       %.2f: rank %" PRIu32 " stored most, %s; the average is %s\n", balance(s),
			      s->most_rank, vv_text_size(s->most).s, vv_text_size(s->all.stored / s->ranks).s);
	if (s->elsewhere == 0)
		say_sharing(s, out);
	else
		vv_out_printf(out, "  elsewhere     %" PRIu32 " layer%s not in this store: in those of other hosts, or lost\n",
			      s->elsewhere, s->elsewhere == 1 ? " is" : "s are");
	return 0;
}

void vv_summary_put(const struct vv_summary *s, struct vv_json *out)
{
	vv_json_object(out, "totals");
	vv_json_number(out, "bytes_memory", s->all.memory);
	vv_json_number(out, "bytes_unchanged", s->all.unchanged);
	vv_json_number(out, "bytes_known", s->all.known);
	vv_json_number(out, "bytes_dup_ranks", s->all.of_others);
	vv_json_number(out, "bytes_new", s->all.fresh);
	vv_json_number(out, "bytes_stored", s->all.stored);
	vv_json_number(out, "bytes_stored_most", s->most);
	vv_json_number(out, "bytes_lent", s->all.for_others);
	vv_json_number(out, "bytes_layer", s->all.layer);
	vv_json_number(out, "bytes_alone", alone(s));
	vv_json_real(out, "balance", balance(s));
	vv_json_number(out, "elsewhere", s->elsewhere);
	vv_json_end(out);
}
