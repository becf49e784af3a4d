/* Publishing by rename: an object is written under a temporary name, made durable, renamed, and its directory made
 * durable. Writes go out in large pieces into space allocated ahead, and writeback starts while later pieces are still
 * being made, so that the final fsync finds little left to do. */
#include "store/dir.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "store/dir_lock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	ALLOCATE_FIRST = 4 << 20,
	ALLOCATE_MOST = 64 << 20,
	WRITEBACK_EVERY = 8 << 20,
	PAGE = 4096,
	MAP_FROM = 1 << 20,
	READ_STEP = 128 << 10, /* small enough that what was read is still in the cache when it is checked */
};

static const char tmp_prefix[] = ".tmp-";
static const struct vv_fs *usual_fs; /* NULL = the real one */

struct dir_store {
	struct vv_store base;
	const struct vv_fs *fs;
	char *root;
};

struct dir_put {
	struct vv_put base;
	int fd;
	char *tmp;
	uint64_t hint;
	uint64_t allocated;
	uint64_t started; /* writeback was asked for up to here */
	size_t carried;   /* bytes at the end that do not fill a page yet */
	uint8_t carry[PAGE];
};

struct dir_get {
	struct vv_get base;
	int fd;
};

static struct dir_store *dir_of(struct vv_store *s)
{
	return (struct dir_store *)s;
}

static char *path_of(struct dir_store *d, const char *name)
{
	return vv_mem_printf("%s%s%s", d->root, name[0] ? "/" : "", name);
}

/* A directory that may not be durable must not be found by the next try, which would take it to be. */
static void undo_mkdir(struct dir_store *d, const char *path)
{
	int saved = errno;

	d->fs->rmdir(d->fs, path);
	errno = saved;
}

/* Makes the directories above path, which lies below the root; each new one is made durable in its parent. */
static int make_parents(struct dir_store *d, char *path)
{
	for (char *p = path + strlen(d->root) + 1; (p = strchr(p, '/')); p++) {
		int rc;

		*p = '\0';
		rc = d->fs->mkdir(d->fs, path, 0777);
		if (rc == 0) {
			char *slash = strrchr(path, '/');

			*slash = '\0';
			rc = d->fs->fsync_dir(d->fs, path);
			*slash = '/';
			if (rc < 0)
				undo_mkdir(d, path);
		} else if (errno == EEXIST) {
			rc = 0;
		}
		if (rc < 0)
			return vv_err_sys(errno, "cannot make directory '%s'", path);
		*p = '/';
	}
	return 0;
}

/* DIR/NAME -> DIR/.tmp-NAME-PID-N */
static char *tmp_path(const char *path)
{
	static atomic_uint count;
	const char *slash = strrchr(path, '/');

	return vv_mem_printf("%.*s/%s%s-%d-%u", (int)(slash - path), path, tmp_prefix, slash + 1, (int)getpid(),
			     atomic_fetch_add(&count, 1));
}

static int open_tmp(struct dir_store *d, struct dir_put *p)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL, rc = 0;

	p->fd = d->fs->open(d->fs, p->tmp, flags, 0666);
	if (p->fd < 0 && errno == ENOENT) {
		rc = make_parents(d, p->tmp);
		if (rc == 0)
			p->fd = d->fs->open(d->fs, p->tmp, flags, 0666);
	}
	if (rc == 0 && p->fd < 0)
		rc = vv_err_sys(errno, "cannot create '%s'", p->tmp);
	return rc;
}

static void put_free(struct dir_put *p)
{
	struct dir_store *d = dir_of(p->base.store);

	if (p->fd >= 0)
		d->fs->close(d->fs, p->fd);
	vv_mem_free(p->tmp);
	vv_mem_free(p->base.name);
	vv_mem_free(p);
}

static int put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out)
{
	struct dir_store *d = dir_of(s);
	struct dir_put *p = vv_mem_new(1, sizeof(*p));
	int rc = VV_ENOMEM;

	if (!p)
		return VV_ENOMEM;
	p->base.store = s;
	p->fd = -1;
	p->hint = size_hint;
	p->base.name = path_of(d, name);
	if (p->base.name)
		p->tmp = tmp_path(p->base.name);
	if (p->tmp)
		rc = open_tmp(d, p);
	if (rc) {
		put_free(p);
		return rc;
	}
	*out = &p->base;
	return 0;
}

/* Allocates ahead in growing steps, never far beyond what was announced. A refusal is no failure, except want of
 * space, which is better known now than at the end. */
static int allocate(struct dir_store *d, struct dir_put *p, uint64_t end)
{
	uint64_t step = p->allocated < ALLOCATE_FIRST ? ALLOCATE_FIRST : p->allocated;

	if (end <= p->allocated || p->hint < ALLOCATE_FIRST)
		return 0;
	if (step > ALLOCATE_MOST)
		step = ALLOCATE_MOST;
	if (p->allocated + step < end)
		step = end - p->allocated;
	if (p->allocated + step > p->hint && end <= p->hint)
		step = p->hint - p->allocated;
	if (d->fs->allocate(d->fs, p->fd, (off_t)p->allocated, (off_t)step) < 0) {
		if (errno == ENOSPC || errno == EDQUOT)
			return vv_err_sys(errno, "cannot write '%s'", p->base.name);
		p->hint = 0;
		return 0;
	}
	p->allocated += step;
	return 0;
}

/* Uses the parts up. */
static int write_parts(struct dir_put *p, struct iovec *iov, int n, uint64_t at)
{
	if (vv_fs_write_all(dir_of(p->base.store)->fs, p->fd, iov, n, (off_t)at) < 0)
		return vv_err_sys(errno, "cannot write '%s'", p->base.name);
	return 0;
}

/* Adds the parts to what is kept back, all but the first `skip` bytes. */
static void carry(struct dir_put *p, const struct iovec *iov, int n, uint64_t skip)
{
	for (int i = 0; i < n; i++) {
		size_t past = iov[i].iov_len < skip ? iov[i].iov_len : (size_t)skip, left = iov[i].iov_len - past;

		memcpy(p->carry + p->carried, (const uint8_t *)iov[i].iov_base + past, left);
		p->carried += left;
		skip -= past;
	}
}

/* What was kept back and the parts up to `room` bytes of them, as one list: new memory. */
static struct iovec *join(struct dir_put *p, const struct iovec *iov, int n, uint64_t room, int *count)
{
	struct iovec *part = vv_mem_new((size_t)n + 1, sizeof(*part));
	int k = 0;

	if (part && p->carried)
		part[k++] = (struct iovec){ p->carry, p->carried };
	for (int i = 0; part && i < n && room > 0; i++) {
		part[k] = iov[i];
		if (part[k].iov_len > room)
			part[k].iov_len = (size_t)room;
		room -= part[k++].iov_len;
	}
	*count = k;
	return part;
}

/* Every write but the last ends where a page ends: no page is written twice, and the page cache can use large folios.
 * The odd bytes wait for the next call. */
static int put_write(struct vv_put *base, const struct iovec *iov, int n)
{
	struct dir_put *p = (struct dir_put *)base;
	struct dir_store *d = dir_of(base->store);
	uint64_t at = base->written - p->carried, end = base->written, whole;
	struct iovec *part;
	int rc, k;

	for (int i = 0; i < n; i++)
		end += iov[i].iov_len;
	whole = end / PAGE * PAGE;
	if (whole <= at) {
		carry(p, iov, n, 0);
		return 0;
	}
	part = join(p, iov, n, whole - base->written, &k);
	rc = part ? allocate(d, p, end) : VV_ENOMEM;
	if (rc == 0)
		rc = write_parts(p, part, k, at);
	vv_mem_free(part);
	if (rc)
		return rc;
	p->carried = 0;
	carry(p, iov, n, whole - base->written);
	if (whole - p->started >= WRITEBACK_EVERY) {
		d->fs->start_writeback(d->fs, p->fd, (off_t)p->started, (off_t)(whole - p->started));
		p->started = whole;
	}
	return 0;
}

static int sync_parent(struct dir_store *d, const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (d->fs->fsync_dir(d->fs, dir) < 0)
		return vv_err_sys(errno, "cannot make '%s' durable", dir);
	return 0;
}

static int put_commit(struct vv_put *base)
{
	struct dir_put *p = (struct dir_put *)base;
	struct dir_store *d = dir_of(base->store);
	struct iovec rest = { p->carry, p->carried };
	int rc = p->carried ? write_parts(p, &rest, 1, base->written - p->carried) : 0, fd = p->fd;

	if (rc == 0 && p->allocated > base->written && d->fs->truncate(d->fs, fd, (off_t)base->written) < 0)
		rc = vv_err_sys(errno, "cannot trim '%s'", base->name);
	if (rc == 0 && d->fs->fsync(d->fs, fd) < 0)
		rc = vv_err_sys(errno, "cannot make '%s' durable", base->name);
	p->fd = -1;
	if (d->fs->close(d->fs, fd) < 0 && rc == 0)
		rc = vv_err_sys(errno, "cannot close '%s'", base->name);
	if (rc == 0 && d->fs->rename(d->fs, p->tmp, base->name) < 0)
		rc = vv_err_sys(errno, "cannot rename '%s' to '%s'", p->tmp, base->name);
	if (rc)
		d->fs->unlink(d->fs, p->tmp);
	else
		rc = sync_parent(d, base->name);
	put_free(p);
	return rc;
}

static void put_abort(struct vv_put *base)
{
	struct dir_put *p = (struct dir_put *)base;
	struct dir_store *d = dir_of(base->store);

	d->fs->unlink(d->fs, p->tmp);
	put_free(p);
}

static void get_close(struct vv_get *base)
{
	struct dir_get *g = (struct dir_get *)base;
	struct dir_store *d = dir_of(base->store);
	union {
		const uint8_t *in;
		void *out;
	} map = { .in = base->map };

	if (base->map)
		munmap(map.out, base->size);
	if (g->fd >= 0)
		d->fs->close(d->fs, g->fd);
	vv_mem_free(base->name);
	vv_mem_free(g);
}

static int get_open(struct vv_store *s, const char *name, struct vv_get **out)
{
	struct dir_store *d = dir_of(s);
	struct dir_get *g = vv_mem_new(1, sizeof(*g));
	char *path = g ? path_of(d, name) : NULL;
	struct stat st;
	int rc = 0;

	if (!path) {
		vv_mem_free(g);
		return VV_ENOMEM;
	}
	g->base.store = s;
	g->fd = d->fs->open(d->fs, path, O_RDONLY, 0);
	if (g->fd < 0 || fstat(g->fd, &st) < 0)
		rc = vv_err_sys(errno, "cannot open '%s'", path);
	else if (!S_ISREG(st.st_mode))
		rc = vv_err_set(VV_EDAMAGED, "'%s' is not a regular file", path);
	else
		g->base.size = (uint64_t)st.st_size;
	/* of a stranger's file mincore does not tell what is in memory, so it is read in the plain way */
	if (rc == 0 && g->base.size >= MAP_FROM && (geteuid() == 0 || st.st_uid == geteuid())) {
		void *map = mmap(NULL, g->base.size, PROT_READ, MAP_SHARED, g->fd, 0);

		g->base.map = map == MAP_FAILED ? NULL : map;
	}
	g->base.name = vv_mem_strdup(name);
	if (rc == 0 && !g->base.name)
		rc = VV_ENOMEM;
	vv_mem_free(path);
	if (rc)
		get_close(&g->base);
	else
		*out = &g->base;
	return rc;
}

static int get_read(struct vv_get *base, uint64_t off, void *to, size_t n)
{
	struct dir_get *g = (struct dir_get *)base;
	struct dir_store *d = dir_of(base->store);

	if (vv_fs_read_all(d->fs, g->fd, to, n, (off_t)off) < 0)
		return vv_err_sys(errno, "cannot read '%s/%s' at %llu", d->root, base->name, (unsigned long long)off);
	return 0;
}

static int list_entry(int dirfd, const char *name, struct vv_names *out)
{
	struct stat st;

	if (name[0] == '.')
		return 0;
	if (fstatat(dirfd, name, &st, 0) < 0)
		return errno == ENOENT ? 0 : vv_err_sys(errno, "cannot look at '%s'", name);
	return vv_store_names_add(out, name, strlen(name), S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size,
				  S_ISDIR(st.st_mode));
}

static int list(struct vv_store *s, const char *dir, struct vv_names *out)
{
	char *path = path_of(dir_of(s), dir);
	struct dirent *e;
	DIR *h;
	int rc = 0;

	if (!path)
		return VV_ENOMEM;
	h = opendir(path);
	if (!h)
		rc = errno == ENOENT ? 0 : vv_err_sys(errno, "cannot list '%s'", path);
	while (h && rc == 0 && (errno = 0, e = readdir(h)))
		rc = list_entry(dirfd(h), e->d_name, out);
	if (h && rc == 0 && errno)
		rc = vv_err_sys(errno, "cannot list '%s'", path);
	if (h)
		closedir(h);
	vv_mem_free(path);
	return rc;
}

static int remove_object(struct vv_store *s, const char *name)
{
	struct dir_store *d = dir_of(s);
	char *path = path_of(d, name);
	int rc = 0;

	if (!path)
		return VV_ENOMEM;
	if (d->fs->unlink(d->fs, path) < 0)
		rc = errno == ENOENT ? 0 : vv_err_sys(errno, "cannot remove '%s'", path);
	else
		rc = sync_parent(d, path);
	vv_mem_free(path);
	return rc;
}

static int remove_dir(struct vv_store *s, const char *dir)
{
	struct dir_store *d = dir_of(s);
	char *path = path_of(d, dir);

	if (!path)
		return VV_ENOMEM;
	d->fs->rmdir(d->fs, path);
	vv_mem_free(path);
	return 0;
}

/* The caller holds the lineage's lock, so nobody is writing: every temporary file is an orphan. What the dead writer had
 * renamed or removed without living to make it durable is made so: others will rely on it. */
static int sweep(struct vv_store *s, const char *dir)
{
	struct dir_store *d = dir_of(s);
	char *path = path_of(d, dir);
	struct dirent *e;
	DIR *h;
	int rc = 0;

	if (!path)
		return VV_ENOMEM;
	h = opendir(path);
	while (h && (e = readdir(h))) {
		char *file;

		if (strncmp(e->d_name, tmp_prefix, sizeof(tmp_prefix) - 1) != 0)
			continue;
		file = vv_mem_printf("%s/%s", path, e->d_name);
		if (file)
			d->fs->unlink(d->fs, file);
		vv_mem_free(file);
	}
	if (h && d->fs->fsync_dir(d->fs, path) < 0)
		rc = vv_err_sys(errno, "cannot make '%s' durable", path);
	if (h)
		closedir(h);
	vv_mem_free(path);
	return rc;
}

/* Directories above the root may be closed to us: then they are somebody else's, and have long been durable. */
static int sync_above(struct dir_store *d, const char *path)
{
	char dir[PATH_MAX];
	size_t n = (size_t)(strrchr(path, '/') - path);

	snprintf(dir, sizeof(dir), "%.*s", (int)(n ? n : 1), path);
	if (d->fs->fsync_dir(d->fs, dir) < 0 && errno != EACCES && errno != EPERM)
		return vv_err_sys(errno, "store '%s': cannot make '%s' durable", d->base.url, dir);
	return 0;
}

/* A writer may find directories and a lineage record that another made and did not live to make durable. */
static int settle(struct dir_store *d, const char *path)
{
	int rc = sync_above(d, d->root);

	if (rc == 0 && d->fs->fsync_dir(d->fs, d->root) < 0)
		rc = vv_err_sys(errno, "cannot make '%s' durable", d->root);
	return rc ? rc : sync_parent(d, path);
}

static int lock(struct vv_store *s, const char *name, struct vv_lock **out)
{
	struct dir_store *d = dir_of(s);
	char *path = path_of(d, name);
	struct vv_lock *l = NULL;
	int rc = path ? make_parents(d, path) : VV_ENOMEM;

	if (rc == 0)
		rc = vv_dir_lock_take(s, path, &l);
	if (rc == 0)
		rc = settle(d, path);
	if (rc == 0)
		*out = l;
	else if (l)
		vv_dir_lock_drop(l);
	vv_mem_free(path);
	return rc;
}

static void close_store(struct vv_store *s)
{
	struct dir_store *d = dir_of(s);

	vv_store_fini(s);
	vv_mem_free(d->root);
	vv_mem_free(d);
}

static const struct vv_store_ops ops = {
	.put_open = put_open,
	.put_write = put_write,
	.put_commit = put_commit,
	.put_abort = put_abort,
	.get_open = get_open,
	.get_read = get_read,
	.get_close = get_close,
	.list = list,
	.remove = remove_object,
	.remove_dir = remove_dir,
	.sweep = sweep,
	.lock = lock,
	.unlock = vv_dir_lock_drop,
	.close = close_store,
};

/* Makes the root and whatever is missing above it, each durable in its parent; and that too, in case whoever made it did
 * not live to. */
static int make_root(struct dir_store *d)
{
	char path[PATH_MAX];
	size_t n = strlen(d->root);
	int rc;

	for (size_t i = 1; i <= n; i++) {
		if (d->root[i] != '/' && d->root[i] != '\0')
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)i, d->root);
		if (d->fs->mkdir(d->fs, path, 0777) < 0) {
			int why = errno; /* access sets its own */

			if (why == EEXIST || why == EISDIR ||
			    ((why == EROFS || why == EACCES) && access(path, F_OK) == 0))
				continue;
			return vv_err_sys(why, "store '%s': cannot make directory '%s'", d->base.url, path);
		}
		rc = sync_above(d, path);
		if (rc) {
			undo_mkdir(d, path);
			return rc;
		}
		*(strrchr(path, '/') == path ? path + 1 : strrchr(path, '/')) = '\0';
		rc = sync_above(d, path);
		if (rc)
			return rc;
	}
	return 0;
}

static int find_root(struct dir_store *d, const char *path, bool create)
{
	char cwd[PATH_MAX];
	struct stat st;
	int rc;

	if (!path[0] || strlen(path) > PATH_MAX - 512)
		return vv_err_set(VV_EINVAL, "store '%s': the path is empty or too long", d->base.url);
	if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return vv_err_sys(errno, "store '%s'", d->base.url);
	d->root = path[0] == '/' ? vv_mem_strdup(path) : vv_mem_printf("%s/%s", cwd, path);
	if (!d->root)
		return VV_ENOMEM;
	for (size_t n = strlen(d->root); n > 1 && d->root[n - 1] == '/'; n--)
		d->root[n - 1] = '\0';
	rc = create ? make_root(d) : 0;
	if (rc == 0 && stat(d->root, &st) < 0)
		rc = vv_err_sys(errno, "store '%s'", d->base.url);
	else if (rc == 0 && !S_ISDIR(st.st_mode))
		rc = vv_err_set(VV_EINVAL, "store '%s' is not a directory", d->base.url);
	return rc;
}

void vv_dir_set_fs(const struct vv_fs *fs)
{
	usual_fs = fs;
}

int vv_dir_open(const char *url, const struct vv_store_options *opt, struct vv_store **out)
{
	struct dir_store *d = vv_mem_new(1, sizeof(*d));
	int rc;

	if (!d)
		return VV_ENOMEM;
	d->fs = usual_fs ? usual_fs : vv_fs_real();
	rc = vv_store_init(&d->base, &ops, url, opt);
	if (rc == 0)
		rc = find_root(d, strncmp(url, "dir:", 4) == 0 ? url + 4 : url, opt->create);
	d->base.read_step = READ_STEP;
	if (rc)
		close_store(&d->base);
	else
		*out = &d->base;
	return rc;
}
