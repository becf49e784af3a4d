#include "base/env.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 16 << 10 };

extern char **environ;

static char kept[ROOM]; /* "NAME=VALUE" strings, one after the other */
static size_t used;

static bool is_ours(const char *variable)
{
	return strncmp(variable, "VARVE_", 6) == 0 || strncmp(variable, "AWS_", 4) == 0;
}

void vv_env_keep(void)
{
	used = 0;
	for (char **e = environ; e && *e; e++) {
		size_t n = strlen(*e) + 1;

		if (!is_ours(*e) || n > ROOM - used)
			continue;
		memcpy(kept + used, *e, n);
		used += n;
	}
}

const char *vv_env_get(const char *name)
{
	const char *now = getenv(name);
	size_t n = strlen(name);

	for (const char *at = kept; !now && at < kept + used; at += strlen(at) + 1)
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			now = at + n + 1;
	return now;
}
