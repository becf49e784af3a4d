#include "image/save/dump.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/files/segment_policy.h"
#include "engine/ranks/group.h"
#include "engine/context.h"
#include "image/process/uffd_keeper.h"
#include "image/save/image_input.h"
#include "image/process/private_devpts.h"
#include "image/criu/tree_names.h"
#include "image/process/process_tree.h"
#include "reader/criu_entries.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- criu's statistics of a dump ------------------------------------------------------------- */

enum { STATS_OF_DUMP = 1, STATS_FROZEN = 2, STATS_MOST = 512 };

static double frozen_in(const uint8_t *p, size_t n)
{
	struct vv_proto left = vv_criu_entries_open(p, n, VV_CRIU_STATS), entry = { 0 };

	vv_criu_entries_next(&left, &entry);
	return (double)vv_proto_number(vv_proto_body(entry, STATS_OF_DUMP), STATS_FROZEN) / 1e6;
}

static double frozen_time(const struct vv_criu *c)
{
	char path[VV_WORKDIR_PATH + 16];
	uint8_t bytes[STATS_MOST];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/stats-dump", c->folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, bytes, sizeof(bytes));
		close(fd);
	}
	return n > 0 ? frozen_in(bytes, (size_t)n) : 0;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static int look(pid_t pid, struct vv_process_tree *t)
{
	int rc = vv_process_tree_list(pid, t);

	if (rc == 0 && vv_process_tree_is_kernels(pid))
		rc = vv_err_set(VV_EINVAL, "process %d is a part of the kernel, and cannot be saved", (int)pid);
	if (rc == 0 && vv_process_tree_is_zombie(pid))
		rc = vv_err_set(VV_ENOENT, "process %d has ended, and only its parent has not heard of it yet", (int)pid);
	for (size_t i = 0; rc == 0 && i < t->n; i++) {
		pid_t tracer = vv_process_tree_tracer(t->pid[i]);

		if (t->pid[i] == getpid())
			rc = vv_err_set(VV_EINVAL, "process %d is this command's own, or above it: it cannot save itself", (int)pid);
		else if (tracer)
			rc = vv_err_set(VV_EBUSY, "cannot save process %d: process %d is traced by process %d (a debugger, or another dump?): "
					"end that first, or wait for its end", (int)pid,
					(int)t->pid[i], (int)tracer);
		else if (vv_uffd_keeper_is_held(t->pid[i]))
			rc = vv_err_set(VV_EBUSY, "cannot save process %d: process %d was restored by --lazy, and not all of its pages are there yet: wait until they "
					"are", (int)pid, (int)t->pid[i]);
	}
	return rc;
}

int vv_dump_check(const struct vv_dump_options *opt)
{
	struct vv_criu_version version;
	struct vv_segment_policy policy;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < opt->n_pids; i++) {
		struct vv_process_tree t = { 0 };

		rc = look(opt->pid[i], &t);
		vv_process_tree_fini(&t);
	}
	if (rc == 0)
		rc = vv_segment_policy_init(&policy, opt->segments);
	return rc ? rc : vv_criu_version(&version);
}

struct subject { /* a tree to be saved */
	struct vv_criu criu;
	struct vv_image_input capture;
	char pid[16], what[64];
};

static int prepare(struct subject *s, pid_t pid, const struct vv_dump_options *opt, const struct vv_action_script *with)
{
	struct vv_process_tree t = { 0 };
	struct vv_image_input_options how = { .pid = pid, .what = s->what, .leave_running = opt->leave_running, .precopy = opt->precopy, .with = with };
	int rc = look(pid, &t);

	how.expected = vv_process_tree_memory(&t);
	how.memory = (opt->memory ? opt->memory : vv_mem_available() / 2) / opt->n_pids;
	vv_process_tree_fini(&t);
	snprintf(s->pid, sizeof(s->pid), "%d", (int)pid);
	snprintf(s->what, sizeof(s->what), "cannot save process %s", s->pid);
	if (rc == 0)
		rc = vv_criu_open(&s->criu);
	s->criu.inside = vv_private_devpts_has(pid) ? pid : 0;
	vv_criu_add_arg(&s->criu, "-t");
	vv_criu_add_arg(&s->criu, s->pid);
	if (opt->shell_job)
		vv_criu_add_arg(&s->criu, "--shell-job");
	if (rc == 0)
		rc = vv_image_input_open(&s->capture, &s->criu, &how);
	for (size_t i = 0; i < opt->n_extra; i++)
		vv_criu_add_arg(&s->criu, opt->extra[i]);
	return rc;
}

static int prepare_all(struct subject **out, const struct vv_dump_options *opt)
{
	struct subject *s = vv_mem_new(opt->n_pids, sizeof(*s));
	int rc = s ? 0 : VV_ENOMEM;

	for (size_t i = 0; s && i < opt->n_pids; i++) {
		s[i].criu.pidfd = -1;
		s[i].capture = (struct vv_image_input){ .listening = -1, .connection = -1, .hook = VV_ACTION_SCRIPT_NONE };
	}
	for (size_t i = 0; rc == 0 && i < opt->n_pids; i++)
		rc = prepare(&s[i], opt->pid[i], opt, i && !opt->leave_running ? &s[0].capture.hook : NULL);
	*out = s;
	return rc;
}

static void close_all(struct subject *s, size_t n)
{
	for (size_t i = 0; s && i < n; i++) {
		vv_image_input_close(&s[i].capture);
		vv_criu_close(&s[i].criu);
	}
	vv_mem_free(s);
}

/* Either all trees end, if requested, or none: they share one permission. */
static int give_word(struct subject *s, size_t n, int rc)
{
	struct vv_err_state error;

	vv_err_save(rc, &error);
	for (size_t i = 0; i < n; i++) {
		int ended = vv_image_input_finish(&s[i].capture, rc == 0);

		if (ended && !error.code)
			vv_err_save(ended, &error);
	}
	return error.code ? vv_err_restore(&error) : 0;
}

/* A later restore needs their numbers, so killed processes must have ended on return. */
static int conclude(struct subject *s, const struct vv_dump_options *opt, int rc)
{
	/* All of them are frozen by now. */
	struct vv_process_tree *t = rc || opt->leave_running ? NULL : vv_mem_new(opt->n_pids, sizeof(*t));

	for (size_t i = 0; t && i < opt->n_pids; i++)
		if (vv_process_tree_list(opt->pid[i], &t[i]) < 0)
			vv_err_clear();
	rc = give_word(s, opt->n_pids, rc);
	for (size_t i = 0; t && i < opt->n_pids; i++) {
		if (rc == 0)
			vv_process_tree_wait(&t[i]);
		vv_process_tree_fini(&t[i]);
	}
	vv_mem_free(t);
	return rc;
}

static void report(const struct subject *s, struct vv_dump_report *out)
{
	double seconds = frozen_time(&s->criu);

	seconds += seconds > 0 ? s->capture.precopy.stopped_s : 0;
	out->frozen_s = seconds > out->frozen_s ? seconds : out->frozen_s;
	out->precopied += s->capture.precopied;
	out->late += s->capture.late;
	if (!out->why[0])
		snprintf(out->why, sizeof(out->why), "%s", s->capture.precopy.why);
}

static int dump(struct varve *v, struct subject *s, const struct vv_tree_names_place *place, const struct vv_dump_options *opt, struct vv_dump_report *out)
{
	const struct vv_stream_input **from = vv_mem_new(opt->n_pids, sizeof(const struct vv_stream_input *));
	struct vv_tree_names_input flow;
	struct vv_pack_options pack = { .scheme = VV_PACK_AUTO, .effort = VV_PACK_DEFAULT, .segments = opt->segments, .progress = opt->progress };
	int rc = v->ctx.group ? vv_group_agree(v->ctx.group, v->ctx.group->comm, from ? 0 : VV_ENOMEM) : from ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < opt->n_pids; i++)
		from[i] = &s[i].capture.stream_input;
	if (rc == 0) {
		pack.stream_input = vv_tree_names_input(&flow, from, opt->n_pids, place);
		rc = vv_pack_run(v, NULL, 0, &pack, &out->pack);
		vv_tree_names_input_fini(&flow);
	}
	rc = conclude(s, opt, rc);
	for (size_t i = 0; rc == 0 && i < opt->n_pids; i++)
		report(&s[i], out);
	vv_mem_free(from);
	return rc;
}

/* Maximum over all ranks; a rank may have failed to release its process. */
static int longest_frozen(struct vv_group *g, int rc, double *seconds)
{
	uint64_t us = (uint64_t)(*seconds * 1e6);

	rc = vv_group_agree(g, g->comm, rc);
	if (rc == 0)
		rc = vv_comm_allreduce(g->comm, &us, 1, VARVE_MAX);
	*seconds = (double)us / 1e6;
	return rc;
}

int vv_dump_run(struct varve *v, const struct vv_dump_options *opt, struct vv_dump_report *out)
{
	struct subject *s = NULL;
	struct vv_tree_names_place place = { 0 };
	int rc = prepare_all(&s, opt);

	*out = (struct vv_dump_report){ 0 };
	rc = vv_tree_names_agree(v, rc, opt->pid, opt->n_pids, &place);
	if (rc == 0)
		rc = dump(v, s, &place, opt, out);
	if (v->ctx.group)
		rc = longest_frozen(v->ctx.group, rc, &out->frozen_s);
	close_all(s, opt->n_pids);
	return rc;
}

int vv_dump_try(const struct vv_dump_options *opt)
{
	struct vv_dump_options how = *opt;
	struct subject *s = NULL;
	int rc;

	how.precopy = false;
	rc = prepare_all(&s, &how);
	for (size_t i = 0; rc == 0 && i < opt->n_pids; i++) {
		struct vv_stream_input_part part;

		do
			rc = s[i].capture.stream_input.next(s[i].capture.stream_input.arg, &part);
		while (rc == VV_STREAM_INPUT_PART || rc == VV_STREAM_INPUT_PAUSE);
		rc = rc == VV_STREAM_INPUT_END ? 0 : rc;
	}
	close_all(s, opt->n_pids);
	return rc;
}

void vv_dump_report_fini(struct vv_dump_report *r)
{
	vv_pack_report_fini(&r->pack);
}
