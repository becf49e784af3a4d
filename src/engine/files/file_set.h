/* Files that are to be packed: open, looked into, and cut into spans, each of one kind of variable. */
#ifndef VV_ENGINE_FILES_FILE_SET_H
#define VV_ENGINE_FILES_FILE_SET_H

#include "base/buf.h"
#include "base/map.h"
#include "base/pool.h"
#include "core/plan/pack_order.h"
#include "core/format/similarity_key.h"
#include "engine/files/pack.h"
#include "engine/files/segment_policy.h"
#include "engine/files/xattr.h"
#include "reader/reader.h"
#include <sys/stat.h>

struct vv_file_set_file {
	const char *path, *name; /* the caller's */
	int fd; /* -1: there are too many of them, it is opened when it is read; or it comes by itself (stream_input.c), and path is its name */
	struct stat st; /* when it was first opened */
	bool busy; /* somebody had it open for writing then, */
	uint64_t check; /* and this was the check of all of it */
	const char *format;
	bool linked; /* a hard link: it has other names, here or perhaps among the files of other ranks */
	uint32_t repeats; /* 1 + the number of an earlier file that is the same, and is read in its place; 0: none is */
	struct vv_file_attributes attrs;
	struct vv_runs runs; /* where its bytes are stored: in any order until all of it is */
	struct vv_buf skeleton; /* engine/files/stream_input.c: the last of its bytes, which are not stored yet, */
	size_t offered;         /* and how many of them are about to be */
	struct varve_stats *other_rank_stats; /* engine/files/rank_handover.c: of another rank, for which is counted there what becomes of its bytes; NULL: of this one */
};

struct vv_file_set_held { /* a stretch of a file that comes by itself, in memory */
	uint32_t file;
	uint64_t at;
	size_t n;
	const uint8_t *bytes;
};

struct vv_file_set_range { /* of positions in the payload */
	uint64_t from, to;
};

/* Where a kind came to lie in the layer. */
struct vv_file_set_placed {
	struct vv_file_set_range *range; /* where it came to lie */
	size_t n_ranges, ranges_cap;
	uint64_t zero, dup_time, dup_space; /* bytes that are not in it: zeros; such as an earlier epoch has; as this one has elsewhere */
};

struct vv_file_set_kind {
	char *key;  /* for people */
	char *tag;  /* key and form: what tells it from others */
	struct vv_form form;
	struct vv_variable first; /* type and shape of the first of them; its name is not kept */
	bool opaque; /* bytes of which nothing is known */
	bool small;  /* short files: several are one chunk */
	uint8_t segment; /* enum vv_segment: memory of a process */
	uint64_t instances, raw;
	uint32_t last; /* file + 1 that it was last seen in */
	uint64_t last_dataset; /* and what instance there */
	/* engine/files/recipes.c */
	bool decided;
	bool joint; /* with other little memory: one block, behind all else */
	struct vv_recipe recipe;
	bool merged, coded, paper;
	bool interleaved; /* merged, and too large to lie in one block with others: in turn, a stretch of each file */
	uint32_t expected_ratio;
	uint64_t basis;
	uint8_t age;
	struct vv_file_set_placed placed; /* engine/files/pack_pipeline.c */
};

struct vv_file_set {
	struct vv_file_set_file *file;
	size_t n_files, files_cap;
	struct vv_file_set_kind *kind; /* the first is what is no variable */
	size_t n_kinds, kinds_cap;
	struct vv_map by_tag;
	struct vv_file_span *span; /* by file and offset; they cover the files; kin is the number of the kind */
	size_t n_spans, spans_cap;
	bool is_streamed; /* they come by themselves */
	struct vv_file_set_held *held; /* engine/files/stream_input.c: their bytes, by file and offset; the spans cover these */
	size_t n_held, held_cap;
	uint64_t bytes;
	struct vv_xattr_left left;
	struct vv_segment_policy policy;
	const atomic_bool *stop; /* nothing is read any more when it becomes true; or NULL */
};

enum { VV_FILE_SET_SKELETON = 0 };

struct vv_file_set_options {
	const struct vv_similarity_key *similarity_key; /* NULL: files are not looked into */
	uint64_t small;           /* variables of fewer bytes are skeleton */
	bool by_shape;            /* variables of one key whose rows differ are of different kinds */
	const char *segments;     /* engine/files/segment_policy.h */
	const atomic_bool *stop;  /* engine/files/pack.h */
	bool shared;              /* other ranks pack other files of the epoch */
};

/* No files yet: they come by themselves. segments: engine/files/segment_policy.h. */
int vv_file_set_await(const char *segments, struct vv_file_set *out);
/* The kind of memory of this name; skeleton where there are too many. */
int vv_file_set_segment(struct vv_file_set *c, const char *name, uint8_t segment, uint32_t *kind);
/* Names are the caller's and stay. What is not a regular file, or cannot be opened, is an error that names it. */
int vv_file_set_open(const struct vv_pack_file *file, size_t n, const struct vv_file_set_options *opt, struct vv_pool *pool,
		  struct vv_file_set *out);
void vv_file_set_close(struct vv_file_set *c);
/* Cuts the list of files into `shares` stretches of about as many bytes each: first[i] is where the i-th begins, first[shares] is n. */
int vv_file_set_shares(const struct vv_pack_file *file, size_t n, uint32_t shares, uint64_t *first);
/* VV_EIO if it is to end. */
int vv_file_set_check_stop(const struct vv_file_set *c);
/* All n bytes; a file that has become shorter is an error. Of one that comes by itself: such as are held. */
int vv_file_set_read(const struct vv_file_set *c, uint32_t file, uint64_t at, void *to, size_t n);
/* Of the len bytes from `at` on *hole are a hole of the file, and the *data behind them are none. */
void vv_file_set_find_hole(const struct vv_file_set *c, uint32_t file, uint64_t at, uint64_t len, uint64_t *hole, uint64_t *data);
/* The length of the chunk of this kind that begins at p, of which there are n bytes and no more; chunk: of what is not cut by its content. */
size_t vv_file_set_cut(const struct vv_file_set *c, const struct vv_file_set_kind *k, size_t chunk, const uint8_t *p, size_t n);
/* Do its cuts follow from the content, so that they may lie anywhere? */
bool vv_file_set_cuts_by_content(const struct vv_file_set *c, const struct vv_file_set_kind *k);
/* Are all files still as they were when they were opened? */
int vv_file_set_check(const struct vv_file_set *c);
/* Span numbers by kind, those of joint ones last, then file, then offset: new memory. */
int vv_file_set_by_kind(const struct vv_file_set *c, uint32_t **out);

#endif
