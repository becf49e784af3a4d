/* The standard output: gathered in memory, written in large pieces, and every failure to write is known with its
 * reason. A reader that went away is not worth a message. */
#ifndef VV_CLI_BASE_OUT_H
#define VV_CLI_BASE_OUT_H

#include "base/buf.h"
#include <stdbool.h>

struct vv_out {
	struct vv_buf buf;
	bool begun; /* something was written */
	int error; /* errno of the first write that failed; nothing is written after it. EPIPE is no news to anybody */
};

/* Descriptors 0 to 2 are open, so that no file of the store can take their place. */
void vv_out_guard(void);
void vv_out_printf(struct vv_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes what was gathered. */
void vv_out_flush(struct vv_out *o);
/* Writes the rest and closes; an error says why the output is not whole. */
int vv_out_finish(struct vv_out *o);
/* After somebody else failed to write there: has the reader gone away? Then error becomes EPIPE. */
void vv_out_look(struct vv_out *o);

#endif
