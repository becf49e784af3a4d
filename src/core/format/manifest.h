/* What an epoch of files is made of, beside their bytes: names, modes, times, and what is known of their variables. It is a region of the layer
 * as any other, called VV_MANIFEST_REGION; docs/format.md, section 10. */
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
	bool linked;       /* a hard link: files of the epoch with the same two numbers are one, */
	uint64_t dev, ino; /* those of the device and the inode that it had */
	struct vv_file_attributes attrs;
};

enum vv_manifest_type { VV_MANIFEST_LINK = 1, VV_MANIFEST_FOLDER = 2 };

struct vv_manifest_entry { /* a symbolic link; or a folder that would not come back as it was: it is empty, or has attributes or a mode of its own */
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
	uint8_t ndim;      /* of the first of them */
	uint64_t dim[VV_MAX_DIMS];
	uint64_t instances, raw, fresh, stored; /* how many; bytes in the files, of them in this layer's payload, of that stored */
	uint8_t segment;   /* enum vv_segment */
	uint64_t zero, dup_time, dup_space; /* bytes in the files that are not in the payload: zeros; as in an earlier epoch; as elsewhere in this one */
	struct vv_recipe recipe; /* that it was coded by */
	bool merged;       /* over files */
	uint32_t expected_ratio; /* the ratio that it had when the recipe was chosen, in thousandths; 0: none was */
	uint64_t basis;    /* and about how many bytes were new then */
	uint8_t age;       /* epochs since */
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
/* m starts empty; trusts nothing. VV_EDAMAGED says what is wrong; names that could lead out of a folder are. */
int vv_manifest_get(struct vv_manifest *m, const void *p, size_t n);
/* Is it a name that may stand in a manifest? */
bool vv_manifest_is_name(const char *name);

/* May a link of this name lead there? Only to what is below the folder of all names: '..' stands in front, and no more often than folders are above the
 * link. So whatever other such links it leads through, it stays below that folder. */
bool vv_manifest_is_target(const char *name, const char *target);

/* The order in which what is below a folder comes right behind a name that is the folder's: as if '/' were the lowest of all letters. */
int vv_manifest_compare(const char *a, const char *b);
bool vv_manifest_is_below(const char *name, const char *folder);

struct vv_manifest_path {
	const char *name;
	bool leaf; /* a file or a link: nothing is below it */
};

/* Names of an epoch: is one there twice, or below one that is no folder? Then the error is `code`. Changes their order. */
int vv_manifest_check_paths(struct vv_manifest_path *p, size_t n, int code);

/* New, empty but for its name or key, which is copied; NULL: no memory. */
struct vv_manifest_file *vv_manifest_add_file(struct vv_manifest *m, const char *name);
struct vv_manifest_kind *vv_manifest_add_kind(struct vv_manifest *m, const char *key);
struct vv_manifest_entry *vv_manifest_add_entry(struct vv_manifest *m, const char *name);
/* One more, as another: copied. */
int vv_manifest_copy_entry(struct vv_manifest *m, const struct vv_manifest_entry *from);

#endif
