/* Children that are made just while other threads come to their first allocation, look at what is loaded, or are in the first call: none of them may wait for a
 * lock that nobody will open. Of one that does it is told where. Linked with -rdynamic. here_births CHILDREN */
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { THREADS = 16, PATIENCE = 60 };

static int *state, begun; /* begun: the session is the parent's */
static __thread int begins;
static pthread_barrier_t together;
static sem_t looks, looked;

static void *allocate(void *arg)
{
	if (arg)
		pthread_barrier_wait(&together);
	return malloc(100);
}

/* From a page of code that has not asked for memory before. */
__attribute__((noinline, section(".text.elsewhere"), aligned(4096))) static int allocates_elsewhere(void)
{
	void *volatile p = malloc(10);

	free(p);
	return p != NULL;
}

static void grow_up(void)
{
	pthread_t thread;
	void *p = malloc(10);

	free(p);
	_exit(!p || !allocates_elsewhere() || pthread_create(&thread, NULL, allocate, NULL) != 0 || pthread_join(thread, &p) != 0 || !p ||
	      (begun && varve_checkpoint_here() != 0));
}

static void tell_where(pid_t pid)
{
	char command[300];

	snprintf(command, sizeof(command), "unset LD_PRELOAD; cd /proc/%d/task && grep . /dev/null */comm */wchan */syscall */stack >&2; "
		 "timeout -s KILL 40 gdb -p %d -batch -ex 'thread apply all bt' </dev/null >&2 2>&1", (int)pid, (int)pid);
	if (system(command) != 0)
		fprintf(stderr, "that is all that can be told of %d\n", (int)pid);
}

static int is_well(pid_t pid)
{
	int status = 1;

	for (int ms = 0; ms < PATIENCE * 1000; ms++, usleep(1000))
		if (waitpid(pid, &status, WNOHANG) != 0)
			return status == 0;
	tell_where(pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return 0;
}

static int bear_beside_allocations(void)
{
	pthread_t thread[THREADS];
	void *p = NULL;
	pid_t pid;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, allocate, &together) != 0)
			exit(3);
	pthread_barrier_wait(&together);
	pid = fork();
	if (pid == 0)
		grow_up();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &p);
		free(p);
	}
	return is_well(pid);
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info, (void)size, (void)arg;
	sem_post(&looks);
	sem_wait(&looked);
	return 1;
}

static void *look_around(void *arg)
{
	dl_iterate_phdr(look, arg);
	return NULL;
}

/* The loader's lock is taken while the child is made, and for as long as it lives. */
static int bear_beside_look(void)
{
	pthread_t thread;
	pid_t pid;
	int well;

	if (pthread_create(&thread, NULL, look_around, NULL) != 0)
		exit(3);
	sem_wait(&looks);
	pid = fork();
	if (pid == 0)
		grow_up();
	well = is_well(pid);
	sem_post(&looked);
	pthread_join(thread, NULL);
	return well;
}

/* The first call looks which signals are handled, and comes here. */
int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);
int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	if (begins) {
		begins = 0;
		look(NULL, 0, NULL);
	}
	return __sigaction(sig, act, old);
}

static void *call(void *result)
{
	begins = 1;
	*(int *)result = varve_checkpoint_here();
	return NULL;
}

static int bear_beside_first_call(void)
{
	pthread_t thread;
	int well, rc = -1;
	pid_t pid;

	if (pthread_create(&thread, NULL, call, &rc) != 0)
		exit(3);
	sem_wait(&looks);
	begun = 1;
	pid = fork();
	if (pid == 0)
		grow_up();
	well = is_well(pid);
	sem_post(&looked);
	pthread_join(thread, NULL);
	if (rc < 0)
		exit(4);
	return well;
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 100, well = 1;

	state = calloc(1, sizeof(*state));
	pthread_barrier_init(&together, NULL, THREADS + 1);
	sem_init(&looks, 0, 0);
	sem_init(&looked, 0, 0);
	varve_root_here(state);
	well = bear_beside_look() && bear_beside_first_call();
	for (; well && *state < children; *state += well) {
		if (varve_checkpoint_here() < 0)
			return 4;
		well = bear_beside_allocations() && bear_beside_look();
	}
	printf("%d of %d\n", *state, children);
	return !well;
}
