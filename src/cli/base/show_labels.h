/* The labels of an epoch in the output of the verbs. */
#ifndef VV_CLI_BASE_SHOW_LABELS_H
#define VV_CLI_BASE_SHOW_LABELS_H

#include "base/json.h"
#include "cli/base/text.h"
#include "engine/lineage/catalog.h"

/* Adds them to the text, separated by blanks. */
void vv_show_labels_add(struct vv_buf *b, const struct vv_listing *l, uint64_t epoch);
/* Makes them the next cell of a table. */
int vv_show_labels_cell(struct vv_text_table *t, const struct vv_listing *l, uint64_t epoch);
/* The list "labels" of a JSON object. */
void vv_show_labels_put(struct vv_json *j, const struct vv_listing *l, uint64_t epoch);

#endif
