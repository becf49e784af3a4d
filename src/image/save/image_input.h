/* The images of a dump on their way into an epoch: what criu writes into its pipes is what engine/files/stream_input.h asks for. */
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
	bool precopy;      /* memory is copied before it is frozen, where that can be done */
	uint64_t expected; /* bytes of pages, about */
	uint64_t memory;   /* for pages, at most; 0: half of what is free */
	const struct vv_action_script *with; /* of those that end together, the first one's; NULL: there is none yet, or they run on */
};

struct vv_image_input_streams {
	struct vv_image_input_stream **stream, **open; /* all; those that have not ended */
	size_t n_streams, streams_cap, n_open, open_cap;
	struct pollfd *poll;
	size_t poll_cap;
};

struct vv_image_input {
	struct vv_criu *criu;
	struct vv_image_input_options opt;
	struct vv_stream_input stream_input;
	int listening, connection; /* -1: not any more, or not yet */
	struct vv_action_script hook;       /* it says that all is written; we, that criu may go on */
	bool is_ready, ended, full;
	struct vv_image_input_streams streams;
	struct vv_process_areas_pid *pids; /* of the tree, once it is frozen */
	size_t n_pids;
	struct vv_drain_pipe *drain;
	struct vv_page_buffer room; /* for pages of all streams, as they come */
	struct vv_precopy precopy;
	bool check;           /* what was copied before is not used, but compared with what criu hands over */
	uint64_t precopied, late; /* image/save/precopied_file.h, of all streams */
	size_t other; /* bytes that are not pages */
	bool delivering; /* what was read is being handed on: */
	size_t at_stream, at_stretch, at_byte;
};

/* criu is open, not started; its command line is added to. It starts with the first part that is asked for. */
int vv_image_input_open(struct vv_image_input *c, struct vv_criu *criu, const struct vv_image_input_options *opt);
/* The epoch counts, or does not (stored is false): what was frozen ends, or runs on. */
int vv_image_input_finish(struct vv_image_input *c, bool stored);
/* Waits for nobody. */
void vv_image_input_close(struct vv_image_input *c);

#endif
