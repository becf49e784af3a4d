/* One writer at a time: whoever comes second is told who was first; a dead writer holds nobody up; what fork does. */
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve.h>

static char store[PLACE_MAX];

struct other { /* a process that holds a lineage until it is told to go */
	pid_t pid;
	int up, down; /* its word that it is there; ours that it may go */
};

static struct other start_holder(const char *lineage)
{
	int up[2], down[2];
	struct other o;
	char c;

	CHECK(pipe(up) == 0 && pipe(down) == 0);
	o = (struct other){ fork(), up[0], down[1] };
	CHECK(o.pid >= 0);
	if (o.pid == 0) {
		varve *v = NULL;

		close(up[0]);
		close(down[1]);
		c = varve_open(store, lineage, NULL, &v) == 0 ? 'y' : 'n';
		CHECK(write(up[1], &c, 1) == 1);
		if (read(down[0], &c, 1) < 0)
			_exit(1);
		varve_close(v);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	CHECK(read(o.up, &c, 1) == 1 && c == 'y');
	return o;
}

static void stop_holder(struct other *o, int signal)
{
	if (signal)
		kill(o->pid, signal);
	close(o->down);
	close(o->up);
	CHECK(waitpid(o->pid, NULL, 0) == o->pid);
}

static int open_close(const char *lineage)
{
	varve *v = NULL;
	int rc = varve_open(store, lineage, NULL, &v);

	varve_close(v);
	return rc;
}

static void second_process(void)
{
	struct other o = start_holder("a");
	char pid[32];

	snprintf(pid, sizeof(pid), "pid %d", (int)o.pid);
	CHECK_EQ(open_close("a"), VARVE_EBUSY);
	CHECK(strstr(varve_last_error(), pid));
	CHECK(strstr(varve_last_error(), store));
	CHECK_EQ(open_close("a"), VARVE_EBUSY); /* having failed once changes nothing */
	CHECK_EQ(open_close("b"), 0);           /* another lineage is another matter */
	stop_holder(&o, 0);
	CHECK_EQ(open_close("a"), 0);
	o = start_holder("a");
	stop_holder(&o, SIGKILL);
	CHECK_EQ(open_close("a"), 0); /* at once */
}

static void same_process(void)
{
	varve *v = NULL, *w = NULL;
	struct other o;

	CHECK_EQ(varve_open(store, "a", NULL, &v), 0);
	CHECK_EQ(varve_open(store, "a", NULL, &w), VARVE_EBUSY);
	CHECK(strstr(varve_last_error(), "this process"));
	CHECK_EQ(varve_open(store, "b", NULL, &w), 0);
	o = start_holder("c");
	stop_holder(&o, 0);
	varve_close(w);
	varve_close(v);
	CHECK_EQ(open_close("a"), 0);
}

/* The other process's answer to: is the lineage free? */
static int ask(const char *lineage)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(-open_close(lineage));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* A session is of no use in a child, says so, and does no harm there. */
static int try_in_child(varve *v)
{
	const char *said;

	if (varve_checkpoint(v) != VARVE_EINVAL)
		return 1;
	said = varve_last_error();
	if (!strstr(said, "fork") || !strstr(said, "varve_checkpoint"))
		return 2;
	if (varve_restart(v, VARVE_LATEST) != VARVE_EINVAL || varve_due(v) != VARVE_EINVAL)
		return 3;
	if (open_close("a") != VARVE_EBUSY)
		return 4;
	varve_close(v);
	return 0;
}

static void forked(void)
{
	char data[100] = "something";
	varve *v = NULL;
	int status;
	pid_t pid;

	CHECK_EQ(varve_open(store, "a", "threads=1", &v), 0);
	CHECK_EQ(varve_protect(v, "data", data, sizeof(data)), 0);
	CHECK_EQ(settle_checkpoint(v), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(try_in_child(v));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK_EQ(ask("a"), VARVE_EBUSY); /* the child's end did not drop the parent's lock */
	CHECK_EQ(settle_checkpoint(v), 0);
	CHECK_EQ(varve_close(v), 0);
	CHECK_EQ(ask("a"), 0);
}

int main(void)
{
	place_path(store, "store");
	second_process();
	same_process();
	forked();
	return 0;
}
