/* The description of an epoch that was packed from files: kinds of variables, and the files. */
#ifndef VV_CLI_BASE_SHOW_FILES_H
#define VV_CLI_BASE_SHOW_FILES_H

#include "base/map.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "core/format/manifest.h"
#include "engine/lineage/run_table.h"

struct vv_show_files { /* of one rank, or of several together; all zero is empty */
	bool any; /* is there a list of files at all? */
	struct vv_manifest all; /* kinds of one key are merged */
	uint64_t *len;          /* of each file */
	size_t lens_cap;
	struct vv_map by_key;
	bool *differs; /* kinds that ranks compressed in different ways */
	size_t differs_cap;
};

void vv_show_files_fini(struct vv_show_files *s);
/* Adds the files that the rank of this table packed, if there are any. */
int vv_show_files_add(struct vv_show_files *s, struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_run_table *t);
/* The same by its layer's head. The table is loaded only if there are files to show. */
int vv_show_files_add_head(struct vv_show_files *s, struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_head *h);
/* Prints tables; all: lists more than a few files. */
int vv_show_files_print(const struct vv_show_files *s, struct vv_out *o, bool all);
void vv_show_files_put(const struct vv_show_files *s, struct vv_json *j);
void vv_show_files_put_kinds(struct vv_json *j, const struct vv_manifest *m);

/* A table of files, and a row of it; bytes: its length, as printed. */
void vv_show_files_table(struct vv_text_table *t, const char *indent);
void vv_show_files_row(struct vv_text_table *t, const struct vv_manifest_file *f, const char *bytes);
/* The same, into the current object. */
void vv_show_files_put_file(struct vv_json *j, const struct vv_manifest_file *f, uint64_t bytes);
/* A symbolic link or a folder: a row of the same table, or an object. */
void vv_show_files_entry_row(struct vv_text_table *t, const struct vv_manifest_entry *e);
void vv_show_files_put_entry(struct vv_json *j, const struct vv_manifest_entry *e);

#endif
