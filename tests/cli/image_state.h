/* What programs that are frozen and brought back tell of themselves, in a file: "STEP ok" or "STEP broken", and behind it the same of the first step that was told
 * since the file was blank. That is the one they came back to, however long ago. */
#ifndef VV_TEST_IMAGE_STATE_H
#define VV_TEST_IMAGE_STATE_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *file;

/* Writes of one length, in place: a file that is open when the process is frozen must be there, as long as it was, when it comes back. */
static void report(long step, int ok)
{
	char text[32], first[sizeof(text)] = " ";
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	memset(text, ' ', sizeof(text));
	text[snprintf(text, sizeof(text) - 1, "%ld %s", step, ok ? "ok" : "broken")] = ' ';
	text[sizeof(text) - 1] = '\n';
	if (fd < 0 || pwrite(fd, text, sizeof(text), 0) != sizeof(text) || pread(fd, first, sizeof(first), sizeof(text)) < 0)
		exit(1);
	if ((first[0] == ' ' && pwrite(fd, text, sizeof(text), sizeof(text)) != sizeof(text)) || close(fd) != 0 || !ok)
		exit(1);
}

static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

#endif
