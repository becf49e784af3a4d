/* Nothing is said of processes that have ended since they were listed; of those that may not be looked at it is said. */
#include "image/check/open_files.h"
#include "vv_test.h"
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static void tell(void *arg, bool grave, const char *text)
{
	(void)arg;
	printf("%s: %s\n", grave ? "grave" : "note", text);
}

static unsigned look(pid_t pid)
{
	struct vv_check c = { .report = tell };
	struct vv_open_files b = { .check = &c, .pid = pid };

	vv_open_files_check(&b);
	return c.grave;
}

/* What another user finds; none: we may not be another one. */
static int look_as_nobody(pid_t pid, int none)
{
	pid_t other = fork();
	int status;

	if (other == 0)
		_exit(setuid(NOBODY) < 0 ? none : (int)look(pid));
	CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	CHECK(pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK_EQ(look(pid), 0);
	CHECK_EQ(look_as_nobody(pid, 0), 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK_EQ(look(pid), 0);
	CHECK_EQ(look_as_nobody(pid, 0), 0);
	CHECK_EQ(look_as_nobody(getpid(), 1), 1);
	return 0;
}
