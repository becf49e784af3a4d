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
	const struct vv_filelist *list;
	struct vv_bar bar;
	uint64_t deleted, kept;
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
	k->kept++;
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

static int open_file(struct purge *k, const char *name, struct group *g)
{
	const char *path = k->list->file[vv_map_get(&k->list->by_name, name)].path;
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
		k->deleted++;
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

static int purge_all(struct purge *k, const struct vv_manifest *m)
{
	struct group *g = vv_mem_new(1, sizeof(*g));
	size_t most = vv_abreast_files(AT_ONCE, 1);
	int rc = g ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < m->n_files; i++) {
		if (vv_map_get(&k->list->by_name, m->file[i].name) != VV_MAP_NONE)
			rc = open_file(k, m->file[i].name, g);
		if (rc == 0 && g->n == most)
			rc = purge_group(k, g);
	}
	if (g && rc == 0)
		rc = purge_group(k, g);
	for (size_t i = 0; g && i < g->n; i++)
		close(g->fd[i]);
	vv_mem_free(g);
	return rc;
}

int vv_purge_run(struct vv_job *job, struct varve *v, const struct vv_filelist *l, uint64_t epoch, const struct vv_manifest *m)
{
	struct vv_unpack u = { 0 };
	struct purge k = { .job = job, .u = &u, .list = l };
	uint64_t sum[2];
	int rc = vv_session_pool(v);

	if (rc == 0)
		rc = vv_unpack_open(&v->lineage, epoch, v->pool, &u);
	k.pool = v->pool;
	vv_bar_init(&k.bar, "compare", job->args->quiet || (job->world && job->world->rank));
	if (rc == 0)
		rc = purge_all(&k, m);
	vv_bar_fini(&k.bar);
	vv_unpack_close(&u);
	rc = vv_world_agree(job->world, rc);
	sum[0] = k.deleted;
	sum[1] = k.kept;
	vv_world_sum(job->world, sum, 2);
	vv_json_number(&job->json, "deleted", sum[0]);
	vv_json_number(&job->json, "kept", sum[1]);
	if (rc == 0 && !job->args->json && !job->args->quiet && !(job->world && job->world->rank))
		vv_out_printf(&job->out, "%" PRIu64 " file%s deleted, %" PRIu64 " kept\n", sum[0], sum[0] == 1 ? "" : "s", sum[1]);
	return rc < 0 ? vv_err_context(rc, "epoch %" PRIu64 " is durable, but not all files were deleted", epoch) : rc;
}
