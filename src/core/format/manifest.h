/* The description of an epoch of files, in addition to their bytes: names, modes, times, and
 * properties of their variables. It is an ordinary region of the layer, called VV_MANIFEST_REGION;
 * docs/format.md, section 10. */
#ifndef VV_CORE_FORMAT_MANIFEST_H
#define VV_CORE_FORMAT_MANIFEST_H

#include "base/buf.h"
#include "core/format/file_attributes.h"
#include "core/format/head.h"
#include "core/format/recipe.h"
#include "core/format/segment.h"

#define VV_MANIFEST_REGION ".varve.files"

enum {
	VV_MANIFEST_NAME = 4096,    /* bytes of a file's name with its end */
	VV_MANIFEST_PART = 255,     /* and of a part of it, between '/' */
	VV_MANIFEST_FILES = 1 << 20,
	VV_MANIFEST_KINDS = 1 << 20,
	VV_MANIFEST_ENTRIES = 1 << 20,
	VV_MANIFEST_BYTES = 1 << 30,
};

struct vv_manifest_file {
	char *name;        /* relative, '/' between its parts, none of them empty, "." or ".." */
	uint32_t region;   /* its number in the layer */
	uint32_t mode;     /* 07777 */
	int64_t mtime_s;
	uint32_t mtime_ns;
	char *format;      /* the reader's name */
	bool linked;       /* a hard link: files of the epoch with the same dev and ino are one */
	uint64_t dev, ino; /* device and inode that it had */
	struct vv_file_attributes attrs;
};

enum vv_manifest_type { VV_MANIFEST_LINK = 1, VV_MANIFEST_FOLDER = 2 };

/* a symbolic link; or a folder that files alone would not restore: it is empty, or has attributes
 * or a mode of its own */
struct vv_manifest_entry {
	char *name;
	uint8_t type;
	uint32_t mode;
	int64_t mtime_s;
	uint32_t mtime_ns;
	char *target;          /* of a link: vv_manifest_is_target */
	struct vv_file_attributes attrs; /* of a folder */
};

struct vv_manifest_kind { /* variables of one key; also "(skeleton)" and "(opaque)" */
	char *key;
	uint8_t type;
	uint32_t width;
	bool swapped;
	uint8_t ndim;      /* of the first variable */
	uint64_t dim[VV_MAX_DIMS];
	/* count; bytes in the files, of them in this layer's payload, of those stored */
	uint64_t instances, raw, fresh, stored;
	uint8_t segment;   /* enum vv_segment */
	/* bytes in the files that are not in the payload: zeros; equal to an earlier epoch; equal
	 * to other bytes of this epoch */
	uint64_t zero, dup_time, dup_space;
	struct vv_recipe recipe; /* used to compress it */
	bool merged;       /* over files */
	/* ratio when the recipe was chosen, in thousandths; 0: none was chosen */
	uint32_t expected_ratio;
	uint64_t basis;    /* about the number of new bytes at that time */
	uint8_t age;       /* epochs since then */
};

struct vv_manifest {
	char *scheme;      /* "auto", or one of Islam 2012's */
	char *effort;      /* "fast", "default", "max" */
	struct vv_manifest_file *file;
	size_t n_files, files_cap;
	struct vv_manifest_kind *kind;
	size_t n_kinds, kinds_cap;
	struct vv_manifest_entry *entry;
	size_t n_entries, entries_cap;
};

void vv_manifest_fini(struct vv_manifest *m);
void vv_manifest_put(const struct vv_manifest *m, struct vv_buf *out);
/* m starts empty; trusts no byte. VV_EDAMAGED describes the fault, for example a name that could
 * lead out of a folder. */
int vv_manifest_get(struct vv_manifest *m, const void *p, size_t n);
/* May the name stand in a manifest? */
bool vv_manifest_is_name(const char *name);

/* May a link of this name have this target? The target must be below the folder of all names. Each
 * '..' stands in front, and there are no more of them than folders above the link. Through any
 * chain of such links it therefore stays below that folder. */
bool vv_manifest_is_target(const char *name, const char *target);

/* An order in which the names below a folder follow the folder's name directly: as if '/' were the
 * lowest letter. */
int vv_manifest_compare(const char *a, const char *b);
bool vv_manifest_is_below(const char *name, const char *folder);

struct vv_manifest_path {
	const char *name;
	bool leaf; /* a file or a link: nothing is below it */
};

/* Checks the names of an epoch: returns the error `code` if a name occurs twice or is below a name
 * that is no folder. Changes their order. */
int vv_manifest_check_paths(struct vv_manifest_path *p, size_t n, int code);

/* Adds an item, empty but for its name or key, which is copied; NULL: no memory. */
struct vv_manifest_file *vv_manifest_add_file(struct vv_manifest *m, const char *name);
struct vv_manifest_kind *vv_manifest_add_kind(struct vv_manifest *m, const char *key);
struct vv_manifest_entry *vv_manifest_add_entry(struct vv_manifest *m, const char *name);
/* Adds a copy of another entry. */
int vv_manifest_copy_entry(struct vv_manifest *m, const struct vv_manifest_entry *from);

#endif
