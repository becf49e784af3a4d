/* A process made up for tests: its memory, and what readers of its images should call each part. */
#ifndef VV_TEST_PROCESS_H
#define VV_TEST_PROCESS_H

#include "core/format/segment.h"
#include <stdint.h>

enum { PROCESS_PAGE = 4096, PROCESS_READ = 4, PROCESS_WRITE = 2, PROCESS_EXECUTE = 1 };

struct process_area {
	uint64_t from;
	unsigned pages, flags;
	const char *path; /* that it maps; NULL: none */
	const char *name; /* of the variable */
	unsigned segment;
};

static const struct process_area process_areas[] = {
	{ 0x400000, 2, PROCESS_READ | PROCESS_EXECUTE, "/usr/bin/prog", "/prog/text", VV_SEGMENT_CODE },
	{ 0x410000, 1, PROCESS_READ, "/usr/bin/prog", "/prog/constants", VV_SEGMENT_CODE },
	{ 0x411000, 1, PROCESS_READ | PROCESS_WRITE, "/usr/bin/prog", "/prog/data", VV_SEGMENT_CODE },
	{ 0x412000, 2, PROCESS_READ | PROCESS_WRITE, NULL, "/prog/data", VV_SEGMENT_CODE }, /* what is zero at the start */
	{ 0x5000000, 3, PROCESS_READ | PROCESS_WRITE, NULL, "/heap", VV_SEGMENT_HEAP },
	{ 0x7f0000000000, 2, PROCESS_READ | PROCESS_EXECUTE, "/lib/x86_64-linux-gnu/libc.so.6", "/libc.so.6/text", VV_SEGMENT_LIBRARY },
	{ 0x7f0000010000, 1, PROCESS_READ | PROCESS_WRITE, "/lib/x86_64-linux-gnu/libc.so.6", "/libc.so.6/data", VV_SEGMENT_LIBRARY },
	{ 0x7f0000011000, 1, PROCESS_READ | PROCESS_WRITE, NULL, "/libc.so.6/data", VV_SEGMENT_LIBRARY },
	{ 0x7f0000020000, 1, PROCESS_READ | PROCESS_WRITE, "/opt/plugin.so", "/plugin.so/data", VV_SEGMENT_LIBRARY },
	{ 0x7f1000000000, 4, PROCESS_READ | PROCESS_WRITE, NULL, "/anon", VV_SEGMENT_ANON },
	{ 0x7f2000000000, 2, PROCESS_READ | PROCESS_WRITE, NULL, "/stack", VV_SEGMENT_STACK }, /* of a thread */
	{ 0x7f3000000000, 1, PROCESS_READ, "/usr/share/table", "/file", VV_SEGMENT_FILE },
	{ 0x7ffc00000000, 3, PROCESS_READ | PROCESS_WRITE, NULL, "/stack", VV_SEGMENT_STACK },
	{ 0x7fff00000000, 2, PROCESS_READ | PROCESS_EXECUTE, NULL, "/vdso", VV_SEGMENT_VDSO },
};

enum { PROCESS_AREAS = sizeof(process_areas) / sizeof(process_areas[0]) };

static const uint64_t process_thread_stack = 0x7f2000001000, process_first_stack = 0x7ffc00001234, process_vdso = 0x7fff00000000, process_exe = 0x400040;

#endif
