#include "base/err.h"
#include "cli/base/find_lineages.h"
#include "cli/base/text.h"
#include "cli/base/verb_context.h"
#include "cli/pack/exclude_store.h"
#include "vv_config.h"
#if VV_HAVE_FUSE
#include "cli/mount/mount_fuse.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A second mount would hide the first one of a process that was killed, and stay over it. */
static int no_folder(const char *folder)
{
	if (errno == ENOTCONN)
		return vv_err_set(VV_EBUSY, "mount: '%s' is the mount of a process that was killed; 'fusermount3 -u %s' ends it", folder, folder);
	return vv_err_sys(errno, "mount: '%s'", folder);
}

/* A mount would hide its files, or the mount that is there already. */
static int check_empty(const char *folder)
{
	DIR *d = opendir(folder);
	const struct dirent *e = NULL;
	char first[NAME_MAX + 1] = "";

	if (!d)
		return no_folder(folder);
	while ((e = readdir(d)) && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0))
		;
	if (e)
		snprintf(first, sizeof(first), "%s", e->d_name);
	closedir(d);
	if (!*first)
		return 0;
	return vv_err_set(VV_EINVAL, "mount: '%s' is not empty (it has '%s'), or a store is mounted there already; name an empty folder", folder,
			  vv_text_safe(first).s);
}

static int check_folder(const char *store, const char *folder)
{
	struct stat st;
	int rc;

	if (stat(folder, &st) < 0)
		return no_folder(folder);
	if (!S_ISDIR(st.st_mode))
		return vv_err_set(VV_EINVAL, "mount: '%s' is no folder", folder);
	rc = vv_exclude_store_refuse(store, folder);
	return rc ? rc : check_empty(folder);
}

/* The child goes on without a terminal, in the same working directory: the store's path may be
 * relative. Returns 0 in the child, 1 in the parent. */
static int detach(void)
{
	pid_t pid = fork();
	int null;

	if (pid < 0)
		return vv_err_sys(errno, "mount: no second process");
	if (pid > 0)
		return 1;
	setsid();
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	return 0;
}

static int serve(struct vv_verb_context *job, struct vv_mount_fuse *m, bool background)
{
	struct vv_mount_tree *tree = NULL;
	int rc = vv_verb_context_start_pool(job);

	if (rc == 0)
		rc = vv_mount_tree_open(job->store, job->pool, &tree);
	if (rc == 0)
		rc = vv_mount_fuse_serve(m, tree, background);
	vv_mount_fuse_close(m);
	vv_mount_tree_close(tree);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	const char *folder = job->args->operand[1];
	bool foreground = vv_args_value(job->args, "foreground");
	struct vv_names names = {0};
	struct vv_mount_fuse *m = NULL;
	int rc = check_folder(job->args->operand[0], folder);

	if (rc == 0)
		rc = vv_verb_context_open_store(job);
	if (rc == 0)
		rc = vv_find_lineages(job->store, &names);
	vv_names_fini(&names);
	if (rc == 0)
		rc = vv_mount_fuse_open(job->store->url, folder, &m);
	if (rc)
		return rc;
	vv_json_text(&job->json, "store", job->store->url);
	vv_json_text(&job->json, "folder", folder);
	rc = foreground ? 0 : detach();
	if (rc < 0)
		vv_mount_fuse_close(m);
	if (rc)
		return rc < 0 ? rc : 0;
	return serve(job, m, !foreground);
}
#else
static int run(struct vv_verb_context *job)
{
	(void)job;
	return vv_err_set(VV_ENOTSUP,
			  "mount: this varve was built without libfuse (package libfuse3-dev, 3.12 or newer)");
}
#endif

static const struct vv_args_option options[] = {
	{"foreground", 'f', NULL, "do not return before the end of the mount"},
	{NULL, 0, NULL, NULL},
};

const struct vv_cmd vv_cmd_mount = {
	.name = "mount",
	.operands = "STORE DIR",
	.min = 2,
	.max = 2,
	.brief = "shows a store as a folder, read-only",
	.help = "Mounts the store at DIR. The paths are LINEAGE/EPOCH/REGION.npy, with several\n"
		"ranks LINEAGE/EPOCH/rankR/REGION.npy, and LINEAGE/latest. Regions without a type\n"
		"are REGION.bin. Packed files are at LINEAGE/EPOCH/PATH. All bytes are checked;\n"
		"damage is an I/O error. New epochs appear. Labels are links to their epochs.\n"
		"'fusermount3 -u DIR' or a signal ends the mount.",
	.option = options,
	.run = run,
};
