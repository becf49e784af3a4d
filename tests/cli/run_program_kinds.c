/* A program with one line of varve in it that does what programs do with processes: run_program_kinds MODE STEPS
 *
 *	plain   nothing of the kind
 *	exec    becomes itself once more, before its first call; "reexec": in the midst
 *	early   its child calls before it does; "late": after
 *	tools   starts others, by every call there is
 *	nested  starts itself, by a shell
 * Prints what its state has come to. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_here.h>

extern char **environ;

static const char *mode;

static int is(const char *name)
{
	return strcmp(mode, name) == 0;
}

static void become_self(char **argv, const char *mark)
{
	if (getenv(mark))
		return;
	setenv(mark, "1", 1);
	execv("/proc/self/exe", argv);
	exit(9);
}

static void call_in_child(int times)
{
	if (fork() != 0)
		return;
	for (int i = 0; i < times; i++) {
		fprintf(stderr, "child: %d\n", varve_checkpoint_here());
		usleep(20000);
	}
	_exit(0);
}

/* It has called when this returns, and ends only when the other end of the pipe is closed. */
static int call_in_child_first(void)
{
	int called[2], over[2];
	char c;

	if (pipe(called) != 0 || pipe(over) != 0)
		exit(9);
	if (fork() == 0) {
		close(over[1]);
		fprintf(stderr, "child: %d\n", varve_checkpoint_here());
		if (write(called[1], "", 1) != 1)
			_exit(9);
		(void)!read(over[0], &c, 1);
		fprintf(stderr, "child: %d\n", varve_checkpoint_here());
		_exit(0);
	}
	close(over[0]);
	if (read(called[0], &c, 1) != 1)
		exit(9);
	close(called[0]);
	close(called[1]);
	return over[1];
}

static void start_tools(void)
{
	char *words[] = { (char *)"true", NULL }, line[16] = "";
	int status = 1, bad = system("exit 3") != 3 << 8;
	FILE *f = popen("echo word", "r");
	pid_t pid;

	bad |= !fgets(line, sizeof(line), f) || strcmp(line, "word\n") != 0 || pclose(f) != 0;
	bad |= posix_spawnp(&pid, "true", NULL, NULL, words, environ) != 0 || waitpid(pid, &status, 0) != pid || status != 0;
	pid = vfork();
	if (pid == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(9);
	}
	bad |= waitpid(pid, &status, 0) != pid || status != 0;
	if (bad)
		exit(8);
}

int main(int argc, char **argv)
{
	struct { long step, sum; char noise[100000]; } *s = calloc(1, sizeof(*s));
	long steps = argc > 2 ? atol(argv[2]) : 6;
	int child = -1;

	mode = argc > 1 ? argv[1] : "plain";
	varve_root_here(s);
	if (is("exec"))
		become_self(argv, "RUN_PROGRAM_EXEC");
	if (is("early"))
		child = call_in_child_first();
	for (; s->step < steps; s->step++) {
		varve_checkpoint_here();
		if (child >= 0 && s->step == 2)
			close(child);
		s->sum = s->sum * 31 + s->step;
		memset(s->noise, (int)s->step, sizeof(s->noise));
		if (is("late"))
			call_in_child(1);
		if (is("tools"))
			start_tools();
		if (is("nested") && s->step == 2 && system("\"$RUN_PROGRAM\" plain 3 >&2") != 0)
			return 7;
		if (is("reexec") && s->step == 3)
			become_self(argv, "RUN_PROGRAM_EXEC");
		usleep(10000);
	}
	while (wait(NULL) > 0) {
	}
	printf("%ld %ld\n", s->step, s->sum);
	return 0;
}
