/* cli/top/top_text */
#ifndef VV_CLI_TOP_TOP_TEXT_H
#define VV_CLI_TOP_TOP_TEXT_H

#include "cli/top/top.h"

/* For people, as wide and high as there is room; and for programs. */
int vv_top_text_put(const struct vv_top *t, size_t columns, size_t lines, struct vv_buf *out);
void vv_top_text_json(const struct vv_top *t, struct vv_json *j);

#endif
