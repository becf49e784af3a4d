#include "cli/report/report_json.h"
#include "base/mem.h"
#include "base/search.h"
#include "cli/report/report.h"
#include "cli/report/report_lineage.h"
#include "cli/base/text.h"
#include "codec/codec.h"
#include "engine/lineage/label.h"
#include <stdlib.h>
#include <string.h>

/* those of 'varve show --json', if that has them */
static const char *const keys[VV_REPORT_FIGURES] = {
	"bytes_memory", "bytes_dirty",  "bytes_unchanged", "bytes_zero", "bytes_dup_time",  "bytes_dup_space", "bytes_dup_ranks",
	"bytes_new",    "bytes_stored", "bytes_layer",     "bytes_copied", "bytes_waited",  "bytes_cow",       "bytes_avoided",
	"bytes_lent",   "seconds_blocked", "seconds_flush", "seconds_waits", "seconds_faults", "seconds_ranks",
};

/* Values of 0 are left out, as in the layers. */
static void put_figures(struct vv_json *j, const struct vv_report_row *row)
{
	for (unsigned i = 0; i < VV_REPORT_FIGURES; i++) {
		if (!row->v[i])
			continue;
		if (i < VV_REPORT_BLOCKED)
			vv_json_number(j, keys[i], row->v[i]);
		else
			vv_json_real(j, keys[i], (double)row->v[i] / 1e9);
	}
}

/* The first labels of a row; the number of all, if there are more. */
static void put_labels(struct vv_json *j, const struct vv_listing *l, const struct vv_report_row *e)
{
	size_t i, n = 0, total = 0;

	VV_SEARCH(i, 0, l->n_epochs, l->epoch[i] < e->first);
	for (; i < l->n_epochs && l->epoch[i] <= e->last; i++) {
		const struct vv_label_name *of = vv_label_of(l, l->epoch[i], &n);

		for (size_t k = 0; k < n; k++, total++) {
			if (!total)
				vv_json_array(j, "labels");
			if (total < VV_REPORT_LABELS)
				vv_json_text(j, NULL, of[k].label);
		}
	}
	if (total)
		vv_json_end(j);
	if (total > VV_REPORT_LABELS)
		vv_json_number(j, "labels_total", total);
}

static void put_epochs(struct vv_json *j, const struct vv_report_lineage *r)
{
	vv_json_array(j, "epochs");
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct vv_report_row *e = &r->epoch[i];

		vv_json_object(j, NULL);
		vv_json_number(j, "first", e->first);
		vv_json_number(j, "last", e->last);
		vv_json_number(j, "n", e->n);
		if (e->time_ns)
			vv_json_number(j, "time_ns", e->time_ns);
		vv_json_number(j, "ranks", e->ranks);
		vv_json_number(j, "layers", e->layers);
		vv_json_number(j, "layers_told", e->has_stats);
		if (e->damaged)
			vv_json_number(j, "damaged", e->damaged);
		if (e->restarts && !r->restore.files.any)
			vv_json_number(j, "restarts", e->restarts);
		put_figures(j, e);
		put_labels(j, &r->listing, e);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_totals(struct vv_json *j, const struct vv_report_lineage *r)
{
	vv_json_object(j, "totals");
	vv_json_number(j, "epochs", r->n_epochs);
	vv_json_number(j, "epochs_shown", r->n_shown);
	vv_json_number(j, "layers", r->all.layers);
	vv_json_number(j, "layers_told", r->all.has_stats);
	vv_json_number(j, "layers_on_disk", r->n_layers);
	vv_json_number(j, "bytes_on_disk", r->on_disk);
	put_figures(j, &r->all);
	vv_json_real(j, "seconds_blocked_most", (double)r->blocked_most_ns / 1e9);
	vv_json_end(j);
}

static void put_ranks(struct vv_json *j, const struct vv_report_lineage *r)
{
	vv_json_array(j, "per_rank");
	for (size_t i = 0; i < r->n_ranks; i++) {
		const struct vv_report_row *k = &r->rank[i];

		vv_json_object(j, NULL);
		vv_json_number(j, "first", k->first);
		vv_json_number(j, "last", k->last);
		vv_json_number(j, "n", k->n);
		vv_json_number(j, "layers_told", k->has_stats);
		put_figures(j, k);
		vv_json_number(j, "bytes_stored_all", k->total);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_shape(struct vv_json *j, const struct vv_shape *s)
{
	vv_json_text(j, "type", vv_head_type_name(s->type));
	vv_json_numbers(j, "shape", s->dim, s->ndim);
	vv_json_number(j, "chunk", s->chunk);
}

static void put_region(struct vv_json *j, const struct vv_report_restore *r, const struct vv_report_region *g)
{
	vv_json_object(j, NULL);
	vv_json_text(j, "name", g->name);
	put_shape(j, &g->shape);
	if (g->differs)
		vv_json_bool(j, "differs", true);
	vv_json_number(j, "ranks", g->ranks);
	vv_json_number(j, "bytes", g->bytes);
	vv_json_number(j, "runs", g->runs);
	vv_json_number(j, "bytes_zero", g->zero);
	vv_json_object(j, "codecs");
	for (size_t c = 0; c < r->n_codecs; c++)
		if (g->from[c])
			vv_json_number(j, vv_codec_name(r->codec[c].codec), g->from[c]);
	vv_json_end(j);
	vv_json_end(j);
}

static void put_regions(struct vv_json *j, const struct vv_report_restore *r)
{
	uint64_t bytes = 0;

	vv_json_array(j, "regions");
	for (size_t i = 0; i < r->n_regions && i < VV_REPORT_LISTED; i++)
		put_region(j, r, &r->region[i]);
	vv_json_end(j);
	vv_json_number(j, "regions_total", r->n_regions);
	for (size_t i = VV_REPORT_LISTED; i < r->n_regions; i++)
		bytes += r->region[i].bytes;
	vv_json_number(j, "bytes_in_other_regions", bytes);
}

static int by_raw(const void *a, const void *b)
{
	const struct vv_manifest_kind *x = a, *y = b;

	if (x->raw != y->raw)
		return x->raw < y->raw ? 1 : -1;
	return strcmp(x->key, y->key);
}

/* The largest kinds of variables, as in 'varve show'; and files, of which there may be very
 * many. */
static void put_files(struct vv_json *j, const struct vv_show_files *s)
{
	struct vv_manifest some = { 0 };

	if (!s->any)
		return;
	vv_json_text(j, "scheme", s->all.scheme);
	vv_json_text(j, "level", s->all.effort);
	some.kind = vv_mem_new(s->all.n_kinds, sizeof(*some.kind));
	if (some.kind && s->all.n_kinds) {
		memcpy(some.kind, s->all.kind, s->all.n_kinds * sizeof(*some.kind));
		qsort(some.kind, s->all.n_kinds, sizeof(*some.kind), by_raw);
		some.n_kinds = s->all.n_kinds < VV_REPORT_LISTED ? s->all.n_kinds : VV_REPORT_LISTED;
	}
	j->buf.failed |= !some.kind;
	vv_show_files_put_kinds(j, &some);
	vv_mem_free(some.kind);
	vv_json_number(j, "variables_total", s->all.n_kinds);
	vv_json_array(j, "files");
	for (size_t i = 0; i < s->all.n_files && i < VV_REPORT_LISTED; i++) {
		vv_json_object(j, NULL);
		vv_json_text(j, "name", s->all.file[i].name);
		vv_json_number(j, "bytes", s->len[i]);
		vv_json_text(j, "format", s->all.file[i].format);
		vv_json_end(j);
	}
	vv_json_end(j);
	vv_json_number(j, "files_total", s->all.n_files);
}

/* n: the number of epochs up to this one, if there are several. */
static void put_source(struct vv_json *j, const struct vv_report_source *s, size_t n)
{
	vv_json_object(j, NULL);
	vv_json_number(j, "epoch", s->epoch);
	if (n > 1)
		vv_json_number(j, "epochs", n);
	vv_json_number(j, "layers", s->layers);
	vv_json_number(j, "bytes", s->bytes);
	vv_json_number(j, "blocks", s->blocks);
	vv_json_number(j, "bytes_read", s->read);
	vv_json_end(j);
}

/* The newest layers one by one, the earlier ones together. */
static void put_sources(struct vv_json *j, const struct vv_report_restore *r)
{
	size_t first = r->n_sources > VV_REPORT_LISTED ? r->n_sources - VV_REPORT_LISTED : 0;
	struct vv_report_source older = { 0 };

	for (size_t i = 0; i < first; i++) {
		older.epoch = r->source[i].epoch;
		older.layers += r->source[i].layers;
		older.bytes += r->source[i].bytes;
		older.blocks += r->source[i].blocks;
		older.read += r->source[i].read;
	}
	vv_json_array(j, "sources");
	for (size_t i = first; i < r->n_sources; i++)
		put_source(j, &r->source[i], 1);
	vv_json_end(j);
	if (first) {
		vv_json_array(j, "older");
		put_source(j, &older, first);
		vv_json_end(j);
	}
}

static void put_restore(struct vv_json *j, const struct vv_report_restore *r)
{
	vv_json_object(j, "restore");
	vv_json_number(j, "epoch", r->epoch);
	vv_json_number(j, "ranks", r->ranks);
	vv_json_number(j, "ranks_not_told", r->elsewhere);
	vv_json_bool(j, "partial", r->partial);
	vv_json_number(j, "heads", r->heads);
	vv_json_number(j, "bytes_zero", r->zero);
	put_sources(j, r);
	vv_json_array(j, "codecs");
	for (size_t i = 0; i < r->n_codecs; i++) {
		vv_json_object(j, NULL);
		vv_json_text(j, "codec", vv_codec_name(r->codec[i].codec));
		vv_json_number(j, "blocks", r->codec[i].blocks);
		vv_json_number(j, "bytes", r->codec[i].raw);
		vv_json_number(j, "bytes_stored", r->codec[i].stored);
		vv_json_end(j);
	}
	vv_json_end(j);
	vv_json_end(j);
}

/* The share in thousandths, but never 0 if anything changed; -1 if there were no bytes. */
static int64_t share(uint64_t changed, uint64_t size)
{
	double s = size ? 1000.0 * (double)changed / (double)size : 0;

	if (!size)
		return -1;
	return s > 1000 ? 1000 : changed && s < 1 ? 1 : (int64_t)(s + 0.5);
}

/* A part of a region has an equal share of its size. For regions of several ranks the corresponding
 * parts are combined. */
static int64_t band_share(const struct vv_report_heat_row *r, size_t column, size_t band)
{
	return share(r->band[column * VV_REPORT_BANDS + band] * VV_REPORT_BANDS, r->size[column]);
}

static bool is_uneven(const struct vv_report_heat *h, const struct vv_report_heat_row *r)
{
	for (size_t k = 0; r->band && k < h->columns; k++)
		for (size_t b = 1; b < VV_REPORT_BANDS; b++)
			if (band_share(r, k, b) != band_share(r, k, 0))
				return true;
	return false;
}

static void put_bands(struct vv_json *j, const struct vv_report_heat *h, const struct vv_report_heat_row *r)
{
	vv_json_array(j, "bands");
	for (size_t b = 0; b < VV_REPORT_BANDS; b++) {
		vv_json_array(j, NULL);
		for (size_t k = 0; k < h->columns; k++)
			vv_json_signed(j, NULL, band_share(r, k, b));
		vv_json_end(j);
	}
	vv_json_end(j);
}

/* Parts are listed if they differ, for as many regions as there is room for: the size of the page
 * is bounded. */
static void put_heat(struct vv_json *j, const struct vv_report_heat *h)
{
	size_t rows = h->n;

	vv_json_array(j, "changes");
	for (size_t i = 0; i < h->n; i++) {
		bool rest = h->others && i + 1 == h->n;

		vv_json_object(j, NULL);
		vv_json_text(j, "name", rest ? NULL : h->v[i].name);
		if (h->v[i].variable)
			vv_json_bool(j, "variable", true);
		vv_json_number(j, "bytes_changed", h->v[i].total);
		vv_json_array(j, "per_mille");
		for (size_t k = 0; k < h->columns; k++)
			vv_json_signed(j, NULL, share(h->v[i].changed[k], h->v[i].size[k]));
		vv_json_end(j);
		if (rows + VV_REPORT_BANDS - 1 <= VV_REPORT_WARM && is_uneven(h, &h->v[i])) {
			put_bands(j, h, &h->v[i]);
			rows += VV_REPORT_BANDS - 1;
		}
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_gc(struct vv_json *j, const struct vv_report_lineage *r)
{
	vv_json_object(j, "gc");
	if (r->gc_error) {
		vv_json_text(j, "error", r->gc_error);
	} else {
		vv_json_number(j, "bytes_before", r->gc.bytes_before);
		vv_json_number(j, "bytes_after", r->gc.bytes_after);
		vv_json_number(j, "bytes_needed", r->gc.bytes_needed);
		vv_json_number(j, "removed", r->gc.removed);
		vv_json_number(j, "rewritten", r->gc.rewritten);
		vv_json_number(j, "kept", r->gc.kept);
		vv_json_number(j, "unfinished", r->gc.unfinished.n);
		vv_json_number(j, "bytes_unfinished", r->gc.unfinished.bytes);
	}
	vv_json_end(j);
}

static void put_problems(struct vv_json *j, const struct vv_report_lineage *r)
{
	vv_json_array(j, "problems");
	for (size_t i = 0; i < r->n_problems && i < VV_REPORT_PROBLEMS; i++) {
		vv_json_object(j, NULL);
		vv_json_number(j, "epoch", r->problem[i].epoch);
		vv_json_text(j, "text", r->problem[i].text);
		vv_json_end(j);
	}
	vv_json_end(j);
	vv_json_number(j, "problems_total", r->n_problems);
}

static void put_verified(struct vv_json *j, const struct vv_last_verify *v)
{
	if (!v->time_ns)
		return;
	vv_json_object(j, "verified");
	vv_json_text(j, "time", vv_text_iso(v->time_ns).s);
	vv_json_number(j, "time_ns", v->time_ns);
	vv_json_number(j, "n_problems", v->problems);
	vv_json_number(j, "epochs", v->epochs);
	vv_json_number(j, "newest", v->newest);
	vv_json_end(j);
}

void vv_report_json_put(const struct vv_report_lineage *r, struct vv_json *j)
{
	vv_json_object(j, NULL);
	vv_json_text(j, "lineage", r->lin.name);
	vv_json_text(j, "created", vv_text_iso(r->lin.created_ns).s);
	vv_json_number(j, "created_ns", r->lin.created_ns);
	put_verified(j, &r->verified);
	put_totals(j, r);
	put_epochs(j, r);
	put_ranks(j, r);
	put_regions(j, &r->restore);
	put_files(j, &r->restore.files);
	put_restore(j, &r->restore);
	put_heat(j, &r->heat);
	put_gc(j, r);
	put_problems(j, r);
	vv_json_end(j);
}
