#include "cli/mount/mount_view.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/lineage/provenance.h"
#include "engine/read/export.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SECOND = 1000000000 };

/* ---- items ----------------------------------------------------------------------------------- */

/* By path, with '/' before all other characters: a folder is next to its content. */
static int compare(const char *a, const char *b)
{
	for (;; a++, b++) {
		unsigned x = (unsigned char)*a, y = (unsigned char)*b;

		x = x == '/' ? 1 : x ? x + 1 : 0;
		y = y == '/' ? 1 : y ? y + 1 : 0;
		if (x != y || !x)
			return (x > y) - (x < y);
	}
}

static int by_name(const void *a, const void *b)
{
	return compare(((const struct vv_mount_item *)a)->name, ((const struct vv_mount_item *)b)->name);
}

/* A region's name may contain any character but 0. '/' becomes %2F, and '%' becomes %25. */
static char *name_region(const struct vv_run_table_region *r)
{
	char *name = vv_mem_new(3 * strlen(r->name) + 5, 1), *to = name;

	for (const char *s = r->name; name && *s; s++) {
		if (*s == '/' || *s == '%') {
			memcpy(to, *s == '/' ? "%2F" : "%25", 3);
			to += 3;
		} else {
			*to++ = *s;
		}
	}
	if (name)
		memcpy(to, r->shape.type ? ".npy" : ".bin", 5);
	return name;
}

static int add_region(struct vv_mount_view *v, size_t i)
{
	const struct vv_run_table_region *r = &v->table.region[i];
	struct vv_mount_item *item = &v->item[v->n];
	uint8_t header[VV_EXPORT_NPY];

	*item = (struct vv_mount_item){.name = name_region(r),
				       .mode = S_IFREG | 0444,
				       .mtime_s = (int64_t)(v->time_ns / SECOND),
				       .mtime_ns = (uint32_t)(v->time_ns % SECOND),
				       .size = r->shape.len,
				       .region = i};
	v->runs[i] = &r->runs;
	if (!item->name)
		return VV_ENOMEM;
	v->n++;
	if (r->shape.type) {
		item->npy = &r->shape;
		item->size += vv_export_npy_shape(&r->shape, header);
	}
	return 0;
}

static int add_file(struct vv_mount_view *v, size_t i)
{
	struct vv_unpack_file f = vv_unpack_at(&v->unpack, i);

	v->runs[i] = &f.region->runs;
	v->item[v->n] = (struct vv_mount_item){.name = vv_mem_strdup(f.file->name),
					       .mode = S_IFREG | (f.file->mode & 0777),
					       .mtime_s = f.file->mtime_s,
					       .mtime_ns = f.file->mtime_ns,
					       .size = f.region->shape.len,
					       .region = i};
	return v->item[v->n++].name ? 0 : VV_ENOMEM;
}

static int add_entry(struct vv_mount_view *v, const struct vv_manifest_entry *e)
{
	bool link = e->type == VV_MANIFEST_LINK;

	v->item[v->n] = (struct vv_mount_item){.name = vv_mem_strdup(e->name),
					       .mode = link ? S_IFLNK | 0777 : S_IFDIR | (e->mode & 0777),
					       .mtime_s = e->mtime_s,
					       .mtime_ns = e->mtime_ns,
					       .size = link ? strlen(e->target) : 0,
					       .target = link ? e->target : NULL};
	return v->item[v->n++].name ? 0 : VV_ENOMEM;
}

static int make_room(struct vv_mount_view *v, size_t items, size_t regions)
{
	v->item = vv_mem_new(items, sizeof(*v->item));
	v->runs = vv_mem_new(regions, sizeof(const struct vv_runs *));
	v->opened = vv_mem_new(regions, sizeof(*v->opened));
	v->n_regions = regions;
	return v->item && v->runs && v->opened ? 0 : VV_ENOMEM;
}

static int list_regions(struct vv_mount_view *v)
{
	int rc = make_room(v, v->table.n, v->table.n);

	for (size_t i = 0; rc == 0 && i < v->table.n; i++)
		rc = add_region(v, i);
	return rc;
}

static int list_files(struct vv_mount_view *v)
{
	size_t entries = 0;
	int rc;

	for (size_t r = 0; r < v->unpack.n_ranks; r++)
		entries += v->unpack.rank[r].manifest.n_entries;
	rc = make_room(v, v->unpack.n_files + entries, v->unpack.n_files);
	for (size_t i = 0; rc == 0 && i < v->unpack.n_files; i++)
		rc = add_file(v, i);
	for (size_t r = 0; rc == 0 && r < v->unpack.n_ranks; r++)
		for (size_t i = 0; rc == 0 && i < v->unpack.rank[r].manifest.n_entries; i++)
			rc = add_entry(v, &v->unpack.rank[r].manifest.entry[i]);
	if (v->unpack.n_lost)
		vv_log_warn("mount: files of %zu rank(s) of epoch %llu are not shown: %s", v->unpack.n_lost,
			    (unsigned long long)v->epoch, v->unpack.lost.message);
	return rc;
}

int vv_mount_view_open(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_commit *c, uint32_t rank,
		       struct vv_mount_view **out)
{
	struct vv_mount_view *v = vv_mem_new(1, sizeof(*v));
	int rc;

	if (!v)
		return VV_ENOMEM;
	*v = (struct vv_mount_view){.lineage = lin,
				    .epoch = c->epoch,
				    .rank = rank,
				    .time_ns = c->time_ns,
				    .lock = PTHREAD_MUTEX_INITIALIZER};
	vv_provenance_forget(lin);
	if (rank == VV_MOUNT_VIEW_FILES) {
		rc = vv_unpack_open_rest(lin, c->epoch, pool, &v->unpack);
		rc = rc ? rc : list_files(v);
	} else {
		rc = vv_run_table_load(lin, c->epoch, rank, &(struct vv_run_table_how){.pool = pool, .commit = c},
				       &v->table);
		rc = rc ? rc : list_regions(v);
	}
	if (rc) {
		vv_mount_view_close(v);
		return rc;
	}
	if (v->n)
		qsort(v->item, v->n, sizeof(*v->item), by_name);
	*out = v;
	return 0;
}

void vv_mount_view_close(struct vv_mount_view *v)
{
	vv_block_cache_close(v->cache);
	for (size_t i = 0; i < v->n; i++)
		vv_mem_free(v->item[i].name);
	vv_mem_free(v->item);
	vv_mem_free(v->runs);
	vv_mem_free(v->opened);
	vv_unpack_close(&v->unpack);
	vv_run_table_fini(&v->table);
	pthread_mutex_destroy(&v->lock);
	vv_mem_free(v);
}

bool vv_mount_view_is_of_files(const struct vv_mount_view *v)
{
	return vv_run_table_find(&v->table, VV_MANIFEST_REGION) < v->table.n;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Is the name the folder, or below it? *rest: the part below. */
static bool is_below(const char *name, const char *folder, const char **rest)
{
	size_t n = strlen(folder);

	if (strncmp(name, folder, n) != 0 || (n && name[n] != '/'))
		return false;
	*rest = name + n + (n ? 1 : 0);
	return true;
}

size_t vv_mount_view_find(const struct vv_mount_view *v, const char *path, bool *folder)
{
	const char *rest;
	size_t i;

	VV_SEARCH(i, 0, v->n, compare(v->item[i].name, path) < 0);
	*folder = !path[0];
	if (i < v->n && strcmp(v->item[i].name, path) == 0)
		return i;
	*folder |= i < v->n && is_below(v->item[i].name, path, &rest);
	return v->n;
}

void vv_mount_view_list(const struct vv_mount_view *v, const char *folder,
			bool (*fn)(void *arg, const char *name, const struct vv_mount_item *item), void *arg)
{
	const char *rest, *before = "";
	char name[VV_MANIFEST_NAME];
	size_t i;

	VV_SEARCH(i, 0, v->n, compare(v->item[i].name, folder) < 0);
	if (i < v->n && folder[0] && strcmp(v->item[i].name, folder) == 0)
		i++;
	for (; i < v->n && is_below(v->item[i].name, folder, &rest); i++) {
		size_t len = strcspn(rest, "/");

		if (strlen(before) >= len && strncmp(before, rest, len) == 0 && (before[len] == '/' || !before[len]))
			continue;
		before = rest;
		if (len >= sizeof(name))
			continue;
		memcpy(name, rest, len);
		name[len] = '\0';
		if (fn(arg, name, rest[len] ? NULL : &v->item[i]))
			return;
	}
}
