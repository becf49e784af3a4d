#include "image/restore/restore_one.h"
#include "base/err.h"
#include "image/restore/lazy_pages.h"
#include "image/restore/serve_images.h"
#include "image/restore/socket_files.h"
#include "image/process/process_tree.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static const char pid_name[] = "pid";

int vv_restore_one_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return vv_process_tree_spare();
}

int vv_restore_one_pid(const struct vv_criu *c, pid_t *pid)
{
	char path[VV_WORKDIR_PATH + sizeof(pid_name) + 1];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", c->folder, pid_name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	*pid = n;
	return n > 0 ? 0 : vv_err_set(VV_EIO, "criu does not say which process it has restored");
}

/* Everything is checked while criu starts: it gets no image before that. */
static int serve(struct vv_serve_images *s, struct vv_lazy_pages *l, const struct vv_criu *c, struct vv_socket_files *kept, const struct vv_restore_one_options *opt)
{
	int rc = vv_serve_images_check(s, !opt->lazy, &opt->progress);

	if (rc == 0)
		rc = vv_serve_images_await_numbers(s);
	if (rc == 0)
		rc = vv_socket_files_keep(kept, s);
	if (rc == 0 && l)
		rc = vv_lazy_pages_start(l);
	return rc ? rc : vv_serve_images_run(s, c, NULL);
}

int vv_restore_one_start(struct vv_criu *c, const struct vv_restore_one_options *opt)
{
	vv_criu_add_arg(c, "-d");
	vv_criu_add_arg(c, "--pidfile");
	vv_criu_add_arg(c, pid_name);
	if (opt->shell_job)
		vv_criu_add_arg(c, "--shell-job");
	for (size_t i = 0; i < opt->n_extra; i++)
		vv_criu_add_arg(c, opt->extra[i]);
	return vv_criu_start(c, "restore", opt->shell_job);
}

static int run(struct vv_serve_images *s, struct vv_lazy_pages *l, struct vv_criu *c, struct vv_socket_files *kept, const struct vv_restore_one_options *opt, const char *what)
{
	struct vv_err_state error;
	int rc = vv_restore_one_start(c, opt), ended;

	if (rc)
		return rc;
	rc = serve(s, l, c, kept, opt);
	vv_err_save(rc, &error);
	vv_serve_images_disconnect(s);
	ended = vv_criu_wait(c, what);
	if (rc)
		return vv_err_restore(&error);
	return ended && l && vv_lazy_pages_failed(l) ? vv_lazy_pages_wait(l) : ended;
}

int vv_restore_one_run(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, const struct vv_restore_one_options *opt, pid_t *pid)
{
	struct vv_criu c = { .pidfd = -1 };
	struct vv_serve_images s = { .listening = -1, .connection = -1 };
	struct vv_lazy_pages *l = NULL;
	struct vv_socket_files kept = { 0 };
	char what[192];
	int rc = vv_criu_open(&c);

	snprintf(what, sizeof(what), "cannot restore epoch %" PRIu64 " of lineage '%s'", epoch, lin->name);
	if (rc == 0)
		rc = vv_serve_images_open(&s, lin, epoch, pool, opt->memory);
	if (rc == 0)
		rc = vv_serve_images_listen(&s, c.folder);
	if (rc == 0)
		rc = opt->lazy ? vv_lazy_pages_open(&s, &c, false, &l) : vv_lazy_pages_open_eager(&s, &c, pool, &l);
	if (rc == 0)
		rc = run(&s, l, &c, &kept, opt, what);
	if (rc == 0)
		rc = vv_restore_one_pid(&c, pid);
	if (rc == 0)
		vv_socket_files_close(&kept, false);
	if (rc == 0 && opt->runs)
		opt->runs(opt->arg, *pid);
	if (rc == 0 && l)
		rc = vv_lazy_pages_wait(l);
	/* An incomplete tree would keep its numbers, or lacks some memory: it is killed before that
	 * is visible. */
	if (rc)
		vv_process_tree_clear();
	vv_socket_files_close(&kept, true);
	vv_lazy_pages_close(l);
	vv_serve_images_close(&s);
	vv_criu_close(&c);
	return rc;
}
