#include "cli/image/image_targets.h"
#include "base/err.h"
#include "base/mem.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 1 << 20 };

void vv_image_targets_fini(struct vv_image_targets *w)
{
	vv_mem_free(w->pid);
	*w = (struct vv_image_targets){ 0 };
}

/* Takes the number at *text and moves *text behind it. Returns 1, or 0 if there is none. */
static int take_number(const char **text, struct vv_image_targets *out)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = isdigit((unsigned char)**text) ? strtoul(*text, &end, 10) : 0;
	if (n < 1 || n > INT32_MAX || errno)
		return 0;
	if (vv_mem_room(&out->pid, out->n, &out->cap, sizeof(*out->pid)) < 0)
		return VV_ENOMEM;
	out->pid[out->n++] = (pid_t)n;
	*text = end;
	return 1;
}

static int from_list(const char *list, uint32_t rank, uint32_t ranks, struct vv_image_targets *out)
{
	const char *at = list;
	int rc = take_number(&at, out);

	while (rc == 1 && *at == ',') {
		at++;
		rc = take_number(&at, out);
	}
	if (rc < 0)
		return rc;
	if (rc == 0 || *at)
		return vv_err_set(VV_EINVAL, "image: --pid '%s': numbers of processes are expected, with commas between them", list);
	if (ranks == 1)
		return 0;
	if (out->n != ranks)
		return vv_err_set(VV_EINVAL, "image: --pid names %zu process%s for %u ranks: one for each, in their order (or any number of them, by --pid-file)",
				  out->n, out->n == 1 ? "" : "es", ranks);
	out->pid[0] = out->pid[rank];
	out->n = 1;
	return 0;
}

/* The pattern with %r as the rank's number, and %% as a percent sign. */
static int write_path(const char *pattern, uint32_t rank, struct vv_buf *out)
{
	for (const char *at = pattern; *at; at++) {
		if (*at != '%') {
			vv_buf_add(out, at, 1);
			continue;
		}
		at++;
		if (*at != 'r' && *at != '%')
			return vv_err_set(VV_EINVAL, "image: --pid-file '%s': %%r is the rank's number, %%%% a percent sign, and there is nothing else",
					  pattern);
		if (*at == 'r')
			vv_buf_printf(out, "%u", rank);
		else
			vv_buf_add(out, at, 1);
	}
	vv_buf_add(out, "", 1);
	return vv_buf_check(out);
}

static int read_text(const char *path, struct vv_buf *out)
{
	FILE *f = fopen(path, "re");
	size_t got = 1;

	if (!f)
		return vv_err_sys(errno, "cannot read '%s', which should hold numbers of processes", path);
	while (got && out->n < FILE_MOST && vv_buf_room(out, BUFSIZ)) {
		got = fread(out->p + out->n, 1, BUFSIZ, f);
		out->n += got;
	}
	fclose(f);
	if (out->n >= FILE_MOST)
		return vv_err_set(VV_EINVAL, "'%s' is too large for a file of process numbers", path);
	vv_buf_add(out, "", 1);
	return vv_buf_check(out);
}

static int from_file(const char *path, struct vv_image_targets *out)
{
	static const char blanks[] = " \t\r\n";
	struct vv_buf text = { 0 };
	const char *at;
	int rc = read_text(path, &text);

	if (rc == 0) {
		at = (const char *)text.p;
		do {
			at += strspn(at, blanks);
			rc = *at ? take_number(&at, out) : 0;
		} while (rc == 1 && (!*at || strchr(blanks, *at)));
		if (rc >= 0)
			rc = !*at && out->n ? 0 : vv_err_set(VV_EINVAL, "'%s' does not hold numbers of processes, with blanks between them", path);
	}
	vv_buf_fini(&text);
	return rc;
}

int vv_image_targets_get(const struct vv_verb_context *job, struct vv_image_targets *out)
{
	const char *list = vv_args_value(job->args, "pid"), *pattern = vv_args_value(job->args, "pid-file");
	uint32_t rank = job->ranks ? job->ranks->rank : 0, ranks = job->ranks ? job->ranks->size : 1;
	struct vv_buf path = { 0 };
	int rc;

	*out = (struct vv_image_targets){ 0 };
	if (list && pattern)
		return vv_err_set(VV_EINVAL, "image: --pid or --pid-file, not both");
	if (list)
		return from_list(list, rank, ranks, out);
	if (!pattern)
		return 0;
	rc = write_path(pattern, rank, &path);
	if (rc == 0)
		rc = from_file((const char *)path.p, out);
	vv_buf_fini(&path);
	return rc;
}
