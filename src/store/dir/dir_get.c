#include "store/dir/dir_get.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/dir/dir.h"
#include "store/dir/dir_direct.h"
#include "store/dir/dir_member.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MAP_FROM = 1 << 20,
	DIRECT_FROM = 4 << 20, /* a smaller file is read in a moment */
};

struct dir_get {
	struct vv_get base;
	int fd;
	struct vv_fd_identity_fs own; /* guards its file */
	bool member;  /* a member of a bundle; then */
	uint64_t at;  /* its offset in the file */
	struct stat st; /* status at the opening */
};

void vv_dir_get_close(struct vv_get *base)
{
	struct dir_get *g = (struct dir_get *)base;

	if (base->mapped)
		munmap(base->mapped, base->mapped_len);
	if (g->fd >= 0)
		g->own.fs.close(&g->own.fs, g->fd);
	vv_mem_free(base->name);
	vv_mem_free(g);
}

static int open_member(struct vv_dir *d, const char *path, struct dir_get *g, struct stat *st)
{
	struct vv_dir_member m = { .fd = -1 };
	int rc = vv_dir_member_open(d, path, O_RDONLY, true, &m);

	if (rc)
		return rc;
	g->fd = m.fd;
	g->member = true;
	g->at = m.off;
	g->base.size = m.len;
	*st = m.st;
	m.fd = -1;
	vv_dir_member_close(&m);
	return 0;
}

/* Opens a plain object; else a member of a bundle; else the plain object that has replaced the
 * member meanwhile. */
static int open_either(struct vv_dir *d, const char *path, struct dir_get *g, struct stat *st)
{
	int rc = vv_dir_open_file(d, path, O_RDONLY, &g->fd, st);

	if (rc == VV_ENOENT)
		rc = open_member(d, path, g, st);
	if (rc == VV_ENOENT)
		rc = vv_dir_open_file(d, path, O_RDONLY, &g->fd, st);
	if (rc == 0 && !g->member)
		g->base.size = (uint64_t)st->st_size;
	return rc;
}

/* mincore does not report which pages of another user's file are in memory, so such a file is read
 * without a mapping. */
static bool can_map(const struct dir_get *g, const struct stat *st)
{
	return g->base.size >= MAP_FROM && (geteuid() == 0 || st->st_uid == geteuid());
}

void vv_dir_get_map(struct vv_get *base)
{
	struct dir_get *g = (struct dir_get *)base;
	uint64_t before = g->at % (uint64_t)sysconf(_SC_PAGESIZE);
	void *p;

	if (!vv_fd_identity_fits(&g->own.stamp, g->fd))
		return;
	p = mmap(NULL, before + base->size, PROT_READ, MAP_SHARED, g->fd, (off_t)(g->at - before));
	if (p == MAP_FAILED)
		return;
	base->mapped = p;
	base->mapped_len = before + base->size;
	base->map = (const uint8_t *)p + before;
}

void vv_dir_get_direct(struct vv_get *base)
{
	struct dir_get *g = (struct dir_get *)base;
	enum vv_store_io io = vv_dir_of(base->store)->io;
	bool wanted = io == VV_STORE_IO_DIRECT || (io == VV_STORE_IO_AUTO && base->maps && base->size >= DIRECT_FROM);

	if (wanted && g->own.fs.direct(&g->own.fs, g->fd, true) == 0)
		base->unit = VV_DIR_DIRECT_UNIT;
}

int vv_dir_get_open(struct vv_store *s, const char *name, struct vv_get **out)
{
	struct vv_dir *d = vv_dir_of(s);
	struct dir_get *g = vv_mem_new(1, sizeof(*g));
	char *path = g ? vv_dir_path(d, name) : NULL;
	struct stat st = { 0 };
	int rc;

	if (!path) {
		vv_mem_free(g);
		return VV_ENOMEM;
	}
	g->base.store = s;
	rc = open_either(d, path, g, &st);
	vv_dir_guard(d, &st, &g->own);
	g->st = st;
	g->base.maps = rc == 0 && can_map(g, &st);
	g->base.name = vv_mem_strdup(name);
	if (rc == 0 && !g->base.name)
		rc = VV_ENOMEM;
	vv_mem_free(path);
	if (rc)
		vv_dir_get_close(&g->base);
	else
		*out = &g->base;
	return rc;
}

/* The mark is cleared before the bytes are freed: if it is still set, the bytes read before are
 * right. */
static int check_member(struct vv_dir *d, const struct dir_get *g)
{
	int rc = vv_dir_member_present(&g->own.fs, g->fd, g->base.name, g->at);
	char *path;

	if (rc)
		return rc < 0 ? rc : 0;
	path = vv_dir_path(d, g->base.name);
	if (!path)
		return VV_ENOMEM;
	if (access(path, F_OK) == 0)
		rc = vv_err_set(VV_EIO, "'%s' was replaced while it was being read; read it again", path);
	else
		rc = vv_err_set(VV_ENOENT, "'%s' was removed while it was being read", path);
	vv_mem_free(path);
	return rc;
}

int vv_dir_get_read(struct vv_get *base, uint64_t off, void *to, size_t n)
{
	struct dir_get *g = (struct dir_get *)base;
	struct vv_dir *d = vv_dir_of(base->store);
	int rc = vv_dir_read(&g->own.fs, g->fd, base->name, to, n, g->at + off);

	if (rc)
		return vv_err_context(rc, "store '%s'", d->root);
	return g->member ? check_member(d, g) : 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* A file that loses its name also changes its ctime, but its content is unchanged. */
int vv_dir_get_check(struct vv_get *base)
{
	struct dir_get *g = (struct dir_get *)base;
	const struct vv_dir *d = vv_dir_of(base->store);
	struct stat now;

	if (g->member)
		return check_member(vv_dir_of(base->store), g);
	if (!vv_fd_identity_fits(&g->own.stamp, g->fd) || fstat(g->fd, &now) < 0)
		return 0;
	if (now.st_size == g->st.st_size && is_same_time(&now.st_mtim, &g->st.st_mtim) &&
	    (is_same_time(&now.st_ctim, &g->st.st_ctim) || now.st_nlink != g->st.st_nlink))
		return 0;
	return vv_err_set(VV_EIO, "'%s/%s' was changed while it was being read; read it again", d->root, base->name);
}

/* A fault in a mapping with such advice reads 4 MiB or more around it, into folios of 2 MiB if the
 * file system supports them. */
void vv_dir_get_advise(struct vv_get *base, enum vv_store_advice how, uint64_t off, uint64_t n)
{
	struct dir_get *g = (struct dir_get *)base;

	if (how == VV_STORE_MAPPED) {
		if (base->mapped)
			madvise(base->mapped, base->mapped_len, MADV_HUGEPAGE);
	} else if (vv_fd_identity_fits(&g->own.stamp, g->fd)) {
		posix_fadvise(g->fd, (off_t)(g->at + off), (off_t)n, how == VV_STORE_SOON ? POSIX_FADV_WILLNEED : POSIX_FADV_RANDOM);
	}
}
