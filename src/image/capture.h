/* The images of a dump on their way into an epoch: what criu writes into its pipes is what engine/inflow.h asks for. */
#ifndef VV_IMAGE_CAPTURE_H
#define VV_IMAGE_CAPTURE_H

#include "engine/inflow.h"
#include "image/criu.h"

struct vv_capture_stream;

struct vv_capture {
	struct vv_criu *criu;
	const char *what;     /* begins messages: "cannot save process 12" */
	bool leave_running;
	struct vv_inflow inflow;
	int listening, connection; /* -1: not any more, or not yet */
	int ready[2], go[2];       /* pipes: the hook says that all is written; we, that it may go on */
	bool is_ready, ended;
	struct vv_capture_stream **stream;
	size_t n_streams, streams_cap, n_open, turn;
	uint8_t *bytes;
};

/* criu is open, not started; its command line is added to. It starts with the first part that is asked for. */
int vv_capture_open(struct vv_capture *c, struct vv_criu *criu, const char *what, bool leave_running, uint64_t expected);
/* The epoch counts, or does not (stored is false): what was frozen ends, or runs on. */
int vv_capture_conclude(struct vv_capture *c, bool stored);
void vv_capture_close(struct vv_capture *c);

#endif
