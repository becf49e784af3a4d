/* Children that are made just while other threads come to their first allocation: none of them may wait for a lock that nobody will open. One that does is
 * ended by its alarm. here_births CHILDREN */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { THREADS = 16, PATIENCE = 60 };

static int *state;
static pthread_barrier_t together;

static void *allocate(void *arg)
{
	if (arg)
		pthread_barrier_wait(&together);
	return malloc(100);
}

static int is_well(pid_t pid)
{
	int status = 1;

	return waitpid(pid, &status, 0) == pid && status == 0;
}

static int bear(void)
{
	pthread_t thread[THREADS];
	void *p = NULL;
	pid_t pid;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, allocate, &together) != 0)
			exit(3);
	pthread_barrier_wait(&together);
	pid = fork();
	if (pid == 0) {
		alarm(PATIENCE);
		p = malloc(10);
		free(p);
		_exit(!p || pthread_create(&thread[0], NULL, allocate, NULL) != 0 || pthread_join(thread[0], &p) != 0 || !p || varve_checkpoint_here() != 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &p);
		free(p);
	}
	return is_well(pid);
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 100, well = 0;

	state = calloc(1, sizeof(*state));
	pthread_barrier_init(&together, NULL, THREADS + 1);
	varve_root_here(state);
	for (; *state < children; ++*state) {
		if (varve_checkpoint_here() < 0)
			return 4;
		well += bear();
	}
	printf("%d of %d\n", well, children);
	return well != children;
}
