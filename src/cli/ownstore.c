#include "cli/ownstore.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* NULL: it is no folder. */
static const char *folder_of(const char *url)
{
	if (!url || strncmp(url, "s3:", 3) == 0 || strncmp(url, "mem:", 4) == 0)
		return NULL;
	return strncmp(url, "dir:", 4) == 0 ? url + 4 : url;
}

bool vv_ownstore_is(const char *url, const struct stat *folder)
{
	const char *path = folder_of(url);
	struct stat st;

	return path && stat(path, &st) == 0 && st.st_dev == folder->st_dev && st.st_ino == folder->st_ino;
}

bool vv_ownstore_holds(const char *url, const char *path)
{
	char store[PATH_MAX], inside[PATH_MAX];
	const char *folder = folder_of(url);
	size_t n;

	if (!folder || !realpath(folder, store) || !realpath(path, inside))
		return false;
	n = strlen(store);
	return strncmp(store, inside, n) == 0 && (inside[n] == '/' || inside[n] == '\0');
}
