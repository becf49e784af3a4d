/* What the tests of unpacking share: epochs made of files that are in memory, and a look at what comes out of them. */
#ifndef VV_TEST_UNPACK_CASE_H
#define VV_TEST_UNPACK_CASE_H

#include "base/mem.h"
#include "engine/files/unpack.h"
#include "support/place.h"
#include "vv_test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <varve/varve_comm.h>

struct file {
	const char *name;
	const void *p;
	size_t n;
	uint32_t mode;
};

static struct vv_pool *pool;
static char store_url[PLACE_MAX];

static inline void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* ---- epochs ------------------------------------------------------------------------------------------------------- */

struct set {
	const char *lineage;
	const struct file *file; /* of each rank as many as there are */
	size_t n;
	void (*forge)(struct vv_manifest *m);
	bool per_rank; /* each in a folder of its own */
};

static inline void list_files(const struct set *s, uint32_t rank, struct vv_buf *out)
{
	struct vv_manifest m = { .scheme = vv_mem_strdup("auto"), .effort = vv_mem_strdup("default") };

	for (size_t i = 0; i < s->n; i++) {
		char name[VV_MANIFEST_NAME];
		struct vv_manifest_file *f;

		if (s->per_rank)
			snprintf(name, sizeof(name), "r%u/%s", rank, s->file[i].name);
		else
			snprintf(name, sizeof(name), "%s", s->file[i].name);
		f = vv_manifest_add_file(&m, name);
		CHECK(f);
		f->region = (uint32_t)i;
		f->mode = s->file[i].mode ? s->file[i].mode : 0640;
		f->mtime_s = 1000000000 + (int64_t)i;
		f->mtime_ns = 123456789;
		f->format = vv_mem_strdup("opaque");
	}
	if (s->forge)
		s->forge(&m);
	vv_manifest_put(&m, out);
	ok(vv_buf_check(out));
	vv_manifest_fini(&m);
}

static inline void pack(const struct varve_comm *comm, void *arg)
{
	const struct set *s = arg;
	struct vv_buf list = { 0 };
	varve *v = NULL;

	ok(comm ? varve_open_comm(comm, store_url, s->lineage, "mode=sync codec=none tracker=digest", &v) :
		  varve_open(store_url, s->lineage, "mode=sync codec=none tracker=digest", &v));
	for (size_t i = 0; i < s->n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "file %zu", i);
		ok(varve_protect(v, name, (void *)(uintptr_t)s->file[i].p, s->file[i].n));
	}
	list_files(s, comm ? comm->rank : 0, &list);
	ok(varve_protect(v, VV_MANIFEST_REGION, list.p, list.n));
	ok(varve_checkpoint(v));
	ok(varve_close(v));
	vv_buf_fini(&list);
}

struct view {
	struct vv_store *store;
	struct vv_lineage lineage;
	struct vv_unpack u;
};

static inline int open_view(struct view *w, const char *lineage)
{
	struct vv_store_options opt = { .create = false };
	uint64_t epoch = 0;

	ok(vv_store_open(store_url, &opt, &w->store));
	ok(vv_catalog_open(w->store, lineage, false, &w->lineage));
	ok(vv_catalog_newest(&w->lineage, UINT64_MAX, &epoch));
	return vv_unpack_open(&w->lineage, epoch, pool, &w->u);
}

static inline void close_view(struct view *w)
{
	vv_unpack_close(&w->u);
	vv_store_close(w->store);
}

/* ---- looking at what came out ------------------------------------------------------------------------------------- */

static inline bool exists(const char *folder, const char *name)
{
	char path[2 * PLACE_MAX + VV_MANIFEST_NAME];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return lstat(path, &st) == 0;
}

static inline void check_file(const char *folder, const struct file *f, size_t number)
{
	char path[2 * PLACE_MAX + VV_MANIFEST_NAME];
	struct stat st;
	uint8_t *p;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, f->name);
	CHECK(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
	CHECK_EQ(st.st_mode & 07777, f->mode ? f->mode & 01777 : 0640);
	CHECK_EQ(st.st_mtim.tv_sec, 1000000000 + (long)number);
	CHECK_EQ(st.st_mtim.tv_nsec, 123456789);
	CHECK_EQ(st.st_size, f->n);
	CHECK(chmod(path, 0600) == 0);
	p = place_read(path, &n);
	CHECK(memcmp(p, f->p, n) == 0);
	free(p);
}

/* Temporary files anywhere below? */
static inline size_t count_leftovers(const char *folder)
{
	char path[2 * PLACE_MAX + VV_MANIFEST_NAME];
	DIR *d = opendir(folder);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		n += strncmp(e->d_name, ".varve-", 7) == 0;
		CHECK(snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < (int)sizeof(path));
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			n += count_leftovers(path);
	}
	if (d)
		closedir(d);
	return n;
}

static inline int unpack_with(const char *lineage, const struct vv_unpack_options *opt, struct vv_unpack_report *r)
{
	struct view w = { 0 };
	int rc = open_view(&w, lineage);

	*r = (struct vv_unpack_report){ 0 };
	if (rc == 0)
		rc = vv_unpack_run(&w.u, pool, opt, r);
	close_view(&w);
	return rc;
}

static inline int unpack(const char *lineage, const char *folder, bool force)
{
	struct vv_unpack_options opt = { .folder = folder, .force = force };
	struct vv_unpack_report r;
	int rc = unpack_with(lineage, &opt, &r);

	vv_unpack_report_fini(&r);
	CHECK_EQ(count_leftovers(folder), 0);
	return rc;
}

#endif
