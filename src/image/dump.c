#include "image/dump.h"
#include "base/err.h"
#include "base/wire.h"
#include "engine/policy.h"
#include "image/capture.h"
#include "image/tree.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what criu says of its dump: two magic numbers, a length, a protobuf in a protobuf, of numbers ------------------------------ */

enum { STATS_FROZEN = 2, STATS_MOST = 512 };

static double frozen_in(const uint8_t *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);

	vv_wire_bytes(&w, 12);
	vv_wire_var(&w); /* the field of a dump, */
	vv_wire_var(&w); /* and its length */
	while (!w.bad && vv_wire_left(&w)) {
		uint64_t tag = vv_wire_var(&w), value = vv_wire_var(&w);

		if (!w.bad && tag >> 3 == STATS_FROZEN)
			return (double)value / 1e6;
	}
	return 0;
}

static double frozen_time(const struct vv_criu *c)
{
	char path[VV_CRIU_FOLDER + 16];
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

/* ---- the verb ---------------------------------------------------------------------------------------------------------------- */

static int measure(pid_t pid, uint64_t *memory)
{
	struct vv_tree t = { 0 };
	int rc = vv_tree_list(pid, &t);

	if (rc == 0 && vv_tree_is_zombie(pid))
		rc = vv_err_set(VV_ENOENT, "process %d has ended, and only its parent has not heard of it yet", (int)pid);
	for (size_t i = 0; rc == 0 && i < t.n; i++)
		if (t.pid[i] == getpid())
			rc = vv_err_set(VV_EINVAL, "process %d is this command's own, or above it: it cannot save itself", (int)pid);
	*memory = vv_tree_memory(&t);
	vv_tree_fini(&t);
	return rc;
}

int vv_dump_check(const struct vv_dump_options *opt)
{
	struct vv_criu_version version;
	struct vv_policy policy;
	uint64_t memory;
	int rc = measure(opt->pid, &memory);

	if (rc == 0)
		rc = vv_policy_init(&policy, opt->segments);
	return rc ? rc : vv_criu_version(&version);
}

static int dump(struct varve *v, struct vv_capture *c, const struct vv_dump_options *opt, struct vv_pack_report *out)
{
	struct vv_pack_options pack = {
		.scheme = VV_PACK_AUTO, .effort = VV_PACK_DEFAULT, .segments = opt->segments, .inflow = &c->inflow, .progress = opt->progress
	};
	struct vv_err_state error;
	int rc = vv_pack_run(v, NULL, 0, &pack, out);

	if (rc == 0)
		return vv_capture_conclude(c, true);
	vv_err_save(rc, &error);
	vv_capture_conclude(c, false);
	return vv_err_restore(&error);
}

static int run_criu(struct varve *v, struct vv_criu *criu, const struct vv_dump_options *opt, uint64_t expected, struct vv_dump_report *out)
{
	char pid[16], what[64];
	struct vv_capture_options how = {
		.pid = opt->pid, .what = what, .leave_running = opt->leave_running, .expected = expected, .memory = opt->memory
	};
	struct vv_capture c;
	int rc;

	snprintf(pid, sizeof(pid), "%d", (int)opt->pid);
	snprintf(what, sizeof(what), "cannot save process %s", pid);
	vv_criu_word(criu, "-t");
	vv_criu_word(criu, pid);
	if (opt->shell_job)
		vv_criu_word(criu, "--shell-job");
	rc = vv_capture_open(&c, criu, &how);
	for (size_t i = 0; i < opt->n_extra; i++)
		vv_criu_word(criu, opt->extra[i]);
	if (rc == 0)
		rc = dump(v, &c, opt, &out->pack);
	vv_capture_close(&c);
	if (rc == 0)
		out->frozen_s = frozen_time(criu);
	vv_criu_close(criu); /* its words are ours */
	return rc;
}

int vv_dump_run(struct varve *v, const struct vv_dump_options *opt, struct vv_dump_report *out)
{
	struct vv_criu criu = { .pidfd = -1 };
	uint64_t expected = 0;
	int rc = measure(opt->pid, &expected);

	*out = (struct vv_dump_report){ 0 };
	if (rc == 0)
		rc = vv_criu_open(&criu);
	if (rc == 0)
		rc = run_criu(v, &criu, opt, expected, out);
	vv_criu_close(&criu);
	return rc;
}

void vv_dump_report_fini(struct vv_dump_report *r)
{
	vv_pack_report_fini(&r->pack);
}
