/* The standard output: gathered in memory and written in large pieces. Every failed write is known
 * with its reason. A reader that has closed its end gets no message. */
#ifndef VV_CLI_BASE_OUT_H
#define VV_CLI_BASE_OUT_H

#include "base/buf.h"
#include <stdbool.h>

struct vv_out {
	struct vv_buf buf;
	bool begun; /* something was written */
	/* errno of the first write that failed; nothing is written after it. EPIPE is not
	 * reported */
	int error;
};

/* Opens descriptors 0 to 2 if they are closed, so that no file of the store can get their
 * numbers. */
void vv_out_guard(void);
void vv_out_printf(struct vv_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes the gathered output. */
void vv_out_flush(struct vv_out *o);
/* Writes the rest and closes; an error has the reason for incomplete output. */
int vv_out_finish(struct vv_out *o);
/* After another writer failed there: has the reader closed its end? If so, error becomes EPIPE. */
void vv_out_look(struct vv_out *o);

#endif
