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

/* Those that another program started, with their later children, are left alone. */
static void test_spared(void)
{
	enum { FROM = 0, TO = 1 };
	int go[2], told[2];
	pid_t theirs, ours, later;

	CHECK(pipe(go) == 0 && pipe(told) == 0);
	theirs = fork();
	if (theirs == 0) {
		char byte;

		CHECK(read(go[FROM], &byte, 1) == 1);
		later = fork();
		if (later == 0)
			wait_for_end();
		CHECK(write(told[TO], &later, sizeof(later)) == sizeof(later));
		wait_for_end();
	}
	CHECK(theirs > 0);
	CHECK_EQ(vv_process_tree_spare(), 0);
	ours = fork();
	if (ours == 0)
		wait_for_end();
	CHECK(ours > 0 && write(go[TO], "", 1) == 1 && read(told[FROM], &later, sizeof(later)) == sizeof(later));
	vv_process_tree_clear();
	CHECK(kill(ours, 0) < 0 && kill(theirs, 0) == 0 && kill(later, 0) == 0);
	CHECK(!vv_process_tree_is_zombie(theirs) && !vv_process_tree_is_zombie(later));
	kill(later, SIGKILL);
	kill(theirs, SIGKILL);
	CHECK_EQ(waitpid(theirs, NULL, 0), theirs);
	CHECK_EQ(waitpid(later, NULL, 0), later);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(told[i]);
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
	test_spared();
	test_criu();
	return 0;
}
