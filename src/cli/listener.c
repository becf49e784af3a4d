#include "cli/listener.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool vv_listener_look(pid_t pid, struct vv_listener *out)
{
	char line[256];
	int leader = (int)pid;
	FILE *f;

	*out = (struct vv_listener){ .state = '?' };
	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	f = fopen(line, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &out->state);
		sscanf(line, "Tgid: %d", &leader);
		sscanf(line, "SigCgt: %llx", &out->caught);
	}
	fclose(f);
	out->leader = (pid_t)leader;
	return true;
}

bool vv_listener_catches(const struct vv_listener *l, int sig)
{
	return l->caught >> (sig - 1) & 1;
}

unsigned vv_listener_ask(pid_t group, int sig)
{
	struct vv_listener l;
	DIR *d = opendir("/proc");
	unsigned asked = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t pid = (pid_t)atol(e->d_name);

		if (pid > 0 && getpgid(pid) == group && vv_listener_look(pid, &l) && vv_listener_catches(&l, sig))
			asked += kill(pid, sig) == 0;
	}
	if (d)
		closedir(d);
	return asked;
}
