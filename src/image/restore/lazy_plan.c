#include "image/restore/lazy_plan.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/criu/pagemap_image.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int add_part(struct vv_serve_images_parts *p, uint64_t at, uint64_t len)
{
	int rc = vv_mem_room(&p->v, p->n, &p->cap, sizeof(*p->v));

	if (rc == 0)
		p->v[p->n++] = (struct vv_serve_images_part){ at, len };
	return rc;
}

static int divide(struct vv_serve_images *s, const struct vv_pagemap_image *map, struct vv_missing_pages *m)
{
	struct vv_serve_images_parts *parts = &s->parts[m->file];
	int rc = 0;

	parts->n = 0;
	for (size_t i = 0; rc == 0 && i < map->n; i++) {
		const struct vv_pagemap_image_entry *e = &map->v[i];

		rc = e->lazy ? vv_page_spans_add(&m->left, (struct vv_page_span){ e->addr, e->addr + e->len, e->at }) : add_part(parts, e->at, e->len);
	}
	return rc;
}

static int read_map(struct vv_serve_images *s, size_t file, pid_t pid, struct vv_missing_pages *out)
{
	struct vv_missing_pages m = { .cache = s->cache, .pid = pid, .uffd = -1, .uffd_socket = -1, .pidfd = -1 };
	struct vv_pagemap_image map = { 0 };
	uint8_t *image = NULL;
	char name[64];
	size_t n = 0;
	int rc = vv_serve_images_read(s, file, &image, &n);

	if (rc == 0)
		rc = vv_pagemap_image_read(image, n, &map);
	snprintf(name, sizeof(name), "pages-%" PRIu64 ".img", map.pages);
	m.file = vv_serve_images_find(s, name);
	if (rc == 0 && (m.file == s->files.n_files || vv_unpack_at(&s->files, m.file).region->shape.len != map.len))
		rc = vv_err_set(VV_EDAMAGED, "the pages of process %d are not those that its map tells of", (int)pid);
	if (rc == 0)
		rc = divide(s, &map, &m);
	m.remote_buffer = s->cache ? NULL : &s->remote_images.image[m.file];
	if (rc)
		vv_page_spans_fini(&m.left);
	else
		*out = m;
	vv_pagemap_image_fini(&map);
	vv_mem_free(image);
	return rc;
}

static bool is_map(const char *name, pid_t *pid)
{
	int end = 0;

	return sscanf(name, "pagemap-%9d.img%n", pid, &end) == 1 && end && !name[end] && *pid > 0;
}

int vv_lazy_plan_read(struct vv_serve_images *images, struct vv_missing_pages **memory, size_t *n, size_t *cap)
{
	const struct vv_unpack *files = &images->files;
	const char *folder = images->folder;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < files->n_files; i++) {
		const char *name = vv_unpack_at(files, i).file->name;
		pid_t pid;

		if (strncmp(name, folder, strlen(folder)) != 0 || !is_map(name + strlen(folder), &pid))
			continue;
		rc = vv_mem_room(memory, *n, cap, sizeof(**memory));
		if (rc == 0)
			rc = read_map(images, i, pid, &(*memory)[*n]);
		*n += rc == 0;
		if (rc)
			vv_err_context(rc, "'%s'", name);
	}
	return rc;
}

size_t vv_lazy_plan_count(const struct vv_unpack *files)
{
	size_t n = 0;
	pid_t pid;

	for (size_t i = 0; i < files->n_files; i++)
		n += is_map(vv_unpack_at(files, i).file->name, &pid);
	return n;
}
