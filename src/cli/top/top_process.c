#include "cli/top/top_process.h"
#include "cli/top/top.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 1 << 16 }; /* bytes of an environment that are read, at most */

/* /proc/PID/FILE, ended by a NUL; its length, or -1. */
static ssize_t read_proc(long pid, const char *file, char *out, size_t cap)
{
	char path[64];
	size_t n = 0;
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (n + 1 < cap && (got = read(fd, out + n, cap - 1 - n)) > 0)
		n += (size_t)got;
	close(fd);
	out[n] = '\0';
	return got < 0 ? -1 : (ssize_t)n;
}

static bool number_after(const char *text, const char *key, uint64_t *out)
{
	const char *at = strstr(text, key);

	if (at)
		*out = strtoull(at + strlen(key), NULL, 10);
	return at;
}

void vv_top_process_read(long pid, struct vv_top_process *out)
{
	char text[4096];
	uint64_t kib = 0;

	*out = (struct vv_top_process){ .pid = pid };
	if (pid <= 0)
		return;
	if (read_proc(pid, "comm", text, sizeof(text)) > 0) {
		text[strcspn(text, "\n")] = '\0';
		snprintf(out->name, sizeof(out->name), "%.63s", text);
	}
	if (read_proc(pid, "status", text, sizeof(text)) > 0 && number_after(text, "\nVmRSS:", &kib))
		out->resident = kib << 10;
	if (read_proc(pid, "io", text, sizeof(text)) > 0)
		out->has_written = number_after(text, "wchar:", &out->written);
}

bool vv_top_process_variable(long pid, const char *name, char *out, size_t n)
{
	static char text[TEXT];
	size_t len = strlen(name);
	ssize_t all = read_proc(pid, "environ", text, sizeof(text));

	for (ssize_t i = 0; i < all; i += (ssize_t)strlen(text + i) + 1)
		if (strncmp(text + i, name, len) == 0 && text[i + (ssize_t)len] == '=') {
			snprintf(out, n, "%s", text + i + len + 1);
			return true;
		}
	return false;
}
