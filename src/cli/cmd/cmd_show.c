#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/base/verb_context.h"
#include "cli/base/show_files.h"
#include "cli/base/show_labels.h"
#include "cli/base/show_parity.h"
#include "cli/base/summary.h"
#include "cli/base/text.h"
#include "codec/codec.h"
#include "core/format/distribution.h"
#include "engine/lineage/label.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/run_table.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view { /* of one rank */
	const struct vv_commit *commit;
	const struct vv_commit_rank *rank;
	struct vv_layer_file *file;
	struct vv_run_table table;
	uint64_t *source; /* the layers whose blocks a restart reads, ascending */
	size_t n_sources;
	struct vv_show_files files;
};

static void view_fini(struct view *w)
{
	vv_layer_file_close(w->file);
	vv_run_table_fini(&w->table);
	vv_mem_free(w->source);
	vv_show_files_fini(&w->files);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Own blocks may be differences to those of older layers. Blocks of other layers are not looked
 * at. */
static int find_sources(struct view *w)
{
	const struct vv_delta_bases *d = &w->file->blocks.bases;
	size_t n = d->n, k = 0;

	for (size_t i = 0; i < w->table.n; i++)
		n += w->table.region[i].runs.n;
	w->source = vv_mem_new(n, sizeof(*w->source));
	if (!w->source)
		return VV_ENOMEM;
	for (size_t i = 0; i < w->table.n; i++)
		for (size_t r = 0; r < w->table.region[i].runs.n; r++)
			if (w->table.region[i].runs.v[r].layer)
				w->source[k++] = w->table.region[i].runs.v[r].layer;
	for (size_t i = 0; i < d->n; i++)
		if (d->v[i].epoch)
			w->source[k++] = vv_run_layer(d->v[i].epoch, w->file->head.rank);
	if (k)
		qsort(w->source, k, sizeof(*w->source), by_value);
	for (size_t i = 0; i < k; i++)
		if (i == 0 || w->source[i] != w->source[i - 1])
			w->source[w->n_sources++] = w->source[i];
	return 0;
}

static int view_init(struct view *w, struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_commit *c, uint32_t rank)
{
	int rc;

	*w = (struct view){ .commit = c, .rank = &c->rank[rank] };
	rc = vv_layer_file_open(lin, vv_run_layer(c->epoch, rank), VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS, &w->file);
	if (rc == 0)
		rc = vv_run_table_load(lin, c->epoch, rank, NULL, &w->table);
	if (rc == 0)
		rc = find_sources(w);
	if (rc == 0)
		rc = vv_show_files_add(&w->files, job, lin, &w->table);
	return rc;
}

static const char *digest_name(uint8_t kind)
{
	return kind == VV_DIGEST_XXH3 ? "xxh3" : kind == VV_DIGEST_SHA256 ? "sha256" : "?";
}

static struct vv_text hex(const struct vv_digest *d)
{
	const uint8_t *p = (const uint8_t *)d->w;
	struct vv_text t;

	for (size_t i = 0; i < sizeof(d->w); i++)
		snprintf(t.s + 2 * i, 3, "%02x", p[i]);
	return t;
}

static struct vv_text source_name(uint64_t layer)
{
	struct vv_text t;

	if (!layer)
		snprintf(t.s, sizeof(t.s), "zero");
	else if (vv_run_rank(layer))
		snprintf(t.s, sizeof(t.s), "epoch %" PRIu64 ", rank %" PRIu32, vv_run_epoch(layer), vv_run_rank(layer));
	else
		snprintf(t.s, sizeof(t.s), "epoch %" PRIu64, vv_run_epoch(layer));
	return t;
}

/* The classes of bytes when the layer was made; the names are those of the STATS section. */
static const struct {
	const char *stat, *key, *words;
} parts[] = {
	{ "bytes.unchanged", "bytes_unchanged", "unchanged" }, { "bytes.zero", "bytes_zero", "zero" },
	{ "bytes.dup_time", "bytes_dup_time", "dup in time" }, { "bytes.dup_space", "bytes_dup_space", "dup in space" },
	{ "bytes.dup_ranks", "bytes_dup_ranks", "of other ranks" }, { "bytes.new", "bytes_new", "new" },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* Readable names for those of the STATS section; others are shown unchanged. NULL: the value is
 * shown elsewhere. */
static const struct {
	const char *stat, *words;
} others[] = {
	{ "bytes.memory", NULL },        { "bytes.stored", NULL },       { "ns.blocked", NULL },
	{ "bytes.dirty", "dirty" },      { "bytes.copied", "copied" },   { "bytes.wait", "writes waited" },
	{ "bytes.cow", "writes copied" }, { "bytes.avoided", "avoided" }, { "bytes.after", "written after" },
	{ "ns.faults", "in faults" },    { "ns.waits", "in waits" },     { "ns.flush", "flush" },
	{ "bytes.lent", "for others" },  { "ns.ranks", "asking ranks" }, { "n.tasted", "forms sampled" },
	{ "n.alike", "forms alike" },    { "ns.before", "flush before" },
};

/* false: the value is shown already. */
static bool stat_words(const char *stat, const char **out)
{
	for (size_t i = 0; i < PARTS; i++)
		if (strcmp(parts[i].stat, stat) == 0)
			return false;
	*out = stat;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i].stat, stat) == 0)
			*out = others[i].words;
	return *out != NULL;
}

static const struct vv_stat *find_stat(const struct vv_head *h, const char *prefix, const char *rest)
{
	size_t n = strlen(prefix);

	for (size_t i = 0; i < h->n_stats; i++)
		if (strncmp(h->stat[i].name, prefix, n) == 0 && strcmp(h->stat[i].name + n, rest) == 0)
			return &h->stat[i];
	return NULL;
}

/* ---- text ------------------------------------------------------------------------------------ */

static uint64_t first_base(const struct vv_delta_bases *b)
{
	size_t i = 0;

	while (i < b->n && !b->v[i].epoch)
		i++;
	return i < b->n ? b->v[i].epoch : 0;
}

static void print_layer(struct vv_out *o, const struct view *w)
{
	const struct vv_head *h = &w->file->head;
	uint64_t now = w->file->frame.file_len, memory = w->rank->memory;

	vv_out_printf(o, "\nrank %" PRIu32 ": %s, %s", h->rank, w->file->object, vv_text_size(now).s);
	if (now != w->rank->file_len)
		vv_out_printf(o, " (%s as written, before gc)", vv_text_size(w->rank->file_len).s);
	vv_out_printf(o, "\n  head          %s, %s digests\n", hex(&w->rank->head).s, digest_name(h->digest_kind));
	vv_out_printf(o, "  chain         %s%u; a restart reads %zu head%s and blocks of %zu layer%s\n",
		      h->depth ? "depth " : "keyframe, depth ", h->depth, w->table.layers,
		      w->table.layers == 1 ? "" : "s", w->n_sources, w->n_sources == 1 ? "" : "s");
	vv_out_printf(o, "  blocked       %s\n", vv_text_duration((double)vv_head_stat(h, "ns.blocked") / 1e9).s);
	vv_out_printf(o, "  memory        %10s\n", vv_text_size(memory).s);
	for (size_t i = 0; i < PARTS; i++) {
		uint64_t v = vv_head_stat(h, parts[i].stat);

		vv_out_printf(o, "  %-14s%10s  %7s\n", parts[i].words, vv_text_size(v).s, vv_text_share(v, memory).s);
	}
	vv_out_printf(o, "  stored        %10s  %7s of new in %zu block%s", vv_text_size(w->rank->stored).s,
		      vv_text_share(w->rank->stored, vv_head_stat(h, "bytes.new")).s, w->file->blocks.n,
		      w->file->blocks.n == 1 ? "" : "s");
	vv_out_printf(o, "%s%s\n", w->file->blocks.n ? "; codec: " : "", w->file->blocks.n ? vv_summary_codecs(&w->file->blocks).s : "");
	if (w->file->blocks.bases.n_blocks)
		vv_out_printf(o, "  differences   %10zu  blocks, to blocks of older epochs that are none; the first to epoch %" PRIu64 "\n",
			      w->file->blocks.bases.n_blocks, first_base(&w->file->blocks.bases));
	vv_out_printf(o, "  layer file    %10s  memory is %s as much\n", vv_text_size(w->rank->file_len).s,
		      vv_text_ratio(memory, w->rank->file_len).s);
}

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Prints one line: bytes.X with its share of the memory and with n.X, if that exists; others by
 * themselves. Complete pages may be larger than the regions on them: then there is no share. */
static void print_stat(struct vv_out *o, const struct view *w, const struct vv_stat *s)
{
	const struct vv_stat *pages;
	const char *words;

	if (!stat_words(s->name, &words) || (has_prefix(s->name, "n.") && find_stat(&w->file->head, "bytes.", s->name + 2)))
		return;
	vv_out_printf(o, "  %-13s ", vv_text_safe(words).s);
	if (has_prefix(s->name, "bytes.")) {
		vv_out_printf(o, "%10s  %7s", vv_text_size(s->value).s,
			      vv_text_share(s->value, s->value <= w->rank->memory ? w->rank->memory : 0).s);
		pages = find_stat(&w->file->head, "n.", s->name + 6);
		if (pages)
			vv_out_printf(o, "  %" PRIu64 " page%s", pages->value, pages->value == 1 ? "" : "s");
	} else if (has_prefix(s->name, "ns.")) {
		vv_out_printf(o, "%10s", vv_text_duration((double)s->value / 1e9).s);
	} else {
		vv_out_printf(o, "%10" PRIu64, s->value);
	}
	vv_out_printf(o, "\n");
}

static void put_fields(struct vv_json *j, const struct vv_record *r)
{
	vv_json_number(j, "element", r->bytes);
	vv_json_array(j, "fields");
	for (uint32_t i = 0; i < r->n; i++) {
		vv_json_object(j, NULL);
		vv_json_text(j, "name", r->field[i].name);
		vv_json_text(j, "type", vv_head_type_name(r->field[i].type));
		vv_json_number(j, "offset", r->field[i].offset);
		vv_json_number(j, "bytes", r->field[i].bytes);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void print_fields(struct vv_out *o, const struct vv_run_table_region *region)
{
	const struct vv_record *r = region->shape.record;

	vv_out_printf(o, "  records of '%s' have %" PRIu32 " bytes:", vv_text_safe(region->name).s, r->bytes);
	for (uint32_t i = 0; i < r->n; i++) {
		const struct vv_record_field *f = &r->field[i];
		uint32_t elements = f->bytes / (uint32_t)vv_head_type_size(f->type);

		vv_out_printf(o, "%s %s %s", i ? "," : "", f->name, vv_head_type_name(f->type));
		if (elements > 1)
			vv_out_printf(o, "[%" PRIu32 "]", elements);
	}
	vv_out_printf(o, "\n");
}

static int print_regions(struct vv_out *o, const struct view *w)
{
	static const char *const columns[] = { "<REGION", "<TYPE",  "<SHAPE",     ">BYTES",
					       ">CHUNK",  ">RUNS", ">RUNS HERE", NULL };
	struct vv_text_table t;
	int rc;

	vv_text_table_init(&t, columns, "  ");
	for (size_t i = 0; i < w->table.n; i++) {
		const struct vv_run_table_region *r = &w->table.region[i];

		vv_text_cell(&t, "%s", vv_text_safe(r->name).s);
		vv_text_cell(&t, "%s", vv_head_type_name(r->shape.type));
		vv_text_cell(&t, "%s", vv_text_shape(&r->shape).s);
		vv_text_cell(&t, "%s", vv_text_size(r->shape.len).s);
		vv_text_cell(&t, "%" PRIu32, r->shape.chunk);
		vv_text_cell(&t, "%zu", r->runs.n);
		vv_text_cell(&t, "%zu", w->file->head.region[i].runs.n);
	}
	rc = vv_text_table_print(&t, &o->buf);
	vv_text_table_fini(&t);
	for (size_t i = 0; rc == 0 && i < w->table.n; i++)
		if (w->table.region[i].shape.record)
			print_fields(o, &w->table.region[i]);
	return rc;
}

/* The part of a global array as "[0:50,0:100] of [100,100], ghost [1,0]". */
static void put_interval(struct vv_buf *b, const struct vv_head_region *r)
{
	char text[64];

	for (unsigned i = 0; i < r->shape.ndim; i++) {
		uint64_t start = r->part->start[i];
		int n = snprintf(text, sizeof(text), "%c%" PRIu64 ":%" PRIu64, i ? ',' : '[', start, start + r->shape.dim[i] - 2 * r->part->ghost[i]);

		vv_buf_add(b, text, (size_t)n);
	}
	vv_buf_add(b, "]", 2);
}

static void print_part(struct vv_text_table *t, const struct vv_head_region *r)
{
	struct vv_shape global = { .ndim = r->shape.ndim }, ghost = global;
	struct vv_buf b = { 0 };
	bool has_ghost = false;

	vv_text_cell(t, "%s", vv_text_safe(r->name).s);
	if (r->part->kind == VV_DISTRIBUTION_LIST) {
		vv_text_cell(t, "%" PRIu64 " items of %" PRIu64 " bytes of a list", r->shape.len / r->part->item, r->part->item);
	} else if (r->part->kind == VV_DISTRIBUTION_SHARED) {
		vv_text_cell(t, "shared by all ranks");
	} else {
		memcpy(global.dim, r->part->global, sizeof(global.dim));
		memcpy(ghost.dim, r->part->ghost, sizeof(ghost.dim));
		for (unsigned i = 0; i < ghost.ndim; i++)
			has_ghost |= ghost.dim[i] > 0;
		put_interval(&b, r);
		vv_text_cell(t, "%s of %s%s%s", vv_buf_check(&b) == 0 ? (const char *)b.p : "?", vv_text_shape(&global).s, has_ghost ? ", ghost cells " : "",
			     has_ghost ? vv_text_shape(&ghost).s : "");
		vv_buf_fini(&b);
	}
}

static int print_parts(struct vv_out *o, const struct view *w)
{
	static const char *const columns[] = { "<REGION", "<PART OF ALL RANKS", NULL };
	struct vv_text_table t;
	int rc = 0;

	if (!vv_distribution_has_any(&w->file->head))
		return 0;
	vv_text_table_init(&t, columns, "  ");
	for (size_t i = 0; i < w->file->head.n_regions; i++)
		if (w->file->head.region[i].part)
			print_part(&t, &w->file->head.region[i]);
	vv_out_printf(o, "\n");
	rc = vv_text_table_print(&t, &o->buf);
	vv_text_table_fini(&t);
	return rc;
}

static void put_part(struct vv_json *j, const struct vv_head_region *r)
{
	static const char *const kind[] = { "?", "slab", "shared", "list" };
	uint64_t count[VV_MAX_DIMS] = { 0 };

	if (!r->part)
		return;
	vv_json_object(j, "part");
	vv_json_text(j, "kind", kind[r->part->kind]);
	if (r->part->kind == VV_DISTRIBUTION_LIST) {
		vv_json_number(j, "items", r->shape.len / r->part->item);
		vv_json_number(j, "item", r->part->item);
	} else if (r->part->kind == VV_DISTRIBUTION_SLAB) {
		for (unsigned i = 0; i < r->shape.ndim; i++)
			count[i] = r->shape.dim[i] - 2 * r->part->ghost[i];
		vv_json_numbers(j, "global", r->part->global, r->shape.ndim);
		vv_json_numbers(j, "start", r->part->start, r->shape.ndim);
		vv_json_numbers(j, "count", count, r->shape.ndim);
		vv_json_numbers(j, "ghost", r->part->ghost, r->shape.ndim);
	}
	vv_json_end(j);
}

static int print_runs(struct vv_out *o, const struct view *w)
{
	static const char *const columns[] = { ">AT", ">LENGTH", "<SOURCE", ">POSITION", NULL };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->table.n; i++) {
		const struct vv_run_table_region *r = &w->table.region[i];
		struct vv_text_table t;

		vv_out_printf(o, "\n  runs of '%s'\n", vv_text_safe(r->name).s);
		vv_text_table_init(&t, columns, "    ");
		for (size_t k = 0; k < r->runs.n; k++) {
			const struct vv_run *run = &r->runs.v[k];

			vv_text_cell(&t, "%" PRIu64, run->at);
			vv_text_cell(&t, "%" PRIu64, run->len);
			vv_text_cell(&t, "%s", source_name(run->layer).s);
			if (run->layer)
				vv_text_cell(&t, "%" PRIu64, run->pos);
			else
				vv_text_cell(&t, "-");
		}
		rc = vv_text_table_print(&t, &o->buf);
		vv_text_table_fini(&t);
	}
	return rc;
}

static int print_blocks(struct vv_out *o, const struct view *w)
{
	static const char *const columns[] = { ">BLOCK",  ">OFFSET",   "<CODEC",   ">LENGTH",
					       ">STORED", ">POSITION", ">EXTENTS", NULL };
	const struct vv_blocks *b = &w->file->blocks;
	struct vv_text_table t;
	int rc;

	vv_out_printf(o, "\n  blocks\n");
	vv_text_table_init(&t, columns, "    ");
	for (size_t i = 0; i < b->n; i++) {
		vv_text_cell(&t, "%zu", i);
		vv_text_cell(&t, "%" PRIu64, b->v[i].off);
		vv_text_cell(&t, "%s", vv_codec_name(b->v[i].codec));
		vv_text_cell(&t, "%" PRIu32, b->v[i].raw_len);
		vv_text_cell(&t, "%" PRIu32, b->v[i].stored_len);
		vv_text_cell(&t, "%" PRIu64, b->extent.v[b->v[i].extent].pos);
		vv_text_cell(&t, "%" PRIu32, b->v[i].n_extents);
	}
	rc = vv_text_table_print(&t, &o->buf);
	vv_text_table_fini(&t);
	return rc;
}

static int print_rank(struct vv_verb_context *job, const struct view *w)
{
	int rc;

	print_layer(&job->out, w);
	for (size_t i = 0; i < w->file->head.n_stats; i++)
		print_stat(&job->out, w, &w->file->head.stat[i]);
	rc = vv_show_files_print(&w->files, &job->out, vv_args_value(job->args, "all"));
	if (rc == 0 && !w->files.any) {
		vv_out_printf(&job->out, "\n");
		rc = print_regions(&job->out, w);
	}
	if (rc == 0)
		rc = print_parts(&job->out, w);
	if (rc == 0 && vv_args_value(job->args, "runs"))
		rc = print_runs(&job->out, w);
	if (rc == 0 && vv_args_value(job->args, "blocks"))
		rc = print_blocks(&job->out, w);
	return rc;
}

static int print_epoch(struct vv_out *o, const struct vv_lineage *lin, const struct vv_commit *c, const struct vv_listing *l)
{
	size_t n_labels = 0;

	vv_out_printf(o, "epoch %" PRIu64 " of lineage '%s' in store '%s'\n", c->epoch, lin->name, lin->store->url);
	vv_out_printf(o, "  written       %s, %s\n", vv_text_time(c->time_ns).s,
		      vv_text_age(c->time_ns, vv_clock_wall_ns()).s);
	if (c->parent)
		vv_out_printf(o, "  parent        %" PRIu64 "\n", c->parent);
	else
		vv_out_printf(o, "  parent        none\n");
	(void)vv_label_of(l, c->epoch, &n_labels);
	if (n_labels) {
		vv_out_printf(o, "  labels        ");
		vv_show_labels_add(&o->buf, l, c->epoch);
		vv_out_printf(o, "\n");
	}
	vv_out_printf(o, "  ranks         %" PRIu32 "\n", c->n_ranks);
	return vv_show_parity_print(o, lin, l, c->epoch);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_runs(struct vv_json *j, const struct vv_runs *runs)
{
	vv_json_array(j, "run_list");
	for (size_t k = 0; k < runs->n; k++) {
		const struct vv_run *r = &runs->v[k];

		vv_json_object(j, NULL);
		vv_json_number(j, "at", r->at);
		vv_json_number(j, "length", r->len);
		vv_json_text(j, "source", r->layer ? "layer" : "zero");
		if (r->layer) {
			vv_json_number(j, "epoch", vv_run_epoch(r->layer));
			vv_json_number(j, "rank", vv_run_rank(r->layer));
			vv_json_number(j, "position", r->pos);
		}
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_regions(struct vv_json *j, const struct view *w, bool runs)
{
	vv_json_array(j, "regions");
	for (size_t i = 0; i < w->table.n; i++) {
		const struct vv_run_table_region *r = &w->table.region[i];

		vv_json_object(j, NULL);
		vv_json_text(j, "name", r->name);
		vv_json_text(j, "type", vv_head_type_name(r->shape.type));
		vv_json_numbers(j, "shape", r->shape.dim, r->shape.ndim);
		if (r->shape.record)
			put_fields(j, r->shape.record);
		vv_json_number(j, "bytes", r->shape.len);
		vv_json_number(j, "chunk", r->shape.chunk);
		vv_json_number(j, "runs", r->runs.n);
		vv_json_number(j, "runs_in_layer", w->file->head.region[i].runs.n);
		put_part(j, &w->file->head.region[i]);
		if (runs)
			put_runs(j, &r->runs);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_bases(struct vv_json *j, const struct vv_blocks *b, size_t block)
{
	size_t n = 0;
	const struct vv_delta_base *v = vv_delta_bases_of(&b->bases, block, &n);

	if (!v)
		return;
	vv_json_array(j, "bases");
	for (size_t i = 0; i < n; i++) {
		vv_json_object(j, NULL);
		vv_json_number(j, "epoch", v[i].epoch);
		vv_json_number(j, "position", v[i].pos);
		vv_json_number(j, "bytes", v[i].len);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_blocks(struct vv_json *j, const struct vv_blocks *b)
{
	vv_json_array(j, "block_list");
	for (size_t i = 0; i < b->n; i++) {
		vv_json_object(j, NULL);
		vv_json_number(j, "offset", b->v[i].off);
		vv_json_text(j, "codec", vv_codec_name(b->v[i].codec));
		vv_json_number(j, "bytes", b->v[i].raw_len);
		vv_json_number(j, "bytes_stored", b->v[i].stored_len);
		vv_json_number(j, "position", b->extent.v[b->v[i].extent].pos);
		vv_json_number(j, "extents", b->v[i].n_extents);
		put_bases(j, b, i);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_layer(struct vv_json *j, const struct view *w)
{
	const struct vv_head *h = &w->file->head;

	vv_json_number(j, "rank", h->rank);
	vv_json_text(j, "object", w->file->object);
	vv_json_text(j, "head_digest", hex(&w->rank->head).s);
	vv_json_text(j, "digest", digest_name(h->digest_kind));
	vv_json_number(j, "depth", h->depth);
	vv_json_number(j, "heads_read", w->table.layers);
	vv_json_number(j, "layers_read", w->n_sources);
	vv_json_real(j, "seconds_blocked", (double)vv_head_stat(h, "ns.blocked") / 1e9);
	vv_json_number(j, "bytes_memory", w->rank->memory);
	for (size_t i = 0; i < PARTS; i++)
		vv_json_number(j, parts[i].key, vv_head_stat(h, parts[i].stat));
	vv_json_number(j, "bytes_payload", w->rank->payload);
	vv_json_number(j, "bytes_stored", w->rank->stored);
	vv_json_number(j, "bytes_layer", w->rank->file_len);
	vv_json_number(j, "bytes_layer_now", w->file->frame.file_len);
	vv_json_real(j, "ratio", w->rank->file_len ? (double)w->rank->memory / (double)w->rank->file_len : 0);
	vv_json_number(j, "blocks", w->file->blocks.n);
	vv_json_number(j, "blocks_delta", w->file->blocks.bases.n_blocks);
	vv_json_text(j, "codecs", w->file->blocks.n ? vv_summary_codecs(&w->file->blocks).s : NULL);
	vv_json_object(j, "stats");
	for (size_t i = 0; i < h->n_stats; i++)
		vv_json_number(j, h->stat[i].name, h->stat[i].value);
	vv_json_end(j);
}

static void put_rank(struct vv_verb_context *job, const struct view *w)
{
	vv_json_object(&job->json, NULL);
	put_layer(&job->json, w);
	put_regions(&job->json, w, vv_args_value(job->args, "runs") != NULL);
	vv_show_files_put(&w->files, &job->json);
	if (vv_args_value(job->args, "blocks"))
		put_blocks(&job->json, &w->file->blocks);
	vv_json_end(&job->json);
}

static int put_epoch(struct vv_json *j, const struct vv_lineage *lin, const struct vv_commit *c, const struct vv_listing *l)
{
	vv_json_text(j, "store", lin->store->url);
	vv_json_text(j, "lineage", lin->name);
	vv_json_number(j, "epoch", c->epoch);
	vv_json_number(j, "parent", c->parent);
	vv_json_text(j, "time", vv_text_iso(c->time_ns).s);
	vv_json_number(j, "time_ns", c->time_ns);
	vv_json_number(j, "ranks", c->n_ranks);
	vv_show_labels_put(j, l, c->epoch);
	return vv_show_parity_put(j, lin, l, c->epoch);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int show_rank(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_commit *c, uint32_t rank,
		     struct vv_summary *sum)
{
	struct view w;
	int rc = view_init(&w, job, lin, c, rank);

	if (rc == 0 && job->args->json)
		put_rank(job, &w);
	else if (rc == 0)
		rc = print_rank(job, &w);
	if (rc == 0 && sum)
		vv_summary_add(sum, w.rank, &w.file->head, &w.file->blocks);
	view_fini(&w);
	return rc;
}

/* After a layer could not be read: is it in another store? If hosts have stores of their own, each
 * store holds only the layers of its own ranks. */
static bool is_elsewhere(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank)
{
	char object[VV_NAME_MAX];
	struct vv_err_state error;
	struct vv_get *get = NULL;
	int rc;

	vv_err_save(VV_EDAMAGED, &error);
	vv_name_layer(object, lin->name, epoch, rank);
	rc = vv_store_get_open(lin->store, object, &get);
	vv_store_get_close(get);
	vv_err_restore(&error);
	return rc == VV_ENOENT && !vv_catalog_is_dropped(lin, epoch);
}

static int sum_rank(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_commit *c, uint32_t rank, struct vv_summary *sum,
		    struct vv_show_files *files)
{
	struct vv_layer_file *f = NULL;
	int rc = vv_layer_file_open(lin, vv_run_layer(c->epoch, rank), VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS, &f);

	if (rc == 0)
		vv_summary_add(sum, &c->rank[rank], &f->head, &f->blocks);
	if (rc == 0)
		rc = vv_show_files_add_head(files, job, lin, &f->head);
	vv_layer_file_close(f);
	return rc;
}

static void put_elsewhere(struct vv_json *j, const struct vv_commit *c, uint32_t rank)
{
	vv_json_object(j, NULL);
	vv_json_number(j, "rank", rank);
	vv_json_bool(j, "elsewhere", true);
	vv_json_number(j, "bytes_memory", c->rank[rank].memory);
	vv_json_number(j, "bytes_stored", c->rank[rank].stored);
	vv_json_number(j, "bytes_layer", c->rank[rank].file_len);
	vv_json_end(j);
}

/* Shows all ranks: in JSON with everything, in text one line each. Details are shown in text only
 * for a single rank, or with --all. */
static int show_all(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_commit *c)
{
	bool json = job->args->json, many = c->n_ranks > 1, full = json || !many;
	struct vv_show_files files = { 0 };
	struct vv_summary sum;
	int rc = 0;

	vv_summary_init(&sum);
	for (uint32_t r = 0; rc == 0 && r < c->n_ranks; r++) {
		rc = full ? show_rank(job, lin, c, r, &sum) : sum_rank(job, lin, c, r, &sum, &files);
		if (rc != VV_EDAMAGED || !many || !is_elsewhere(lin, c->epoch, r))
			continue;
		put_elsewhere(&job->json, c, r);
		vv_summary_add(&sum, &c->rank[r], NULL, NULL);
		rc = 0;
	}
	vv_json_end(&job->json);
	if (rc == 0 && json)
		vv_summary_put(&sum, &job->json);
	else if (rc == 0 && many)
		rc = vv_summary_print(&sum, &job->out);
	if (rc == 0 && !full)
		rc = vv_show_files_print(&files, &job->out, vv_args_value(job->args, "all"));
	for (uint32_t r = 0; rc == 0 && !full && vv_args_value(job->args, "all") && r < c->n_ranks; r++)
		rc = show_rank(job, lin, c, r, NULL);
	vv_summary_fini(&sum);
	vv_show_files_fini(&files);
	return rc;
}

/* The requested rank, or ALL. */
enum { ALL = VV_MAX_RANKS };

static int find_rank(const struct vv_args *args, const struct vv_lineage *lin, const struct vv_commit *c, uint64_t *rank)
{
	int rc = vv_args_number(args, "rank", 0, VV_MAX_RANKS - 1, rank);

	if (rc)
		return rc;
	if (*rank == ALL && c->n_ranks > 1 && !args->json && !vv_args_value(args, "all") &&
	    (vv_args_value(args, "runs") || vv_args_value(args, "blocks")))
		return vv_err_set(VV_EINVAL, "show: runs and blocks of which of the %" PRIu32 " ranks? say --rank R, or --all",
				  c->n_ranks);
	if (*rank != ALL && *rank >= c->n_ranks)
		return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has %" PRIu32 " rank(s), there is no rank %" PRIu64,
				  c->epoch, lin->name, c->n_ranks, *rank);
	return 0;
}

static int show_ranks(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_commit *c, uint64_t rank)
{
	int rc;

	vv_json_array(&job->json, "per_rank");
	if (rank == ALL)
		return show_all(job, lin, c);
	rc = show_rank(job, lin, c, (uint32_t)rank, NULL);
	vv_json_end(&job->json);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	struct vv_spec spec;
	struct vv_lineage lin;
	struct vv_commit c = { 0 };
	struct vv_listing l = { 0 };
	uint64_t epoch = 0, rank = ALL;
	int rc = vv_spec_parse(job->args->operand[1], VV_SPEC_EPOCH, &spec);

	if (rc == 0)
		rc = vv_verb_context_open_lineage(job, &spec, &lin);
	if (rc == 0)
		rc = vv_verb_context_epoch(job, &lin, &spec, &epoch);
	if (rc == 0)
		rc = vv_catalog_commit(&lin, epoch, &c);
	if (rc == 0)
		rc = find_rank(job->args, &lin, &c, &rank);
	if (rc == 0)
		rc = vv_catalog_list(&lin, epoch, &l);
	if (rc == 0)
		rc = job->args->json ? put_epoch(&job->json, &lin, &c, &l) : print_epoch(&job->out, &lin, &c, &l);
	if (rc == 0)
		rc = show_ranks(job, &lin, &c, rank);
	vv_catalog_listing_fini(&l);
	vv_commit_fini(&c);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "rank", 0, "R", "only this rank, with all details" },
	{ "all", 0, NULL, "the details of each rank after the table" },
	{ "runs", 0, NULL, "list the origin of every range of every region" },
	{ "blocks", 0, NULL, "list the blocks of the layer" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_show = {
	.name = "show",
	.operands = "STORE LINEAGE[@EPOCH]",
	.min = 2,
	.max = 2,
	.brief = "shows the content of an epoch and its origin",
	.help = "Shows an epoch (by default the newest): its regions, new and known data, its\n"
		"cost, and the bytes that a restart reads. RUNS are the runs of the whole region,\n"
		"RUNS HERE those that its layer adds.\n"
		"\n"
		"For several ranks there is a table with a line for each. MEMORY is the sum of\n"
		"UNCHANGED, KNOWN (zero, or stored elsewhere by the rank), OF OTHERS (stored by\n"
		"other ranks) and NEW. FOR OTHERS are new data that other ranks refer to. CODEC\n"
		"is the compression of the new data. For packed files the kinds of variables,\n"
		"their compression and the files are listed.",
	.option = options,
	.run = run,
};
