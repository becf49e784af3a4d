#include "cli/pack/exclude_store.h"
#include "base/err.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL: the store is no folder. */
static const char *folder_of(const char *url)
{
	if (!url || strncmp(url, "s3:", 3) == 0 || strncmp(url, "mem:", 4) == 0 || strncmp(url, "ram:", 4) == 0)
		return NULL;
	return strncmp(url, "dir:", 4) == 0 ? url + 4 : url;
}

bool vv_exclude_store_is(const char *url, const struct stat *folder)
{
	const char *path = folder_of(url);
	struct stat st;

	return path && stat(path, &st) == 0 && st.st_dev == folder->st_dev && st.st_ino == folder->st_ino;
}

/* Appends a name of n bytes to the path, and resolves its links. */
static bool append(char real[PATH_MAX], const char *name, size_t n)
{
	char next[PATH_MAX], found[PATH_MAX];

	if (snprintf(next, sizeof(next), "%s/%.*s", real, (int)n, name) >= (int)sizeof(next))
		return false;
	if (realpath(next, found))
		memcpy(real, found, strlen(found) + 1);
	else if (errno != ENOENT)
		return false;
	else if (n == 2 && strncmp(name, "..", n) == 0)
		*strrchr(real, '/') = '\0';
	else if (n != 1 || *name != '.')
		memcpy(real, next, strlen(next) + 1);
	return true;
}

/* Resolves all links of the path. Folders of it that do not exist are made later: `..` leads back
 * from them. */
static bool resolve(const char *path, char real[PATH_MAX])
{
	if (!realpath(*path == '/' ? "/" : ".", real))
		return false;
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n && !append(real, path, n))
			return false;
		path += n + strspn(path + n, "/");
	}
	return true;
}

bool vv_exclude_store_holds(const char *url, const char *path)
{
	char store[PATH_MAX], inside[PATH_MAX];
	const char *folder = folder_of(url);
	size_t n;

	if (!folder || !realpath(folder, store) || !resolve(path, inside))
		return false;
	n = strlen(store);
	return strncmp(store, inside, n) == 0 && (inside[n] == '/' || inside[n] == '\0');
}

int vv_exclude_store_refuse(const char *url, const char *path)
{
	if (!vv_exclude_store_holds(url, path))
		return 0;
	return vv_err_set(VV_EINVAL, "'%s' is inside the store '%s', where only layers belong: write it elsewhere", path, url);
}

int vv_exclude_store_refuse_store(const char *url, const char *other)
{
	const char *folder = folder_of(other);
	struct stat st;

	if (!folder || (stat(folder, &st) == 0 && vv_exclude_store_is(url, &st)))
		return 0;
	return vv_exclude_store_refuse(url, folder);
}
