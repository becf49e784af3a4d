/* The files to pack: open, parsed, and cut into spans of one kind of variable each. */
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
	bool nofollow;
	/* -1: opened for each read, because there are too many files; or a streamed file
	 * (stream_input.c), and path is its name */
	int fd;
	struct stat st; /* when it was first opened */
	bool busy; /* a process had the file open for writing then, */
	uint64_t check; /* and this was the check value of all of it */
	const char *format;
	/* a hard link: the file has other names, here or perhaps among the files of other ranks */
	bool linked;
	/* 1 + the number of an earlier, identical file that is read instead; 0: none */
	uint32_t repeats;
	struct vv_file_attributes attrs;
	struct vv_runs runs; /* where its bytes are stored; unordered until the file is complete */
	/* engine/files/stream_input.c: its last bytes, which are not stored yet, */
	struct vv_buf skeleton;
	size_t offered;         /* and how many of them are about to be stored */
	/* engine/files/rank_handover.c: a file of another rank, with the counters of its bytes;
	 * NULL: a file of this rank */
	struct varve_stats *other_rank_stats;
};

struct vv_delta;

struct vv_file_set_held { /* a stretch of a streamed file, in memory */
	uint32_t file;
	uint64_t at;
	size_t n;
	const uint8_t *bytes;
};

struct vv_file_set_range { /* of positions in the payload */
	uint64_t from, to;
};

/* The position of a kind in the layer. */
struct vv_file_set_placed {
	struct vv_file_set_range *range; /* its positions in the payload */
	size_t n_ranges, ranges_cap;
	/* bytes that are not in it: zeros; duplicates of an earlier epoch; duplicates within this
	 * epoch */
	uint64_t zero, dup_time, dup_space;
};

struct vv_file_set_kind {
	char *key;  /* for messages */
	char *tag;  /* key and form: identifies the kind */
	struct vv_form form;
	struct vv_variable first; /* type and shape of the first variable; its name is not kept */
	bool opaque; /* untyped bytes */
	bool small;  /* short files: several share a chunk */
	uint8_t segment; /* enum vv_segment: memory of a process */
	uint64_t instances, raw;
	uint32_t last; /* file + 1 in which the kind was last seen */
	uint64_t last_dataset; /* and the instance there */
	/* engine/files/recipes.c */
	bool decided;
	bool joint; /* shares one block with other small memory, behind all other kinds */
	struct vv_recipe recipe;
	bool merged, coded, paper;
	/* merged, and too large for one block with others: a stretch of each file in turn */
	bool interleaved;
	uint32_t expected_ratio;
	uint64_t basis;
	uint8_t age;
	/* engine/files/parent_files.c: its blocks may be such differences; NULL: they are not */
	const struct vv_delta *delta;
	struct vv_file_set_placed placed; /* engine/files/pack_pipeline.c */
};

struct vv_file_set {
	struct vv_file_set_file *file;
	size_t n_files, files_cap;
	struct vv_file_set_kind *kind; /* the first kind holds the bytes outside variables */
	size_t n_kinds, kinds_cap;
	struct vv_map by_tag;
	/* by file and offset; the spans cover the files; kind_id is the number of the kind */
	struct vv_file_span *span;
	size_t n_spans, spans_cap;
	bool is_streamed; /* the files are streamed */
	/* engine/files/stream_input.c: the streamed bytes, by file and offset; the spans cover
	 * them */
	struct vv_file_set_held *held;
	size_t n_held, held_cap;
	uint64_t bytes;
	struct vv_xattr_left left;
	struct vv_segment_policy policy;
	const atomic_bool *stop; /* reading stops when it becomes true; or NULL */
};

enum { VV_FILE_SET_SKELETON = 0 };

struct vv_file_set_options {
	const struct vv_similarity_key *similarity_key; /* NULL: files are not parsed */
	uint64_t small;           /* smaller variables, in bytes, belong to the skeleton */
	bool by_shape; /* variables with one key but different rows are of different kinds */
	const char *segments;     /* engine/files/segment_policy.h */
	const atomic_bool *stop;  /* engine/files/pack.h */
	bool shared;              /* other ranks pack other files of the epoch */
};

/* An empty set for streamed files. segments: engine/files/segment_policy.h. */
int vv_file_set_await(const char *segments, struct vv_file_set *out);
/* The kind of memory of this name; the skeleton if there are too many kinds. */
int vv_file_set_segment(struct vv_file_set *c, const char *name, uint8_t segment, uint32_t *kind);
/* The caller owns the names and keeps them. A file that is not regular, or cannot be opened, is an
 * error; the message names the file. */
int vv_file_set_open(const struct vv_pack_file *file, size_t n, const struct vv_file_set_options *opt, struct vv_pool *pool,
		  struct vv_file_set *out);
void vv_file_set_close(struct vv_file_set *c);
/* Divides the list of files into `shares` stretches of about equal bytes. first[i] is the first
 * file of stretch i; first[shares] is n. */
int vv_file_set_shares(const struct vv_pack_file *file, size_t n, uint32_t shares, uint64_t *first);
/* VV_EIO if *stop is set. */
int vv_file_set_check_stop(const struct vv_file_set *c);
/* Reads all n bytes. VV_EBUSY: the file has become shorter. Of a streamed file, only held bytes can
 * be read. */
int vv_file_set_read(const struct vv_file_set *c, uint32_t file, uint64_t at, void *to, size_t n);
/* Of the len bytes from `at` on, the first *hole bytes are a hole; the next *data bytes are not. */
void vv_file_set_find_hole(const struct vv_file_set *c, uint32_t file, uint64_t at, uint64_t len, uint64_t *hole, uint64_t *data);
/* The length of the chunk of this kind that begins at p; n bytes are available. The parameter chunk
 * is the length of chunks that are not cut by content. */
size_t vv_file_set_cut(const struct vv_file_set *c, const struct vv_file_set_kind *k, size_t chunk, const uint8_t *p, size_t n);
/* Are the chunks cut by content, so that a cut may lie anywhere? */
bool vv_file_set_cuts_by_content(const struct vv_file_set *c, const struct vv_file_set_kind *k);
/* Checks that no file has changed since it was opened. VV_EBUSY: one has. */
int vv_file_set_check(const struct vv_file_set *c);
/* Span numbers ordered by kind (joint kinds last), then file, then offset. The caller frees
 * *out. */
int vv_file_set_by_kind(const struct vv_file_set *c, uint32_t **out);

#endif
