// ctest: TIMEOUT 120 COST 1
/* Processes that are ended while they make others; and those that run as criu, in one folder or another. */
#include "base/clock.h"
#include "image/process/process_tree.h"
#include "support/place.h"
#include "vv_test.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 30, MOST = 400 };

__attribute__((noreturn)) static void wait_for_end(void)
{
	for (;;)
		pause();
}

/* Its children end by a signal only, and are ours when it has ended. */
static void start_maker(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return;
	for (int i = 0; i < MOST; i++)
		if (fork() == 0)
			wait_for_end();
	wait_for_end();
}

static void test_makers(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	for (int i = 0; i < ROUNDS; i++) {
		start_maker();
		vv_clock_sleep(i * 0.0002);
		alarm(60); /* it must not wait for one that it has not killed */
		vv_process_tree_clear();
		alarm(0);
		CHECK(waitpid(-1, NULL, WNOHANG) < 0);
	}
}

/* This program under that name. */
static pid_t start(const char *name, const char *verb, const char *folder)
{
	int ready[2];
	pid_t pid;
	char byte;

	CHECK(pipe(ready) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(ready[1], STDOUT_FILENO);
		close(ready[1]);
		execl("/proc/self/exe", name, verb, "-D", folder, (char *)NULL);
		_exit(127);
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void test_criu(void)
{
	static const struct {
		const char *name, *verb, *folder;
		bool ends;
	} cases[] = {
		{ "criu", "restore", "here", true },   { "criu", "restore", "here", true },  { "criu", "restore", "her", false },
		{ "criu", "restore", "here2", false }, { "criu", "restore", "here/x", false }, { "criu", "dump", "here", false },
		{ "crit", "restore", "here", false },
	};
	enum { N = sizeof(cases) / sizeof(cases[0]) };
	char folder[PLACE_MAX];
	pid_t pid[N];

	for (size_t i = 0; i < N; i++)
		pid[i] = start(cases[i].name, cases[i].verb, place_path(folder, cases[i].folder));
	kill(pid[0], SIGSTOP);
	vv_process_tree_end_criu(place_path(folder, "here"));
	for (size_t i = 0; i < N; i++) {
		CHECK_EQ(waitpid(pid[i], NULL, WNOHANG), cases[i].ends ? pid[i] : 0);
		if (cases[i].ends)
			continue;
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) { /* as one of those */
		(void)!write(STDOUT_FILENO, "", 1);
		wait_for_end();
	}
	test_makers();
	test_criu();
	return 0;
}
