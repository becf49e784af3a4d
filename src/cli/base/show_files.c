#include "cli/base/show_files.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/similarity_key.h"
#include "engine/files/unpack.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FEW = 40, WORDS = 80 };

void vv_show_files_fini(struct vv_show_files *s)
{
	vv_map_fini(&s->by_key);
	vv_manifest_fini(&s->all);
	vv_mem_free(s->len);
	vv_mem_free(s->differs);
	*s = (struct vv_show_files){ 0 };
}

/* ---- gathering ------------------------------------------------------------------------------- */

static int add_kind(struct vv_show_files *s, const struct vv_manifest_kind *k)
{
	size_t i = vv_map_get(&s->by_key, k->key);
	struct vv_manifest_kind *to;

	if (i == VV_MAP_NONE) {
		char *key;

		if (vv_mem_room(&s->differs, s->all.n_kinds, &s->differs_cap, sizeof(*s->differs)) < 0)
			return VV_ENOMEM;
		to = vv_manifest_add_kind(&s->all, k->key);
		if (!to)
			return VV_ENOMEM;
		key = to->key;
		*to = *k;
		to->key = key;
		s->differs[s->all.n_kinds - 1] = false;
		return vv_map_put(&s->by_key, key, s->all.n_kinds - 1);
	}
	to = &s->all.kind[i];
	s->differs[i] |= !vv_recipe_same(&to->recipe, &k->recipe);
	to->instances += k->instances;
	to->raw += k->raw;
	to->fresh += k->fresh;
	to->stored += k->stored;
	to->zero += k->zero;
	to->dup_time += k->dup_time;
	to->dup_space += k->dup_space;
	to->merged |= k->merged;
	return 0;
}

static int add_file(struct vv_show_files *s, const struct vv_manifest_file *f, uint64_t len)
{
	struct vv_manifest_file *to;
	char *name;

	if (vv_mem_room(&s->len, s->all.n_files, &s->lens_cap, sizeof(*s->len)) < 0)
		return VV_ENOMEM;
	to = vv_manifest_add_file(&s->all, f->name);
	if (!to)
		return VV_ENOMEM;
	name = to->name;
	*to = *f;
	to->name = name;
	to->format = vv_mem_strdup(f->format);
	s->len[s->all.n_files - 1] = len;
	return to->format ? 0 : VV_ENOMEM;
}

static int add_all(struct vv_show_files *s, const struct vv_manifest *m, const struct vv_run_table *t)
{
	int rc = 0;

	if (!s->all.scheme) {
		s->all.scheme = vv_mem_strdup(m->scheme);
		s->all.effort = vv_mem_strdup(m->effort);
		rc = s->all.scheme && s->all.effort ? 0 : VV_ENOMEM;
	}
	for (size_t i = 0; rc == 0 && i < m->n_kinds; i++)
		rc = add_kind(s, &m->kind[i]);
	for (size_t i = 0; rc == 0 && i < m->n_files; i++)
		rc = add_file(s, &m->file[i], t->region[m->file[i].region].shape.len);
	return rc;
}

int vv_show_files_add(struct vv_show_files *s, struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_run_table *t)
{
	struct vv_manifest m = { 0 };
	bool has = false;
	int rc;

	if (vv_run_table_find(t, VV_MANIFEST_REGION) == t->n)
		return 0;
	rc = vv_verb_context_start_pool(job);
	if (rc == 0)
		rc = vv_unpack_manifest(lin, job->pool, t, &m, &has);
	if (rc == 0 && has)
		rc = add_all(s, &m, t);
	s->any |= has;
	vv_manifest_fini(&m);
	return rc;
}

int vv_show_files_add_head(struct vv_show_files *s, struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_head *h)
{
	struct vv_run_table t = { 0 };
	bool packed = false;
	int rc = 0;

	for (size_t i = 0; !packed && i < h->n_regions; i++)
		packed = strcmp(h->region[i].name, VV_MANIFEST_REGION) == 0;
	if (packed)
		rc = vv_run_table_load(lin, h->epoch, h->rank, NULL, &t);
	if (packed && rc == 0)
		rc = vv_show_files_add(s, job, lin, &t);
	vv_run_table_fini(&t);
	return rc;
}

/* ---- text ------------------------------------------------------------------------------------ */

static struct vv_text type_words(const struct vv_manifest_kind *k)
{
	struct vv_text t;

	if (k->type == VV_TYPE_BYTES)
		snprintf(t.s, sizeof(t.s), k->width > 1 ? "%" PRIu32 " bytes" : "bytes", k->width);
	else
		snprintf(t.s, sizeof(t.s), "%s%s", vv_head_type_name(k->type), k->swapped ? " be" : "");
	return t;
}

/* The name without the type, which has columns of its own: as 'varve extract' takes it. */
static void copy_name(const struct vv_manifest_kind *k, char name[VV_SIMILARITY_KEY_MAX])
{
	size_t suffix = vv_similarity_key_suffix(k->key, k->type, k->width, k->swapped, k->ndim);

	snprintf(name, VV_SIMILARITY_KEY_MAX, "%.*s", (int)(strlen(k->key) - suffix), k->key);
}

static int print_kinds(const struct vv_show_files *s, struct vv_out *o)
{
	static const char *const columns[] = { "<VARIABLE", "<TYPE", "<SHAPE", ">INSTANCES", ">BYTES", ">NEW", ">STORED", ">RATIO", "<CODED",
					       "<MERGED", NULL };
	struct vv_text_table t;
	int rc;

	vv_text_table_init(&t, columns, "  ");
	t.spare = "MERGED;INSTANCES;RATIO";
	for (size_t i = 0; i < s->all.n_kinds; i++) {
		const struct vv_manifest_kind *k = &s->all.kind[i];
		struct vv_shape shape = { .ndim = k->ndim };
		char words[WORDS] = "in several ways", name[VV_SIMILARITY_KEY_MAX];

		memcpy(shape.dim, k->dim, sizeof(shape.dim));
		if (!s->differs[i])
			vv_recipe_words(&k->recipe, words, sizeof(words));
		copy_name(k, name);
		vv_text_cell(&t, "%s", vv_text_safe(name).s);
		vv_text_cell(&t, "%s", type_words(k).s);
		vv_text_cell(&t, "%s", vv_text_shape(&shape).s);
		vv_text_cell(&t, "%" PRIu64, k->instances);
		vv_text_cell(&t, "%s", vv_text_size(k->raw).s);
		vv_text_cell(&t, "%s", vv_text_size(k->fresh).s);
		vv_text_cell(&t, "%s", vv_text_size(k->stored).s);
		vv_text_cell(&t, "%s", vv_text_ratio(k->fresh, k->stored).s);
		vv_text_cell(&t, "%s", words);
		vv_text_cell(&t, "%s", k->merged ? "yes" : "-");
	}
	rc = vv_text_table_print(&t, &o->buf);
	vv_text_table_fini(&t);
	return rc;
}

/* Sums up all kinds of one segment: their bytes, and how these were stored. */
static bool sum_segment(const struct vv_manifest *m, unsigned segment, struct vv_manifest_kind *sum)
{
	*sum = (struct vv_manifest_kind){ 0 };
	for (size_t i = 0; i < m->n_kinds; i++) {
		const struct vv_manifest_kind *k = &m->kind[i];

		if (k->segment != segment)
			continue;
		sum->raw += k->raw;
		sum->zero += k->zero;
		sum->dup_time += k->dup_time;
		sum->dup_space += k->dup_space;
		sum->fresh += k->fresh;
		sum->stored += k->stored;
	}
	return sum->raw > 0;
}

static bool has_segments(const struct vv_manifest *m)
{
	for (size_t i = 0; i < m->n_kinds; i++)
		if (m->kind[i].segment)
			return true;
	return false;
}

/* Chen 2016's tables 1 to 4. */
static int print_segments(const struct vv_show_files *s, struct vv_out *o)
{
	static const char *const columns[] = { "<SEGMENT", ">BYTES", ">ZERO", ">DUP IN TIME", ">DUP IN SPACE", ">NEW", ">STORED", ">RATIO", NULL };
	struct vv_manifest_kind sum;
	struct vv_text_table t;
	int rc;

	if (!has_segments(&s->all))
		return 0;
	vv_text_table_init(&t, columns, "  ");
	for (unsigned i = VV_SEGMENT_NONE + 1; i < VV_SEGMENTS; i++) {
		if (!sum_segment(&s->all, i, &sum))
			continue;
		vv_text_cell(&t, "%s", vv_segment_name(i));
		vv_text_cell(&t, "%s", vv_text_size(sum.raw).s);
		vv_text_cell(&t, "%s", vv_text_size(sum.zero).s);
		vv_text_cell(&t, "%s", vv_text_size(sum.dup_time).s);
		vv_text_cell(&t, "%s", vv_text_size(sum.dup_space).s);
		vv_text_cell(&t, "%s", vv_text_size(sum.fresh).s);
		vv_text_cell(&t, "%s", vv_text_size(sum.stored).s);
		vv_text_cell(&t, "%s", vv_text_ratio(sum.raw, sum.stored).s);
	}
	rc = vv_text_table_print(&t, &o->buf);
	vv_text_table_fini(&t);
	vv_out_printf(o, "\n");
	return rc;
}

void vv_show_files_table(struct vv_text_table *t, const char *indent)
{
	static const char *const columns[] = { ">MODE", ">BYTES", "<MODIFIED", "<FORMAT", "<FILE", NULL };

	vv_text_table_init(t, columns, indent);
}

void vv_show_files_row(struct vv_text_table *t, const struct vv_manifest_file *f, const char *bytes)
{
	vv_text_cell(t, "%04" PRIo32, f->mode);
	vv_text_cell(t, "%s", bytes);
	vv_text_cell(t, "%s", vv_text_time(f->mtime_s < 0 ? 0 : (uint64_t)f->mtime_s * 1000000000 + f->mtime_ns).s);
	vv_text_cell(t, "%s", vv_text_safe(f->format).s);
	vv_text_cell(t, "%s", vv_text_safe(f->name).s);
}

void vv_show_files_entry_row(struct vv_text_table *t, const struct vv_manifest_entry *e)
{
	vv_text_cell(t, "%04" PRIo32, e->mode);
	vv_text_cell(t, "-");
	vv_text_cell(t, "%s", vv_text_time(e->mtime_s < 0 ? 0 : (uint64_t)e->mtime_s * 1000000000 + e->mtime_ns).s);
	vv_text_cell(t, "%s", e->target ? "link" : "folder");
	vv_text_cell(t, "%s%s%s", vv_text_safe(e->name).s, e->target ? " -> " : "/", e->target ? vv_text_safe(e->target).s : "");
}

static int print_files(const struct vv_show_files *s, struct vv_out *o, bool all)
{
	size_t n = all || s->all.n_files <= FEW ? s->all.n_files : FEW;
	struct vv_text_table t;
	int rc;

	vv_show_files_table(&t, "  ");
	for (size_t i = 0; i < n; i++)
		vv_show_files_row(&t, &s->all.file[i], vv_text_size(s->len[i]).s);
	rc = vv_text_table_print(&t, &o->buf);
	vv_text_table_fini(&t);
	if (n < s->all.n_files)
		vv_out_printf(o, "  and %zu more ('varve unpack --list' shows all)\n", s->all.n_files - n);
	return rc;
}

int vv_show_files_print(const struct vv_show_files *s, struct vv_out *o, bool all)
{
	int rc;

	if (!s->any)
		return 0;
	vv_out_printf(o, "\n  packed from %zu file%s, scheme %s, level %s\n\n", s->all.n_files, s->all.n_files == 1 ? "" : "s",
		      vv_text_safe(s->all.scheme).s, vv_text_safe(s->all.effort).s);
	rc = print_segments(s, o);
	if (rc == 0)
		rc = print_kinds(s, o);
	vv_out_printf(o, "\n");
	return rc ? rc : print_files(s, o, all);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_found(struct vv_json *j, const struct vv_manifest_kind *k)
{
	vv_json_number(j, "bytes_zero", k->zero);
	vv_json_number(j, "bytes_dup_time", k->dup_time);
	vv_json_number(j, "bytes_dup_space", k->dup_space);
}

static void put_segments(struct vv_json *j, const struct vv_manifest *m)
{
	struct vv_manifest_kind sum;

	if (!has_segments(m))
		return;
	vv_json_array(j, "segments");
	for (unsigned i = VV_SEGMENT_NONE + 1; i < VV_SEGMENTS; i++) {
		if (!sum_segment(m, i, &sum))
			continue;
		vv_json_object(j, NULL);
		vv_json_text(j, "segment", vv_segment_name(i));
		vv_json_number(j, "bytes", sum.raw);
		put_found(j, &sum);
		vv_json_number(j, "bytes_new", sum.fresh);
		vv_json_number(j, "bytes_stored", sum.stored);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_kind(struct vv_json *j, const struct vv_manifest_kind *k)
{
	char words[WORDS], name[VV_SIMILARITY_KEY_MAX];

	vv_recipe_words(&k->recipe, words, sizeof(words));
	copy_name(k, name);
	vv_json_object(j, NULL);
	vv_json_text(j, "name", name);
	vv_json_text(j, "key", k->key);
	vv_json_text(j, "type", vv_head_type_name(k->type));
	vv_json_number(j, "width", k->width);
	vv_json_bool(j, "big_endian", k->swapped);
	vv_json_numbers(j, "shape", k->dim, k->ndim);
	vv_json_number(j, "instances", k->instances);
	vv_json_number(j, "bytes", k->raw);
	vv_json_number(j, "bytes_new", k->fresh);
	vv_json_number(j, "bytes_stored", k->stored);
	put_found(j, k);
	if (k->segment)
		vv_json_text(j, "segment", vv_segment_name(k->segment));
	vv_json_real(j, "ratio", k->stored ? (double)k->fresh / (double)k->stored : 0);
	vv_json_text(j, "coded", words);
	vv_json_bool(j, "merged", k->merged);
	vv_json_real(j, "ratio_promised", (double)k->expected_ratio / 1000);
	vv_json_number(j, "sample_age", k->age);
	vv_json_end(j);
}

void vv_show_files_put_kinds(struct vv_json *j, const struct vv_manifest *m)
{
	vv_json_array(j, "variables");
	for (size_t i = 0; i < m->n_kinds; i++)
		put_kind(j, &m->kind[i]);
	vv_json_end(j);
	put_segments(j, m);
}

/* Nanoseconds since 1970, as all times; a time beyond that range is the last one in it. */
static int64_t time_ns(int64_t s, uint32_t ns)
{
	int64_t t;

	if (__builtin_mul_overflow(s, INT64_C(1000000000), &t) || __builtin_add_overflow(t, (int64_t)ns, &t))
		return s < 0 ? INT64_MIN : INT64_MAX;
	return t;
}

void vv_show_files_put_file(struct vv_json *j, const struct vv_manifest_file *f, uint64_t bytes)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04" PRIo32, f->mode & 07777);
	vv_json_text(j, "name", f->name);
	vv_json_number(j, "bytes", bytes);
	vv_json_text(j, "mode", mode);
	vv_json_signed(j, "mtime_ns", time_ns(f->mtime_s, f->mtime_ns));
	vv_json_text(j, "format", f->format);
	if (f->linked)
		vv_json_bool(j, "hard_link", true);
	if (f->attrs.n)
		vv_json_number(j, "attributes", f->attrs.n);
}

void vv_show_files_put_entry(struct vv_json *j, const struct vv_manifest_entry *e)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04" PRIo32, e->mode & 07777);
	vv_json_object(j, NULL);
	vv_json_text(j, "name", e->name);
	vv_json_text(j, "type", e->target ? "link" : "folder");
	vv_json_text(j, "mode", mode);
	vv_json_signed(j, "mtime_ns", time_ns(e->mtime_s, e->mtime_ns));
	if (e->target)
		vv_json_text(j, "target", e->target);
	if (e->attrs.n)
		vv_json_number(j, "attributes", e->attrs.n);
	vv_json_end(j);
}

void vv_show_files_put(const struct vv_show_files *s, struct vv_json *j)
{
	if (!s->any)
		return;
	vv_json_text(j, "scheme", s->all.scheme);
	vv_json_text(j, "level", s->all.effort);
	vv_show_files_put_kinds(j, &s->all);
	vv_json_array(j, "files");
	for (size_t i = 0; i < s->all.n_files; i++) {
		vv_json_object(j, NULL);
		vv_show_files_put_file(j, &s->all.file[i], s->len[i]);
		vv_json_end(j);
	}
	vv_json_end(j);
}
