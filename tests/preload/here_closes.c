/* Closes all descriptors but its first three, again and again, while epochs are being stored, and opens others in their place. */
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { LEN = 4 << 20, FILES = 12 };

static void close_all(const char *how)
{
	if (strcmp(how, "range") == 0)
		expect("a range", close_range(3, ~0u, 0) == 0);
	else if (strcmp(how, "from") == 0)
		closefrom(3);
	else
		for (int fd = 3; fd < sysconf(_SC_OPEN_MAX) && fd < 5000; fd++)
			expect("one that is not there", close(fd) == 0 || errno == EBADF);
}

/* Any number that programs ask for can be had. */
static void open_others(const char *path)
{
	enum { ASKED = 100 };
	int fd[FILES];

	for (int i = 0; i < FILES; i++) {
		fd[i] = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
		expect("a small number", fd[i] >= 3 && fd[i] < ASKED);
	}
	expect("its own words", write(fd[FILES - 1], "its own\n", 8) == 8);
	expect("a number that is asked for", dup2(fd[0], ASKED) == ASKED && dup3(fd[0], ASKED + 1, O_CLOEXEC) == ASKED + 1);
	expect("it may close those", close(ASKED) == 0 && close(ASKED + 1) == 0);
	for (int i = 0; i < FILES; i++)
		expect("what is its own it may close", close(fd[i]) == 0);
}

int main(int argc, char **argv)
{
	struct {
		long step;
		unsigned char memory[LEN];
	} *s = calloc(1, sizeof(*s));
	int status = 1;

	if (!s || argc < 4)
		return 1;
	varve_root_here(s);
	for (; s->step < atol(argv[1]); s->step++) {
		for (size_t i = (size_t)s->step; i < LEN; i += 4096)
			s->memory[i] = (unsigned char)(i + (size_t)rand());
		varve_checkpoint_here();
		close_all(argv[3]);
		open_others(argv[2]);
		if (s->step % 8 == 0) { /* a child closes them for good */
			pid_t pid = fork();

			if (pid == 0) {
				close_all(argv[3]);
				_exit(fcntl(3, F_GETFD) >= 0);
			}
			expect("a child", waitpid(pid, &status, 0) == pid && status == 0);
		}
	}
	puts(bad ? "bad" : "good");
	return bad != 0;
}
