/* The output of 'varve top'. */
#ifndef VV_CLI_TOP_TOP_TEXT_H
#define VV_CLI_TOP_TOP_TEXT_H

#include "cli/top/top.h"

/* As text within the given columns and lines; and as JSON for programs. */
int vv_top_text_put(const struct vv_top *t, size_t columns, size_t lines, struct vv_buf *out);
void vv_top_text_json(const struct vv_top *t, struct vv_json *j);

#endif
