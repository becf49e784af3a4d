#include "cli/pack/filelist.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "cli/pack/exclude_store.h"
#include "cli/pack/file_sets.h"
#include "cli/base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_MOST = 1 << 30 }; /* bytes of a list of names */

void vv_filelist_fini(struct vv_filelist *l)
{
	for (size_t i = 0; i < l->n; i++) {
		vv_mem_free((void *)(uintptr_t)l->file[i].path);
		vv_mem_free((void *)(uintptr_t)l->file[i].name);
	}
	for (size_t i = 0; i < l->n_sets; i++)
		vv_mem_free(l->set[i].name);
	vv_mem_free(l->set);
	vv_mem_free(l->file);
	vv_map_fini(&l->by_name);
	vv_map_fini(&l->by_entry);
	vv_manifest_fini(&l->tree);
	*l = (struct vv_filelist){ 0 };
}

int vv_filelist_name(const char *operand, char *out, size_t cap)
{
	size_t used = 0;

	for (const char *at = operand; *at;) {
		size_t n = strcspn(at, "/");

		if (n == 2 && memcmp(at, "..", 2) == 0)
			return vv_err_set(VV_EINVAL, "'%s' leads upwards, and an epoch's names do not: say -C DIR, and names below DIR", operand);
		if (n && !(n == 1 && at[0] == '.')) {
			if (used + n + 2 > cap)
				return vv_err_set(VV_EINVAL, "the name '%.60s...' is too long", operand);
			if (used)
				out[used++] = '/';
			memcpy(out + used, at, n);
			used += n;
		}
		at += n + (at[n] == '/');
	}
	out[used] = '\0';
	return 0;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return strcmp(a, b) == 0 || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static bool is_of_this_set(const struct vv_filelist *l, size_t file)
{
	return l->n_sets == 0 || file >= l->set[l->n_sets - 1].from + l->set[l->n_sets - 1].n;
}

/* Takes ownership of the path, also on failure. The same file twice is added once, unless it would
 * be in two sets; two files of one name are an error. */
static int add_file(struct vv_filelist *l, char *path, const char *name, bool nofollow)
{
	size_t i = vv_map_get(&l->by_name, name);
	char *copy = NULL;
	int rc = 0;

	if (i != VV_MAP_NONE) {
		if (!is_same_file(l->file[i].path, path))
			rc = vv_err_set(VV_EINVAL, "'%s' and '%s' would both be called '%s'", l->file[i].path, path, name);
		else if (!is_of_this_set(l, i))
			rc = vv_err_set(VV_EINVAL, "'%s' is named twice, and would be in two epochs", path);
		goto out;
	}
	if (!vv_manifest_is_name(name)) {
		rc = vv_err_set(VV_EINVAL, "'%.200s' cannot be the name of a file in an epoch", name);
		goto out;
	}
	rc = vv_mem_room(&l->file, l->n, &l->cap, sizeof(*l->file));
	copy = rc ? NULL : vv_mem_strdup(name);
	if (rc == 0)
		rc = copy ? vv_map_put(&l->by_name, copy, l->n) : VV_ENOMEM;
	if (rc == 0) {
		l->file[l->n++] = (struct vv_pack_file){ path, copy, nofollow };
		return 0;
	}
out:
	vv_mem_free(path);
	vv_mem_free(copy);
	return rc;
}

static void skip(struct vv_filelist *l, const char *path, const char *what)
{
	if (!l->quiet)
		fprintf(stderr, "varve: '%s' is %s and is left out\n", vv_text_safe(path).s, what);
	l->skipped++;
}

static const char *name_of(mode_t mode)
{
	return S_ISSOCK(mode) ? "a socket" : S_ISFIFO(mode) ? "a pipe" : "a device";
}

static int by_nature(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

/* ---- links and folders ----------------------------------------------------------------------- */

/* NULL: the entry exists already, or *rc is an error. */
static struct vv_manifest_entry *new_entry(struct vv_filelist *l, const char *name, uint8_t type, const struct stat *st, int *rc)
{
	struct vv_manifest_entry *e;

	if (vv_map_get(&l->by_entry, name) != VV_MAP_NONE || vv_map_get(&l->by_name, name) != VV_MAP_NONE)
		return NULL;
	if (!vv_manifest_is_name(name)) {
		*rc = vv_err_set(VV_EINVAL, "'%.200s' cannot be the name of a link or a folder in an epoch", name);
		return NULL;
	}
	e = vv_manifest_add_entry(&l->tree, name);
	*rc = e ? vv_map_put(&l->by_entry, e->name, l->tree.n_entries - 1) : VV_ENOMEM;
	if (*rc)
		return NULL;
	e->type = type;
	e->mode = st->st_mode & 07777;
	e->mtime_s = st->st_mtim.tv_sec;
	e->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	return e;
}

static int add_link(struct vv_filelist *l, const char *path, const char *name, const struct stat *st)
{
	struct vv_manifest_entry *e;
	char target[VV_MANIFEST_NAME];
	ssize_t n = readlink(path, target, sizeof(target));
	int rc = 0;

	if (n < 0)
		return vv_err_sys(errno, "cannot read link '%s'", path);
	if (n < (ssize_t)sizeof(target))
		target[n] = '\0';
	if (n == (ssize_t)sizeof(target) || !vv_manifest_is_target(name, target)) {
		skip(l, path, "a link that may lead outside of the folder,");
		return 0;
	}
	e = new_entry(l, name, VV_MANIFEST_LINK, st, &rc);
	if (e) {
		e->target = vv_mem_strdup(target);
		rc = e->target ? 0 : VV_ENOMEM;
	}
	return rc;
}

static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0777 & ~mask;
}

/* A folder that its contents would restore is not recorded, so that older versions can read most
 * epochs. With `named`, the user gave the path, and a link is followed. */
static int note_folder(struct vv_filelist *l, const char *path, const char *name, bool named, bool empty)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (named ? 0 : O_NOFOLLOW)), rc;
	struct vv_file_attributes attrs = { 0 };
	struct vv_manifest_entry *e;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		rc = vv_err_sys(errno, "cannot look at folder '%s'", path);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = vv_xattr_read(fd, path, &attrs, &l->left);
	close(fd);
	if (rc == 0 && (empty || attrs.n || (st.st_mode & 07777) != usual_mode())) {
		e = new_entry(l, name, VV_MANIFEST_FOLDER, &st, &rc);
		if (e) {
			e->attrs = attrs;
			attrs = (struct vv_file_attributes){ 0 };
		}
	}
	vv_file_attributes_fini(&attrs);
	return rc;
}

int vv_filelist_check(const struct vv_filelist *l)
{
	struct vv_manifest_path *p = l->tree.n_entries ? vv_mem_new(l->n + l->tree.n_entries, sizeof(*p)) : NULL;
	size_t n = 0;
	int rc;

	if (l->tree.n_entries == 0)
		return 0;
	if (l->tree.n_entries > VV_MANIFEST_ENTRIES) {
		vv_mem_free(p);
		return vv_err_set(VV_EINVAL, "%zu links and folders are too many for one epoch, the format's limit is %d", l->tree.n_entries, VV_MANIFEST_ENTRIES);
	}
	if (!p)
		return VV_ENOMEM;
	for (size_t i = 0; i < l->n; i++)
		p[n++] = (struct vv_manifest_path){ l->file[i].name, true };
	for (size_t i = 0; i < l->tree.n_entries; i++)
		p[n++] = (struct vv_manifest_path){ l->tree.entry[i].name, l->tree.entry[i].type == VV_MANIFEST_LINK };
	rc = vv_manifest_check_paths(p, n, VV_EINVAL);
	vv_mem_free(p);
	return rc;
}

/* ---- operands -------------------------------------------------------------------------------- */

static int add_folder(struct vv_filelist *l, const char *path, const char *name, bool named);

static int add_entry(struct vv_filelist *l, const char *folder, const char *folder_name, const char *entry)
{
	bool slash = folder[0] && folder[strlen(folder) - 1] == '/';
	char *path = vv_mem_printf("%s%s%s", folder, slash ? "" : "/", entry);
	char *name = vv_mem_printf("%s%s%s", folder_name, folder_name[0] ? "/" : "", entry);
	struct stat st;
	int rc = 0;

	if (!path || !name) {
		rc = VV_ENOMEM;
	} else if (lstat(path, &st) < 0) {
		rc = vv_err_sys(errno, "cannot look at '%s'", path);
	} else if (S_ISREG(st.st_mode)) {
		rc = add_file(l, path, name, true);
		path = NULL;
	} else if (S_ISDIR(st.st_mode) && vv_exclude_store_is(l->store, &st)) {
		skip(l, path, "the store itself");
	} else if (S_ISDIR(st.st_mode)) {
		rc = add_folder(l, path, name, false);
	} else if (S_ISLNK(st.st_mode)) {
		rc = add_link(l, path, name, &st);
	} else {
		skip(l, path, name_of(st.st_mode));
	}
	vv_mem_free(path);
	vv_mem_free(name);
	return rc;
}

static int add_folder(struct vv_filelist *l, const char *path, const char *name, bool named)
{
	struct dirent **entry = NULL;
	size_t before = l->n + l->tree.n_entries;
	int n = scandir(path, &entry, no_dots, by_nature), rc = 0;

	if (n < 0)
		return vv_err_sys(errno, "cannot read folder '%s'", path);
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = add_entry(l, path, name, entry[i]->d_name);
		free(entry[i]);
	}
	free(entry);
	return rc || !name[0] ? rc : note_folder(l, path, name, named, before == l->n + l->tree.n_entries);
}

static int add_operand(struct vv_filelist *l, const char *operand)
{
	char name[VV_MANIFEST_NAME], *path;
	struct stat st;
	int rc;

	if (!operand[0])
		return vv_err_set(VV_EINVAL, "a file's name is empty");
	rc = vv_filelist_name(operand, name, sizeof(name));
	if (rc)
		return rc;
	path = l->folder && operand[0] != '/' ? vv_mem_printf("%s/%s", l->folder, operand) : vv_mem_strdup(operand);
	if (!path)
		return VV_ENOMEM;
	if (stat(path, &st) < 0)
		rc = vv_err_sys(errno, "cannot look at '%s'", path);
	else if (vv_exclude_store_holds(l->store, path))
		skip(l, path, "in the store itself");
	else if (S_ISREG(st.st_mode))
		return add_file(l, path, name, false);
	else if (S_ISDIR(st.st_mode))
		rc = add_folder(l, path, name, true);
	else
		skip(l, path, name_of(st.st_mode));
	vv_mem_free(path);
	return rc;
}

static int add_set(struct vv_filelist *l, const char *name, size_t from, size_t n)
{
	char *copy = vv_mem_strdup(name);
	int rc = copy ? vv_mem_room(&l->set, l->n_sets, &l->sets_cap, sizeof(*l->set)) : VV_ENOMEM;

	if (rc)
		vv_mem_free(copy);
	else
		l->set[l->n_sets++] = (struct vv_filelist_set){ .name = copy, .from = from, .n = n };
	return rc;
}

int vv_filelist_add(struct vv_filelist *l, const char *operand)
{
	size_t from = l->n, skipped = l->skipped, entry = l->tree.n_entries;
	int rc = add_operand(l, operand);

	if (rc || !l->each)
		return rc;
	if (l->n > from) {
		rc = add_set(l, operand, from, l->n - from);
		if (rc == 0) {
			l->set[l->n_sets - 1].first_entry = entry;
			l->set[l->n_sets - 1].n_entries = l->tree.n_entries - entry;
		}
		return rc;
	}
	if (l->skipped == skipped)
		skip(l, operand, "without a file");
	return 0;
}

int vv_filelist_add_found(struct vv_filelist *l, const char *name)
{
	char *path = l->folder ? vv_mem_printf("%s/%s", l->folder, name) : vv_mem_strdup(name);
	struct stat st;
	int rc = 0;

	if (!path)
		return VV_ENOMEM;
	if (lstat(path, &st) < 0)
		rc = vv_err_sys(errno, "cannot look at '%s'", path);
	else if (!S_ISREG(st.st_mode))
		rc = vv_err_set(VV_EBUSY, "'%s' was a file, and was replaced by something else", path);
	else if (!vv_exclude_store_holds(l->store, path))
		return add_file(l, path, name, true);
	vv_mem_free(path);
	return rc;
}

/* ---- sets ------------------------------------------------------------------------------------ */

struct filelist_member {
	char *key; /* NULL: of no set */
	struct vv_pack_file file;
};

static int by_key(const void *a, const void *b)
{
	const struct filelist_member *x = a, *y = b;
	int order = strverscmp(x->key, y->key);

	return order ? order : strverscmp(x->file.name, y->file.name);
}

/* Collects the files that have a key into *m. */
static int find_members(struct vv_filelist *l, const struct vv_file_sets *rule, struct filelist_member *m, size_t *n)
{
	char key[VV_MANIFEST_NAME + 16];

	for (size_t i = 0; i < l->tree.n_entries; i++)
		if (l->tree.entry[i].type == VV_MANIFEST_LINK)
			skip(l, l->tree.entry[i].name, "a link, of no set,");
	for (size_t i = 0; i < l->n; i++) {
		if (!vv_file_sets_key(rule, l->file[i].name, key, sizeof(key))) {
			skip(l, l->file[i].path, "of no set");
			continue;
		}
		m[*n] = (struct filelist_member){ vv_mem_strdup(key), l->file[i] };
		if (!m[(*n)++].key)
			return VV_ENOMEM;
	}
	return 0;
}

static int note_members(struct vv_filelist *l, const struct filelist_member *m, size_t n)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (i == 0 || strcmp(m[i].key, m[i - 1].key) != 0)
			rc = add_set(l, m[i].key, i, 0);
		if (rc == 0)
			l->set[l->n_sets - 1].n++;
	}
	return rc;
}

/* The files of sets come first, set by set. The others stay behind them, so that they are freed
 * with the list. */
static int arrange(struct vv_filelist *l, const struct filelist_member *m, size_t n, struct vv_pack_file *room)
{
	size_t others = n;
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		room[i] = m[i].file;
		vv_map_remove(&l->by_name, m[i].file.name);
	}
	for (size_t i = 0; i < l->n; i++)
		if (vv_map_get(&l->by_name, l->file[i].name) != VV_MAP_NONE)
			room[others++] = l->file[i];
	memcpy(l->file, room, l->n * sizeof(*room));
	vv_map_clear(&l->by_name);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = vv_map_put(&l->by_name, l->file[i].name, i);
	return rc;
}

int vv_filelist_sort_out(struct vv_filelist *l, const struct vv_file_sets *rule)
{
	struct filelist_member *m = vv_mem_new(l->n + 1, sizeof(*m));
	struct vv_pack_file *room = vv_mem_new(l->n + 1, sizeof(*room));
	size_t n = 0;
	int rc = m && room ? find_members(l, rule, m, &n) : VV_ENOMEM;

	if (rc == 0) {
		qsort(m, n, sizeof(*m), by_key);
		rc = note_members(l, m, n);
	}
	if (rc == 0)
		rc = arrange(l, m, n, room);
	for (size_t i = 0; m && i < n; i++)
		vv_mem_free(m[i].key);
	vv_mem_free(m);
	vv_mem_free(room);
	return rc;
}

void vv_filelist_drop_set(struct vv_filelist *l, size_t i)
{
	vv_mem_free(l->set[i].name);
	memmove(&l->set[i], &l->set[i + 1], (l->n_sets - i - 1) * sizeof(*l->set));
	l->n_sets--;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int read_whole(int fd, const char *path, struct vv_buf *b)
{
	for (;;) {
		uint8_t *room = vv_buf_room(b, 1 << 16);
		ssize_t n = room ? read(fd, room, 1 << 16) : -1;

		if (!room)
			return VV_ENOMEM;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return vv_err_sys(errno, "cannot read '%s'", path);
		if (n == 0)
			return 0;
		b->n += (size_t)n;
		if (b->n > LIST_MOST)
			return vv_err_set(VV_EINVAL, "the list of names in '%s' is longer than %d bytes", path, LIST_MOST);
	}
}

int vv_filelist_read(struct vv_filelist *l, const char *path)
{
	bool standard = strcmp(path, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;
	struct vv_buf b = { 0 };
	char end;

	if (fd < 0)
		return vv_err_sys(errno, "cannot read '%s'", path);
	rc = read_whole(fd, standard ? "standard input" : path, &b);
	if (!standard)
		close(fd);
	end = b.n && memchr(b.p, '\0', b.n) ? '\0' : '\n';
	vv_buf_add(&b, &end, 1);
	rc = rc ? rc : vv_buf_check(&b);
	for (size_t at = 0, n; rc == 0 && at < b.n; at += n + 1) {
		n = (size_t)((uint8_t *)memchr(b.p + at, end, b.n - at) - (b.p + at));
		b.p[at + n] = '\0';
		if (n)
			rc = vv_filelist_add(l, (const char *)b.p + at);
	}
	vv_buf_fini(&b);
	return rc;
}

static void put_strings(struct vv_buf *out, const char *path, const char *name, bool nofollow)
{
	const char *how = nofollow ? "nofollow" : "";

	vv_buf_add(out, path, strlen(path) + 1);
	vv_buf_add(out, name, strlen(name) + 1);
	vv_buf_add(out, how, strlen(how) + 1);
}

/* The name of a set, without a path, precedes its files. */
void vv_filelist_put(const struct vv_filelist *l, struct vv_buf *out)
{
	for (size_t i = 0; l->n_sets == 0 && i < l->n; i++)
		put_strings(out, l->file[i].path, l->file[i].name, l->file[i].nofollow);
	for (size_t s = 0; s < l->n_sets; s++) {
		put_strings(out, "", l->set[s].name, false);
		for (size_t i = l->set[s].from; i < l->set[s].from + l->set[s].n; i++)
			put_strings(out, l->file[i].path, l->file[i].name, l->file[i].nofollow);
	}
}

/* Complete strings, three for each file: rank 0 has made them. */
int vv_filelist_get(struct vv_filelist *l, const struct vv_buf *from)
{
	const char *p = (const char *)from->p, *end = p + from->n;
	int rc = 0;

	while (rc == 0 && p < end) {
		const char *path = p, *name = p + strlen(p) + 1, *how = name + strlen(name) + 1;
		char *copy = path[0] ? vv_mem_strdup(path) : NULL;

		p = how + strlen(how) + 1;
		if (!path[0])
			rc = add_set(l, name, l->n, 0);
		else
			rc = copy ? add_file(l, copy, name, how[0]) : VV_ENOMEM;
		if (rc == 0 && l->n_sets)
			l->set[l->n_sets - 1].n = l->n - l->set[l->n_sets - 1].from;
	}
	return rc;
}
