/* Delivers the images of a dump to an epoch: reads criu's pipes and implements
 * engine/files/stream_input.h. */
#ifndef VV_IMAGE_SAVE_IMAGE_INPUT_H
#define VV_IMAGE_SAVE_IMAGE_INPUT_H

#include "engine/files/stream_input.h"
#include "image/criu/action_script.h"
#include "image/save/precopy.h"
#include "image/save/page_buffer.h"

struct vv_process_areas_pid;
struct vv_image_input_stream;
struct vv_drain_pipe;

struct vv_image_input_options {
	pid_t pid;
	const char *what;  /* begins messages: "cannot save process 12" */
	bool leave_running;
	bool precopy;      /* memory is copied before the freeze, where possible */
	uint64_t expected; /* approximate bytes of pages */
	uint64_t memory;   /* limit for pages in bytes; 0: half of the free memory */
	/* The first hook of processes that end together. NULL: this is the first, or the processes
	 * continue. */
	const struct vv_action_script *with;
};

struct vv_image_input_streams {
	/* All streams; streams that have not ended. */
	struct vv_image_input_stream **stream, **open;
	size_t n_streams, streams_cap, n_open, open_cap;
	struct pollfd *poll;
	size_t poll_cap;
};

struct vv_image_input {
	struct vv_criu *criu;
	struct vv_image_input_options opt;
	struct vv_stream_input stream_input;
	int listening, connection; /* -1: closed, or not open yet */
	/* It reports that all images are written; we permit criu to continue. */
	struct vv_action_script hook;
	bool is_ready, ended, full;
	struct vv_image_input_streams streams;
	struct vv_process_areas_pid *pids; /* of the frozen tree */
	size_t n_pids;
	struct vv_drain_pipe *drain;
	struct vv_page_buffer room; /* for the pages of all streams, in the order of arrival */
	struct vv_precopy precopy;
	bool check;           /* the earlier copy is not used, but compared with criu's pages */
	uint64_t precopied, late; /* image/save/precopied_file.h, sums over all streams */
	size_t other; /* bytes of images without pages */
	bool delivering; /* parts are being delivered, from this position on */
	size_t at_stream, at_stretch, at_byte;
};

/* criu is open and not started; its command line is extended. It starts with the first request for
 * a part. */
int vv_image_input_open(struct vv_image_input *c, struct vv_criu *criu, const struct vv_image_input_options *opt);
/* The epoch was committed, or discarded (stored is false): the frozen processes end, or
 * continue. */
int vv_image_input_finish(struct vv_image_input *c, bool stored);
/* Does not wait for criu. */
void vv_image_input_close(struct vv_image_input *c);

#endif
