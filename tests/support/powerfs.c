#include "support/powerfs.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>

enum { MAX_NODES = 4096, MAX_FDS = 8192, MAX_ENTRIES = 400, MAX_PENDING = 256, MAX_NAME = 64, SECTOR = 512 };

struct bytes {
	uint8_t *p;
	size_t n;
};

struct entry {
	char name[MAX_NAME];
	struct node *node;
};

struct entries {
	struct entry v[MAX_ENTRIES];
	size_t n;
};

struct node {
	bool is_dir;
	struct bytes now, durable;           /* of a file */
	struct entries *names, *names_durable; /* of a folder */
};

/* A change of a folder that is not durable: `name` now is `node` (NULL: gone), and `gone` (may be "") is not there any
 * more, in one step. */
struct change {
	struct node *dir;
	char name[MAX_NAME], gone[MAX_NAME];
	struct node *node;
};

static struct {
	char base[PLACE_MAX];
	struct node *node[MAX_NODES];
	size_t n_nodes;
	struct node *fd[MAX_FDS];
	struct change pending[MAX_PENDING];
	size_t n_pending;
	void (*before)(void *arg);
	void *arg;
	long calls, die_at;
	bool once; /* only that call fails */
} fs_state;

/* One call at a time: the program's thread comes here and the one that stores epochs. Recursive, because whoever watches
 * asks for the survivors. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void unlock(const int *held)
{
	(void)held;
	pthread_mutex_unlock(&lock);
}

/* Holds the lock to the end of the function. */
#define ALONE __attribute__((cleanup(unlock), unused)) const int held = pthread_mutex_lock(&lock)

static struct node *new_node(bool is_dir)
{
	struct node *d = calloc(1, sizeof(*d));

	CHECK(d && fs_state.n_nodes < MAX_NODES);
	d->is_dir = is_dir;
	if (is_dir) {
		d->names = calloc(1, sizeof(*d->names));
		d->names_durable = calloc(1, sizeof(*d->names_durable));
		CHECK(d->names && d->names_durable);
	}
	fs_state.node[fs_state.n_nodes++] = d;
	return d;
}

void powerfs_start(const char *base)
{
	ALONE;

	for (size_t i = 0; i < fs_state.n_nodes; i++) {
		free(fs_state.node[i]->now.p);
		free(fs_state.node[i]->durable.p);
		free(fs_state.node[i]->names);
		free(fs_state.node[i]->names_durable);
		free(fs_state.node[i]);
	}
	memset(&fs_state, 0, sizeof(fs_state));
	snprintf(fs_state.base, sizeof(fs_state.base), "%s", base);
	new_node(true);
}

void powerfs_watch(void (*before)(void *arg), void *arg)
{
	ALONE;

	fs_state.before = before;
	fs_state.arg = arg;
}

void powerfs_die(long n)
{
	ALONE;

	fs_state.calls = 0;
	fs_state.die_at = n;
	fs_state.once = false;
}

void powerfs_fail(long n)
{
	ALONE;

	powerfs_die(n);
	fs_state.once = true;
}

int powerfs_died(void)
{
	ALONE;

	return fs_state.die_at && fs_state.calls >= fs_state.die_at;
}

/* Before a change; true if it is not to happen. */
static bool refused(void)
{
	if (fs_state.before)
		fs_state.before(fs_state.arg);
	fs_state.calls++;
	if (!powerfs_died() || (fs_state.once && fs_state.calls > fs_state.die_at))
		return false;
	errno = EIO;
	return true;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static size_t find(const struct entries *e, const char *name)
{
	size_t i = 0;

	while (i < e->n && strcmp(e->v[i].name, name) != 0)
		i++;
	return i;
}

static void set(struct entries *e, const char *name, struct node *node)
{
	size_t i = find(e, name);

	if (!node) {
		if (i < e->n)
			e->v[i] = e->v[--e->n];
		return;
	}
	CHECK(i < MAX_ENTRIES && strlen(name) < MAX_NAME);
	snprintf(e->v[i].name, MAX_NAME, "%s", name);
	e->v[i].node = node;
	e->n += i == e->n;
}

/* The folder that holds the path, and the last component; NULL if it is not below base. */
static struct node *parent_of(const char *path, const char **last)
{
	size_t n = strlen(fs_state.base);
	struct node *d = fs_state.node[0];
	const char *p = path + n + 1, *slash;

	if (strncmp(path, fs_state.base, n) != 0 || path[n] != '/')
		return NULL;
	for (; (slash = strchr(p, '/')); p = slash + 1) {
		char name[MAX_NAME];
		size_t i;

		snprintf(name, sizeof(name), "%.*s", (int)(slash - p), p);
		i = find(d->names, name);
		CHECK(i < d->names->n);
		d = d->names->v[i].node;
	}
	*last = p;
	return d;
}

static void change(struct node *dir, const char *name, struct node *node, const char *gone)
{
	struct change *c = &fs_state.pending[fs_state.n_pending++];

	CHECK(fs_state.n_pending < MAX_PENDING);
	*c = (struct change){ .dir = dir, .node = node };
	snprintf(c->name, sizeof(c->name), "%s", name);
	snprintf(c->gone, sizeof(c->gone), "%s", gone);
	set(dir->names, name, node);
	if (gone[0])
		set(dir->names, gone, NULL);
}

static void set_bytes(struct bytes *b, const void *p, size_t n)
{
	uint8_t *copy = malloc(n + 1);

	CHECK(copy);
	if (n)
		memcpy(copy, p, n);
	free(b->p);
	*b = (struct bytes){ copy, n };
}

static void resize(struct bytes *b, size_t n)
{
	b->p = realloc(b->p, n + 1);
	CHECK(b->p);
	if (n > b->n)
		memset(b->p + b->n, 0, n - b->n);
	b->n = n;
}

static struct node *node_of(int fd)
{
	return fd >= 0 && fd < MAX_FDS ? fs_state.fd[fd] : NULL;
}

/* ---- the calls ---------------------------------------------------------------------------------------------------- */

/* For writing: the node is that of the name. */
static int open_existing(const char *path, int flags, mode_t mode)
{
	int fd = lazyfs()->open(lazyfs(), path, flags, mode);
	const char *last = NULL;
	struct node *dir = fd < 0 || (flags & O_ACCMODE) == O_RDONLY ? NULL : parent_of(path, &last);

	if (dir) {
		size_t i = find(dir->names, last);

		CHECK(fd < MAX_FDS && i < dir->names->n);
		fs_state.fd[fd] = dir->names->v[i].node;
	}
	return fd;
}

static int power_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	ALONE;
	const char *last = NULL;
	struct node *dir;
	int fd;

	(void)fs;
	if (!(flags & O_CREAT))
		return open_existing(path, flags, mode);
	CHECK(flags & O_EXCL);
	if (refused())
		return -1;
	fd = lazyfs()->open(lazyfs(), path, flags, mode);
	dir = fd < 0 ? NULL : parent_of(path, &last);
	if (dir) {
		CHECK(fd < MAX_FDS);
		fs_state.fd[fd] = new_node(false);
		change(dir, last, fs_state.fd[fd], "");
	}
	return fd;
}

static int power_close(const struct vv_fs *fs, int fd)
{
	ALONE;

	(void)fs;
	if (fd >= 0 && fd < MAX_FDS)
		fs_state.fd[fd] = NULL;
	return lazyfs()->close(lazyfs(), fd);
}

static ssize_t power_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	ALONE;
	struct node *d = node_of(fd);
	size_t at = (size_t)off, left;
	ssize_t rc;

	(void)fs;
	if (refused())
		return -1;
	rc = lazyfs()->pwritev(lazyfs(), fd, iov, n, off);
	CHECK(d && rc >= 0);
	left = (size_t)rc;
	if (at + left > d->now.n)
		resize(&d->now, at + left);
	for (int i = 0; i < n && left; i++) {
		size_t k = iov[i].iov_len < left ? iov[i].iov_len : left;

		memcpy(d->now.p + at, iov[i].iov_base, k);
		at += k;
		left -= k;
	}
	return rc;
}

static ssize_t power_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	return lazyfs()->pread(lazyfs(), fd, p, n, off);
}

static int power_allocate(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	ALONE;
	struct node *d = node_of(fd);
	int rc;

	(void)fs;
	if (refused())
		return -1;
	rc = lazyfs()->allocate(lazyfs(), fd, off, len);
	if (rc == 0 && d->now.n < (size_t)(off + len))
		resize(&d->now, (size_t)(off + len));
	return rc;
}

static int power_start_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	(void)fd;
	(void)off;
	(void)len;
	return 0;
}

/* Pretends to succeed: the underlying writes take the page cache. */
static int power_direct(const struct vv_fs *fs, int fd, bool on)
{
	(void)fs;
	(void)fd;
	(void)on;
	return 0;
}

static int power_punch(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	ALONE;
	struct bytes *b = &node_of(fd)->now;
	int rc;

	(void)fs;
	if (refused())
		return -1;
	rc = lazyfs()->punch(lazyfs(), fd, off, len);
	if (rc == 0 && (size_t)off < b->n)
		memset(b->p + off, 0, (size_t)len < b->n - (size_t)off ? (size_t)len : b->n - (size_t)off);
	return rc;
}

static int power_truncate(const struct vv_fs *fs, int fd, off_t len)
{
	ALONE;
	int rc;

	(void)fs;
	if (refused())
		return -1;
	rc = lazyfs()->truncate(lazyfs(), fd, len);
	if (rc == 0)
		resize(&node_of(fd)->now, (size_t)len);
	return rc;
}

static int power_fsync(const struct vv_fs *fs, int fd)
{
	ALONE;
	struct node *d = node_of(fd);

	(void)fs;
	if (refused())
		return -1;
	set_bytes(&d->durable, d->now.p, d->now.n);
	return 0;
}

static int power_rename(const struct vv_fs *fs, const char *from, const char *to)
{
	ALONE;
	const char *old = NULL, *new = NULL;
	struct node *dir, *dir2;
	int rc;

	(void)fs;
	if (refused())
		return -1;
	rc = lazyfs()->rename(lazyfs(), from, to);
	dir = rc < 0 ? NULL : parent_of(from, &old);
	if (dir) {
		dir2 = parent_of(to, &new);
		CHECK(dir2 == dir);
		change(dir, new, dir->names->v[find(dir->names, old)].node, old);
	}
	return rc;
}

static int forget(int rc, const char *path)
{
	const char *last = NULL;
	struct node *dir = rc < 0 ? NULL : parent_of(path, &last);

	if (dir)
		change(dir, last, NULL, "");
	return rc;
}

static int power_unlink(const struct vv_fs *fs, const char *path)
{
	ALONE;

	(void)fs;
	return refused() ? -1 : forget(lazyfs()->unlink(lazyfs(), path), path);
}

static int power_rmdir(const struct vv_fs *fs, const char *path)
{
	ALONE;

	(void)fs;
	return refused() ? -1 : forget(lazyfs()->rmdir(lazyfs(), path), path);
}

static int power_mkdir(const struct vv_fs *fs, const char *path, mode_t mode)
{
	ALONE;
	const char *last = NULL;
	struct node *dir;
	int rc;

	(void)fs;
	if (refused())
		return -1;
	rc = lazyfs()->mkdir(lazyfs(), path, mode);
	dir = rc < 0 ? NULL : parent_of(path, &last);
	if (dir)
		change(dir, last, new_node(true), "");
	return rc;
}

static int power_fsync_dir(const struct vv_fs *fs, const char *path)
{
	ALONE;
	const char *last = NULL;
	struct node *d;
	size_t kept = 0;

	(void)fs;
	if (refused())
		return -1;
	d = strcmp(path, fs_state.base) == 0 ? fs_state.node[0] : parent_of(path, &last);
	if (!d)
		return 0;
	if (last && find(d->names, last) == d->names->n) {
		errno = ENOENT;
		return -1;
	}
	if (last)
		d = d->names->v[find(d->names, last)].node;
	*d->names_durable = *d->names;
	for (size_t i = 0; i < fs_state.n_pending; i++)
		if (fs_state.pending[i].dir != d)
			fs_state.pending[kept++] = fs_state.pending[i];
	fs_state.n_pending = kept;
	return 0;
}

const struct vv_fs *powerfs(void)
{
	static const struct vv_fs fs = {
		.open = power_open,
		.close = power_close,
		.pwritev = power_pwritev,
		.pread = power_pread,
		.allocate = power_allocate,
		.start_writeback = power_start_writeback,
		.direct = power_direct,
		.punch = power_punch,
		.truncate = power_truncate,
		.fsync = power_fsync,
		.rename = power_rename,
		.unlink = power_unlink,
		.mkdir = power_mkdir,
		.rmdir = power_rmdir,
		.fsync_dir = power_fsync_dir,
	};

	return &fs;
}

/* ---- after the loss ------------------------------------------------------------------------------------------------ */

struct survey {
	enum power_loss loss;
	uint64_t state;       /* of the random numbers */
	bool kept[MAX_PENDING];
	uint64_t hash;
	bool lay_down;
};

static void mix(struct survey *s, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		s->hash = (s->hash ^ b[i]) * 0x100000001b3ull;
}

/* From n on the new content is lost: what was durable is there instead, in whole sectors; beyond that the file ends, or
 * its blocks hold rubbish. */
static void lose_from(const struct node *d, struct bytes *out, size_t n, bool rubbish)
{
	size_t kept = d->durable.n < out->n ? d->durable.n : out->n;

	if (n < kept)
		n -= n % SECTOR;
	if (n < kept)
		memcpy(out->p + n, d->durable.p + n, kept - n);
	n = n < kept ? kept : n;
	if (!rubbish)
		out->n = n;
	else if (n < out->n)
		memset(out->p + n, 0x77, out->n - n);
}

/* What is left of a file's content. */
static void survive_bytes(struct survey *s, const struct node *d, struct bytes *out)
{
	uint64_t how = s->loss == POWER_RANDOM ? gen_below(&s->state, 4) : 0;
	size_t n;

	if (s->loss == POWER_NOTHING || s->loss == POWER_NAMES || how == 1) {
		set_bytes(out, d->durable.p, d->durable.n);
		return;
	}
	set_bytes(out, d->now.p, d->now.n);
	if (how == 2 || (d->now.n == d->durable.n && (!d->now.n || memcmp(d->now.p, d->durable.p, d->now.n) == 0)))
		return;
	n = s->loss == POWER_RANDOM ? (size_t)gen_below(&s->state, d->now.n + 1) : d->now.n / 2;
	lose_from(d, out, n, how == 3);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void survive_dir(struct survey *s, const struct node *d, const char *path)
{
	struct entries *e = malloc(sizeof(*e));

	CHECK(e);
	*e = *d->names_durable;
	for (size_t i = 0; i < fs_state.n_pending; i++) {
		const struct change *c = &fs_state.pending[i];

		if (c->dir != d || !s->kept[i])
			continue;
		set(e, c->name, c->node);
		if (c->gone[0])
			set(e, c->gone, NULL);
	}
	qsort(e->v, e->n, sizeof(e->v[0]), by_name);
	if (s->lay_down)
		place_make_dir(path);
	for (size_t i = 0; i < e->n; i++) {
		char below[PLACE_MAX];
		struct bytes b = { 0 };

		snprintf(below, sizeof(below), "%.400s/%s", path, e->v[i].name);
		mix(s, e->v[i].name, MAX_NAME);
		if (e->v[i].node->is_dir) {
			survive_dir(s, e->v[i].node, below);
			continue;
		}
		survive_bytes(s, e->v[i].node, &b);
		mix(s, b.p, b.n);
		if (s->lay_down)
			place_write(below, b.p, b.n);
		free(b.p);
	}
	free(e);
}

static uint64_t survey(enum power_loss loss, uint64_t seed, const char *to)
{
	struct survey s = { .loss = loss, .state = seed, .hash = 0xcbf29ce484222325ull, .lay_down = to != NULL };

	for (size_t i = 0; i < fs_state.n_pending; i++)
		s.kept[i] = loss == POWER_RANDOM ? gen_below(&s.state, 2) : loss != POWER_NOTHING;
	survive_dir(&s, fs_state.node[0], to ? to : "");
	return s.hash;
}

uint64_t powerfs_hash(enum power_loss loss, uint64_t seed)
{
	ALONE;

	return survey(loss, seed, NULL);
}

void powerfs_survivors(enum power_loss loss, uint64_t seed, const char *to)
{
	ALONE;

	survey(loss, seed, to);
}
