#include "engine/files/stream_input.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	HOLD = 64 << 20, /* bytes of skeleton that are held back until the end, at most */
	/* a larger skeleton is stored in multiples of this, so that it is cut into the same chunks
	 * every time */
	GRAIN = 1 << 20,
};

/* ---- files ----------------------------------------------------------------------------------- */

/* The next part usually belongs to the same file, or to one of the last. */
static uint32_t find_file(const struct vv_file_set *c, uint32_t last, const char *name)
{
	size_t i = c->n_files;

	if (last < i && c->file[last].name == name)
		return last;
	while (i > 0 && c->file[i - 1].name != name)
		i--;
	return i ? (uint32_t)(i - 1) : UINT32_MAX;
}

static int add_file(const struct vv_stream_input *in, struct vv_file_set *c, const char *name, uint32_t *out)
{
	uint64_t now = vv_clock_wall_ns();
	struct vv_file_set_file *f;

	if (!vv_manifest_is_name(name))
		return vv_err_set(VV_EINVAL, "'%s' cannot be the name of a packed file: it must be relative, without '..'", name);
	if (c->n_files == VV_MANIFEST_FILES - 1)
		return vv_err_set(VV_EINVAL, "more than %d files are too many for one epoch", VV_MANIFEST_FILES - 1);
	for (size_t i = 0; i < c->n_files; i++)
		if (strcmp(c->file[i].name, name) == 0)
			return vv_err_set(VV_EINVAL, "two files are called '%s'", name);
	if (vv_mem_room(&c->file, c->n_files, &c->files_cap, sizeof(*c->file)) < 0)
		return VV_ENOMEM;
	f = &c->file[c->n_files];
	*f = (struct vv_file_set_file){ .path = name, .name = name, .fd = -1, .format = in->format };
	f->st.st_mode = S_IFREG | S_IRUSR | S_IWUSR;
	f->st.st_mtim = (struct timespec){ .tv_sec = (time_t)(now / 1000000000), .tv_nsec = (long)(now % 1000000000) };
	*out = (uint32_t)c->n_files++;
	c->kind[VV_FILE_SET_SKELETON].instances++;
	return 0;
}

/* ---- held bytes ------------------------------------------------------------------------------ */

int vv_stream_input_add(struct vv_file_set *c, uint32_t file, uint32_t kind, uint64_t at, const uint8_t *bytes, size_t n)
{
	struct vv_file_span *last = c->n_spans ? &c->span[c->n_spans - 1] : NULL;
	int rc = vv_mem_room(&c->held, c->n_held, &c->held_cap, sizeof(*c->held));

	if (rc)
		return rc;
	c->held[c->n_held++] = (struct vv_file_set_held){ .file = file, .at = at, .n = n, .bytes = bytes };
	if (last && last->file == file && last->kind_id == kind && last->at + last->len == at) {
		last->len += n;
		return 0;
	}
	rc = vv_mem_room(&c->span, c->n_spans, &c->spans_cap, sizeof(*c->span));
	if (rc == 0)
		c->span[c->n_spans++] = (struct vv_file_span){ .file = file, .kind_id = kind, .at = at, .len = n };
	return rc;
}

static int take_variable(struct vv_file_set *c, uint32_t file, uint64_t at, const struct vv_stream_input_part *p)
{
	struct vv_file_set_kind *k;
	uint32_t kind;
	int rc = vv_file_set_segment(c, p->variable, p->segment, &kind);

	if (rc || p->n == 0)
		return rc;
	k = &c->kind[kind];
	k->raw += p->n;
	if (kind != VV_FILE_SET_SKELETON && k->last != file + 1)
		k->instances++;
	k->last = file + 1;
	if (k->instances == 1)
		k->first.dim[0] += p->n;
	return vv_stream_input_add(c, file, kind, at, p->bytes, p->n);
}

static int take_skeleton(struct vv_file_set *c, struct vv_file_set_file *f, const struct vv_stream_input_part *p)
{
	c->kind[VV_FILE_SET_SKELETON].raw += p->n;
	vv_buf_add(&f->skeleton, p->bytes, p->n);
	return vv_buf_check(&f->skeleton);
}

/* Extends the file by the part. */
static int take_part(const struct vv_stream_input *in, struct vv_file_set *c, const struct vv_stream_input_part *p, uint32_t *last)
{
	uint32_t file = find_file(c, *last, p->name);
	uint64_t at;
	int rc = file == UINT32_MAX ? add_file(in, c, p->name, &file) : 0;

	if (rc)
		return rc;
	*last = file;
	at = (uint64_t)c->file[file].st.st_size;
	if (p->n > VV_MAX_REGION_BYTES - at)
		return vv_err_set(VV_EINVAL, "'%s' has more than 2^40 bytes, the format's limit", p->name);
	c->file[file].st.st_size += (off_t)p->n;
	c->bytes += p->n;
	return p->variable ? take_variable(c, file, at, p) : take_skeleton(c, &c->file[file], p);
}

/* ---- skeleton -------------------------------------------------------------------------------- */

static uint64_t skeleton_left(const struct vv_file_set *c, size_t grain)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n_files; i++)
		sum += grain ? c->file[i].skeleton.n % grain : c->file[i].skeleton.n;
	return sum;
}

/* At the end offers all of the skeleton. Before that it offers the excess: of each file a multiple
 * of a grain, or all if there are many small files. */
static int offer_skeleton(struct vv_file_set *c, bool more)
{
	size_t grain = 1;
	int rc = 0;

	if (more && skeleton_left(c, 0) < HOLD)
		return 0;
	if (more && skeleton_left(c, GRAIN) < HOLD / 2)
		grain = GRAIN;
	for (uint32_t i = 0; rc == 0 && i < c->n_files; i++) {
		struct vv_file_set_file *f = &c->file[i];

		f->offered = f->skeleton.n - f->skeleton.n % grain;
		if (f->offered)
			rc = vv_stream_input_add(c, i, VV_FILE_SET_SKELETON, (uint64_t)f->st.st_size - f->skeleton.n, f->skeleton.p, f->offered);
	}
	return rc;
}

/* Frees the offered bytes, which are stored. */
static void let_go(struct vv_file_set *c)
{
	c->n_spans = c->n_held = 0;
	for (size_t i = 0; i < c->n_files; i++) {
		struct vv_file_set_file *f = &c->file[i];

		if (f->offered) {
			memmove(f->skeleton.p, f->skeleton.p + f->offered, f->skeleton.n - f->offered);
			f->skeleton.n -= f->offered;
			f->offered = 0;
		}
	}
}

/* ---- input ----------------------------------------------------------------------------------- */

static int by_place(const void *one, const void *other)
{
	const struct vv_file_set_held *a = one, *b = other;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static int spans_by_place(const void *one, const void *other)
{
	const struct vv_file_span *a = one, *b = other;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

void vv_stream_input_sort(struct vv_file_set *c)
{
	if (c->n_held)
		qsort(c->held, c->n_held, sizeof(*c->held), by_place);
	if (c->n_spans)
		qsort(c->span, c->n_spans, sizeof(*c->span), spans_by_place);
}

int vv_stream_input_take(const struct vv_stream_input *in, struct vv_file_set *c, bool *more)
{
	struct vv_stream_input_part part;
	uint32_t last = UINT32_MAX;
	int rc = 0, next = VV_STREAM_INPUT_PART;

	let_go(c);
	while (rc == 0 && next == VV_STREAM_INPUT_PART) {
		next = in->next(in->arg, &part);
		if (next == VV_STREAM_INPUT_PART)
			rc = take_part(in, c, &part, &last);
	}
	if (rc == 0)
		rc = next < 0 ? next : offer_skeleton(c, next == VV_STREAM_INPUT_PAUSE);
	if (rc == 0)
		vv_stream_input_sort(c);
	*more = next == VV_STREAM_INPUT_PAUSE;
	return rc;
}
