// Programs are started with a group, streams and signals of their own, end with us if they are bound, and how they ended is told as a shell would.
#include "base/child.h"
#include "base/err.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* As exec wants them. */
static char *const *words_of(const char *const *word)
{
	return (char *const *)(uintptr_t)word;
}

static int run(const char *script, const char *input, int output)
{
	const char *const word[] = { "sh", "-c", script, NULL };
	const struct vv_child how = { .argv = words_of(word), .input = input, .output = output };
	int status = -1;
	pid_t pid = 0;

	CHECK_EQ(vv_child_start(&how, &pid), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_ends(void)
{
	char words[VV_CHILD_WORDS];
	int status = run("exit 0", NULL, -1);

	CHECK(vv_child_is_fine(status));
	CHECK_EQ(vv_child_code(status), 0);
	status = run("exit 7", NULL, -1);
	CHECK(!vv_child_is_fine(status));
	CHECK_EQ(vv_child_code(status), 7);
	CHECK_STR(vv_child_describe(status, words), "ended with status 7");
	status = run("kill -9 $$", NULL, -1);
	CHECK(!vv_child_is_fine(status));
	CHECK_EQ(vv_child_code(status), 137);
	CHECK_STR(vv_child_describe(status, words), "was killed by signal 9 (Killed)");
}

static void test_find(void)
{
	static char far[2 * PATH_MAX];
	char path[PATH_MAX];

	CHECK(vv_child_find("sh", ":/nowhere::/bin:/usr/bin", path));
	CHECK_STR(path, "/bin/sh");
	CHECK(!vv_child_find("sh", "", path));
	CHECK(!vv_child_find("sh", "::", path));
	CHECK(!vv_child_find("sh", "/nowhere", path));
	CHECK(!vv_child_find("no-such-program", "/bin:/usr/bin", path));
	memset(far, '/', sizeof(far) - 6);
	strcpy(far + sizeof(far) - 6, ":/bin");
	CHECK(vv_child_find("sh", far, path)); /* what is too long is passed over */
	CHECK_STR(path, "/bin/sh");
}

static void test_cannot_start(void)
{
	const char *const word[] = { "/nowhere/no-such-program", NULL };
	const struct vv_child how = { .argv = words_of(word), .output = -1 };
	pid_t pid = 77;

	CHECK_EQ(vv_child_start(&how, &pid), VV_ENOENT);
	CHECK_EQ(pid, 77);
	CHECK(strstr(vv_err_last(), "cannot start '/nowhere/no-such-program'"));
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD); /* nothing is left of it */
}

static void test_streams(void)
{
	int ends[2];
	char text[64] = "";

	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	CHECK_EQ(run("wc -c; echo err >&2", "/dev/null", ends[1]), 0);
	close(ends[1]);
	CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
	CHECK_STR(text, "0\nerr\n");
	close(ends[0]);
}

/* Blocked ones reach it; what we ignore for ourselves it does not ignore; what others made us ignore it ignores, too. */
static void test_signals(void)
{
	static const int some[] = { SIGCHLD, SIGTERM, SIGHUP };
	sigset_t set;

	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	set = vv_child_block(some, 3);
	CHECK(sigismember(&set, SIGTERM));
	CHECK(!sigismember(&set, SIGHUP));
	CHECK_EQ(vv_child_code(run("kill $$; sleep 9", NULL, -1)), 128 + SIGTERM);
	CHECK_EQ(vv_child_code(run("kill -PIPE $$; exit 3", NULL, -1)), 128 + SIGPIPE);
	CHECK_EQ(vv_child_code(run("kill -HUP $$; exit 3", NULL, -1)), 3);
	while (vv_child_await(&set, 0) == SIGCHLD) {
	}
	CHECK_EQ(vv_child_await(&set, 0.01), 0);
	raise(SIGHUP);
	raise(SIGTERM);
	CHECK_EQ(vv_child_await(&set, 5), SIGTERM);
	CHECK_EQ(vv_child_await(&set, -1), 0);
	signal(SIGHUP, SIG_DFL);
}

/* A process that starts one and is killed: the kernel ends that one with it. */
static void test_bound(void)
{
	const char *const word[] = { "sleep", "99", NULL };
	int ends[2], status;
	pid_t middle, pid = 0;
	char c;

	CHECK_EQ(pipe(ends), 0); /* the program has it open as long as it is there */
	middle = fork();
	if (middle == 0) {
		const struct vv_child how = { .argv = words_of(word), .output = -1, .dies_with_parent = true };

		if (vv_child_start(&how, &pid) == 0 && getpgid(pid) == pid)
			_exit(0);
		_exit(1);
	}
	close(ends[1]);
	CHECK_EQ(waitpid(middle, &status, 0), middle);
	CHECK_EQ(status, 0);
	CHECK_EQ(read(ends[0], &c, 1), 0);
	close(ends[0]);
}

int main(void)
{
	test_ends();
	test_find();
	test_cannot_start();
	test_streams();
	test_signals();
	test_bound();
	return 0;
}
