#include "cli/pack/purge.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cli/base/bar.h"
#include "cli/pack/packed_before.h"
#include "cli/base/text.h"
#include "engine/read/read_many.h"
#include "engine/threads.h"
#include "engine/files/compare.h"
#include "engine/context.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1024 };

struct purge_item {
	const char *path;
	struct vv_unpack_file file; /* in the epoch */
	struct stat st;             /* when it was compared */
	const char *why;            /* the reason for keeping it; NULL: it is not kept */
	bool differs;               /* it differs from the packed file */
	bool deleted;
};

struct purge {
	struct vv_verb_context *job;
	const struct vv_unpack *u;
	struct vv_pool *pool;
	struct vv_bar bar;
	struct purge_item *item;
	size_t n, cap;
	struct vv_purge_count count;
};

/* Reports about a file. With --json the message is delayed, except on a rank that does not write
 * the object. */
static void say(struct purge *k, const char *path, const char *what, const char *why)
{
	struct vv_text_long name = vv_text_safe(path);

	if (k->job->args->json && vv_verb_context_is_first(k->job)) {
		vv_buf_printf(&k->count.said, "'%s' is %s: %s", name.s, what, why);
		vv_buf_add(&k->count.said, "", 1);
	} else {
		fprintf(stderr, "varve: '%s' is %s: %s\n", name.s, what, why);
	}
}

static void put_said(struct vv_verb_context *job, const char *key, const struct vv_buf *said)
{
	vv_json_array(&job->json, key);
	for (size_t at = 0; at < said->n && !said->failed; at += strlen((const char *)said->p + at) + 1)
		vv_json_text(&job->json, NULL, (const char *)said->p + at);
	vv_json_end(&job->json);
}

static int add(struct purge *k, const struct vv_pack_file *file)
{
	struct vv_unpack_file f;
	int rc = vv_unpack_find(k->u, file->name, &f);

	if (rc == 0)
		rc = vv_mem_room(&k->item, k->n, &k->cap, sizeof(*k->item));
	if (rc == 0)
		k->item[k->n++] = (struct purge_item){ .path = file->path, .file = f };
	return rc;
}

/* ---- comparing ------------------------------------------------------------------------------- */

struct purge_group { /* files that are open together */
	struct vv_unpack_file file[AT_ONCE];
	struct purge_item *item[AT_ONCE];
	int fd[AT_ONCE];
	bool same[AT_ONCE];
	size_t n;
};

/* Compares the mode only in the bits that are restored. */
static bool is_as_packed(const struct stat *st, const struct vv_unpack_file *f)
{
	return vv_packed_before_is(f, (uint64_t)st->st_size, st->st_mtim) && (st->st_mode & 01777) == (f->file->mode & 01777);
}

static void open_item(struct purge_item *t, struct purge_group *g)
{
	int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	bool unread = false;

	if (fd < 0)
		t->why = errno == ELOOP ? "it is a link, and what it leads to was packed" : "it cannot be read";
	else if (vv_fs_is_written(fd))
		t->why = "a process has it open for writing";
	else if (fstat(fd, &t->st) < 0 || !is_as_packed(&t->st, &t->file) || !vv_xattr_equal(fd, &t->file.file->attrs, &unread))
		t->differs = !unread;
	if (unread)
		t->why = "its extended attributes cannot be read, so the epoch may lack some";
	if (t->differs)
		t->why = "it has changed since it was packed";
	if (t->why) {
		if (fd >= 0)
			close(fd);
		return;
	}
	g->item[g->n] = t;
	g->file[g->n] = t->file;
	g->fd[g->n++] = fd;
}

static int compare(struct purge *k, struct purge_group *g)
{
	int rc = vv_compare_files(k->u, k->pool, g->file, g->fd, g->same, g->n, &k->bar.progress);

	for (size_t i = 0; rc == 0 && i < g->n; i++) {
		g->item[i]->differs = !g->same[i];
		if (!g->same[i])
			g->item[i]->why = "its bytes are not those that were packed";
	}
	return rc;
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* Is it the compared file, and are its bytes and its mode as they were? */
static bool is_compared(const struct stat *st, const struct stat *was)
{
	return st->st_dev == was->st_dev && st->st_ino == was->st_ino && st->st_size == was->st_size && st->st_mode == was->st_mode &&
	       st->st_mtim.tv_sec == was->st_mtim.tv_sec && st->st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

/* Is it still the compared file, and was it not written in the meantime? */
static bool is_untouched(const struct purge_item *t)
{
	const struct stat *was = &t->st;
	struct stat st;

	return lstat(t->path, &st) == 0 && is_compared(&st, was) && st.st_ctim.tv_sec == was->st_ctim.tv_sec && st.st_ctim.tv_nsec == was->st_ctim.tv_nsec;
}

/* A temporary name in the same folder. NULL: no memory. */
static char *name_aside(const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

	return vv_mem_printf("%.*s.varve-delete-%ld-%s", (int)(last - path), path, (long)getpid(), last);
}

/* Gives the file its path again; returns the reason for keeping it. */
static const char *put_back(const char *aside, const char *path, const char *why)
{
	if (renameat2(AT_FDCWD, aside, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return why;
	return "another file has its path by now; this one is beside it as .varve-delete-PID-NAME: rename it";
}

/* Removes the file under its temporary name if it is the compared one. Returns the reason for
 * keeping it, or NULL. */
static const char *remove_aside(const struct purge_item *t, const char *aside)
{
	struct stat st;

	if (lstat(aside, &st) < 0 || !is_compared(&st, &t->st))
		return put_back(aside, t->path, "it has changed since it was packed");
	return unlink(aside) < 0 ? put_back(aside, t->path, "it may not be deleted") : NULL;
}

/* A program may rename a newer file to the path at any time. So the file gets a temporary name
 * first, is checked once more, and then deleted. Returns the reason for keeping it, or NULL. */
static const char *remove_file(const struct purge_item *t)
{
	char *aside = name_aside(t->path);
	const char *why = NULL;

	if (!aside)
		return "there is no memory for a temporary name";
	if (renameat2(AT_FDCWD, t->path, AT_FDCWD, aside, RENAME_NOREPLACE) == 0)
		why = remove_aside(t, aside);
	else /* no such rename here, or no room for the name: the check and the deletion are two steps */
		why = unlink(t->path) < 0 ? "it may not be deleted" : NULL;
	vv_mem_free(aside);
	return why;
}

/* Accepts the new change time of other names of the same file: deleting one name changes it. */
static void forgive(const struct purge_group *g, size_t gone)
{
	const struct stat *was = &g->item[gone]->st;
	struct stat st;

	if (was->st_nlink < 2 || fstat(g->fd[gone], &st) < 0)
		return;
	for (size_t i = gone + 1; i < g->n; i++)
		if (g->item[i]->st.st_dev == was->st_dev && g->item[i]->st.st_ino == was->st_ino)
			g->item[i]->st.st_ctim = st.st_ctim;
}

/* Under the lease no process can begin to write between the last check of the file and its
 * deletion. */
static void delete_one(struct purge_group *g, size_t i)
{
	struct purge_item *t = g->item[i];

	if (!vv_fs_lease(g->fd[i]))
		t->why = "a process has it open for writing";
	else if (!is_untouched(t))
		t->why = "it has changed since it was packed";
	else
		t->why = remove_file(t);
	t->deleted = !t->why;
	if (t->deleted)
		forgive(g, i);
}

/* The number of the first file that differs from the packed one; n: none differs. */
static size_t first_other(const struct purge *k)
{
	size_t i = 0;

	while (i < k->n && !k->item[i].differs)
		i++;
	return i;
}

static bool is_any_other(const struct purge *k)
{
	return first_other(k) < k->n;
}

enum what { COMPARE, DELETE_EQUAL, DELETE_IF_ALL_ARE };

static int end_group(struct purge *k, int rc, enum what what, struct purge_group *g)
{
	bool delete = rc == 0 && what != COMPARE && !(what == DELETE_IF_ALL_ARE && is_any_other(k));

	for (size_t i = 0; i < g->n; i++) {
		if (delete && !g->item[i]->why)
			delete_one(g, i);
		close(g->fd[i]);
	}
	g->n = 0;
	return rc;
}

static int go_over(struct purge *k, size_t most, enum what what)
{
	struct purge_group *g = vv_mem_new(1, sizeof(*g));
	int rc = g ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < k->n; i++) {
		k->item[i].why = NULL;
		open_item(&k->item[i], g);
		if (g->n == most || i + 1 == k->n)
			rc = end_group(k, compare(k, g), what, g);
	}
	vv_mem_free(g);
	return rc;
}

static void begin(struct purge *k)
{
	vv_bar_init(&k->bar, "compare", k->job->args->quiet || !vv_verb_context_is_first(k->job));
}

/* With `all`, the kept files are reported with their reasons. */
static void end(struct purge *k, bool all)
{
	vv_bar_fini(&k->bar);
	for (size_t i = 0; i < k->n; i++) {
		k->count.deleted += k->item[i].deleted;
		k->count.kept += all && !k->item[i].deleted;
		if (all && k->item[i].why)
			say(k, k->item[i].path, "kept", k->item[i].why);
	}
	vv_mem_free(k->item);
}

/* ---- files left by an earlier run ------------------------------------------------------------ */

static bool is_as_stored(struct purge *k, int rc)
{
	size_t i = rc ? 0 : first_other(k);
	char what[64];

	if (rc == 0 && i == k->n)
		return true;
	snprintf(what, sizeof(what), "not known to be what epoch %" PRIu64 " has", k->u->epoch);
	say(k, k->n ? k->item[i].path : k->u->lineage->name, what, rc ? vv_err_last() : k->item[i].why);
	return false;
}

/* Files that can be open at the same time are compared, and deleted if all are equal. If there are
 * more, all are compared first. */
int vv_purge_left(struct vv_verb_context *job, const struct vv_unpack *u, const struct vv_pack_file *file, size_t n, struct vv_purge_count *count, bool *has)
{
	struct purge k = { .job = job, .u = u, .pool = job->pool };
	size_t most = vv_read_many_files(AT_ONCE, 1);
	int rc = 0;

	begin(&k);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = add(&k, &file[i]);
	if (rc == 0 && n > most)
		rc = go_over(&k, most, COMPARE);
	if (rc == 0 && !is_any_other(&k))
		rc = go_over(&k, most, DELETE_IF_ALL_ARE);
	vv_bar_clear(&k.bar);
	*has = rc != VV_ENOMEM && is_as_stored(&k, rc);
	end(&k, *has);
	count->deleted += k.count.deleted;
	count->kept += k.count.kept;
	vv_buf_add(&count->said, k.count.said.p, k.count.said.n);
	vv_buf_fini(&k.count.said);
	return rc == VV_ENOMEM ? rc : 0;
}

void vv_purge_report_left(struct vv_verb_context *job, struct vv_purge_count *count)
{
	if (count->deleted + count->kept + count->said.n) {
		vv_json_number(&job->json, "left_deleted", count->deleted);
		vv_json_number(&job->json, "left_kept", count->kept);
		put_said(job, "left_said", &count->said);
	}
	if (count->deleted + count->kept && !job->args->json && !job->args->quiet)
		vv_out_printf(&job->out, "%" PRIu64 " file%s that an earlier run had packed and left deleted, %" PRIu64 " kept\n", count->deleted,
			      count->deleted == 1 ? "" : "s", count->kept);
	vv_buf_fini(&count->said);
	*count = (struct vv_purge_count){ 0 };
}

/* ---- files packed by this command ------------------------------------------------------------ */

int vv_purge_run(struct vv_verb_context *job, struct varve *v, const struct vv_filelist *l, uint64_t epoch, const struct vv_manifest *m)
{
	struct vv_unpack u = { 0 };
	struct purge k = { .job = job, .u = &u };
	uint64_t sum[2];
	int rc = vv_threads_start(&v->ctx);

	if (rc == 0)
		rc = vv_unpack_open(&v->ctx.lineage, epoch, v->ctx.pool, &u);
	k.pool = v->ctx.pool;
	begin(&k);
	for (size_t i = 0; rc == 0 && i < m->n_files; i++) {
		size_t at = vv_map_get(&l->by_name, m->file[i].name);

		if (at != VV_MAP_NONE)
			rc = add(&k, &l->file[at]);
	}
	if (rc == 0)
		rc = go_over(&k, vv_read_many_files(AT_ONCE, 1), DELETE_EQUAL);
	end(&k, rc == 0);
	vv_unpack_close(&u);
	rc = vv_command_ranks_agree(job->ranks, rc);
	sum[0] = k.count.deleted;
	sum[1] = k.count.kept;
	vv_command_ranks_sum(job->ranks, sum, 2);
	vv_json_number(&job->json, "deleted", sum[0]);
	vv_json_number(&job->json, "kept", sum[1]);
	put_said(job, "said", &k.count.said);
	vv_buf_fini(&k.count.said);
	if (rc == 0 && !job->args->json && !job->args->quiet && vv_verb_context_is_first(job))
		vv_out_printf(&job->out, "%" PRIu64 " file%s deleted, %" PRIu64 " kept\n", sum[0], sum[0] == 1 ? "" : "s", sum[1]);
	return rc < 0 ? vv_err_context(rc, "epoch %" PRIu64 " is durable, but not all files were deleted", epoch) : rc;
}
