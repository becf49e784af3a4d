#define FUSE_USE_VERSION 312
#include "cli/mount/mount_fuse.h"
#include "base/err.h"
#include "base/mem.h"
#include <errno.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum {
	ATTRIBUTES_S = 1,      /* seconds that the kernel keeps names and attributes */
	READ_AHEAD_KIB = 1024, /* of the kernel, in one request */
};

struct vv_mount_fuse {
	struct fuse *fuse;
	struct vv_mount_tree *tree;
	char folder[PATH_MAX]; /* absolute */
	bool log, mounted;
	pthread_once_t widened;
};

static struct vv_mount_fuse *self(void)
{
	return fuse_get_context()->private_data;
}

/* The error for the kernel. One that is no answer to the path gets a sentence as well. */
static int answer(const char *path, int rc)
{
	if (rc == 0)
		return 0;
	if (rc == VV_ENOENT)
		return -ENOENT;
	if (rc == VV_EINVAL)
		return -EINVAL;
	if (self()->log)
		syslog(LOG_ERR, "mount: '%s': %s", path, vv_err_last());
	else
		fprintf(stderr, "varve: mount: '%s': %s\n", path, vv_err_last());
	return rc == VV_ENOMEM ? -ENOMEM : rc == VV_EDENIED ? -EACCES : -EIO;
}

static void *start(struct fuse_conn_info *conn, struct fuse_config *conf)
{
	(void)conn;
	conf->entry_timeout = conf->attr_timeout = ATTRIBUTES_S;
	conf->negative_timeout = 0;
	conf->auto_cache = 1; /* the kernel drops pages of a file with another time or length */
	return self();
}

/* An open file keeps its attributes, even if its epoch was dropped. */
static int get_attributes(const char *path, struct stat *out, struct fuse_file_info *fi)
{
	struct vv_mount_reader *r = fi ? (struct vv_mount_reader *)(uintptr_t)fi->fh : NULL;

	if (r) {
		vv_mount_tree_stat_item(r->item, out);
		return 0;
	}
	return answer(path, vv_mount_tree_stat(self()->tree, path, out));
}

static int read_link(const char *path, char *out, size_t size)
{
	return answer(path, vv_mount_tree_readlink(self()->tree, path, out, size));
}

/* Writes the number into the file of the device that is mounted at the folder. */
static void widen(const char *folder)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX], at[PATH_MAX], device[32], path[80] = "";

	while (mounts && fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*d %*d %31[0-9:] %*s %4095s", device, at) == 2 && strcmp(at, folder) == 0)
			snprintf(path, sizeof(path), "/sys/class/bdi/%s/read_ahead_kb", device);
	if (mounts)
		fclose(mounts);
	mounts = path[0] ? fopen(path, "we") : NULL;
	if (mounts) {
		fprintf(mounts, "%d\n", READ_AHEAD_KIB);
		fclose(mounts);
	}
}

/* The kernel asks for 128 KiB at a time; each request costs a switch to this process and back. Only
 * root may change that, and only after the connection is complete. */
static void widen_requests(void)
{
	if (geteuid() == 0)
		widen(self()->folder);
}

struct mount_fill {
	void *buffer;
	fuse_fill_dir_t fill;
};

static bool add_name(void *arg, const char *name)
{
	const struct mount_fill *f = arg;

	return f->fill(f->buffer, name, NULL, 0, 0) != 0;
}

static int read_folder(const char *path, void *buffer, fuse_fill_dir_t fill, off_t off, struct fuse_file_info *fi,
		       enum fuse_readdir_flags flags)
{
	struct mount_fill f = {buffer, fill};

	(void)off;
	(void)fi;
	(void)flags;
	add_name(&f, ".");
	add_name(&f, "..");
	return answer(path, vv_mount_tree_list(self()->tree, path, add_name, &f));
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
	struct vv_mount_reader *r = NULL;
	int rc;

	if ((fi->flags & O_ACCMODE) != O_RDONLY)
		return -EROFS;
	pthread_once(&self()->widened, widen_requests);
	rc = vv_mount_tree_open_file(self()->tree, path, &r);
	fi->fh = (uint64_t)(uintptr_t)r;
	return answer(path, rc);
}

static int read_file(const char *path, char *to, size_t n, off_t at, struct fuse_file_info *fi)
{
	struct vv_mount_reader *r = (struct vv_mount_reader *)(uintptr_t)fi->fh;
	size_t got = 0;
	int rc = vv_mount_reader_read(r, (uint64_t)at, (uint8_t *)to, n, &got);

	rc = answer(path, rc == VV_EINVAL || rc == VV_ENOENT ? VV_EIO : rc);
	return rc ? rc : (int)got;
}

static int close_file(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	vv_mount_tree_close_file(self()->tree, (struct vv_mount_reader *)(uintptr_t)fi->fh);
	return 0;
}

static const struct fuse_operations operations = {
	.init = start,
	.getattr = get_attributes,
	.readlink = read_link,
	.readdir = read_folder,
	.open = open_file,
	.read = read_file,
	.release = close_file,
};

/* ',' and '\' separate and escape options. */
static char *make_options(const char *url)
{
	char *s = vv_mem_printf("ro,nosuid,nodev,subtype=varve,fsname=%s", url);

	for (char *c = s ? strstr(s, "fsname=") : NULL; c && *c; c++)
		if (*c == ',' || *c == '\\')
			*c = '_';
	return s;
}

static int cannot(const char *folder)
{
	if (access("/dev/fuse", F_OK) != 0)
		return vv_err_set(VV_ENOTSUP, "mount: /dev/fuse is missing: load the kernel's module fuse, or give the "
					      "container this device");
	if (geteuid() != 0 && access("/dev/fuse", R_OK | W_OK) != 0)
		return vv_err_set(VV_EDENIED, "mount: /dev/fuse may not be opened by this user");
	return vv_err_set(VV_EDENIED,
			  "mount: nothing can be mounted at '%s' (a container may lack the right; users other than "
			  "root need fusermount3, of the package fuse3, and a folder of their own)",
			  folder);
}

int vv_mount_fuse_open(const char *url, const char *folder, struct vv_mount_fuse **out)
{
	struct vv_mount_fuse *m = vv_mem_new(1, sizeof(*m));
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	char *options = make_options(url);
	int rc = 0;

	if (!m || !options || fuse_opt_add_arg(&args, "varve") || fuse_opt_add_arg(&args, "-o") ||
	    fuse_opt_add_arg(&args, options))
		rc = VV_ENOMEM;
	if (rc == 0 && access("/dev/fuse", F_OK) != 0)
		rc = cannot(folder);
	if (rc == 0) {
		m->widened = (pthread_once_t)PTHREAD_ONCE_INIT;
		if (!realpath(folder, m->folder))
			m->folder[0] = '\0';
		m->fuse = fuse_new(&args, &operations, sizeof(operations), m);
		m->mounted = m->fuse && fuse_mount(m->fuse, folder) == 0;
		rc = m->mounted ? 0 : cannot(folder);
	}
	fuse_opt_free_args(&args);
	vv_mem_free(options);
	if (rc && m)
		vv_mount_fuse_close(m);
	else if (rc == 0)
		*out = m;
	return rc;
}

/* libfuse sets its handlers only for signals without one. */
static void clear_handlers(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct sigaction was;

		if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			signal(ends[i], SIG_DFL);
	}
}

int vv_mount_fuse_serve(struct vv_mount_fuse *m, struct vv_mount_tree *tree, bool log)
{
	struct fuse_loop_config *conf = fuse_loop_cfg_create();
	int rc = conf ? 0 : VV_ENOMEM;

	m->tree = tree;
	m->log = log;
	if (log)
		openlog("varve", LOG_PID, LOG_USER);
	clear_handlers();
	if (rc == 0 && fuse_set_signal_handlers(fuse_get_session(m->fuse)) < 0)
		rc = vv_err_set(VV_EIO, "mount: signal handlers cannot be set");
	if (rc == 0 && fuse_loop_mt(m->fuse, conf) < 0)
		rc = vv_err_set(VV_EIO, "mount: the connection to the kernel has failed");
	fuse_remove_signal_handlers(fuse_get_session(m->fuse));
	if (conf)
		fuse_loop_cfg_destroy(conf);
	return rc;
}

void vv_mount_fuse_close(struct vv_mount_fuse *m)
{
	if (m->mounted)
		fuse_unmount(m->fuse);
	if (m->fuse)
		fuse_destroy(m->fuse);
	vv_mem_free(m);
}
