// ctest: TIMEOUT 60 COST 3
/* What runs as criu may say nothing, too much, end early, leave somebody behind, or never end. */
#include "base/clock.h"
#include "base/err.h"
#include "image/criu/criu.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_S = 1000 };

static char path[PLACE_MAX], pids[PLACE_MAX];

/* A shell that stands in for criu; it writes its number, and those of whom it starts by `keep`, into a file. */
static int ask(const char *script, double limit_s, char *out, size_t cap, int *status)
{
	static const char *const word[] = { "criu", "check", NULL };
	FILE *f = fopen(path, "we");

	CHECK(f != NULL);
	fprintf(f, "#!/bin/sh\necho $$ > %s\nkeep() { \"$@\" & echo $! >> %s; }\n%s\n", pids, pids, script);
	fclose(f);
	CHECK(chmod(path, 0700) == 0 && setenv("VARVE_CRIU", path, 1) == 0);
	return vv_criu_ask(word, limit_s, out, cap, status);
}

static int count_alive(bool end)
{
	FILE *f = fopen(pids, "re");
	int pid, n = 0;

	CHECK(f != NULL);
	while (fscanf(f, "%d", &pid) == 1) {
		char name[64], state = 'X';
		FILE *stat;

		snprintf(name, sizeof(name), "/proc/%d/stat", pid);
		stat = fopen(name, "re");
		if (stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && !strchr("XZ", state)) {
			n++;
			if (end)
				kill(pid, SIGKILL);
		}
		if (stat)
			fclose(stat);
	}
	fclose(f);
	return n;
}

static void test_answers(void)
{
	char out[64];
	int status;

	CHECK_EQ(ask("echo one; echo two >&2; exit 3", LONG_S, out, sizeof(out), &status), 0);
	CHECK_STR(out, "one\ntwo\n");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK_EQ(ask("exec >&- 2>&-; sleep 0.2; exit 4", LONG_S, out, sizeof(out), &status), 0);
	CHECK_STR(out, "");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
	CHECK_EQ(ask("head -c 300000 /dev/zero | tr '\\0' x; kill -9 $$", LONG_S, out, 8, &status), 0);
	CHECK_STR(out, "xxxxxxx");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_leaves_somebody(void)
{
	char out[64];
	int status;

	CHECK_EQ(ask("keep sleep 1000; echo done", LONG_S, out, sizeof(out), &status), 0);
	CHECK_STR(out, "done\n");
	CHECK_EQ(count_alive(true), 1); /* that one is not ours to end, but here it is */
}

static void test_never_ends(void)
{
	static const char *const scripts[] = { "sleep 1000", "trap '' TERM INT HUP; keep sleep 1000; while :; do sleep 1; done", "exec >&- 2>&-; sleep 1000",
					       "kill -STOP $$" };
	char out[64];
	int status;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		CHECK_EQ(ask(scripts[i], 0.5, out, sizeof(out), &status), VV_EIO);
		CHECK(strstr(vv_err_last(), "'criu check' has not ended in 0.5 s, and was killed: try it by hand") != NULL);
		for (int k = 0; count_alive(false) && k < 200; k++)
			vv_clock_sleep(0.05);
		CHECK_EQ(count_alive(true), 0);
		CHECK(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
	}
}

int main(void)
{
	place_path(path, "criu");
	place_path(pids, "pids");
	test_answers();
	test_leaves_somebody();
	test_never_ends();
	return 0;
}
