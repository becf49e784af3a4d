#include "image/blame.h"
#include "base/err.h"
#include "base/mem.h"
#include "reader/reader.h"
#include <stdio.h>
#include <string.h>

struct place {
	struct vv_serve_images *serve;
	const char *name; /* of the image of pages, */
	size_t folder;    /* which begins with so many bytes of a folder */
};

/* Nobody goes by what is in the pages; and they may be what is damaged. */
static int read_none(void *arg, uint64_t at, void *to, size_t n)
{
	(void)arg, (void)at;
	memset(to, 0, n);
	return 0;
}

static int read_sibling(void *arg, const char *name, size_t most, uint8_t **out, size_t *n)
{
	const struct place *p = arg;
	char *whole = vv_mem_printf("%.*s%s", (int)p->folder, p->name, name);
	size_t i = 0;
	int rc = 0;

	if (!whole)
		return VV_ENOMEM;
	while (i < p->serve->files.n_files && strcmp(vv_unpack_at(&p->serve->files, i).file->name, whole) != 0)
		i++;
	vv_mem_free(whole);
	if (i < p->serve->files.n_files)
		rc = vv_serve_images_read(p->serve, i, out, n);
	*n = *n < most ? *n : most;
	return rc;
}

static const struct vv_variable *find(const struct vv_outline *o, uint64_t at)
{
	for (size_t i = 0; i < o->n_pieces; i++)
		if (o->piece[i].at <= at && at - o->piece[i].at < o->piece[i].len)
			return &o->variable[o->piece[i].variable];
	return NULL;
}

void vv_blame_tell(struct vv_serve_images *s, size_t file, uint64_t at, char words[VV_BLAME_WORDS])
{
	struct vv_unpack_file image = vv_unpack_at(&s->files, file);
	const char *slash = strrchr(image.file->name, '/');
	struct place p = { s, image.file->name, slash ? (size_t)(slash + 1 - image.file->name) : 0 };
	struct vv_reader_file f = { image.file->name, image.region->shape.len, read_none, &p, read_sibling };
	struct vv_outline o = { 0 };
	const struct vv_variable *v;
	struct vv_err_state error;

	vv_err_save(VV_EDAMAGED, &error);
	v = vv_reader_outline(&f, &o) == 0 ? find(&o, at) : NULL;
	words[0] = '\0';
	if (v && v->segment != VV_SEGMENT_NONE) {
		const char *segment = vv_segment_name(v->segment), *part = v->name + (v->name[0] == '/');

		snprintf(words, VV_BLAME_WORDS, strcmp(part, segment) == 0 ? " (%s)" : " (%s, %.100s)", segment, part);
	}
	vv_reader_outline_fini(&o);
	vv_err_restore(&error);
}
