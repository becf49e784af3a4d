/* A folder into which files are unpacked. Names come from a store, and the folder may hold
 * malicious links. So every step goes from an open folder into one that is no link, and nothing is
 * written, replaced or made outside the folder. */
#ifndef VV_ENGINE_FILES_OUTPUT_DIR_H
#define VV_ENGINE_FILES_OUTPUT_DIR_H

#include "base/map.h"
#include "engine/files/xattr.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct vv_output_dir {
	int fd; /* -1: the folder does not exist yet */
	const char *path;
	bool unnamed; /* files may be created without a name and named later */
	struct vv_map touched; /* changed folders below it: "", "a", "a/b" */
	char **name;
	size_t n_names, names_cap;
};

struct vv_output_dir_file { /* a file without its final name */
	int fd, folder;
	char tmp[48];
	const char *name;
};

/* The path may contain links: it is the caller's own. With `make`, the folder and its missing
 * parents are made. */
int vv_output_dir_open(struct vv_output_dir *t, const char *path, bool make);
void vv_output_dir_close(struct vv_output_dir *t);

/* Can the file be written? VV_EINVAL if a folder has its name, or if a folder of its path cannot be
 * made. *there: a file of this name exists. Changes nothing. */
int vv_output_dir_check_file(const struct vv_output_dir *t, const char *name, bool *there);

/* Makes the folders of the path, and the file under a temporary name. */
int vv_output_dir_create(struct vv_output_dir *t, const char *name, struct vv_output_dir_file *out);
/* Ends the writing: sets length, mode and time. Starts the write-back to disk, so that several
 * files become durable faster. */
int vv_output_dir_set_attributes(struct vv_output_dir_file *f, uint64_t len, uint32_t mode, struct timespec mtime);
/* Makes the file durable and gives it its name. Without `replace`, an existing file is an error.
 * Both calls end f. */
int vv_output_dir_commit(struct vv_output_dir_file *f, bool replace);
void vv_output_dir_abort(struct vv_output_dir_file *f);

/* Can the folder be made? VV_EINVAL if another kind of file has its name. Changes nothing. */
int vv_output_dir_check_folder(const struct vv_output_dir *t, const char *name);
/* Makes the folder and its parents; *made: it did not exist. Until vv_output_dir_finish only its
 * owner may access it. */
int vv_output_dir_make(struct vv_output_dir *t, const char *name, bool *made);
/* After the last file of the folder: sets attributes, mode and time, and makes them durable. */
int vv_output_dir_finish(const struct vv_output_dir *t, const char *name, const struct vv_file_attributes *a, struct vv_xattr_left *left, uint32_t mode, struct timespec mtime);
/* Makes a symbolic link. It is never followed here. */
int vv_output_dir_symlink(struct vv_output_dir *t, const char *name, const char *to, struct timespec mtime, bool replace);
/* Adds a name to a file that was written. VV_ENOTSUP: the file system allows no hard link there. */
int vv_output_dir_link(struct vv_output_dir *t, const char *from, const char *name, bool replace);

/* Makes the names durable. */
int vv_output_dir_sync(struct vv_output_dir *t);

#endif
