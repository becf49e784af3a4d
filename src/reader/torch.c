/* PyTorch's files are zip archives, as torch.save writes them since version 1.6
 * (torch/serialization.py). An archive has a pickle of everything but numbers, and a member for the
 * bytes of each storage. A tensor is a call in the pickle, which names its storage, its place
 * there, shape and strides. A .distcp file is a series of archives, each of one object; .metadata
 * beside it names them (torch/distributed/checkpoint/filesystem.py). No pickle is executed. */
#include "base/err.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "reader/pickle.h"
#include "reader/zip.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST_PICKLE = 32 << 20, /* bytes */
	MOST_TENSORS = 1 << 17,
	MOST_STORAGES = 1 << 17,
	MOST_STEPS = 1 << 20, /* through values, which may contain each other many times */
	DEEP = 64,
	PATH = 1024,
};

struct torch_storage { /* a member */
	uint64_t key;  /* of its name */
	uint64_t at, len;
};

struct torch_item { /* an object of .metadata */
	uint64_t at;   /* of its archive in the file */
	size_t name;   /* in `names` */
};

struct torch_tensor {
	uint64_t at, len;
	struct vv_variable form; /* type, width, swapped, shape */
	size_t name;   /* in `names` */
};

struct torch_file {
	struct vv_peek in, local;
	struct vv_outline *out;
	struct vv_pickle pickle; /* of the current archive */
	struct torch_storage *storage;
	size_t n_storages, storages_cap;
	struct torch_tensor *tensor;
	size_t n_tensors, tensors_cap;
	struct torch_item *item; /* sorted */
	size_t n_items, items_cap;
	struct vv_buf names; /* terminated texts */
	uint64_t *end; /* of each archive, from the last to the first */
	size_t n_ends, ends_cap;
	size_t steps;
	bool swapped;
	char path[PATH];
	size_t path_len;
};

/* ---- storages -------------------------------------------------------------------------------- */

/* FNV-1a. Two names of one key cost compression only. */
static uint64_t key_of(const char *name, size_t n)
{
	uint64_t key = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		key = (key ^ (uint8_t)name[i]) * 0x100000001b3;
	return key;
}

static int compare_storages(const void *one, const void *other)
{
	const struct torch_storage *a = one, *b = other;

	return (a->key > b->key) - (a->key < b->key);
}

static const struct torch_storage *find_storage(const struct torch_file *t, const char *name, size_t n)
{
	uint64_t key = key_of(name, n);
	size_t i;

	VV_SEARCH(i, 0, t->n_storages, t->storage[i].key < key);
	return i < t->n_storages && t->storage[i].key == key ? &t->storage[i] : NULL;
}

/* The name without the folder of the archive. */
static const char *inner_name(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash ? slash + 1 : name;
}

static int add_member(struct torch_file *t, struct vv_zip *z, struct vv_zip_member *m, struct vv_zip_member *pickle)
{
	const char *name = inner_name(m->name);
	bool is_pickle = strcmp(name, "data.pkl") == 0;
	const uint8_t *p;

	if (m->method != 0 || (!is_pickle && strncmp(name, "data/", 5) != 0 && strcmp(name, "byteorder") != 0) || !vv_zip_find_bytes(z, m))
		return 0;
	if (is_pickle) {
		*pickle = *m;
		return 0;
	}
	if (name[0] == 'b') {
		p = m->stored == 3 ? vv_peek_at(&t->local, m->at, 3) : NULL;
		t->swapped = p && memcmp(p, "big", 3) == 0;
		return 0;
	}
	if (t->n_storages == MOST_STORAGES)
		return 0;
	if (vv_mem_room(&t->storage, t->n_storages, &t->storages_cap, sizeof(*t->storage)))
		return VV_ENOMEM;
	t->storage[t->n_storages++] = (struct torch_storage){ .key = key_of(name + 5, strlen(name + 5)), .at = m->at, .len = m->stored };
	return 0;
}

/* ---- names of tensors ------------------------------------------------------------------------ */

static void add_to_path(struct torch_file *t, const struct vv_pickle_value *key, uint32_t ordinal)
{
	char number[24];
	const char *text = number;
	size_t n, room = PATH - t->path_len;

	if (key && key->kind == VV_PICKLE_TEXT) {
		text = key->text;
		n = key->n;
	} else if (key && key->kind == VV_PICKLE_INT) {
		n = (size_t)snprintf(number, sizeof(number), "%" PRId64, key->number);
	} else {
		n = (size_t)snprintf(number, sizeof(number), "%" PRIu32, ordinal);
	}
	if (room < 2)
		return;
	n = n < room - 2 ? n : room - 2;
	t->path[t->path_len] = '/';
	memcpy(t->path + t->path_len + 1, text, n);
	t->path_len += 1 + n;
}

/* The name of the file without folder and suffix. */
static void add_stem(struct torch_file *t)
{
	const char *slash = strrchr(t->in.f->name, '/'), *name = slash ? slash + 1 : t->in.f->name, *dot = strrchr(name, '.');
	struct vv_pickle_value stem = { .kind = VV_PICKLE_TEXT, .text = name };

	stem.n = (uint32_t)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
	add_to_path(t, &stem, 0);
}

static size_t keep_path(struct torch_file *t)
{
	size_t at = t->names.n;

	vv_buf_add(&t->names, t->path, t->path_len);
	vv_buf_add(&t->names, "", 1);
	return at;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const struct {
	const char *storage, *dtype;
	uint8_t type, width;
} types[] = {
	{ "DoubleStorage", "float64", VV_TYPE_F64, 8 },
	{ "FloatStorage", "float32", VV_TYPE_F32, 4 },
	{ "HalfStorage", "float16", VV_TYPE_F16, 2 },
	{ "BFloat16Storage", "bfloat16", VV_TYPE_BF16, 2 },
	{ "LongStorage", "int64", VV_TYPE_I64, 8 },
	{ "IntStorage", "int32", VV_TYPE_I32, 4 },
	{ "ShortStorage", "int16", VV_TYPE_I16, 2 },
	{ "CharStorage", "int8", VV_TYPE_I8, 1 },
	{ "ByteStorage", "uint8", VV_TYPE_U8, 1 },
	{ "BoolStorage", "bool", VV_TYPE_U8, 1 },
	{ "ComplexFloatStorage", "complex64", VV_TYPE_C64, 8 },
	{ "ComplexDoubleStorage", "complex128", VV_TYPE_C128, 16 },
	{ "QInt8Storage", "qint8", VV_TYPE_I8, 1 },
	{ "QUInt8Storage", "quint8", VV_TYPE_U8, 1 },
	{ "QInt32Storage", "qint32", VV_TYPE_I32, 4 },
	{ "", "float8_e4m3fn", VV_TYPE_F8_E4M3, 1 },
	{ "", "float8_e5m2", VV_TYPE_F8_E5M2, 1 },
	{ "", "uint16", VV_TYPE_U16, 2 },
	{ "", "uint32", VV_TYPE_U32, 4 },
	{ "", "uint64", VV_TYPE_U64, 8 },
};

/* Sets type and width by the class of the storage, or by the type that newer functions are
 * given. */
static bool find_type(const struct vv_pickle *p, uint32_t storage, uint32_t dtype, struct vv_variable *v)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (vv_pickle_is(p, dtype, types[i].dtype) || vv_pickle_is(p, storage, types[i].storage)) {
			v->type = types[i].type;
			v->width = types[i].width;
			return true;
		}
	return false;
}

/* Reads shape and strides. Returns the elements from the first to the last, or 0: there are none,
 * or the numbers are impossible. */
static uint64_t get_shape(const struct vv_pickle *p, uint32_t size, uint32_t stride, struct vv_variable *v, uint64_t step[VV_MAX_DIMS])
{
	uint32_t n = vv_pickle_at(p, size)->n;
	uint64_t span = 0, part;

	if (n > VV_MAX_DIMS || vv_pickle_at(p, stride)->n != n)
		return 0;
	v->ndim = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++) {
		if (!vv_pickle_count(p, vv_pickle_element(p, size, i), &v->dim[i]) || v->dim[i] == 0 ||
		    !vv_pickle_count(p, vv_pickle_element(p, stride, i), &step[i]) || __builtin_mul_overflow(v->dim[i] - 1, step[i], &part) ||
		    __builtin_add_overflow(span, part, &span))
			return 0;
	}
	return span + 1;
}

static bool is_in_order(const struct vv_variable *v, const uint64_t *step, bool reversed)
{
	uint64_t next = 1;

	for (unsigned i = 0; i < v->ndim; i++) {
		unsigned k = reversed ? i : v->ndim - 1u - i;

		if (v->dim[k] != 1 && step[k] != next)
			return false;
		next *= v->dim[k];
	}
	return true;
}

static void exchange(struct vv_variable *v, uint64_t *step, unsigned i, unsigned k)
{
	uint64_t d = v->dim[i], s = step[i];

	v->dim[i] = v->dim[k];
	step[i] = step[k];
	v->dim[k] = d;
	step[k] = s;
}

/* Compression sees the dimensions as they lie in memory. */
static void order_dimensions(struct vv_variable *v, uint64_t *step)
{
	if (is_in_order(v, step, false))
		return;
	v->columns = is_in_order(v, step, true);
	if (v->columns) {
		for (unsigned i = 0; i < v->ndim / 2u; i++)
			exchange(v, step, i, v->ndim - 1u - i);
		return;
	}
	v->partial = true;
	v->lack = "its elements do not lie in the order of an array";
	for (unsigned i = 1; i < v->ndim; i++)
		for (unsigned k = i; k && step[k - 1] < step[k]; k--)
			exchange(v, step, k - 1, k);
}

/* Is this value a call that makes a tensor of a storage? The names of such functions differ, and
 * their first arguments do not: storage, offset, size, stride. */
static bool is_tensor(const struct vv_pickle *p, uint32_t call)
{
	uint32_t arguments = vv_pickle_element(p, call, 1);

	return vv_pickle_at(p, call)->kind == VV_PICKLE_CALL && vv_pickle_at(p, arguments)->n >= 4 &&
	       vv_pickle_at(p, vv_pickle_element(p, arguments, 0))->kind == VV_PICKLE_STORED &&
	       vv_pickle_at(p, vv_pickle_element(p, arguments, 1))->kind == VV_PICKLE_INT &&
	       vv_pickle_at(p, vv_pickle_element(p, arguments, 2))->kind == VV_PICKLE_LIST &&
	       vv_pickle_at(p, vv_pickle_element(p, arguments, 3))->kind == VV_PICKLE_LIST;
}

/* The identity of a storage is ('storage', class, name of the member, device, elements). */
static int add_tensor(struct torch_file *t, uint32_t call)
{
	const struct vv_pickle *p = &t->pickle;
	uint32_t arguments = vv_pickle_element(p, call, 1), identity = vv_pickle_element(p, vv_pickle_element(p, arguments, 0), 0);
	const struct vv_pickle_value *key = vv_pickle_at(p, vv_pickle_element(p, identity, 2));
	struct torch_tensor x = { .form = { .swapped = t->swapped } };
	uint64_t step[VV_MAX_DIMS], offset, span;
	const struct torch_storage *s;

	s = key->kind == VV_PICKLE_TEXT ? find_storage(t, key->text, key->n) : NULL;
	span = get_shape(p, vv_pickle_element(p, arguments, 2), vv_pickle_element(p, arguments, 3), &x.form, step);
	if (!s || !span || !find_type(p, vv_pickle_element(p, identity, 1), vv_pickle_element(p, arguments, 6), &x.form))
		return 0;
	if (!vv_pickle_count(p, vv_pickle_element(p, arguments, 1), &offset) || __builtin_mul_overflow(offset, x.form.width, &offset) ||
	    __builtin_mul_overflow(span, x.form.width, &x.len) || offset > s->len || x.len > s->len - offset || t->n_tensors == MOST_TENSORS)
		return 0;
	order_dimensions(&x.form, step);
	x.form.swapped = x.form.swapped && x.form.width > 1;
	x.at = s->at + offset;
	if (t->path_len == 0) {
		add_stem(t); /* as for an array in a file of its own */
		x.name = keep_path(t);
		t->path_len = 0;
	} else {
		x.name = keep_path(t);
	}
	if (vv_mem_room(&t->tensor, t->n_tensors, &t->tensors_cap, sizeof(*t->tensor)))
		return VV_ENOMEM;
	t->tensor[t->n_tensors++] = x;
	return 0;
}

/* ---- the walk through the values ------------------------------------------------------------- */

static int walk(struct torch_file *t, uint32_t value, unsigned depth);

/* An element is named by its key in a dictionary, else by its number. The first argument of a
 * function, and the state of an object, have the object's name. */
static int walk_elements(struct torch_file *t, uint32_t value, unsigned depth, bool arguments)
{
	const struct vv_pickle *p = &t->pickle;
	const struct vv_pickle_value *v = vv_pickle_at(p, value);
	bool is_dict = v->kind == VV_PICKLE_DICT, is_call = v->kind == VV_PICKLE_CALL;
	uint32_t cell = v->kind >= VV_PICKLE_LIST && v->n && depth < DEEP ? v->first : 0, i = 0;
	int rc = 0;

	for (; rc == 0 && cell && t->steps; cell = p->cell[cell].next, i++) {
		const struct vv_pickle_value *key = is_dict ? vv_pickle_at(p, p->cell[cell].value) : NULL;
		size_t len = t->path_len;

		t->steps--;
		if (is_dict)
			cell = p->cell[cell].next;
		if (!cell)
			break;
		if (!is_call && !(arguments && i == 0))
			add_to_path(t, key, i);
		rc = is_call && i == 1 ? walk_elements(t, p->cell[cell].value, depth + 1, true) : walk(t, p->cell[cell].value, depth + 1);
		t->path_len = len;
	}
	return rc;
}

static int walk(struct torch_file *t, uint32_t value, unsigned depth)
{
	if (vv_pickle_at(&t->pickle, value)->kind < VV_PICKLE_LIST || depth >= DEEP)
		return 0;
	if (is_tensor(&t->pickle, value))
		return add_tensor(t, value);
	return vv_pickle_at(&t->pickle, value)->kind == VV_PICKLE_STORED ? 0 : walk_elements(t, value, depth, false);
}

/* Without a root the tensors have no names. */
static int find_tensors(struct torch_file *t)
{
	int rc = 0;

	if (t->pickle.root)
		return walk(t, t->pickle.root, 0);
	for (uint32_t i = 0; rc == 0 && i < t->pickle.n_values; i++)
		if (is_tensor(&t->pickle, i)) {
			size_t len = t->path_len;

			add_to_path(t, NULL, (uint32_t)t->n_tensors);
			rc = add_tensor(t, i);
			t->path_len = len;
		}
	return rc;
}

/* ---- archives -------------------------------------------------------------------------------- */

static int read_pickle(struct torch_file *t, const struct vv_zip_member *m)
{
	const struct vv_reader_file *f = t->in.f;
	size_t n = (size_t)m->stored;
	uint8_t *bytes;
	int rc;

	if (n == 0 || m->stored > MOST_PICKLE)
		return 0;
	bytes = vv_mem_new(n, 1);
	if (!bytes)
		return VV_ENOMEM;
	rc = f->read(f->arg, m->at, bytes, n);
	if (rc == 0)
		rc = vv_pickle_read(bytes, n, &t->pickle);
	if (rc == 0)
		rc = find_tensors(t);
	vv_pickle_fini(&t->pickle);
	vv_mem_free(bytes);
	return rc;
}

static int read_archive(struct torch_file *t, struct vv_zip *z)
{
	struct vv_zip_member m, pickle = { .stored = 0 };
	int rc = 0;

	t->n_storages = 0;
	t->swapped = false;
	while (rc == 0 && vv_zip_next(z, &m))
		rc = add_member(t, z, &m, &pickle);
	if (rc == 0 && t->n_storages)
		qsort(t->storage, t->n_storages, sizeof(*t->storage), compare_storages);
	return rc ? rc : read_pickle(t, &pickle);
}

/* The object of the archive at `base` is named by .metadata. Without that, the objects of several
 * archives have the name of the file and a number. */
static void begin_path(struct torch_file *t, uint64_t base, uint32_t ordinal)
{
	struct vv_pickle_value item = { .kind = VV_PICKLE_TEXT };
	size_t i;

	VV_SEARCH(i, 0, t->n_items, t->item[i].at < base);
	t->path_len = 0;
	if (i < t->n_items && t->item[i].at == base) {
		item.text = (const char *)t->names.p + t->item[i].name;
		item.n = (uint32_t)strlen(item.text);
		add_to_path(t, &item, 0);
	} else if (t->n_ends > 1) {
		add_stem(t);
		add_to_path(t, NULL, ordinal);
	}
}

/* Each archive ends where the next one begins. */
static int find_archives(struct torch_file *t)
{
	uint64_t end = t->in.f->len;
	struct vv_zip z;

	while (t->n_ends < MOST_TENSORS && vv_zip_open(&t->in, &t->local, end, &z)) {
		if (vv_mem_room(&t->end, t->n_ends, &t->ends_cap, sizeof(*t->end)))
			return VV_ENOMEM;
		t->end[t->n_ends++] = end;
		end = z.base;
	}
	return 0;
}

static int read_archives(struct torch_file *t)
{
	int rc = find_archives(t);
	struct vv_zip z;

	for (size_t i = t->n_ends; rc == 0 && i-- > 0;)
		if (vv_zip_open(&t->in, &t->local, t->end[i], &z)) {
			begin_path(t, z.base, (uint32_t)(t->n_ends - 1 - i));
			rc = read_archive(t, &z);
		}
	return rc;
}

/* ---- .metadata of a folder of archives ------------------------------------------------------- */

static int compare_items(const void *one, const void *other)
{
	const struct torch_item *a = one, *b = other;

	return (a->at > b->at) - (a->at < b->at);
}

/* The name of an object, and the place of this part of it in the whole unless it is the start. */
static void name_item(struct torch_file *t, uint32_t index)
{
	const struct vv_pickle *p = &t->pickle;
	uint32_t state = vv_pickle_element(p, index, 2), offset = vv_pickle_lookup(p, state, "offset");
	const struct vv_pickle_value *name = vv_pickle_at(p, vv_pickle_lookup(p, state, "fqn"));
	bool any = false;
	uint64_t v;

	if (vv_pickle_at(p, offset)->kind == VV_PICKLE_CALL) /* torch.Size((3, 4)) */
		offset = vv_pickle_element(p, vv_pickle_element(p, offset, 1), 0);
	t->path_len = name->n < PATH / 2 ? name->n : PATH / 2;
	memcpy(t->path, name->text, t->path_len);
	for (uint32_t i = 0; i < VV_MAX_DIMS && vv_pickle_count(p, vv_pickle_element(p, offset, i), &v); i++)
		any = any || v;
	for (uint32_t i = 0; any && i < VV_MAX_DIMS && vv_pickle_count(p, vv_pickle_element(p, offset, i), &v); i++)
		t->path_len += (size_t)snprintf(t->path + t->path_len, PATH - t->path_len, "%c%" PRIu64, i ? ',' : '@', v);
}

/* Adds the object if this is the value of an object of this file: its path, offset and length. */
static int add_item(struct torch_file *t, uint32_t index, uint32_t info)
{
	const struct vv_pickle *p = &t->pickle;
	const char *slash = strrchr(t->in.f->name, '/');
	uint32_t state = vv_pickle_element(p, info, 2);
	struct torch_item item;

	if (!vv_pickle_is(p, vv_pickle_lookup(p, state, "relative_path"), slash ? slash + 1 : t->in.f->name) ||
	    !vv_pickle_count(p, vv_pickle_lookup(p, state, "offset"), &item.at) ||
	    vv_pickle_at(p, vv_pickle_lookup(p, vv_pickle_element(p, index, 2), "fqn"))->kind != VV_PICKLE_TEXT || t->n_items == MOST_TENSORS)
		return 0;
	if (vv_mem_room(&t->item, t->n_items, &t->items_cap, sizeof(*t->item)))
		return VV_ENOMEM;
	name_item(t, index);
	item.name = keep_path(t);
	t->item[t->n_items++] = item;
	return 0;
}

static int add_items(struct torch_file *t)
{
	const struct vv_pickle *p = &t->pickle;
	uint32_t data = vv_pickle_lookup(p, vv_pickle_element(p, p->root, 2), "storage_data"), cell = 0;
	int rc = 0;

	if (vv_pickle_at(p, data)->kind == VV_PICKLE_DICT && vv_pickle_at(p, data)->n)
		cell = vv_pickle_at(p, data)->first;
	for (; rc == 0 && cell && p->cell[cell].next; cell = p->cell[p->cell[cell].next].next)
		rc = add_item(t, p->cell[cell].value, p->cell[p->cell[cell].next].value);
	if (t->n_items)
		qsort(t->item, t->n_items, sizeof(*t->item), compare_items);
	return rc;
}

static int read_metadata(struct torch_file *t)
{
	const struct vv_reader_file *f = t->in.f;
	size_t n = 0, len = strlen(f->name);
	uint8_t *bytes = NULL;
	int rc = 0;

	if (f->sibling && len > 7 && strcmp(f->name + len - 7, ".distcp") == 0)
		rc = f->sibling(f->arg, ".metadata", MOST_PICKLE, &bytes, &n);
	if (rc == 0 && bytes) {
		rc = vv_pickle_read(bytes, n, &t->pickle);
		if (rc == 0)
			rc = add_items(t);
		vv_pickle_fini(&t->pickle);
	}
	vv_mem_free(bytes);
	return rc;
}

/* ---- the outline ----------------------------------------------------------------------------- */

/* The larger of two tensors at one place comes first. */
static int compare_tensors(const void *one, const void *other)
{
	const struct torch_tensor *a = one, *b = other;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	if (a->len != b->len)
		return a->len > b->len ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

static bool is_same(const struct torch_tensor *a, const struct torch_tensor *b)
{
	return a->at == b->at && a->len == b->len && a->form.type == b->form.type && a->form.ndim == b->form.ndim &&
	       a->form.columns == b->form.columns && memcmp(a->form.dim, b->form.dim, sizeof(a->form.dim)) == 0;
}

/* Tensors that share all their bytes are one variable with several names. */
static int add_variables(struct torch_file *t)
{
	const char *names = (const char *)t->names.p;
	int rc = vv_buf_check(&t->names);

	if (rc == 0 && t->n_tensors)
		qsort(t->tensor, t->n_tensors, sizeof(*t->tensor), compare_tensors);
	for (size_t i = 0, first = 0; rc == 0 && i < t->n_tensors; i++) {
		const struct torch_tensor *x = &t->tensor[i];
		const char *name = names + x->name;
		struct vv_variable *v;
		char *kept;

		if (i && is_same(&t->tensor[first], x)) {
			const char *target = names + t->tensor[first].name;

			rc = vv_reader_add_link(t->out, name, strlen(name), target, strlen(target), false);
			continue;
		}
		first = i;
		v = vv_reader_add_variable(t->out, name, strlen(name));
		if (!v)
			return VV_ENOMEM;
		kept = v->name;
		*v = x->form;
		v->name = kept;
		rc = vv_reader_add_piece(t->out, &(struct vv_outline_piece){ .at = x->at, .len = x->len, .variable = (uint32_t)t->out->n_variables - 1 });
	}
	return rc;
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct torch_file *t = vv_mem_new(1, sizeof(*t));
	int rc;

	if (!t)
		return VV_ENOMEM;
	vv_peek_init(&t->in, f);
	vv_peek_init(&t->local, f);
	t->out = out;
	t->steps = MOST_STEPS;
	rc = read_metadata(t);
	if (rc == 0)
		rc = read_archives(t);
	if (rc == 0)
		rc = t->in.rc ? t->in.rc : t->local.rc ? t->local.rc : add_variables(t);
	vv_buf_fini(&t->names);
	vv_mem_free(t->storage);
	vv_mem_free(t->tensor);
	vv_mem_free(t->item);
	vv_mem_free(t->end);
	vv_mem_free(t);
	return rc;
}

/* The first members of an archive of PyTorch are these. */
static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	static const char *const first[] = { "/data.pkl", "/version", "/byteorder", "/.format_version", "/constants.pkl" };
	const char *name;
	size_t len;

	(void)f;
	if (!vv_zip_is(head, n, &name, &len))
		return false;
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		if (len > strlen(first[i]) && memcmp(name + len - strlen(first[i]), first[i], strlen(first[i])) == 0)
			return true;
	return false;
}

extern const struct vv_reader vv_reader_torch;
const struct vv_reader vv_reader_torch = { .name = "torch", .is = is, .outline = outline };
