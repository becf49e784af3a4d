#include "image/save/process_areas.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "image/process/process_tree.h"
#include "reader/pagemap.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 16 << 10, TEXT_MOST = 256 << 20 };

static const char deleted[] = " (deleted)";

/* ---- the map --------------------------------------------------------------------------------- */

/* Reads a file below /proc/PID completely, into new memory; NULL in *out: it cannot be read. */
static int read_whole(pid_t pid, const char *name, char **out)
{
	size_t cap = TEXT;
	ssize_t n = -1;

	*out = NULL;
	do {
		vv_mem_free(*out);
		cap *= 4;
		*out = vv_mem_new(cap, 1);
		if (!*out)
			return VV_ENOMEM;
		n = vv_process_tree_read(pid, name, *out, cap);
	} while (n + 1 >= (ssize_t)cap && cap < TEXT_MOST);
	if (n < 0) {
		vv_mem_free(*out);
		*out = NULL;
	}
	return 0;
}

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Returns the segment for the kernel's name of an area without a file. */
static uint8_t segment_named(const char *name)
{
	static const struct {
		const char *name;
		uint8_t segment;
	} known[] = {
		{ "[heap]", VV_SEGMENT_HEAP },
		{ "[stack", VV_SEGMENT_STACK },
		{ "[vdso", VV_SEGMENT_VDSO },
		{ "[vvar", VV_SEGMENT_VDSO },
		{ "[vsyscall", VV_SEGMENT_VDSO },
		{ "[anon_shmem:", VV_SEGMENT_SHARED },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (starts(name, known[i].name))
			return known[i].segment;
	return VV_SEGMENT_NONE;
}

/* Parses "FROM-TO MODE OFFSET DEVICE INODE [NAME]"; *exe becomes the start of the executable. */
static int add_line(struct vv_process_areas *a, const char *line, const char *program, uint64_t *exe)
{
	unsigned long long from, to;
	struct vv_memory_areas_area area = { 0 };
	char mode[5];
	int at = 0;
	size_t n;

	if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %*u %n", &from, &to, mode, &at) != 3 || !at)
		return 0;
	line += at;
	area.from = from;
	area.to = to;
	area.writable = mode[1] == 'w';
	area.executable = mode[2] == 'x';
	if (*line != '/') {
		area.segment = segment_named(line);
		return vv_memory_areas_add(&a->memory, &area, NULL, 0);
	}
	if (!*exe && program[0] && strcmp(line, program) == 0)
		*exe = from;
	if (mode[3] == 'p' && strcmp(line, "/dev/zero") == 0)
		return vv_memory_areas_add(&a->memory, &area, NULL, 0);
	n = strlen(line);
	if (n > sizeof(deleted) - 1 && strcmp(line + n - (sizeof(deleted) - 1), deleted) == 0)
		n -= sizeof(deleted) - 1;
	return vv_memory_areas_add(&a->memory, &area, line, n);
}

static int read_map(struct vv_process_areas *a, pid_t pid)
{
	char path[64], program[PATH_MAX] = "";
	uint64_t exe = 0;
	int rc = read_whole(pid, "maps", &a->text);

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (readlink(path, program, sizeof(program) - 1) < 0)
		program[0] = '\0';
	for (char *line = a->text, *end; rc == 0 && line && *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		rc = add_line(a, line, program, &exe);
	}
	vv_memory_areas_finish(&a->memory, exe);
	return rc;
}

/* For a stopped thread, the stack pointer is the last word but one: [NUMBER ARGUMENT...] SP PC. */
static void mark_stacks(struct vv_process_areas *a, pid_t pid)
{
	char path[64], text[256];
	const struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char *pc;

		snprintf(path, sizeof(path), "task/%.20s/syscall", e->d_name);
		if (e->d_name[0] == '.' || vv_process_tree_read(pid, path, text, sizeof(text)) <= 0)
			continue;
		pc = strrchr(text, ' ');
		if (pc) {
			const char *sp;

			*pc = '\0';
			sp = strrchr(text, ' ');
			vv_memory_areas_mark(&a->memory, sp ? strtoull(sp, NULL, 16) : 0, VV_SEGMENT_STACK);
		}
	}
	if (d)
		closedir(d);
}

int vv_process_areas_open(struct vv_process_areas *a, pid_t pid)
{
	int rc;

	*a = (struct vv_process_areas){ 0 };
	vv_memory_areas_init(&a->memory, &a->outline);
	rc = read_map(a, pid);
	if (rc == 0)
		mark_stacks(a, pid);
	return rc;
}

void vv_process_areas_close(struct vv_process_areas *a)
{
	vv_memory_areas_fini(&a->memory);
	vv_reader_outline_fini(&a->outline);
	vv_mem_free(a->text);
	*a = (struct vv_process_areas){ 0 };
}

/* ---- pages ----------------------------------------------------------------------------------- */

int vv_process_areas_place(struct vv_process_areas *a, const uint8_t *pagemap, size_t n, uint64_t len)
{
	uint64_t id;
	int rc;

	vv_map_clear(&a->memory.by_name);
	vv_reader_outline_fini(&a->outline);
	rc = vv_pagemap_pieces(vv_pagemap_open(pagemap, n, &id), (uint64_t)sysconf(_SC_PAGESIZE), len, &a->memory);
	return a->outline.full ? 0 : rc;
}

void vv_process_areas_find(const struct vv_process_areas *a, uint64_t at, size_t *len, const char **variable, uint8_t *segment)
{
	const struct vv_outline *o = &a->outline;
	size_t i;
	uint64_t left = *len;

	*segment = VV_SEGMENT_ANON;
	*variable = vv_segment_name(VV_SEGMENT_ANON);
	VV_SEARCH(i, 0, o->n_pieces, o->piece[i].at + o->piece[i].len <= at);
	if (i == o->n_pieces)
		return;
	if (o->piece[i].at > at) {
		left = o->piece[i].at - at;
	} else {
		const struct vv_variable *v = &o->variable[o->piece[i].variable];

		left = o->piece[i].at + o->piece[i].len - at;
		*segment = v->segment;
		*variable = v->name + 1;
	}
	*len = left < *len ? (size_t)left : *len;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Parses "NSpid: OUTER ... INNER" and returns the innermost number. */
static pid_t number_inside(pid_t pid)
{
	char text[4096];
	const char *at = vv_process_tree_read(pid, "status", text, sizeof(text)) > 0 ? strstr(text, "\nNSpid:") : NULL;
	long number = pid;
	char *end;

	for (at = at ? at + strlen("\nNSpid:") : "";; at = end) {
		long next = strtol(at, &end, 10);

		if (end == at)
			break;
		number = next;
	}
	return (pid_t)number;
}

int vv_process_areas_pids(pid_t root, struct vv_process_areas_pid **out, size_t *n)
{
	struct vv_process_tree t = { 0 };
	int rc = vv_process_tree_list(root, &t);

	if (rc && rc != VV_ENOMEM) {
		vv_err_clear();
		rc = 0;
	}
	*n = 0;
	*out = rc ? NULL : vv_mem_new(t.n, sizeof(**out));
	if (rc == 0 && !*out)
		rc = VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < t.n; i++)
		(*out)[(*n)++] = (struct vv_process_areas_pid){ number_inside(t.pid[i]), t.pid[i] };
	vv_process_tree_fini(&t);
	return rc;
}
