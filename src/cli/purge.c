#include "cli/purge.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cli/bar.h"
#include "cli/text.h"
#include "engine/abreast.h"
#include "engine/same.h"
#include "engine/session.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1024 };

struct purge {
	struct vv_job *job;
	const struct vv_unpack *u;
	struct vv_pool *pool;
	struct vv_bar bar;
	struct vv_purge_count count;
};

struct group {
	struct vv_unpack_file file[AT_ONCE];
	const char *path[AT_ONCE];
	struct stat st[AT_ONCE];
	int fd[AT_ONCE];
	bool same[AT_ONCE];
	size_t n;
};

static void keep(struct purge *k, const char *path, const char *why)
{
	k->count.kept++;
	if (k->job->args->json)
		return;
	vv_bar_clear(&k->bar);
	fprintf(stderr, "varve: '%s' is kept: %s\n", vv_text_safe(path).s, why);
}

static bool is_as_packed(const struct stat *st, const struct vv_unpack_file *f)
{
	return (uint64_t)st->st_size == f->region->shape.len && st->st_mtim.tv_sec == f->file->mtime_s &&
	       (uint32_t)st->st_mtim.tv_nsec == f->file->mtime_ns;
}

static int open_file(struct purge *k, const char *name, const char *path, struct group *g)
{
	struct vv_unpack_file f;
	struct stat st;
	int fd, rc = vv_unpack_find(k->u, name, &f);

	if (rc)
		return rc;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd >= 0 && vv_fs_is_written(fd)) {
		keep(k, path, "somebody has it open for writing");
		close(fd);
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0 || !is_as_packed(&st, &f)) {
		keep(k, path, fd < 0 ? (errno == ELOOP ? "it is a link, and what it leads to was packed" : "it cannot be read") : "it has changed since it was packed");
		if (fd >= 0)
			close(fd);
		return 0;
	}
	g->file[g->n] = f;
	g->path[g->n] = path;
	g->st[g->n] = st;
	g->fd[g->n++] = fd;
	return 0;
}

/* Is it still the file that was compared, and was it not written meanwhile? */
static bool is_untouched(const struct group *g, size_t i)
{
	const struct stat *was = &g->st[i];
	struct stat st;

	return stat(g->path[i], &st) == 0 && st.st_dev == was->st_dev && st.st_ino == was->st_ino && st.st_size == was->st_size &&
	       st.st_mtim.tv_sec == was->st_mtim.tv_sec && st.st_mtim.tv_nsec == was->st_mtim.tv_nsec &&
	       ((st.st_ctim.tv_sec == was->st_ctim.tv_sec && st.st_ctim.tv_nsec == was->st_ctim.tv_nsec) || st.st_nlink < was->st_nlink);
}

static void delete_file(struct purge *k, const struct group *g, size_t i)
{
	if (!g->same[i])
		keep(k, g->path[i], "its bytes are not those that were packed");
	else if (!is_untouched(g, i))
		keep(k, g->path[i], "it has changed since it was packed");
	else if (unlink(g->path[i]) < 0)
		keep(k, g->path[i], "it may not be deleted");
	else
		k->count.deleted++;
}

static int purge_group(struct purge *k, struct group *g)
{
	int rc = vv_same_files(k->u, k->pool, g->file, g->fd, g->same, g->n, &k->bar.progress);

	for (size_t i = 0; i < g->n; i++) {
		close(g->fd[i]);
		if (rc == 0)
			delete_file(k, g, i);
	}
	g->n = 0;
	return rc;
}

static int add_file(struct purge *k, const struct vv_pack_file *file, struct group *g)
{
	int rc = open_file(k, file->name, file->path, g);

	return rc == 0 && g->n == vv_abreast_files(AT_ONCE, 1) ? purge_group(k, g) : rc;
}

static int end_group(struct purge *k, int rc, struct group *g)
{
	if (g && rc == 0)
		rc = purge_group(k, g);
	for (size_t i = 0; g && i < g->n; i++)
		close(g->fd[i]);
	vv_mem_free(g);
	return rc;
}

/* Those of the manifest that are in the list. */
static int purge_all(struct purge *k, const struct vv_manifest *m, const struct vv_filelist *l)
{
	struct group *g = vv_mem_new(1, sizeof(*g));
	int rc = g ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < m->n_files; i++) {
		size_t at = vv_map_get(&l->by_name, m->file[i].name);

		if (at != VV_MAP_NONE)
			rc = add_file(k, &l->file[at], g);
	}
	return end_group(k, rc, g);
}

int vv_purge_left(struct vv_job *job, const struct vv_unpack *u, const struct vv_pack_file *file, size_t n, struct vv_purge_count *count)
{
	struct purge k = { .job = job, .u = u, .pool = job->pool };
	struct group *g = vv_mem_new(1, sizeof(*g));
	int rc = g ? 0 : VV_ENOMEM;

	vv_bar_init(&k.bar, "compare", job->args->quiet);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = add_file(&k, &file[i], g);
	rc = end_group(&k, rc, g);
	vv_bar_fini(&k.bar);
	count->deleted += k.count.deleted;
	count->kept += k.count.kept;
	return rc < 0 ? vv_err_context(rc, "not all files that epoch %" PRIu64 " has, and an earlier run has left, were deleted", u->epoch) : rc;
}

void vv_purge_tell_left(struct vv_job *job, const struct vv_purge_count *count)
{
	if (count->deleted + count->kept == 0)
		return;
	vv_json_number(&job->json, "left_deleted", count->deleted);
	vv_json_number(&job->json, "left_kept", count->kept);
	if (!job->args->json && !job->args->quiet)
		vv_out_printf(&job->out, "%" PRIu64 " file%s that an earlier run had packed and left deleted, %" PRIu64 " kept\n", count->deleted,
			      count->deleted == 1 ? "" : "s", count->kept);
}

int vv_purge_run(struct vv_job *job, struct varve *v, const struct vv_filelist *l, uint64_t epoch, const struct vv_manifest *m)
{
	struct vv_unpack u = { 0 };
	struct purge k = { .job = job, .u = &u };
	uint64_t sum[2];
	int rc = vv_session_pool(v);

	if (rc == 0)
		rc = vv_unpack_open(&v->lineage, epoch, v->pool, &u);
	k.pool = v->pool;
	vv_bar_init(&k.bar, "compare", job->args->quiet || (job->world && job->world->rank));
	if (rc == 0)
		rc = purge_all(&k, m, l);
	vv_bar_fini(&k.bar);
	vv_unpack_close(&u);
	rc = vv_world_agree(job->world, rc);
	sum[0] = k.count.deleted;
	sum[1] = k.count.kept;
	vv_world_sum(job->world, sum, 2);
	vv_json_number(&job->json, "deleted", sum[0]);
	vv_json_number(&job->json, "kept", sum[1]);
	if (rc == 0 && !job->args->json && !job->args->quiet && !(job->world && job->world->rank))
		vv_out_printf(&job->out, "%" PRIu64 " file%s deleted, %" PRIu64 " kept\n", sum[0], sum[0] == 1 ? "" : "s", sum[1]);
	return rc < 0 ? vv_err_context(rc, "epoch %" PRIu64 " is durable, but not all files were deleted", epoch) : rc;
}
