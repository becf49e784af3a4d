/* What the kernel says of this process, in KiB: VmRSS, VmHWM, ... */
#ifndef VV_TEST_STATUS_H
#define VV_TEST_STATUS_H

#include "support/must.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long status_kib(const char *what)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[200];
	long kib = -1;

	MUST(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, what, strlen(what)) == 0)
			kib = strtol(line + strlen(what) + 1, NULL, 10);
	fclose(f);
	return kib;
}

#endif
