#include "image/restore/remote_images.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <string.h>

struct wants {
	struct vv_want *v;
	size_t *file; /* of each want */
	size_t n, cap, file_cap;
};

static uint64_t length_of(const struct vv_remote_images *a, size_t file)
{
	return vv_unpack_at(a->files, file).region->shape.len;
}

static int add_want(const struct vv_remote_images *a, struct wants *w, size_t file, uint64_t at, uint64_t len)
{
	struct vv_unpack_file f = vv_unpack_at(a->files, file);

	if (vv_mem_room(&w->v, w->n, &w->cap, sizeof(*w->v)) < 0 || vv_mem_room(&w->file, w->n, &w->file_cap, sizeof(*w->file)) < 0)
		return VV_ENOMEM;
	w->file[w->n] = file;
	w->v[w->n++] = (struct vv_want){ &f.region->runs, at, (size_t)len, a->image[file].bytes + at, f.file->name };
	return 0;
}

/* Adds requested or other ranges; *bytes is their sum so far, with the limit `most`. */
static int list_wants(const struct vv_remote_images *a, struct wants *w, bool asked, uint64_t most, uint64_t *bytes)
{
	int rc = 0;

	for (size_t i = 0; i < a->files->n_files; i++)
		for (uint64_t at = 0, len = 1; rc == 0 && len && *bytes < most; at += len) {
			uint64_t from;

			len = vv_remote_buffer_next(&a->image[i], at, most - *bytes, asked, &from);
			if (len)
				rc = add_want(a, w, i, from, len);
			*bytes += len;
			at = from;
		}
	return rc;
}

static int read_them(struct vv_remote_images *a, int rc, struct wants *w)
{
	rc = a->from.read(a->from.arg, rc, w->v, rc ? 0 : w->n);
	for (size_t i = 0; rc == 0 && i < w->n; i++) {
		vv_remote_buffer_put(&a->image[w->file[i]], w->v[i].at, w->v[i].len);
		a->left -= w->v[i].len;
	}
	vv_mem_free(w->v);
	vv_mem_free(w->file);
	return rc;
}

int vv_remote_images_read(struct vv_remote_images *a, int rc, uint64_t most)
{
	struct wants w = { 0 };
	uint64_t bytes = 0;

	if (rc == 0)
		rc = list_wants(a, &w, true, UINT64_MAX, &bytes);
	if (rc == 0)
		rc = list_wants(a, &w, false, most, &bytes);
	return read_them(a, rc, &w);
}

bool vv_remote_images_is_asked(struct vv_remote_images *a)
{
	bool asked = false;

	for (size_t i = 0; i < a->files->n_files; i++)
		asked |= vv_remote_buffer_take_request(&a->image[i]);
	return asked;
}

/* Images of the pages of processes and of shared memory. */
static bool is_pages(const char *name)
{
	const char *slash = strrchr(name, '/');

	return strncmp(slash ? slash + 1 : name, "pages-", 6) == 0;
}

static int make_room(struct vv_remote_images *a, uint64_t memory, bool late)
{
	int rc = 0;

	for (size_t i = 0; i < a->files->n_files; i++)
		a->left += length_of(a, i);
	if (a->left > memory)
		return vv_err_set(VV_ENOMEM, "the images are %" PRIu64 " bytes, and %" PRIu64 " of memory may be used (--memory), but what other ranks' stores hold "
				  "is read only once: copy the stores into one, and restore from that", a->left, memory);
	for (size_t i = 0; rc == 0 && i < a->files->n_files; i++) {
		rc = vv_remote_buffer_init(&a->image[i], length_of(a, i));
		if (rc == 0 && !(late && is_pages(vv_unpack_at(a->files, i).file->name)))
			vv_remote_buffer_request(&a->image[i], 0, length_of(a, i));
	}
	return rc;
}

int vv_remote_images_open(struct vv_remote_images *a, int rc, const struct vv_unpack *files, uint64_t memory, const struct vv_unpack_reader *from, bool late)
{
	*a = (struct vv_remote_images){ .files = files, .from = *from, .image = vv_mem_new(files->n_files, sizeof(*a->image)) };
	if (rc == 0)
		rc = a->image ? make_room(a, memory, late) : VV_ENOMEM;
	return vv_remote_images_read(a, rc, 0);
}

void vv_remote_images_close(struct vv_remote_images *a)
{
	for (size_t i = 0; a->image && i < a->files->n_files; i++)
		vv_remote_buffer_fini(&a->image[i]);
	vv_mem_free(a->image);
	*a = (struct vv_remote_images){ 0 };
}
