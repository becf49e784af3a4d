/* A folder that files are laid down below. Names come from a store, and the folder may hold what somebody put there on purpose: every step is
 * taken from an open folder into one that is no link, so nothing is ever written, replaced or made outside of it. */
#ifndef VV_ENGINE_FILES_OUTPUT_DIR_H
#define VV_ENGINE_FILES_OUTPUT_DIR_H

#include "base/map.h"
#include "engine/files/xattr.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct vv_output_dir {
	int fd; /* -1: there is no such folder yet */
	const char *path;
	bool unnamed; /* files may come without a name, and get one later */
	struct vv_map touched; /* folders below it that have changed: "", "a", "a/b" */
	char **name;
	size_t n_names, names_cap;
};

struct vv_output_dir_file { /* that has no name yet */
	int fd, folder;
	char tmp[48];
	const char *name;
};

/* The path may lead through links: it is the caller's own. With `make` it is made, and what is missing above it. */
int vv_output_dir_open(struct vv_output_dir *t, const char *path, bool make);
void vv_output_dir_close(struct vv_output_dir *t);

/* May the file be laid down? VV_EINVAL where a folder stands in its place, or where no folder can be made on the way. *there: so it is,
 * already. Changes nothing. */
int vv_output_dir_check_file(const struct vv_output_dir *t, const char *name, bool *there);

/* Makes the folders on the way, and the file under another name. */
int vv_output_dir_create(struct vv_output_dir *t, const char *name, struct vv_output_dir_file *out);
/* All of it is written: length, mode and time. The disk begins with it, so that it takes less to make several durable one after the other. */
int vv_output_dir_set_attributes(struct vv_output_dir_file *f, uint64_t len, uint32_t mode, struct timespec mtime);
/* It is durable, and gets its name. Without `replace` a file that is there now is an error. Both end it. */
int vv_output_dir_commit(struct vv_output_dir_file *f, bool replace);
void vv_output_dir_abort(struct vv_output_dir_file *f);

/* May it be a folder? VV_EINVAL where something else stands in its place. Changes nothing. */
int vv_output_dir_check_folder(const struct vv_output_dir *t, const char *name);
/* The folder, and those on the way; *made: it was not there. Until it is finished it is ours alone. */
int vv_output_dir_make(struct vv_output_dir *t, const char *name, bool *made);
/* Nothing more is put into it: attributes, mode and time, durable. */
int vv_output_dir_finish(const struct vv_output_dir *t, const char *name, const struct vv_file_attributes *a, struct vv_xattr_left *left, uint32_t mode, struct timespec mtime);
/* A symbolic link, which nobody follows here. */
int vv_output_dir_symlink(struct vv_output_dir *t, const char *name, const char *to, struct timespec mtime, bool replace);
/* One more name of a file that was laid down. VV_ENOTSUP: there it can have none. */
int vv_output_dir_link(struct vv_output_dir *t, const char *from, const char *name, bool replace);

/* The names are durable as well. */
int vv_output_dir_sync(struct vv_output_dir *t);

#endif
