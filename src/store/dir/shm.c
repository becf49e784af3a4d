#include "store/dir/shm.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/name.h"
#include "store/dir/dir.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char shm[] = "/dev/shm";

enum { FOLDER = 64 };

/* Anybody may make files in /dev/shm. A folder that another user has made there is not used. */
static int check_folder(const char *folder, const char *url, bool create)
{
	struct stat st;

	if (stat(shm, &st) < 0 || !S_ISDIR(st.st_mode))
		return vv_err_set(VV_ENOTSUP, "store '%s': this system has no %s; name a folder of a file system in memory instead", url, shm);
	if (create && mkdir(folder, 0700) < 0 && errno != EEXIST)
		return vv_err_sys(errno, "store '%s': cannot make '%s'", url, folder);
	if (lstat(folder, &st) < 0)
		return vv_err_sys(errno, "store '%s': '%s'", url, folder);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return vv_err_set(VV_EDENIED, "store '%s': '%s' is not a folder that only this user can read and write: remove it, or have its owner remove it", url,
				  folder);
	return 0;
}

/* The store keeps the short name, for messages. */
static int rename_store(struct vv_store *s, const char *url)
{
	char *name = vv_mem_strdup(url);

	if (!name)
		return VV_ENOMEM;
	vv_mem_free(s->url);
	s->url = name;
	return 0;
}

int vv_shm_open(const char *url, const struct vv_store_options *opt, struct vv_store **out)
{
	const char *name = url + strlen("ram:");
	char folder[FOLDER], path[FOLDER + VV_NAME_LINEAGE_MAX + 2];
	struct vv_store *s = NULL;
	int rc;

	if (vv_name_check_lineage(name) < 0)
		return vv_err_set(VV_EINVAL, "store '%s': behind ram: comes a name of at most %d letters, digits, '.', '_' and '-'", url, VV_NAME_LINEAGE_MAX);
	snprintf(folder, sizeof(folder), "%s/varve-%lu", shm, (unsigned long)geteuid());
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	rc = check_folder(folder, url, opt->create);
	if (rc == 0)
		rc = vv_dir_open(path, opt, &s);
	if (rc == 0)
		rc = rename_store(s, url);
	if (rc == 0)
		*out = s;
	else if (s)
		s->ops->close(s);
	return rc;
}
