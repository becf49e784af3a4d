#include "cli/run/listener.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool vv_listener_read(pid_t pid, struct vv_listener *out)
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

unsigned vv_listener_signal(pid_t group, int sig)
{
	struct vv_listener l;
	DIR *d = opendir("/proc");
	unsigned asked = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t pid = (pid_t)atol(e->d_name);

		if (pid > 0 && getpgid(pid) == group && vv_listener_read(pid, &l) && vv_listener_catches(&l, sig))
			asked += kill(pid, sig) == 0;
	}
	if (d)
		closedir(d);
	return asked;
}

/* The environment is a sequence of strings, each with its NUL. */
static bool has_variable(pid_t pid, const char *variable)
{
	size_t n = strlen(variable), room = 0;
	char path[64], *word = NULL;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "re");
	while (f && !found && getdelim(&word, &room, 0, f) > 0)
		found = strncmp(word, variable, n) == 0 && word[n] == '=';
	free(word);
	if (f)
		fclose(f);
	return found;
}

static pid_t parent_of(pid_t pid)
{
	char line[256];
	int parent = 0;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "PPid: %d", &parent) != 1)
		;
	if (f)
		fclose(f);
	return (pid_t)parent;
}

bool vv_listener_is_below(pid_t pid, pid_t root)
{
	for (int steps = 0; pid > 1 && steps < 64; steps++) {
		pid = parent_of(pid);
		if (pid == root)
			return true;
	}
	return false;
}

unsigned vv_listener_signal_below(pid_t root, const char *variable, int sig)
{
	struct vv_listener l;
	DIR *d = opendir("/proc");
	unsigned asked = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t pid = (pid_t)atol(e->d_name);

		if (pid > 0 && vv_listener_is_below(pid, root) && vv_listener_read(pid, &l) && vv_listener_catches(&l, sig) && has_variable(pid, variable))
			asked += kill(pid, sig) == 0;
	}
	if (d)
		closedir(d);
	return asked;
}
