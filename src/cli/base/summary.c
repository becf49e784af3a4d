#include "cli/base/summary.h"
#include "codec/codec.h"
#include <inttypes.h>
#include <stdio.h>

static const char *const columns[] = { ">RANK",   ">MEMORY",     ">UNCHANGED", ">KNOWN", ">OF OTHERS", ">NEW",
				       ">STORED", ">FOR OTHERS", ">LAYER",     "<CODEC", NULL };

/* bytes above the average: a store writes less than that in negligible time */
static const uint64_t uneven = 16 << 20;

void vv_summary_init(struct vv_summary *s)
{
	*s = (struct vv_summary){ 0 };
	vv_text_table_init(&s->table, columns, "  ");
	s->table.spare = "FOR OTHERS;KNOWN;LAYER";
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

static uint32_t codecs_of(const struct vv_blocks *b)
{
	uint32_t set = 0;

	for (size_t i = 0; i < b->n; i++)
		set |= b->v[i].codec < 32 ? 1u << b->v[i].codec : 0;
	return set;
}

static struct vv_text codec_names(uint32_t set)
{
	struct vv_text t = { "-" };
	size_t n = 0;

	for (uint32_t i = 0; i < 32 && n < sizeof(t.s); i++)
		if (set >> i & 1)
			n += (size_t)snprintf(t.s + n, sizeof(t.s) - n, "%s%s", n ? ", " : "", vv_codec_name(i));
	return t;
}

struct vv_text vv_summary_codecs(const struct vv_blocks *b)
{
	return codec_names(codecs_of(b));
}

static void cell(struct vv_text_table *t, bool known, uint64_t bytes)
{
	vv_text_cell(t, "%s", known ? vv_text_size(bytes).s : "-");
}

static void row(struct vv_text_table *t, const struct vv_summary_sums *n, uint32_t codecs, bool here)
{
	cell(t, true, n->memory);
	cell(t, here, n->unchanged);
	cell(t, here, n->known);
	cell(t, here, n->of_others);
	cell(t, here, n->fresh);
	cell(t, true, n->stored);
	cell(t, here, n->for_others);
	cell(t, true, n->layer);
	vv_text_cell(t, "%s", codec_names(here ? codecs : 0).s);
}

static void longest(uint64_t *ns, const struct vv_head *h, const char *stat)
{
	uint64_t v = vv_head_stat(h, stat);

	*ns = v > *ns ? v : *ns;
}

void vv_summary_add(struct vv_summary *s, const struct vv_commit_rank *rank, const struct vv_head *head, const struct vv_blocks *blocks)
{
	struct vv_summary_sums n = sums_of(rank, head);
	uint32_t codecs = head ? codecs_of(blocks) : 0;

	vv_text_cell(&s->table, "%" PRIu32, s->ranks);
	row(&s->table, &n, codecs, head);
	s->codecs |= codecs;
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

/* Content that a rank holds twice and others store is counted twice. The result is therefore not
 * below the bytes that would have been stored without the other ranks. */
static uint64_t alone(const struct vv_summary *s)
{
	return s->all.fresh + s->all.of_others;
}

static double balance(const struct vv_summary *s)
{
	return s->all.stored ? (double)s->most * s->ranks / (double)s->all.stored : 1;
}

static void print_balance(const struct vv_summary *s, struct vv_out *out)
{
	uint64_t average = s->all.stored / s->ranks;

	vv_out_printf(out, "  balance       ");
	if (s->most - average >= uneven)
		vv_out_printf(out, "%.2f: ", balance(s));
	vv_out_printf(out, "rank %" PRIu32 " stored most, %s; the average is %s\n", s->most_rank, vv_text_size(s->most).s,
		      vv_text_size(average).s);
}

static void print_sharing(const struct vv_summary *s, struct vv_out *out)
{
	vv_out_printf(out, "  alone         up to %s would be new if the ranks did not share", vv_text_size(alone(s)).s);
	if (s->all.fresh)
		vv_out_printf(out, ", %s as much", vv_text_ratio(alone(s), s->all.fresh).s);
	vv_out_printf(out, "\n  blocked       %s at most, asking ranks %s at most\n",
		      vv_text_duration((double)s->blocked_ns / 1e9).s, vv_text_duration((double)s->ranks_ns / 1e9).s);
}

int vv_summary_print(struct vv_summary *s, struct vv_out *out)
{
	int rc;

	vv_text_cell(&s->table, "all");
	row(&s->table, &s->all, s->codecs, s->elsewhere == 0);
	vv_out_printf(out, "\n");
	rc = vv_text_table_print(&s->table, &out->buf);
	if (rc)
		return rc;
	vv_out_printf(out, "\n");
	if (s->all.stored)
		print_balance(s, out);
	if (s->elsewhere == 0)
		print_sharing(s, out);
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
