#include "image/dump.h"
#include "base/err.h"
#include "base/wire.h"
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

int vv_dump_check(pid_t pid)
{
	struct vv_criu_version version;
	uint64_t memory;
	int rc = measure(pid, &memory);

	return rc ? rc : vv_criu_version(&version);
}

static int dump(struct varve *v, struct vv_capture *c, const struct vv_dump_options *opt, struct vv_pack_report *out)
{
	struct vv_pack_options pack = { .scheme = VV_PACK_AUTO, .effort = VV_PACK_DEFAULT, .inflow = &c->inflow, .progress = opt->progress };
	struct vv_err_state error;
	int rc = vv_pack_run(v, NULL, 0, &pack, out);

	if (rc == 0)
		return vv_capture_conclude(c, true);
	vv_err_save(rc, &error);
	vv_capture_conclude(c, false);
	return vv_err_restore(&error);
}

int vv_dump_run(struct varve *v, const struct vv_dump_options *opt, struct vv_dump_report *out)
{
	struct vv_criu criu = { .pidfd = -1 };
	struct vv_capture c = { .listening = -1, .connection = -1, .ready = { -1, -1 }, .go = { -1, -1 } };
	char pid[16], what[64];
	uint64_t memory = 0;
	int rc = measure(opt->pid, &memory);

	*out = (struct vv_dump_report){ 0 };
	snprintf(pid, sizeof(pid), "%d", (int)opt->pid);
	snprintf(what, sizeof(what), "cannot save process %s", pid);
	if (rc == 0)
		rc = vv_criu_open(&criu);
	vv_criu_word(&criu, "-t");
	vv_criu_word(&criu, pid);
	if (opt->shell_job)
		vv_criu_word(&criu, "--shell-job");
	if (rc == 0)
		rc = vv_capture_open(&c, &criu, what, opt->leave_running, memory);
	for (size_t i = 0; i < opt->n_extra; i++)
		vv_criu_word(&criu, opt->extra[i]);
	if (rc == 0)
		rc = dump(v, &c, opt, &out->pack);
	vv_capture_close(&c);
	if (rc == 0)
		out->frozen_s = frozen_time(&criu);
	vv_criu_close(&criu);
	return rc;
}

void vv_dump_report_fini(struct vv_dump_report *r)
{
	vv_pack_report_fini(&r->pack);
}
