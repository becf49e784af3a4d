#include "engine/session/rehearse.h"
#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/device_restore.h"
#include "engine/read/restore.h"
#include "engine/context.h"
#include "engine/run_protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POISON = 0xa5 };

void (*vv_rehearse_declare)(struct varve *v);

int vv_rehearse_parse(struct vv_rehearse *out)
{
	const char *text = vv_env_get(VV_RUN_PROTOCOL_REHEARSE);
	char *end;

	*out = (struct vv_rehearse){ 0 };
	if (!text || !*text)
		return 0;
	out->look = strtoull(text, &end, 10);
	if (*end == '-')
		out->last = strtoull(end + 1, &end, 10);
	if (*end || !out->look || !out->last || out->last > VV_MAX_EPOCH)
		return vv_err_set(VV_EINVAL, VV_RUN_PROTOCOL_REHEARSE "=%.40s is not two numbers of epochs, as in 5-7", text);
	return 0;
}

/* The arguments of this process after those of the command. The caller frees only the array of
 * pointers. */
static char **command_line(char *n, char *text, size_t len)
{
	static char command[] = "varve", run[] = "run", rehearse[] = "--rehearse", end[] = "--";
	char *const before[] = { command, run, rehearse, n, end };
	size_t k = sizeof(before) / sizeof(before[0]), words = 0;
	char **argv;

	for (size_t i = 0; i < len; i++)
		words += text[i] == '\0';
	argv = vv_mem_new(k + words + 1, sizeof(*argv));
	if (!argv)
		return NULL;
	memcpy(argv, before, sizeof(before));
	for (char *p = text; p < text + len; p += strlen(p) + 1)
		argv[k++] = p;
	return argv;
}

/* The arguments of this process, each with its terminating zero. */
static int read_arguments(struct vv_buf *out)
{
	char part[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t got = 0;

	while (fd >= 0 && (got = read(fd, part, sizeof(part))) > 0)
		vv_buf_add(out, part, (size_t)got);
	if (fd < 0 || got < 0)
		vv_err_sys(errno, "cannot read /proc/self/cmdline");
	if (fd >= 0)
		close(fd);
	return fd < 0 || got < 0 ? VV_EIO : vv_buf_check(out);
}

int vv_rehearse_exec(uint64_t n, bool ranks)
{
	char number[24], **argv = NULL;
	struct vv_buf text = { 0 };
	int rc;

	if (ranks)
		return vv_err_set(VV_EINVAL, "rehearse=%" PRIu64 ": a program of many ranks is rehearsed by 'varve run -n RANKS --rehearse %" PRIu64 " -- PROGRAM'", n, n);
	rc = read_arguments(&text);
	if (rc == 0 && (text.n == 0 || text.p[text.n - 1] != '\0'))
		rc = vv_err_set(VV_EINVAL, "rehearse=%" PRIu64 ": this program has changed its arguments; use 'varve run --rehearse'", n);
	if (rc == 0) {
		snprintf(number, sizeof(number), "%" PRIu64, n);
		argv = command_line(number, (char *)text.p, text.n);
		rc = argv ? 0 : VV_ENOMEM;
	}
	if (rc == 0) {
		fflush(NULL);
		execvp("varve", argv);
		rc = vv_err_sys(errno, "rehearse=%" PRIu64 ": cannot start the command 'varve', which must be on the PATH", n);
	}
	vv_mem_free(argv);
	vv_buf_fini(&text);
	return rc;
}

const char *vv_rehearse_store(const char *store)
{
	const char *own = vv_env_get(VV_RUN_PROTOCOL_STORE);

	return own && *own ? own : store;
}

int vv_rehearse_adjust_options(struct vv_conf *c)
{
	static const char *const names[] = { "interval", "overhead", "mtbf", "keep", "keep-every", "keep-within" };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++)
		rc = vv_conf_set(c, names[i], "0", "varve run --rehearse");
	/* its epochs are only compared */
	return rc ? rc : vv_conf_set(c, "tiers", "", "varve run --rehearse");
}

int vv_rehearse_poison(struct varve *v)
{
	struct vv_want *want = vv_mem_new(v->n_regions, sizeof(*want));
	struct vv_make_writable writable = { 0 };
	size_t n = 0;
	int rc, device;

	if (!want)
		return VV_ENOMEM;
	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];

		if (r->shape.len && !vv_device_restore_space(r->p, (size_t)r->shape.len, &device))
			want[n++] = (struct vv_want){ NULL, 0, r->shape.len, r->p, r->name };
	}
	rc = vv_restore_make_writable(want, n, &writable);
	for (size_t i = 0; rc == 0 && i < n; i++)
		memset(want[i].to, POISON, (size_t)want[i].len);
	rc = vv_restore_protect_again(&writable, rc);
	vv_mem_free(want);
	return rc;
}

void vv_rehearse_before(struct varve *v)
{
	uint64_t next = varve_epoch(v) + 1;

	if (vv_rehearse_declare && (next == v->rehearse->look || next == v->rehearse->look + 1))
		vv_rehearse_declare(v);
}

/* Removes the undeclared regions before the program frees their memory. */
static void forget_undeclared(struct varve *v)
{
	for (size_t i = v->n_regions; i-- > 0;)
		if (strncmp(v->region[i]->name, VV_REHEARSE_UNDECLARED, strlen(VV_REHEARSE_UNDECLARED)) == 0)
			varve_unprotect(v, v->region[i]->name);
}

int vv_rehearse_after(struct varve *v, int rc)
{
	forget_undeclared(v);
	if (rc || varve_epoch(v) < v->rehearse->last)
		return rc;
	rc = varve_wait(v, varve_epoch(v));
	if (rc)
		fprintf(stderr, "varve: the rehearsal fails: %s\n", varve_last_error());
	fflush(NULL);
	_exit(rc ? 1 : 0);
}
