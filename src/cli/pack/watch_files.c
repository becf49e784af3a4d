#include "cli/pack/watch_files.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/pack/exclude_store.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS = 64 << 10 };

static const uint32_t wanted = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_MODIFY | IN_ONLYDIR | IN_DONT_FOLLOW;

static struct vv_watch_files_file *find(struct vv_watch_files *l, const char *name)
{
	size_t i = vv_map_get(&l->by_name, name);

	return i == VV_MAP_NONE ? NULL : &l->file[i];
}

static int add(struct vv_watch_files *l, const char *name, struct vv_watch_files_file **out)
{
	char *copy = vv_mem_strdup(name);
	int rc = copy ? vv_mem_room(&l->file, l->n, &l->cap, sizeof(*l->file)) : VV_ENOMEM;

	if (rc == 0)
		rc = vv_map_put(&l->by_name, copy, l->n);
	if (rc) {
		vv_mem_free(copy);
		return rc;
	}
	l->file[l->n] = (struct vv_watch_files_file){ .name = copy };
	*out = &l->file[l->n++];
	return 0;
}

/* False: the path is too long for the system, and the file is left out. */
static bool put_path(const struct vv_watch_files *l, const char *name, char path[PATH_MAX])
{
	return (size_t)snprintf(path, PATH_MAX, "%s/%s", l->folder, name) < PATH_MAX;
}

/* Reads the state of the file. With `fresh`, its last write is now; else it is the file's time of
 * modification. */
static int look_at(struct vv_watch_files *l, const char *name, bool fresh)
{
	struct vv_watch_files_file *f = find(l, name);
	char path[PATH_MAX];
	double now = vv_clock_s(), age;
	struct stat st;
	int rc = 0;

	if (!put_path(l, name, path) || lstat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
		if (f)
			f->gone = true;
		return 0;
	}
	if (!f)
		rc = add(l, name, &f);
	if (rc)
		return rc;
	age = (double)vv_clock_wall_ns() / 1e9 - (double)st.st_mtim.tv_sec - (double)st.st_mtim.tv_nsec / 1e9;
	if (f->gone || f->len != (uint64_t)st.st_size || f->mtime.tv_sec != st.st_mtim.tv_sec || f->mtime.tv_nsec != st.st_mtim.tv_nsec)
		f->done = false;
	f->gone = f->busy = false;
	f->last = fresh || age < 0 ? now : now - age;
	f->len = (uint64_t)st.st_size;
	f->mtime = st.st_mtim;
	return 0;
}

static int note_folder(struct vv_watch_files *l, const char *name)
{
	int rc = vv_mem_room(&l->found, l->n_found, &l->found_cap, sizeof(*l->found));

	if (rc)
		return rc;
	l->found[l->n_found] = vv_mem_strdup(name);
	return l->found[l->n_found++] ? 0 : VV_ENOMEM;
}

/* Reads the files of the folder, and notes the folders in it. */
static int look_into(struct vv_watch_files *l, const char *folder)
{
	char path[PATH_MAX], name[PATH_MAX];
	struct dirent *e;
	DIR *d;
	int rc = 0;

	if (!put_path(l, folder, path))
		return 0;
	d = opendir(path);
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? 0 : vv_err_sys(errno, "cannot read folder '%s'", path);
	while (rc == 0 && (e = readdir(d))) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    (size_t)snprintf(name, sizeof(name), "%s%s%s", folder, folder[0] ? "/" : "", e->d_name) >= sizeof(name))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
			rc = note_folder(l, name);
		else
			rc = look_at(l, name, false);
	}
	closedir(d);
	return rc;
}

/* Watches the folder, and then reads its files; in this order, so that nothing is missed in
 * between. */
static int enter_one(struct vv_watch_files *l, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	size_t at;
	int wd;

	if (!put_path(l, name, path) || (stat(path, &st) == 0 && vv_exclude_store_is(l->store, &st)))
		return 0;
	wd = inotify_add_watch(l->fd, path, wanted);
	if (wd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : vv_err_sys(errno, "cannot watch folder '%s'", path);
	at = (size_t)wd;
	if (at >= l->n_watched) {
		char **v = vv_mem_grow(l->watched, at + 1, sizeof(*v));

		if (!v)
			return VV_ENOMEM;
		memset(v + l->n_watched, 0, (at + 1 - l->n_watched) * sizeof(*v));
		l->watched = v;
		l->n_watched = at + 1;
	}
	vv_mem_free(l->watched[at]);
	l->watched[at] = vv_mem_strdup(name);
	return l->watched[at] ? look_into(l, name) : VV_ENOMEM;
}

/* Folders may be nested so deeply that a recursion would need too much stack and too many
 * descriptors. */
static int enter_found(struct vv_watch_files *l)
{
	int rc = 0;

	while (rc == 0 && l->n_found) {
		char *name = l->found[--l->n_found];

		rc = enter_one(l, name);
		vv_mem_free(name);
	}
	return rc;
}

/* Enters the folder, and all folders below it. */
static int enter(struct vv_watch_files *l, const char *name)
{
	int rc = enter_one(l, name);

	return rc ? rc : enter_found(l);
}

int vv_watch_files_open(struct vv_watch_files *l, const char *folder, const char *store)
{
	struct stat st;

	*l = (struct vv_watch_files){ .folder = folder, .store = store, .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
	if (l->fd < 0)
		return vv_err_sys(errno, "cannot watch folders");
	if (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
		return vv_err_set(VV_ENOENT, "there is no folder '%s' to watch", folder);
	if (vv_exclude_store_holds(store, folder))
		return vv_err_set(VV_EINVAL, "folder '%s' lies in the store itself: watch another one", folder);
	return enter(l, ""); /* "DIR/" may be a link: the caller has named it */
}

void vv_watch_files_close(struct vv_watch_files *l)
{
	if (l->fd >= 0)
		close(l->fd);
	for (size_t i = 0; i < l->n_watched; i++)
		vv_mem_free(l->watched[i]);
	for (size_t i = 0; i < l->n; i++)
		vv_mem_free(l->file[i].name);
	for (size_t i = 0; i < l->n_found; i++)
		vv_mem_free(l->found[i]);
	vv_mem_free(l->found);
	vv_mem_free(l->watched);
	vv_mem_free(l->file);
	vv_map_fini(&l->by_name);
	*l = (struct vv_watch_files){ .fd = -1 };
}

static bool is_below(const char *name, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(name, folder, n) == 0 && (name[n] == '/' || name[n] == '\0');
}

/* The folder was moved away: no event says so of the files and folders in it. */
static void leave(struct vv_watch_files *l, const char *name)
{
	for (size_t i = 0; i < l->n_watched; i++)
		if (l->watched[i] && is_below(l->watched[i], name)) {
			inotify_rm_watch(l->fd, (int)i);
			vv_mem_free(l->watched[i]);
			l->watched[i] = NULL;
		}
	for (size_t i = 0; i < l->n; i++)
		if (is_below(l->file[i].name, name))
			l->file[i].gone = true;
}

/* Events were lost: files may have come, and others may be gone. */
static int look_again(struct vv_watch_files *l)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n; i++)
		if (!l->file[i].gone)
			rc = look_at(l, l->file[i].name, false);
	if (rc == 0)
		rc = look_into(l, "");
	return rc ? rc : enter_found(l);
}

static int take_folder_event(struct vv_watch_files *l, uint32_t mask, const char *name)
{
	if (mask & IN_MOVED_FROM)
		leave(l, name);
	return mask & (IN_CREATE | IN_MOVED_TO) ? enter(l, name) : 0;
}

static int take_event(struct vv_watch_files *l, const struct inotify_event *e)
{
	struct vv_watch_files_file *f;
	char name[PATH_MAX];
	const char *folder;

	if (e->mask & IN_Q_OVERFLOW)
		return look_again(l);
	folder = e->wd >= 0 && (size_t)e->wd < l->n_watched ? l->watched[e->wd] : NULL;
	if (!folder || !e->len ||
	    (size_t)snprintf(name, sizeof(name), "%s%s%s", folder, folder[0] ? "/" : "", e->name) >= sizeof(name))
		return 0;
	if (e->mask & IN_ISDIR)
		return take_folder_event(l, e->mask, name);
	if (e->mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM))
		return look_at(l, name, true);
	/* a hard link is never closed, but a written file is */
	if (e->mask & IN_CREATE) {
		int rc = look_at(l, name, true);

		f = rc ? NULL : find(l, name);
		if (f)
			f->busy = f->len == 0;
		return rc;
	}
	f = find(l, name);
	if (f) {
		f->busy = true;
		f->done = false;
		f->last = vv_clock_s();
	}
	return 0;
}

int vv_watch_files_wait(struct vv_watch_files *l, double seconds)
{
	alignas(struct inotify_event) char events[EVENTS];
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	ssize_t n;
	int rc = 0;

	if (poll(&p, 1, (int)(seconds * 1000) + 1) <= 0)
		return 0;
	n = read(l->fd, events, sizeof(events));
	for (ssize_t at = 0; rc == 0 && at < n;) {
		const struct inotify_event *e = (const struct inotify_event *)(const void *)(events + at);

		at += (ssize_t)(sizeof(*e) + e->len);
		rc = take_event(l, e);
	}
	return rc;
}
