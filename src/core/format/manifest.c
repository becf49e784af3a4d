#include "core/format/manifest.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/format/similarity_key.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = { 'V', 'A', 'R', 'V', 'E', 'F', 'I', 'L' };

enum {
	WORD = 32,  /* bytes of a scheme, an effort, a format, with their end */
	SWAPPED = 1, MERGED = 2, /* flags of a kind */
	REAL = 1, HIGH_FIRST = 2, /* flags of a recipe */
	WINDOW_MAX = 31, CODER_MAX = 31, AGE_MAX = 255,
	MODE = 07777,
	SECOND = 1000000000, /* in nanoseconds */
	/* versions: the second has links, folders and attributes, and is written only if there are
	 * some */
	PLAIN = 1, TREE = 2,
	LINKED = 1, ATTRS = 2, /* flags of a file or an entry */
};

void vv_manifest_fini(struct vv_manifest *m)
{
	for (size_t i = 0; i < m->n_files; i++) {
		vv_mem_free(m->file[i].name);
		vv_mem_free(m->file[i].format);
		vv_file_attributes_fini(&m->file[i].attrs);
	}
	for (size_t i = 0; i < m->n_entries; i++) {
		vv_mem_free(m->entry[i].name);
		vv_mem_free(m->entry[i].target);
		vv_file_attributes_fini(&m->entry[i].attrs);
	}
	vv_mem_free(m->entry);
	for (size_t i = 0; i < m->n_kinds; i++)
		vv_mem_free(m->kind[i].key);
	vv_mem_free(m->file);
	vv_mem_free(m->kind);
	vv_mem_free(m->scheme);
	vv_mem_free(m->effort);
	*m = (struct vv_manifest){ 0 };
}

/* A name is a path down from a folder: it can neither climb nor be absolute. Regions have the names
 * of their files, so the name of the manifest's own region is excluded. */
bool vv_manifest_is_name(const char *name)
{
	size_t all = strlen(name), part;

	if (all == 0 || all >= VV_MANIFEST_NAME || strcmp(name, VV_MANIFEST_REGION) == 0)
		return false;
	for (;; name += part + 1) {
		part = strcspn(name, "/");
		if (part == 0 || part > VV_MANIFEST_PART || (part == 1 && name[0] == '.') || (part == 2 && memcmp(name, "..", 2) == 0))
			return false;
		if (!name[part])
			return true;
	}
}

bool vv_manifest_is_target(const char *name, const char *target)
{
	size_t above = 0, part;
	bool down = false;

	if (!target[0] || target[0] == '/' || strlen(target) >= VV_MANIFEST_NAME)
		return false;
	for (const char *s = strchr(name, '/'); s; s = strchr(s + 1, '/'))
		above++;
	for (;; target += part + 1) {
		part = strcspn(target, "/");
		if (part == 2 && memcmp(target, "..", 2) == 0) {
			if (down || above-- == 0)
				return false;
		} else {
			down |= part && !(part == 1 && target[0] == '.');
		}
		if (!target[part])
			return true;
	}
}

int vv_manifest_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

bool vv_manifest_is_below(const char *name, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(name, folder, n) == 0 && name[n] == '/';
}

static int by_path(const void *a, const void *b)
{
	return vv_manifest_compare(((const struct vv_manifest_path *)a)->name, ((const struct vv_manifest_path *)b)->name);
}

int vv_manifest_check_paths(struct vv_manifest_path *p, size_t n, int code)
{
	if (n)
		qsort(p, n, sizeof(*p), by_path);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(p[i].name, p[i - 1].name) == 0)
			return vv_err_set(code, "'%s' would be there twice, as a file, a link or a folder", p[i].name);
		if (p[i - 1].leaf && vv_manifest_is_below(p[i].name, p[i - 1].name))
			return vv_err_set(code, "'%s' would be a file or a link and, for '%s', a folder", p[i - 1].name, p[i].name);
	}
	return 0;
}

struct vv_manifest_file *vv_manifest_add_file(struct vv_manifest *m, const char *name)
{
	char *copy;

	if (vv_mem_room(&m->file, m->n_files, &m->files_cap, sizeof(*m->file)) < 0)
		return NULL;
	copy = vv_mem_strdup(name);
	if (!copy)
		return NULL;
	m->file[m->n_files] = (struct vv_manifest_file){ .name = copy };
	return &m->file[m->n_files++];
}

struct vv_manifest_kind *vv_manifest_add_kind(struct vv_manifest *m, const char *key)
{
	char *copy;

	if (vv_mem_room(&m->kind, m->n_kinds, &m->kinds_cap, sizeof(*m->kind)) < 0)
		return NULL;
	copy = vv_mem_strdup(key);
	if (!copy)
		return NULL;
	m->kind[m->n_kinds] = (struct vv_manifest_kind){ .key = copy };
	return &m->kind[m->n_kinds++];
}

struct vv_manifest_entry *vv_manifest_add_entry(struct vv_manifest *m, const char *name)
{
	char *copy;

	if (vv_mem_room(&m->entry, m->n_entries, &m->entries_cap, sizeof(*m->entry)) < 0)
		return NULL;
	copy = vv_mem_strdup(name);
	if (!copy)
		return NULL;
	m->entry[m->n_entries] = (struct vv_manifest_entry){ .name = copy };
	return &m->entry[m->n_entries++];
}

int vv_manifest_copy_entry(struct vv_manifest *m, const struct vv_manifest_entry *from)
{
	struct vv_manifest_entry *to = vv_manifest_add_entry(m, from->name);

	if (!to)
		return VV_ENOMEM;
	to->type = from->type;
	to->mode = from->mode;
	to->mtime_s = from->mtime_s;
	to->mtime_ns = from->mtime_ns;
	to->target = from->target ? vv_mem_strdup(from->target) : NULL;
	if (from->target && !to->target)
		return VV_ENOMEM;
	return vv_file_attributes_copy(&from->attrs, &to->attrs);
}

/* ---- to bytes -------------------------------------------------------------------------------- */

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static void put_file(const struct vv_manifest_file *f, unsigned version, struct vv_buf *out)
{
	vv_wire_put_str(out, f->name);
	vv_wire_put_var(out, f->region);
	vv_wire_put_var(out, f->mode & MODE);
	vv_wire_put_signed(out, f->mtime_s);
	vv_wire_put_var(out, f->mtime_ns);
	vv_wire_put_str(out, or_empty(f->format));
	if (version < TREE)
		return;
	vv_wire_put_u8(out, (uint8_t)((f->linked ? LINKED : 0) | (f->attrs.n ? ATTRS : 0)));
	if (f->linked) {
		vv_wire_put_var(out, f->dev);
		vv_wire_put_var(out, f->ino);
	}
	if (f->attrs.n)
		vv_file_attributes_put(&f->attrs, out);
}

static void put_entry(const struct vv_manifest_entry *e, struct vv_buf *out)
{
	vv_wire_put_str(out, e->name);
	vv_wire_put_u8(out, e->type);
	vv_wire_put_var(out, e->mode & MODE);
	vv_wire_put_signed(out, e->mtime_s);
	vv_wire_put_var(out, e->mtime_ns);
	if (e->type == VV_MANIFEST_LINK)
		vv_wire_put_str(out, or_empty(e->target));
	vv_wire_put_u8(out, e->attrs.n ? ATTRS : 0);
	if (e->attrs.n)
		vv_file_attributes_put(&e->attrs, out);
}

static void put_recipe(const struct vv_recipe *r, struct vv_buf *out)
{
	vv_wire_put_u8(out, r->width);
	if (!r->width)
		return;
	vv_wire_put_u16(out, r->record);
	vv_wire_put_u8(out, r->predictor);
	vv_wire_put_u8(out, (uint8_t)((r->real ? REAL : 0) | (r->swapped ? HIGH_FIRST : 0)));
	vv_wire_put_u8(out, r->coder);
	vv_wire_put_u8(out, (uint8_t)r->level);
	vv_wire_put_u8(out, r->window);
	vv_wire_put_u8(out, r->n_strides);
	for (unsigned i = 0; i < r->n_strides; i++)
		vv_wire_put_var(out, r->stride[i]);
}

static void put_kind(const struct vv_manifest_kind *k, struct vv_buf *out)
{
	vv_wire_put_str(out, k->key);
	vv_wire_put_u8(out, k->type);
	vv_wire_put_var(out, k->width);
	vv_wire_put_u8(out, (uint8_t)((k->swapped ? SWAPPED : 0) | (k->merged ? MERGED : 0)));
	vv_wire_put_u8(out, k->ndim);
	for (unsigned i = 0; i < k->ndim; i++)
		vv_wire_put_var(out, k->dim[i]);
	vv_wire_put_var(out, k->instances);
	vv_wire_put_var(out, k->raw);
	vv_wire_put_var(out, k->fresh);
	vv_wire_put_var(out, k->stored);
	vv_wire_put_var(out, k->zero);
	vv_wire_put_var(out, k->dup_time);
	vv_wire_put_var(out, k->dup_space);
	vv_wire_put_u8(out, k->segment);
	put_recipe(&k->recipe, out);
	vv_wire_put_var(out, k->expected_ratio);
	vv_wire_put_var(out, k->basis);
	vv_wire_put_u8(out, k->age);
}

static unsigned version_of(const struct vv_manifest *m)
{
	bool tree = m->n_entries;

	for (size_t i = 0; !tree && i < m->n_files; i++)
		tree = m->file[i].linked || m->file[i].attrs.n;
	return tree ? TREE : PLAIN;
}

void vv_manifest_put(const struct vv_manifest *m, struct vv_buf *out)
{
	unsigned version = version_of(m);

	vv_buf_add(out, magic, sizeof(magic));
	vv_wire_put_u16(out, (uint16_t)version);
	vv_wire_put_u16(out, 0);
	vv_wire_put_str(out, or_empty(m->scheme));
	vv_wire_put_str(out, or_empty(m->effort));
	vv_wire_put_var(out, m->n_files);
	for (size_t i = 0; i < m->n_files; i++)
		put_file(&m->file[i], version, out);
	vv_wire_put_var(out, m->n_kinds);
	for (size_t i = 0; i < m->n_kinds; i++)
		put_kind(&m->kind[i], out);
	if (version < TREE)
		return;
	vv_wire_put_var(out, m->n_entries);
	for (size_t i = 0; i < m->n_entries; i++)
		put_entry(&m->entry[i], out);
}

/* ---- from bytes ------------------------------------------------------------------------------ */

static int get_word(struct vv_wire *w, char **out)
{
	char word[WORD];

	vv_wire_str(w, word, sizeof(word));
	*out = vv_mem_strdup(word);
	return *out ? 0 : VV_ENOMEM;
}

static int get_name(struct vv_wire *w, char name[VV_MANIFEST_NAME])
{
	vv_wire_str(w, name, VV_MANIFEST_NAME);
	if (w->bad || vv_manifest_is_name(name))
		return 0;
	return vv_err_set(VV_EDAMAGED, "list of files: '%s' is no name of a file below a folder", name);
}

static int get_tree_of_file(struct vv_wire *w, struct vv_manifest_file *f)
{
	uint8_t flags = vv_wire_u8(w);

	w->bad |= (flags & ~(LINKED | ATTRS)) != 0;
	f->linked = flags & LINKED;
	if (f->linked) {
		f->dev = vv_wire_var(w);
		f->ino = vv_wire_var(w);
	}
	return flags & ATTRS ? vv_file_attributes_get(&f->attrs, w) : 0;
}

static int get_file(struct vv_manifest *m, struct vv_wire *w, unsigned version)
{
	char name[VV_MANIFEST_NAME];
	struct vv_manifest_file *f;
	int rc = get_name(w, name);

	if (rc || w->bad)
		return rc;
	f = vv_manifest_add_file(m, name);
	if (!f)
		return VV_ENOMEM;
	f->region = (uint32_t)vv_wire_var_max(w, VV_MAX_REGIONS - 1);
	f->mode = (uint32_t)vv_wire_var_max(w, MODE);
	f->mtime_s = vv_wire_signed(w);
	f->mtime_ns = (uint32_t)vv_wire_var_max(w, SECOND - 1);
	rc = get_word(w, &f->format);
	return rc || version < TREE ? rc : get_tree_of_file(w, f);
}

static int get_target(struct vv_wire *w, struct vv_manifest_entry *e)
{
	char target[VV_MANIFEST_NAME];

	vv_wire_str(w, target, sizeof(target));
	if (!w->bad && !vv_manifest_is_target(e->name, target))
		return vv_err_set(VV_EDAMAGED, "list of files: link '%s' leads to '%s', which may be outside of the folder", e->name, target);
	e->target = vv_mem_strdup(target);
	return e->target ? 0 : VV_ENOMEM;
}

static int get_entry(struct vv_manifest *m, struct vv_wire *w)
{
	char name[VV_MANIFEST_NAME];
	struct vv_manifest_entry *e;
	uint8_t flags;
	int rc = get_name(w, name);

	if (rc || w->bad)
		return rc;
	e = vv_manifest_add_entry(m, name);
	if (!e)
		return VV_ENOMEM;
	e->type = vv_wire_u8(w);
	e->mode = (uint32_t)vv_wire_var_max(w, MODE);
	e->mtime_s = vv_wire_signed(w);
	e->mtime_ns = (uint32_t)vv_wire_var_max(w, SECOND - 1);
	w->bad |= e->type != VV_MANIFEST_LINK && e->type != VV_MANIFEST_FOLDER;
	if (e->type == VV_MANIFEST_LINK)
		rc = get_target(w, e);
	flags = rc ? 0 : vv_wire_u8(w);
	w->bad |= flags && (flags != ATTRS || e->type != VV_MANIFEST_FOLDER);
	return flags && !w->bad ? vv_file_attributes_get(&e->attrs, w) : rc;
}

/* The recipe may be used to compress the next epoch, so it must be one that the compressors
 * accept. */
static bool is_sound(const struct vv_recipe *r)
{
	bool fine = r->width <= VV_RECIPE_WIDEST && r->record >= 1 && (size_t)r->width * r->record <= VV_RECIPE_PLANES &&
		    r->predictor <= VV_PREDICT_TEXT && r->coder <= CODER_MAX && r->window <= WINDOW_MAX;

	if (r->real)
		fine = fine && (r->width == 2 || r->width == 4 || r->width == 8);
	if (r->predictor == VV_PREDICT_REAL)
		fine = fine && (r->width == 4 || r->width == 8);
	for (unsigned i = 0; i < r->n_strides; i++)
		fine = fine && r->stride[i] >= 1 && (i == 0 || r->stride[i] >= r->stride[i - 1]);
	return fine;
}

static void get_recipe(struct vv_wire *w, struct vv_recipe *r)
{
	uint8_t flags;

	r->width = vv_wire_u8(w);
	if (!r->width)
		return;
	r->record = vv_wire_u16(w);
	r->predictor = vv_wire_u8(w);
	flags = vv_wire_u8(w);
	r->real = flags & REAL;
	r->swapped = flags & HIGH_FIRST;
	r->coder = vv_wire_u8(w);
	r->level = (int8_t)vv_wire_u8(w);
	r->window = vv_wire_u8(w);
	r->n_strides = vv_wire_u8(w);
	if (flags & ~(REAL | HIGH_FIRST) || r->n_strides > VV_RECIPE_STRIDES) {
		r->n_strides = 0;
		w->bad = true;
	}
	for (unsigned i = 0; i < r->n_strides; i++)
		r->stride[i] = (uint32_t)vv_wire_var_max(w, UINT32_MAX);
	w->bad |= !is_sound(r);
}

static int get_kind(struct vv_manifest *m, struct vv_wire *w)
{
	struct vv_manifest_kind *k;
	char key[VV_SIMILARITY_KEY_MAX];
	uint8_t flags;

	vv_wire_str(w, key, sizeof(key));
	k = vv_manifest_add_kind(m, key);
	if (!k)
		return VV_ENOMEM;
	k->type = vv_wire_u8(w);
	k->width = (uint32_t)vv_wire_var_max(w, UINT32_MAX);
	flags = vv_wire_u8(w);
	k->swapped = flags & SWAPPED;
	k->merged = flags & MERGED;
	k->ndim = vv_wire_u8(w);
	if (!key[0] || k->type >= VV_TYPES || flags & ~(SWAPPED | MERGED) || k->ndim > VV_MAX_DIMS) {
		k->ndim = 0;
		w->bad = true;
	}
	for (unsigned i = 0; i < k->ndim; i++)
		k->dim[i] = vv_wire_var(w);
	k->instances = vv_wire_var(w);
	k->raw = vv_wire_var(w);
	k->fresh = vv_wire_var(w);
	k->stored = vv_wire_var(w);
	k->zero = vv_wire_var(w);
	k->dup_time = vv_wire_var(w);
	k->dup_space = vv_wire_var(w);
	k->segment = vv_wire_u8(w);
	w->bad |= k->segment >= VV_SEGMENTS;
	get_recipe(w, &k->recipe);
	k->expected_ratio = (uint32_t)vv_wire_var_max(w, UINT32_MAX);
	k->basis = vv_wire_var_max(w, VV_MAX_PAYLOAD);
	k->age = vv_wire_u8(w);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int check_regions(const struct vv_manifest *m)
{
	uint32_t *number = vv_mem_new(m->n_files, sizeof(*number));
	int rc = 0;

	if (!number)
		return VV_ENOMEM;
	for (size_t i = 0; i < m->n_files; i++)
		number[i] = m->file[i].region;
	qsort(number, m->n_files, sizeof(*number), by_number);
	for (size_t i = 1; rc == 0 && i < m->n_files; i++)
		if (number[i] == number[i - 1])
			rc = vv_err_set(VV_EDAMAGED, "list of files: two of them are region %" PRIu32, number[i]);
	vv_mem_free(number);
	return rc;
}

static int check_names(const struct vv_manifest *m)
{
	struct vv_map seen;
	int rc;

	vv_map_init(&seen);
	rc = vv_map_reserve(&seen, m->n_files + m->n_entries);
	for (size_t i = 0; rc == 0 && i < m->n_files + m->n_entries; i++) {
		const char *name = i < m->n_files ? m->file[i].name : m->entry[i - m->n_files].name;

		if (vv_map_get(&seen, name) != VV_MAP_NONE)
			rc = vv_err_set(VV_EDAMAGED, "list of files: '%s' is in it twice", name);
		else
			rc = vv_map_put(&seen, name, i);
	}
	vv_map_fini(&seen);
	return rc;
}

static int get_all(struct vv_manifest *m, struct vv_wire *w, unsigned version)
{
	uint64_t n;
	int rc = get_word(w, &m->scheme);

	if (rc == 0)
		rc = get_word(w, &m->effort);
	n = vv_wire_var_max(w, VV_MANIFEST_FILES);
	for (uint64_t i = 0; rc == 0 && !w->bad && i < n; i++)
		rc = get_file(m, w, version);
	n = rc ? 0 : vv_wire_var_max(w, VV_MANIFEST_KINDS);
	for (uint64_t i = 0; rc == 0 && !w->bad && i < n; i++)
		rc = get_kind(m, w);
	n = rc || version < TREE ? 0 : vv_wire_var_max(w, VV_MANIFEST_ENTRIES);
	for (uint64_t i = 0; rc == 0 && !w->bad && i < n; i++)
		rc = get_entry(m, w);
	if (rc == 0 && (w->bad || vv_wire_left(w) || version != version_of(m)))
		rc = vv_err_set(VV_EDAMAGED, "list of files: malformed");
	if (rc == 0)
		rc = check_regions(m);
	return rc ? rc : check_names(m);
}

int vv_manifest_get(struct vv_manifest *m, const void *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	const uint8_t *head = vv_wire_bytes(&w, sizeof(magic));
	unsigned version, flags;
	int rc;

	if (!head || memcmp(head, magic, sizeof(magic)) != 0)
		return vv_err_set(VV_EDAMAGED, "not a list of files");
	version = vv_wire_u16(&w);
	flags = vv_wire_u16(&w);
	if (w.bad || version < PLAIN || version > TREE || flags)
		return vv_err_set(VV_EDAMAGED, "list of files: format version %u, flags %u; this varve reads versions %d and %d, without flags", version, flags, PLAIN, TREE);
	rc = get_all(m, &w, version);
	if (rc)
		vv_manifest_fini(m);
	return rc;
}
