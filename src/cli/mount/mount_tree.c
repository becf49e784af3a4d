/* Nothing is kept that a writer could make wrong: lineages and epochs are looked up again after a
 * second. The tables of some epochs are kept, and those of open files. */
#include "cli/mount/mount_tree.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/held.h"
#include "base/mem.h"
#include "engine/lineage/label.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	IDLE_VIEWS = 6, /* kept without an open file */
	SECOND = 1000000000,
	FOLDER_MODE = S_IFDIR | 0555,
};

struct known_lineage {
	struct vv_lineage lin;
	struct known_lineage *next;
};

struct vv_mount_tree {
	struct vv_store *store;
	struct vv_pool *pool;
	uint64_t start_ns;
	pthread_mutex_t load;		/* one thread opens lineages and views at a time */
	struct known_lineage *lineages; /* under `load`; never removed before the end */
	pthread_mutex_t lock;		/* of the views */
	struct vv_mount_view *views;
	uint64_t clock;
};

struct mount_path {
	char lineage[VV_NAME_LINEAGE_MAX + 1]; /* "": the top */
	uint64_t epoch;			       /* 0: no epoch */
	char name[80];			       /* instead of an epoch: the name of a link; "": none */
	const char *rest;		       /* below the epoch */
};

struct mount_node { /* of a path */
	enum { TOP, LINEAGE, LINK, EPOCH, RANK, ITEM, FOLDER } kind;
	const struct vv_lineage *lin;
	uint64_t newest;
	uint64_t time_ns;
	uint32_t ranks;
	struct vv_mount_view *view; /* held; NULL: none */
	const struct vv_mount_item *item;
	const char *folder; /* of the view */
	bool whole;	    /* the path is the folder of an epoch or a rank */
};

/* ---- views ----------------------------------------------------------------------------------- */

/* Called under the lock. Returns a view to be closed, or NULL. */
static struct vv_mount_view *find_surplus(struct vv_mount_tree *t)
{
	struct vv_mount_view **oldest = NULL, *v;
	size_t idle = 0;

	VV_HELD(&t->lock);
	for (struct vv_mount_view **at = &t->views; *at; at = &(*at)->next) {
		if ((*at)->refs)
			continue;
		idle++;
		if (!oldest || (*at)->stale || (!(*oldest)->stale && (*at)->stamp < (*oldest)->stamp))
			oldest = at;
	}
	if (!oldest || (idle <= IDLE_VIEWS && !(*oldest)->stale))
		return NULL;
	v = *oldest;
	*oldest = v->next;
	return v;
}

static void let_go(struct vv_mount_tree *t, struct vv_mount_view *v)
{
	struct vv_mount_view *surplus;

	if (!v)
		return;
	pthread_mutex_lock(&t->lock);
	v->refs--;
	v->stamp = ++t->clock;
	surplus = find_surplus(t);
	pthread_mutex_unlock(&t->lock);
	if (surplus)
		vv_mount_view_close(surplus);
}

/* A view of an epoch that was replaced, with its lineage, is not used again. */
static struct vv_mount_view *take(struct vv_mount_tree *t, const struct vv_lineage *lin, const struct vv_commit *c,
				  uint32_t rank)
{
	struct vv_mount_view *v;

	pthread_mutex_lock(&t->lock);
	for (v = t->views; v; v = v->next) {
		if (v->lineage != lin || v->epoch != c->epoch || v->rank != rank || v->stale)
			continue;
		v->stale = v->time_ns != c->time_ns;
		if (!v->stale)
			break;
	}
	if (v)
		v->refs++;
	pthread_mutex_unlock(&t->lock);
	return v;
}

static int get_view(struct vv_mount_tree *t, const struct vv_lineage *lin, const struct vv_commit *c, uint32_t rank,
		    struct vv_mount_view **out)
{
	int rc = 0;

	*out = take(t, lin, c, rank);
	if (*out)
		return 0;
	pthread_mutex_lock(&t->load);
	*out = take(t, lin, c, rank);
	if (!*out)
		rc = vv_mount_view_open(lin, t->pool, c, rank, out);
	if (rc == 0 && !(*out)->refs) {
		pthread_mutex_lock(&t->lock);
		(*out)->refs = 1;
		(*out)->next = t->views;
		t->views = *out;
		pthread_mutex_unlock(&t->lock);
	}
	pthread_mutex_unlock(&t->load);
	return rc;
}

/* ---- lineages and epochs --------------------------------------------------------------------- */

/* Is the lineage still the one that was opened? One without a record stays without. */
static bool is_same(const struct vv_lineage *lin)
{
	char object[VV_NAME_MAX];
	uint8_t *p = NULL, id[16];
	uint64_t created;
	size_t n = 0;
	int rc;

	vv_name_record(object, lin->name);
	rc = vv_store_get(lin->store, object, 4096, &p, &n);
	if (rc == 0)
		rc = vv_commit_get_lineage(id, &created, p, n);
	vv_mem_free(p);
	vv_err_clear();
	return lin->recovered ? rc != 0 : rc == 0 && memcmp(id, lin->id, sizeof(id)) == 0;
}

static int find_lineage(struct vv_mount_tree *t, const char *name, const struct vv_lineage **out)
{
	struct known_lineage *k;
	int rc = 0;

	pthread_mutex_lock(&t->load);
	for (k = t->lineages; k; k = k->next)
		if (strcmp(k->lin.name, name) == 0)
			break;
	if (!k || !is_same(&k->lin)) {
		k = vv_mem_new(1, sizeof(*k));
		rc = k ? vv_catalog_open(t->store, name, false, &k->lin) : VV_ENOMEM;
		if (rc == 0) {
			k->next = t->lineages;
			t->lineages = k;
		} else {
			vv_mem_free(k);
		}
	}
	pthread_mutex_unlock(&t->load);
	*out = rc ? NULL : &k->lin;
	return rc == VV_EINVAL ? vv_err_set(VV_ENOENT, "no lineage can have this name") : rc;
}

/* The view of packed files, or of the only rank; *view is NULL if each rank has a folder. */
static int open_epoch(struct vv_mount_tree *t, const struct vv_lineage *lin, const struct vv_commit *c,
		      struct vv_mount_view **view)
{
	struct vv_mount_view *v = NULL;
	uint32_t rank = 0;
	int rc = get_view(t, lin, c, rank, &v);

	while (vv_unpack_is_of_one_rank(rc) && ++rank < c->n_ranks)
		rc = get_view(t, lin, c, rank, &v);
	if (rc)
		return rc;
	if (vv_mount_view_is_of_files(v)) {
		let_go(t, v);
		return get_view(t, lin, c, VV_MOUNT_VIEW_FILES, view);
	}
	if (c->n_ranks == 1) {
		*view = v;
		return 0;
	}
	let_go(t, v);
	*view = NULL;
	return 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static int absent(void)
{
	return vv_err_set(VV_ENOENT, "no such file or folder");
}

/* Epochs are written without leading zeros. */
static uint64_t parse_epoch(const char *s, size_t n)
{
	uint64_t epoch = 0;

	if (n == 0 || n > 10 || s[0] == '0')
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)s[i]))
			return 0;
		epoch = epoch * 10 + (uint64_t)(s[i] - '0');
	}
	return epoch;
}

static int parse(const char *path, struct mount_path *p)
{
	const char *s = path + 1;
	size_t n = strcspn(s, "/");

	*p = (struct mount_path){.rest = ""};
	if (n >= sizeof(p->lineage))
		return absent();
	memcpy(p->lineage, s, n);
	s += n + (s[n] == '/');
	n = strcspn(s, "/");
	if (!n)
		return 0;
	p->epoch = parse_epoch(s, n);
	if (!p->epoch && (s[n] || n >= sizeof(p->name)))
		return absent();
	if (!p->epoch)
		memcpy(p->name, s, n);
	p->rest = s + n + (s[n] == '/');
	return 0;
}

/* Symbolic links of a lineage: `latest`, and the labels. */
static int find_link(const struct vv_lineage *lin, const char *name, uint64_t *epoch)
{
	int rc;

	if (strcmp(name, "latest") != 0)
		return vv_label_find(lin, name, epoch);
	rc = vv_catalog_newest(lin, UINT64_MAX, epoch);
	return rc ? rc : *epoch ? 0 : absent();
}

static int find_item(struct mount_node *n, const char *path)
{
	bool folder;
	size_t i = vv_mount_view_find(n->view, path, &folder);

	n->folder = path;
	if (i < n->view->n) {
		n->item = &n->view->item[i];
		n->kind = ITEM;
		return 0;
	}
	n->kind = path[0] ? FOLDER : n->kind;
	return folder ? 0 : absent();
}

/* rankR, or a path below it. */
static int find_rank(struct vv_mount_tree *t, const struct vv_commit *c, const char *path, struct mount_node *n)
{
	size_t len = strcspn(path, "/");
	char name[16];
	unsigned long rank;
	int rc;

	if (strncmp(path, "rank", 4) != 0 || len < 5 || len >= sizeof(name))
		return absent();
	rank = strtoul(path + 4, NULL, 10);
	snprintf(name, sizeof(name), "rank%lu", rank);
	if (strlen(name) != len || strncmp(name, path, len) != 0 || rank >= c->n_ranks)
		return absent();
	n->kind = RANK;
	path += len + (path[len] == '/');
	n->whole = !path[0];
	rc = get_view(t, n->lin, c, (uint32_t)rank, &n->view);
	return rc ? rc : find_item(n, path);
}

static int find_in_epoch(struct vv_mount_tree *t, const struct mount_path *p, struct mount_node *n)
{
	struct vv_commit c = {0};
	int rc = vv_catalog_commit(n->lin, p->epoch, &c);

	if (rc)
		return rc;
	n->kind = EPOCH;
	n->ranks = c.n_ranks;
	n->time_ns = c.time_ns;
	n->whole = !p->rest[0];
	rc = open_epoch(t, n->lin, &c, &n->view);
	if (rc == 0 && n->view)
		rc = find_item(n, p->rest);
	else if (rc == 0 && p->rest[0])
		rc = find_rank(t, &c, p->rest, n);
	vv_commit_fini(&c);
	return rc;
}

/* The caller lets the view of the node go, in any case. */
static int find(struct vv_mount_tree *t, const char *path, struct mount_node *n)
{
	struct mount_path p;
	int rc = parse(path, &p);

	*n = (struct mount_node){.kind = TOP, .folder = ""};
	if (rc || !p.lineage[0])
		return rc;
	rc = find_lineage(t, p.lineage, &n->lin);
	if (rc)
		return rc;
	n->kind = LINEAGE;
	n->time_ns = n->lin->created_ns;
	if (p.name[0]) {
		n->kind = LINK;
		return find_link(n->lin, p.name, &n->newest);
	}
	return p.epoch ? find_in_epoch(t, &p, n) : 0;
}

/* An epoch that is gone since is no damage. */
static int explain(struct vv_mount_tree *t, const char *path, int rc)
{
	struct vv_err_state error;
	struct mount_path p;
	const struct vv_lineage *lin = NULL;
	struct vv_commit c = {0};
	int now;

	if (rc != VV_EDAMAGED && rc != VV_EIO)
		return rc;
	vv_err_save(rc, &error);
	now = parse(path, &p);
	if (now == 0 && p.epoch)
		now = find_lineage(t, p.lineage, &lin);
	if (now == 0 && p.epoch)
		now = vv_catalog_commit(lin, p.epoch, &c);
	vv_commit_fini(&c);
	return now == VV_ENOENT ? absent() : vv_err_restore(&error);
}

/* ---- the tree -------------------------------------------------------------------------------- */

int vv_mount_tree_open(struct vv_store *store, struct vv_pool *pool, struct vv_mount_tree **out)
{
	struct vv_mount_tree *t = vv_mem_new(1, sizeof(*t));

	if (!t)
		return VV_ENOMEM;
	*t = (struct vv_mount_tree){.store = store,
				    .pool = pool,
				    .start_ns = vv_clock_wall_ns(),
				    .load = PTHREAD_MUTEX_INITIALIZER,
				    .lock = PTHREAD_MUTEX_INITIALIZER};
	*out = t;
	return 0;
}

void vv_mount_tree_close(struct vv_mount_tree *t)
{
	if (!t)
		return;
	while (t->views) {
		struct vv_mount_view *v = t->views;

		t->views = v->next;
		vv_mount_view_close(v);
	}
	while (t->lineages) {
		struct known_lineage *k = t->lineages;

		t->lineages = k->next;
		vv_mem_free(k);
	}
	pthread_mutex_destroy(&t->load);
	pthread_mutex_destroy(&t->lock);
	vv_mem_free(t);
}

static void put_stat(struct stat *out, uint32_t mode, uint64_t size, struct timespec time)
{
	*out = (struct stat){.st_mode = mode,
			     .st_nlink = S_ISDIR(mode) ? 2 : 1,
			     .st_uid = getuid(),
			     .st_gid = getgid(),
			     .st_size = (off_t)size};
	out->st_mtim = out->st_atim = out->st_ctim = time;
	out->st_blocks = (out->st_size + 511) / 512;
}

void vv_mount_tree_stat_item(const struct vv_mount_item *item, struct stat *out)
{
	put_stat(out, item->mode, item->size, (struct timespec){(time_t)item->mtime_s, (long)item->mtime_ns});
}

static void fill(const struct vv_mount_tree *t, const struct mount_node *n, struct stat *out)
{
	uint64_t ns = n->kind == TOP ? t->start_ns : n->time_ns;

	if (n->item)
		vv_mount_tree_stat_item(n->item, out);
	else
		put_stat(out, n->kind == LINK ? S_IFLNK | 0777 : FOLDER_MODE, 0,
			 (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)});
}

int vv_mount_tree_stat(struct vv_mount_tree *t, const char *path, struct stat *out)
{
	struct mount_node n;
	int rc = find(t, path, &n);

	rc = explain(t, path, rc);
	/* the folder of a damaged epoch can be seen, but not be listed */
	if ((rc == VV_EDAMAGED || rc == VV_EIO) && n.whole)
		rc = 0;
	if (rc == 0)
		fill(t, &n, out);
	let_go(t, n.view);
	return rc;
}

int vv_mount_tree_readlink(struct vv_mount_tree *t, const char *path, char *out, size_t size)
{
	struct mount_node n;
	int rc = find(t, path, &n);

	if (rc == 0 && n.kind == LINK)
		snprintf(out, size, "%" PRIu64, n.newest);
	else if (rc == 0 && n.item && n.item->target)
		snprintf(out, size, "%s", n.item->target);
	else if (rc == 0)
		rc = vv_err_set(VV_EINVAL, "'%s' is no symbolic link", path);
	let_go(t, n.view);
	return explain(t, path, rc);
}

struct mount_list {
	bool (*fn)(void *arg, const char *name);
	void *arg;
};

static bool pass_item(void *arg, const char *name, const struct vv_mount_item *item)
{
	const struct mount_list *l = arg;

	(void)item;
	return l->fn(l->arg, name);
}

static int list_lineages(struct vv_mount_tree *t, const struct mount_list *l)
{
	struct vv_names names = {0};
	int rc = vv_catalog_lineages(t->store, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++)
		if (l->fn(l->arg, names.v[i].name))
			break;
	vv_names_fini(&names);
	return rc;
}

/* A label of several epochs means the newest, which comes last. Labels are written before their
 * epochs are committed, and removed after their epochs are dropped. */
static bool is_newest_of_label(const struct vv_listing *l, size_t i)
{
	if (!vv_catalog_has_epoch(l, l->label[i].epoch))
		return false;
	for (size_t k = i + 1; k < l->n_labels; k++)
		if (vv_catalog_has_epoch(l, l->label[k].epoch) && strcmp(l->label[k].label, l->label[i].label) == 0)
			return false;
	return true;
}

static int list_epochs(const struct vv_lineage *lin, const struct mount_list *l)
{
	struct vv_listing found = {0};
	char name[24];
	int rc = vv_catalog_list(lin, 0, &found);
	bool stop = rc || (found.n_epochs && l->fn(l->arg, "latest"));

	for (size_t i = 0; !stop && i < found.n_epochs; i++) {
		snprintf(name, sizeof(name), "%" PRIu64, found.epoch[i]);
		stop = l->fn(l->arg, name);
	}
	for (size_t i = 0; !stop && i < found.n_labels; i++)
		if (is_newest_of_label(&found, i))
			stop = l->fn(l->arg, found.label[i].label);
	vv_catalog_listing_fini(&found);
	return rc;
}

static void list_ranks(uint32_t ranks, const struct mount_list *l)
{
	char name[24];

	for (uint32_t r = 0; r < ranks; r++) {
		snprintf(name, sizeof(name), "rank%" PRIu32, r);
		if (l->fn(l->arg, name))
			return;
	}
}

int vv_mount_tree_list(struct vv_mount_tree *t, const char *path, bool (*fn)(void *arg, const char *name), void *arg)
{
	struct mount_list l = {fn, arg};
	struct mount_node n;
	int rc = find(t, path, &n);

	if (rc == 0 && (n.kind == LINK || (n.item && !S_ISDIR(n.item->mode))))
		rc = vv_err_set(VV_EINVAL, "'%s' is no folder", path);
	if (rc == 0 && n.kind == TOP)
		rc = list_lineages(t, &l);
	else if (rc == 0 && n.kind == LINEAGE)
		rc = list_epochs(n.lin, &l);
	else if (rc == 0 && n.view)
		vv_mount_view_list(n.view, n.folder, pass_item, &l);
	else if (rc == 0)
		list_ranks(n.ranks, &l);
	let_go(t, n.view);
	return explain(t, path, rc);
}

int vv_mount_tree_open_file(struct vv_mount_tree *t, const char *path, struct vv_mount_reader **out)
{
	struct mount_node n;
	int rc = find(t, path, &n);

	if (rc == 0 && (!n.item || !S_ISREG(n.item->mode)))
		rc = vv_err_set(VV_EINVAL, "'%s' is no file", path);
	if (rc == 0)
		rc = vv_mount_reader_open(n.view, n.item, t->pool, out);
	if (rc)
		let_go(t, n.view);
	return explain(t, path, rc);
}

void vv_mount_tree_close_file(struct vv_mount_tree *t, struct vv_mount_reader *r)
{
	struct vv_mount_view *v = r->view;

	vv_mount_reader_close(r);
	let_go(t, v);
}
