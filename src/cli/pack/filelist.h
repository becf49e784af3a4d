/* The files that a command line names: operands, walked folders, lists in a file. Each file has a
 * path, and a name in the epoch. */
#ifndef VV_CLI_PACK_FILELIST_H
#define VV_CLI_PACK_FILELIST_H

#include "base/buf.h"
#include "base/map.h"
#include "engine/files/pack.h"

struct vv_file_sets; /* cli/pack/file_sets.h */

/* files that become one epoch: `n` from `from` on; and the entries of that epoch */
struct vv_filelist_set {
	char *name;
	size_t from, n;
	size_t first_entry, n_entries;
};

struct vv_filelist {
	struct vv_pack_file *file;
	size_t n, cap;
	struct vv_map by_name;
	const char *folder; /* names are relative to it; NULL: to the current one */
	const char *store;  /* the destination store: files in it are left out; NULL: none are */
	/* its entries: symbolic links, and folders that are empty or have a mode or attributes of
	 * their own */
	struct vv_manifest tree;
	struct vv_map by_entry;    /* and their names */
	struct vv_xattr_left left; /* attributes of folders that are not packed */
	size_t skipped;     /* links, devices and the like, that were named in warnings */
	bool quiet;         /* no warnings */
	bool each;          /* each operand is a set of its own */
	struct vv_filelist_set *set; /* none: all files are one */
	size_t n_sets, sets_cap;
};

void vv_filelist_fini(struct vv_filelist *l);
/* Adds a file, or a folder with everything below it, in natural order: rank2 before rank10. A link
 * named by the user is followed. A link found below a folder is packed as a link, if it cannot lead
 * outside. */
int vv_filelist_add(struct vv_filelist *l, const char *operand);
/* Adds a file that was found below the folder. VV_EBUSY: it is no file any more. */
int vv_filelist_add_found(struct vv_filelist *l, const char *name);
/* Adds the names in a file ("-": the standard input), one operand each. They are separated by NUL
 * if there is one, else by lines. */
int vv_filelist_read(struct vv_filelist *l, const char *path);
/* Sorts the files into sets, in the natural order of the common part of their names. Files of no
 * set are left out, with a warning. */
int vv_filelist_sort_out(struct vv_filelist *l, const struct vv_file_sets *rule);
/* Can all files be in one epoch? VV_EINVAL: something was found as a link, and as a file or folder
 * as well. */
int vv_filelist_check(const struct vv_filelist *l);
/* Leaves a set out. */
void vv_filelist_drop_set(struct vv_filelist *l, size_t i);
/* The files as bytes, for other ranks; of several sets the remaining ones. */
void vv_filelist_put(const struct vv_filelist *l, struct vv_buf *out);
int vv_filelist_get(struct vv_filelist *l, const struct vv_buf *from);

/* The name of an operand in an epoch: relative, without "." parts. VV_EINVAL: there is none. */
int vv_filelist_name(const char *operand, char *out, size_t cap);

#endif
