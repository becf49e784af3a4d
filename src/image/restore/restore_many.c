/* CRIU builds a tree and waits at a hook before its processes run. So all trees are built, one
 * after another on each rank and on all ranks in parallel. When all ranks agree, one permission per
 * rank releases its trees. From there on, no step of criu is expected to fail. If a rank is killed
 * before it gives its permission, the others notice and kill their running trees. If those ranks
 * are killed as well, their watchdogs do it. */
#include "image/restore/restore_many.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/exchange.h"
#include "image/restore/lazy_pages.h"
#include "image/restore/find_images.h"
#include "image/restore/socket_files.h"
#include "image/process/process_tree.h"
#include "image/restore/watchdog.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

enum {
	TREES_MOST = 1 << 22, /* the kernel has no more process numbers */
	ROUND = 8 << 20,      /* bytes per round from other ranks' stores */
	PAUSE_NS = 1000000,   /* before the next round of requests */
};

struct tree {
	struct vv_serve_images *images; /* all trees of one saving rank */
	char folder[16]; /* its folder among them, with the slash; empty: there is only one tree */
	uint32_t number;
	struct vv_criu criu;
	struct vv_action_script hook;
	struct vv_lazy_pages *lazy; /* NULL: all pages are loaded before it runs */
	struct vv_socket_files kept;
	pid_t pid;
};

struct restore_group {
	struct varve *v;      /* NULL: a single process */
	struct vv_group *g;   /* NULL: a single process */
	uint32_t rank, ranks; /* of the restoring ranks */
	const struct vv_lineage *lin;
	uint64_t epoch;
	const struct vv_restore_one_options *opt;
	uint32_t saved_by;       /* number of ranks */
	struct vv_serve_images *images; /* of the ranks whose trees this rank restores */
	size_t n_images;
	struct tree *tree;
	size_t n_trees, trees_cap;
	struct vv_watchdog watchdog; /* until all ranks have released their trees */
	char what[192];
};

static bool is_apart(const struct restore_group *o)
{
	return o->g && o->g->has_local_stores;
}

static int agree(const struct restore_group *o, int rc)
{
	return o->g ? vv_group_agree(o->g, o->g->comm, rc) : rc;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int look_at_epoch(struct restore_group *o)
{
	struct vv_commit c = { 0 };
	int rc = is_apart(o) ? vv_group_spread_commit(&o->v->ctx, o->epoch) : 0;

	if (rc)
		return rc;
	rc = agree(o, vv_catalog_commit(o->lin, o->epoch, &c));
	o->saved_by = c.n_ranks;
	vv_commit_fini(&c);
	if (rc == 0 && is_apart(o) && o->saved_by != o->ranks)
		rc = vv_err_set(VV_EMISMATCH, "epoch %" PRIu64 " of lineage '%s' was saved by %u rank%s, and these are %u with stores of their own: start as "
				"many, or copy the stores into one", o->epoch, o->lin->name, o->saved_by, o->saved_by == 1 ? "" : "s", o->ranks);
	return rc;
}

static int open_images(struct restore_group *o, struct vv_pool *pool)
{
	const struct vv_find_images how = { .v = o->v, .lin = o->lin, .epoch = o->epoch, .saved_by = o->saved_by, .pool = pool, .memory = o->opt->memory,
				       .lazy = o->opt->lazy };

	return vv_find_images_open(&how, &o->images, &o->n_images);
}

/* ---- trees ----------------------------------------------------------------------------------- */

static int add_tree(struct restore_group *o, struct vv_serve_images *images, const char *name)
{
	const char *slash = strchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) + 1 : 0;
	struct tree *t;

	if (len >= sizeof(t->folder) || (len && strspn(name, "0123456789") != len - 1) || (len && (len == 1 || strtoul(name, NULL, 10) >= TREES_MOST)))
		return vv_err_set(VV_EDAMAGED, "epoch %" PRIu64 " of lineage '%s' has an image '%s', which is no process's", o->epoch, o->lin->name, name);
	if (vv_mem_room(&o->tree, o->n_trees, &o->trees_cap, sizeof(*o->tree)) < 0)
		return VV_ENOMEM;
	t = &o->tree[o->n_trees++];
	*t = (struct tree){ .images = images, .criu.pidfd = -1, .hook = VV_ACTION_SCRIPT_NONE };
	memcpy(t->folder, name, len);
	t->number = (uint32_t)strtoul(t->folder, NULL, 10);
	return 0;
}

/* The files are sorted by name, so those of a folder are adjacent. */
static int list_trees(struct restore_group *o)
{
	int rc = 0;

	for (size_t i = 0; i < o->n_images; i++) {
		const struct vv_unpack *u = &o->images[i].files;

		for (size_t k = 0; rc == 0 && k < u->n_files; k++) {
			const char *name = vv_unpack_at(u, u->by_name[k]).file->name;
			const struct tree *last = k ? &o->tree[o->n_trees - 1] : NULL;

			if (!last || (last->folder[0] ? strncmp(name, last->folder, strlen(last->folder)) != 0 : strchr(name, '/') != NULL))
				rc = add_tree(o, &o->images[i], name);
		}
	}
	return rc;
}

/* Opens criu, and finds the pages that may be loaded late. */
static int prepare(struct restore_group *o, struct tree *t)
{
	int rc = vv_criu_open(&t->criu);

	t->images->folder = t->folder;
	return rc || !o->opt->lazy ? rc : vv_lazy_pages_open(t->images, &t->criu, true, &t->lazy);
}

/* Before any process is created, all bytes for criu are present and intact; without lazy these are
 * all bytes. */
static int check(struct restore_group *o, int rc)
{
	for (size_t i = 0; rc == 0 && i < o->n_trees; i++)
		rc = prepare(o, &o->tree[i]);
	if (is_apart(o) && o->opt->lazy) {
		rc = agree(o, rc);
		return rc ? rc : vv_serve_images_read_parts(&o->images[0], 0);
	}
	for (size_t i = 0; rc == 0 && i < o->n_images; i++)
		rc = vv_serve_images_check(&o->images[i], !o->opt->lazy, &o->opt->progress);
	return rc;
}

static bool is_waiting(const struct vv_action_script *h, pid_t *first)
{
	struct pollfd p = { h->ready[0], POLLIN, 0 };
	char text[16] = "";

	if (poll(&p, 1, 0) <= 0 || read(h->ready[0], text, sizeof(text) - 1) <= 0)
		return false;
	*first = atoi(text);
	return true;
}

/* Rebuilds the tree; it does not run yet. */
static int build(struct restore_group *o, struct tree *t)
{
	struct vv_serve_images *s = t->images;
	int rc;

	s->folder = t->folder;
	rc = vv_serve_images_await_numbers(s);
	if (rc == 0)
		rc = vv_socket_files_keep(&t->kept, s);
	if (rc == 0)
		rc = vv_serve_images_listen(s, t->criu.folder);
	if (rc == 0)
		rc = vv_action_script_open(&t->hook, &t->criu, "post-restore", t == o->tree ? NULL : &o->tree[0].hook);
	if (rc == 0)
		rc = vv_restore_one_start(&t->criu, o->opt);
	if (rc == 0 && t->lazy)
		rc = vv_lazy_pages_start(t->lazy);
	if (rc == 0)
		rc = vv_serve_images_run(s, &t->criu, &t->hook);
	if (rc == 0 && !is_waiting(&t->hook, &t->pid)) {
		rc = vv_criu_wait(&t->criu, o->what);
		rc = rc ? rc : vv_err_set(VV_EIO, "%s: criu ended before it had called its hook", o->what);
	}
	if (rc == 0 && t->lazy)
		rc = vv_lazy_pages_bind(t->lazy);
	vv_serve_images_disconnect(s);
	return rc;
}

/* If we end without closing the watchdog, it kills the trees. */
static int bind_to_us(struct restore_group *o)
{
	int rc = o->g && o->n_trees ? vv_watchdog_open(&o->watchdog, NULL) : 0;

	for (size_t i = 0; rc == 0 && o->g && i < o->n_trees; i++) {
		pid_t pid = o->tree[i].pid;
		int fd;

		if (!pid) /* this criu does not report it */
			continue;
		fd = pidfd_open(pid, 0);
		rc = fd < 0 ? vv_err_sys(errno, "cannot watch process %d", (int)pid) : vv_watchdog_watch(&o->watchdog, pid, fd);
		if (fd >= 0)
			close(fd);
	}
	return rc;
}

static int let_go(struct restore_group *o)
{
	int rc = o->n_trees ? vv_action_script_go(&o->tree[0].hook) : 0;

	for (size_t i = 0; i < o->n_trees; i++)
		vv_action_script_close(&o->tree[i].hook);
	for (size_t i = 0; rc == 0 && i < o->n_trees; i++) {
		rc = vv_criu_wait(&o->tree[i].criu, o->what);
		rc = rc ? rc : vv_restore_one_pid(&o->tree[i].criu, &o->tree[i].pid);
	}
	return rc;
}

static int build_all(struct restore_group *o)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o->n_trees; i++)
		rc = build(o, &o->tree[i]);
	return rc ? rc : bind_to_us(o);
}

/* ---- late pages ------------------------------------------------------------------------------ */

struct restore_many_aside { /* work on a separate thread */
	struct restore_group *o;
	int (*run)(struct restore_group *o); /* NULL: nothing to do after an error */
	pthread_mutex_t may; /* the thread waits for this lock */
	atomic_bool done;
	struct vv_err_state error;
};

static void *run_in_thread(void *arg)
{
	struct restore_many_aside *x = arg;

	pthread_mutex_lock(&x->may);
	vv_err_save(x->run ? x->run(x->o) : 0, &x->error);
	pthread_mutex_unlock(&x->may);
	atomic_store(&x->done, true);
	return NULL;
}

static void look_again(struct restore_group *o)
{
	for (size_t i = 0; i < o->n_trees; i++)
		vv_lazy_pages_wake(o->tree[i].lazy);
}

/* Until all ranks are done, all ranks together read the pages that one of them needs. */
static int read_meanwhile(struct restore_group *o, struct restore_many_aside *x)
{
	struct vv_remote_images *a = &o->images[0].remote_images;
	int rc = 0;

	for (;;) {
		uint64_t word[2] = { !atomic_load(&x->done), rc == 0 && vv_remote_images_is_asked(a) };

		rc = vv_group_sum(o->g, o->g->comm, rc, word, 2);
		if (rc || !word[0])
			break;
		if (!word[1])
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		else
			rc = vv_remote_images_read(a, 0, 0);
		look_again(o);
	}
	for (size_t i = 0; rc && i < o->n_trees; i++)
		vv_lazy_pages_give_up(o->tree[i].lazy);
	return rc;
}

/* CRIU accesses the memory of the processes that it creates; missing pages in other ranks' stores
 * must be loaded meanwhile. All ranks call this together. */
static int with_memory(struct restore_group *o, int (*run)(struct restore_group *o))
{
	struct restore_many_aside x = { .o = o, .may = PTHREAD_MUTEX_INITIALIZER };
	pthread_t thread;
	int rc, err;

	if (!is_apart(o) || !o->opt->lazy)
		return agree(o, run(o));
	pthread_mutex_lock(&x.may);
	err = pthread_create(&thread, NULL, run_in_thread, &x);
	rc = agree(o, err ? vv_err_sys(err, "cannot start a thread") : 0);
	x.run = rc ? NULL : run;
	pthread_mutex_unlock(&x.may);
	if (rc == 0)
		rc = read_meanwhile(o, &x);
	if (!err)
		pthread_join(thread, NULL);
	return agree(o, rc ? rc : x.error.code ? vv_err_restore(&x.error) : 0);
}

static int run_trees(struct restore_group *o)
{
	int rc = with_memory(o, build_all);

	return rc ? rc : with_memory(o, let_go);
}

static bool is_needed(const struct restore_group *o)
{
	bool needed = false;

	for (size_t i = 0; i < o->n_trees; i++)
		needed |= vv_lazy_pages_needs(o->tree[i].lazy);
	return needed;
}

/* All ranks read together until no rank needs more pages. */
static int read_remote(struct restore_group *o)
{
	struct vv_remote_images *a = &o->images[0].remote_images;
	int rc = 0;

	for (;;) {
		uint64_t left = a->left && is_needed(o);

		rc = vv_group_sum(o->g, o->g->comm, rc, &left, 1);
		if (rc || !left)
			return rc;
		rc = vv_remote_images_read(a, 0, a->left && is_needed(o) ? ROUND : 0);
		look_again(o);
	}
}

/* The trees run. If one of them cannot get all of its memory, none may continue. */
static int bring_the_rest(struct restore_group *o)
{
	int rc = 0;

	for (size_t i = 0; i < o->n_trees; i++)
		vv_lazy_pages_start_rest(o->tree[i].lazy);
	if (is_apart(o))
		rc = read_remote(o);
	for (size_t i = 0; rc == 0 && i < o->n_trees; i++)
		rc = vv_lazy_pages_wait(o->tree[i].lazy);
	return agree(o, rc);
}

/* ---- interface ------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Extracts process numbers from words, which hold the number of the tree in the upper half. */
static int collect(const uint64_t *word, size_t n, pid_t **out, size_t *n_out)
{
	pid_t *pid = vv_mem_new(n, sizeof(*pid));

	for (size_t i = 0; pid && i < n; i++)
		pid[i] = (pid_t)(word[i] & INT32_MAX);
	*out = pid;
	*n_out = pid ? n : 0;
	return pid ? 0 : VV_ENOMEM;
}

static int gather(const struct restore_group *o, struct vv_buf *words)
{
	struct vv_exchange m = { 0 };
	int rc = vv_exchange_gather(&m, o->g, 0, words->p, words->n, TREES_MOST * sizeof(uint64_t));

	words->n = 0;
	for (uint32_t r = 0; rc == 0 && r < o->g->size; r++)
		vv_buf_add(words, vv_exchange_from(&m, o->g, r), (size_t)(m.in_len[r] - m.in_len[r] % sizeof(uint64_t)));
	vv_exchange_free(&m, o->g);
	return rc ? rc : vv_buf_check(words);
}

static int share_pids(const struct restore_group *o, struct vv_restore_many *out)
{
	struct vv_buf b = { 0 };
	int rc;

	for (size_t i = 0; i < o->n_trees; i++) {
		uint64_t word = (uint64_t)o->tree[i].number << 32 | (uint32_t)o->tree[i].pid;

		vv_buf_add(&b, &word, sizeof(word));
	}
	rc = vv_buf_check(&b);
	if (rc == 0)
		rc = collect((const uint64_t *)(const void *)b.p, b.n / sizeof(uint64_t), &out->mine, &out->n_mine);
	rc = agree(o, rc);
	if (rc == 0 && o->g)
		rc = gather(o, &b);
	if (rc == 0 && b.n)
		qsort(b.p, b.n / sizeof(uint64_t), sizeof(uint64_t), by_number);
	if (rc == 0)
		rc = collect((const uint64_t *)(const void *)b.p, b.n / sizeof(uint64_t), &out->all, &out->n_all);
	vv_buf_fini(&b);
	return agree(o, rc);
}

static void close_sockets(struct restore_group *o, bool put_back)
{
	for (size_t i = 0; i < o->n_trees; i++)
		vv_socket_files_close(&o->tree[i].kept, put_back);
}

/* After a failure, kills the trees that already run. */
static void disband(struct restore_group *o, int rc)
{
	if (rc == 0)
		vv_watchdog_close(&o->watchdog);
	for (size_t i = 0; i < o->n_trees; i++)
		vv_action_script_close(&o->tree[i].hook);
	for (size_t i = 0; i < o->n_trees; i++)
		vv_criu_close(&o->tree[i].criu);
	if (rc)
		vv_process_tree_clear();
	close_sockets(o, true);
	for (size_t i = 0; i < o->n_trees; i++)
		vv_lazy_pages_close(o->tree[i].lazy);
	vv_watchdog_close(&o->watchdog);
	for (size_t i = 0; i < o->n_images; i++)
		vv_serve_images_close(&o->images[i]);
	vv_mem_free(o->tree);
	vv_mem_free(o->images);
}

/* A single tree needs no hook, because it does not wait for others. */
static int run_one(const struct restore_group *o, struct vv_pool *pool, const struct vv_restore_one_options *opt, struct vv_restore_many *out)
{
	pid_t pid = 0;
	int rc = vv_restore_one_run(o->lin, o->epoch, pool, opt, &pid);
	uint64_t word = (uint64_t)pid;

	if (rc == 0)
		rc = collect(&word, 1, &out->mine, &out->n_mine);
	return rc ? rc : collect(&word, 1, &out->all, &out->n_all);
}

/* For a single process: returns whether the epoch holds one tree. */
static int is_single(const struct restore_group *o, struct vv_pool *pool, bool *single)
{
	struct vv_unpack files = { 0 };
	int rc = 0;

	*single = !o->g && o->saved_by == 1;
	if (*single)
		rc = vv_unpack_open_rank(o->lin, o->epoch, 0, pool, &files);
	if (rc == 0 && files.n_files)
		*single = !strchr(vv_unpack_at(&files, 0).file->name, '/');
	vv_unpack_close(&files);
	return rc;
}

int vv_restore_many_run(struct varve *v, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, const struct vv_restore_one_options *opt,
		   struct vv_restore_many *out)
{
	struct restore_group o = { .v = v, .g = v ? v->ctx.group : NULL, .ranks = 1, .lin = lin, .epoch = epoch, .opt = opt, .watchdog = VV_WATCHDOG_NONE };
	struct vv_err_state error;
	bool single = false;
	int rc;

	*out = (struct vv_restore_many){ 0 };
	if (o.g) {
		o.rank = o.g->rank;
		o.ranks = o.g->size;
	}
	snprintf(o.what, sizeof(o.what), "cannot restore epoch %" PRIu64 " of lineage '%s'", epoch, lin->name);
	rc = look_at_epoch(&o);
	if (rc == 0)
		rc = is_single(&o, pool, &single);
	if (rc || single)
		return rc ? rc : run_one(&o, pool, opt, out);
	rc = open_images(&o, pool);
	if (rc == 0)
		rc = list_trees(&o);
	rc = agree(&o, check(&o, rc));
	if (rc == 0)
		rc = run_trees(&o);
	if (rc == 0) {
		close_sockets(&o, false);
		rc = share_pids(&o, out);
	}
	for (size_t i = 0; rc == 0 && o.opt->lazy && !o.rank && opt->runs && i < out->n_all; i++)
		opt->runs(opt->arg, out->all[i]);
	if (rc == 0 && o.opt->lazy)
		rc = bring_the_rest(&o);
	vv_err_save(rc, &error);
	disband(&o, rc);
	if (rc)
		vv_restore_many_fini(out);
	return rc ? vv_err_restore(&error) : 0;
}

void vv_restore_many_fini(struct vv_restore_many *r)
{
	vv_mem_free(r->mine);
	vv_mem_free(r->all);
	*r = (struct vv_restore_many){ 0 };
}

int vv_restore_many_newest(struct varve *v, uint64_t *epoch)
{
	struct vv_group *g = v->ctx.group;
	int rc = vv_group_agree(g, g->comm, vv_catalog_newest(&v->ctx.lineage, UINT64_MAX, epoch));

	return rc ? rc : vv_comm_allreduce(g->comm, epoch, 1, VARVE_MAX);
}
